"""Comparing models by cross-validation: folds that all models share, and what paired differences over them are worth."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


class Paired(NamedTuple):
    """The mean of paired differences over folds, and how sure it is."""

    mean: float
    error: float  # its standard error, corrected for training sets that overlap
    t: float  # mean / error
    p: float  # of a mean this far from 0, two-sided, by Student's t with one degree of freedom less than folds


def random_folds(n: int, k: int, seed: int) -> list[np.ndarray]:
    """The rows 0 … n−1 in k test sets of equal size, or nearly: each row is in one, by a permutation of that seed."""
    return np.array_split(np.random.default_rng(seed).permutation(_checked(n, k)), k)


def contiguous_folds(n: int, k: int) -> list[np.ndarray]:
    """The rows 0 … n−1 in k test sets in their order, such as the authors' own code has them (R-S2)."""
    return np.array_split(np.arange(_checked(n, k)), k)


def _checked(n: int, k: int) -> int:
    if not 2 <= k <= n:
        raise ValueError(f"expected between 2 folds and as many as there are rows, {n}; got {k}")
    return n


def paired(differences: ArrayLike, test_share: float) -> Paired:
    """What differences (folds,) between two models on the same folds say about the models.

    Folds share most of their training rows, so the differences are not independent, and the usual standard error is too
    small, the more so the more often folds are drawn anew. The corrected variance of the mean over J folds is
    (1/J + test/train) s²: Nadeau & Bengio 2003, section 5, for repeated k-fold as in Bouckaert & Frank 2004.
    test_share: the share of rows that a fold tests on, 1/k.
    """
    differences = np.asarray(differences, float)
    if differences.ndim != 1 or len(differences) < 2 or not np.isfinite(differences).all():
        raise ValueError(f"expected two or more finite differences, one a fold; got {differences}")
    if not 0.0 < test_share < 1.0:
        raise ValueError(f"test_share must lie between 0 and 1; got {test_share}")
    n = len(differences)
    mean = differences.mean()
    error = np.sqrt((1.0 / n + test_share / (1.0 - test_share)) * differences.var(ddof=1))
    if error == 0.0:  # the same difference everywhere: none, or a certain one
        return Paired(float(mean), 0.0, float(np.copysign(np.inf, mean)) if mean else 0.0, 0.0 if mean else 1.0)
    return Paired(float(mean), float(error), float(mean / error), float(2.0 * stats.t.sf(abs(mean / error), n - 1)))
