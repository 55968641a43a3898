"""Searches compared seed by seed: intervals of mean differences by resampling, and who won how often."""

import numpy as np
from scipy import stats


def interval(values: np.ndarray, resamples: int) -> list[float] | None:
    """The 95% interval of the mean when seeds are drawn anew; no interval is known from one seed."""
    if len(values) < 2:
        return None
    drawn = np.random.default_rng(0).integers(len(values), size=(resamples, len(values)))
    return np.quantile(values[drawn].mean(axis=1), [0.025, 0.975]).tolist()


def against(ours: np.ndarray, theirs: np.ndarray, resamples: int) -> dict:
    """Paired differences over seeds: below 0, the first is better. Ties count for nothing in the sign test."""
    wins, losses = int(np.sum(ours < theirs)), int(np.sum(ours > theirs))
    known = interval(ours - theirs, resamples)
    return {
        "mean_difference": float(np.mean(ours - theirs)),
        "interval": known,
        "wins": wins,
        "losses": losses,
        "sign_test_p": float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0,
        "verdict": "undecided" if known is None or known[0] <= 0.0 <= known[1] else "better" if known[1] < 0.0 else "worse",
    }
