"""Statistics shared by the experiments: paired comparisons of seeds, quartiles, standard errors."""

import numpy as np
from scipy import stats


def interval(values: np.ndarray, resamples: int) -> list[float] | None:
    """Return the bootstrap 95% interval of the mean, or None for a single value."""
    if len(values) < 2:
        return None
    drawn = np.random.default_rng(0).integers(
        len(values), size=(resamples, len(values))
    )
    return np.quantile(values[drawn].mean(axis=1), [0.025, 0.975]).tolist()


def paired(ours: np.ndarray, theirs: np.ndarray, resamples: int) -> dict:
    """Compare two methods seed by seed; lower values are better, ties are left out of the test.

    The verdict is "better" or "worse" if the interval of the mean difference excludes 0.
    """
    wins = int(np.sum(ours < theirs))
    losses = int(np.sum(ours > theirs))
    decided = wins + losses
    band = interval(ours - theirs, resamples)
    if band is None or band[0] <= 0.0 <= band[1]:
        verdict = "undecided"
    else:
        verdict = "better" if band[1] < 0.0 else "worse"
    return {
        "mean_difference": float(np.mean(ours - theirs)),
        "interval": band,
        "wins": wins,
        "losses": losses,
        "sign_test_p": float(stats.binomtest(wins, decided).pvalue) if decided else 1.0,
        "verdict": verdict,
    }


def quartiles(values: np.ndarray) -> dict[str, float]:
    """Return the lower quartile, the median and the upper quartile."""
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    return {"quartile": float(low), "median": float(median), "upper": float(high)}


def mean_and_error(values: np.ndarray) -> dict:
    """Return the mean over seeds (axis 0) and its standard error, None for a single seed."""
    values = np.asarray(values)
    count = len(values)
    mean = values.mean(axis=0)
    if count == 1:
        error = np.full(mean.shape, None)
    else:
        error = np.std(values, axis=0, ddof=1) / np.sqrt(count)
    return {"mean": mean.tolist(), "standard_error": error.tolist()}
