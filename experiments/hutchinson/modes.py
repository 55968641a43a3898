"""Test whether numbers form two groups: Silverman's test, and a mixture of two normals."""

import numpy as np
from sklearn.mixture import GaussianMixture

PLACES = 400  # number of points where densities are evaluated
HALVINGS = 25  # bisection steps for a bandwidth
RESAMPLES = 1000


def two_group_statistics(values: np.ndarray) -> dict:
    """Test for two groups in values (n,).

    Returns the p-value of one mode, and a mixture of two normals: Ashman's D, above 2 for separate
    groups (Ashman et al. 1994), the gain in BIC over one normal, and the depth of the valley
    relative to the lower peak. BIC does not distinguish two groups from a skewed one.
    """
    column = values[:, None]
    one, two = (
        GaussianMixture(k, n_init=5, random_state=0).fit(column) for k in (1, 2)
    )
    order = np.argsort(two.means_[:, 0])
    means, stds, shares = (
        two.means_[order, 0],
        np.sqrt(two.covariances_[order, 0, 0]),
        two.weights_[order],
    )
    return {
        "one_mode_p": one_mode(values),
        "ashman_d": float(np.sqrt(2.0) * (means[1] - means[0]) / np.hypot(*stds)),
        "bic_gain": float(one.bic(column) - two.bic(column)),
        "valley": valley(means, stds, shares),
        "means": means.tolist(),
        "upper_share": float(shares[1]),
    }


def valley(means: np.ndarray, stds: np.ndarray, shares: np.ndarray) -> float:
    """Return 1 − the lowest density between the means / the lower peak; 0 without a valley."""
    places = np.linspace(*means, PLACES)
    density = (
        shares / stds * np.exp(-0.5 * ((places[:, None] - means) / stds) ** 2)
    ).sum(axis=1)
    at = int(np.argmin(density))
    return float(1.0 - density[at] / min(density[: at + 1].max(), density[at:].max()))


def one_mode(values: np.ndarray) -> float:
    """Return the p-value of one mode (Silverman 1981).

    It is the share of samples, drawn from the smoothest fitting density with one mode, that need at
    least this bandwidth for a single mode.
    """
    width, spread = narrowest(values), values.std()
    draw = np.random.default_rng(0)
    chosen = draw.choice(values, (RESAMPLES, len(values))) - values.mean()
    shrunk = (chosen + width * draw.normal(size=chosen.shape)) / np.sqrt(
        1.0 + (width / spread) ** 2
    )
    more = sum(modes(row, width) > 1 for row in shrunk)
    return (1 + more) / (1 + RESAMPLES)


def narrowest(values: np.ndarray) -> float:
    """Return the smallest bandwidth of a normal kernel that gives values one mode."""
    low, high = 0.0, float(np.ptp(values))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if modes(values, middle) > 1 else (low, middle)
    return high


def modes(values: np.ndarray, width: float) -> int:
    """Count the peaks of a kernel density estimate."""
    places = np.linspace(values.min(), values.max(), PLACES)
    density = np.exp(-0.5 * ((places[:, None] - values) / width) ** 2).sum(axis=1)
    rises = np.diff(density, prepend=0.0, append=0.0) > 0.0
    return int(np.sum(rises[:-1] & ~rises[1:]))
