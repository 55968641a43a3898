"""Cross-validation folds that all models share, and the significance of paired differences."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


class Paired(NamedTuple):
    """The mean of paired differences over folds, and its significance."""

    mean: float
    error: float  # standard error of the mean, corrected for overlapping training sets
    t: float  # mean / error
    p: float  # two-sided p-value by Student's t with (folds − 1) degrees of freedom


def random_folds(n: int, k: int, seed: int) -> list[np.ndarray]:
    """Split rows 0 … n−1 into k test sets of nearly equal size by a random permutation."""
    return np.array_split(np.random.default_rng(seed).permutation(_checked(n, k)), k)


def contiguous_folds(n: int, k: int) -> list[np.ndarray]:
    """Split rows 0 … n−1 into k test sets in their order, as the authors' code does."""
    return np.array_split(np.arange(_checked(n, k)), k)


def _checked(n: int, k: int) -> int:
    if not 2 <= k <= n:
        raise ValueError(f"k must be between 2 and {n}, the number of rows; got {k}")
    return n


def paired(differences: ArrayLike, test_share: float) -> Paired:
    """Test paired differences (folds,) between two models.

    Folds share most of their training rows, so differences are not independent and the usual
    standard error is too small. The corrected variance of the mean over J folds is
    (1/J + test/train) s² (Nadeau & Bengio 2003, section 5; Bouckaert & Frank 2004 for repeated
    k-fold).

    Args:
        differences: One difference per fold.
        test_share: The share of rows in a test set, 1/k.
    """
    differences = np.asarray(differences, float)
    if (
        differences.ndim != 1
        or len(differences) < 2
        or not np.isfinite(differences).all()
    ):
        raise ValueError(
            f"expected two or more finite differences, one per fold; got {differences}"
        )
    if not 0.0 < test_share < 1.0:
        raise ValueError(f"test_share must be between 0 and 1; got {test_share}")
    n = len(differences)
    mean = differences.mean()
    error = np.sqrt(
        (1.0 / n + test_share / (1.0 - test_share)) * differences.var(ddof=1)
    )
    if error == 0.0:  # all differences are equal: the p-value is 1 or 0
        return Paired(
            float(mean),
            0.0,
            float(np.copysign(np.inf, mean)) if mean else 0.0,
            0.0 if mean else 1.0,
        )
    return Paired(
        float(mean),
        float(error),
        float(mean / error),
        float(2.0 * stats.t.sf(abs(mean / error), n - 1)),
    )
