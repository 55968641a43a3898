"""Are numbers in two groups? A test of one mode against more, and what two normal distributions say of the groups."""

import numpy as np
from sklearn.mixture import GaussianMixture

PLACES = 400  # at which densities are looked at
HALVINGS = 25  # of the bracket of a bandwidth
RESAMPLES = 1000


def said(values: np.ndarray) -> dict:
    """Whether values (n,) have one mode (a p value), and the groups of two normals: Ashman's D, which is above 2 where they are
    apart (Ashman et al. 1994), by how much BIC prefers them to one, and how deep the valley between them is, as a share of the
    lower peak; 0 is no valley. BIC alone does not tell two groups from one that is skewed."""
    column = values[:, None]
    one, two = (GaussianMixture(k, n_init=5, random_state=0).fit(column) for k in (1, 2))
    order = np.argsort(two.means_[:, 0])
    means, stds, shares = two.means_[order, 0], np.sqrt(two.covariances_[order, 0, 0]), two.weights_[order]
    return {
        "one_mode_p": one_mode(values),
        "ashman_d": float(np.sqrt(2.0) * (means[1] - means[0]) / np.hypot(*stds)),
        "bic_gain": float(one.bic(column) - two.bic(column)),
        "valley": valley(means, stds, shares),
        "means": means.tolist(),
        "upper_share": float(shares[1]),
    }


def valley(means: np.ndarray, stds: np.ndarray, shares: np.ndarray) -> float:
    """1 − the least density of a mixture between its means / the lower of its two peaks there; 0 without a valley."""
    places = np.linspace(*means, PLACES)
    density = (shares / stds * np.exp(-0.5 * ((places[:, None] - means) / stds) ** 2)).sum(axis=1)
    at = int(np.argmin(density))
    return float(1.0 - density[at] / min(density[: at + 1].max(), density[at:].max()))


def one_mode(values: np.ndarray) -> float:
    """The p value of one mode: how often as many values of the smoothest density with one mode that fits would need as wide a
    kernel to show no second (Silverman 1981)."""
    width, spread = narrowest(values), values.std()
    draw = np.random.default_rng(0)
    chosen = draw.choice(values, (RESAMPLES, len(values))) - values.mean()
    shrunk = (chosen + width * draw.normal(size=chosen.shape)) / np.sqrt(1.0 + (width / spread) ** 2)
    more = sum(modes(row, width) > 1 for row in shrunk)
    return (1 + more) / (1 + RESAMPLES)


def narrowest(values: np.ndarray) -> float:
    """The least bandwidth of a normal kernel by which values have one mode; a wider one never has more."""
    low, high = 0.0, float(np.ptp(values))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if modes(values, middle) > 1 else (low, middle)
    return high


def modes(values: np.ndarray, width: float) -> int:
    """Peaks of the density of values, estimated by a normal kernel."""
    places = np.linspace(values.min(), values.max(), PLACES)
    density = np.exp(-0.5 * ((places[:, None] - values) / width) ** 2).sum(axis=1)
    rises = np.diff(density, prepend=0.0, append=0.0) > 0.0
    return int(np.sum(rises[:-1] & ~rises[1:]))
