"""Labelled examples to train networks on: how they are split, and scaled by what the training part alone shows."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Task = Literal["regression", "classification"]
TASKS = ("regression", "classification")
SCALINGS = ("standard", "range", "none")
_STANDARD_SEED, _STANDARD_SHARE = 1, 0.9  # of the splits of Hernández-Lobato & Adams 2015


class Examples(NamedTuple):
    """Rows of a data set, in NumPy arrays."""

    x: np.ndarray  # (n, d) float32
    y: np.ndarray  # (n,) float32 values, or int32 labels 0, 1, …
    task: Task
    names: tuple[str, ...]  # of the d columns of x
    classes: tuple[str, ...] = ()  # what the labels stand for; empty in a regression


class Scaling(NamedTuple):
    """x becomes (x - x_centre) / x_scale, and y likewise; labels are left alone."""

    x_centre: np.ndarray  # (d,) float64
    x_scale: np.ndarray  # (d,) float64
    y_centre: float
    y_scale: float


class Split(NamedTuple):
    """Three parts of a data set, all scaled by the first."""

    train: Examples
    validation: Examples
    test: Examples
    scaling: Scaling


def labels(values: ArrayLike) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels (n,) int32 and the classes they stand for, in the order of their names, numbers in the order of their size."""
    found, y = np.unique(np.asarray(values), return_inverse=True)
    if found.dtype.kind == "f" and (found == np.floor(found)).all():
        found = found.astype(np.int64)  # class 3, not class 3.0
    return y.reshape(-1).astype(np.int32), tuple(str(value) for value in found)


def rows(examples: Examples, chosen: ArrayLike) -> Examples:
    """The examples of those rows."""
    chosen = np.asarray(chosen)
    return examples._replace(x=examples.x[chosen], y=examples.y[chosen])


def fit_scaling(examples: Examples, kind: str = "standard") -> Scaling:
    """The scaling that gives these examples mean 0 and standard deviation 1 in every column ("standard"), or that maps them
    onto [-1, 1] ("range": what Hutchinson's code does, where the thesis says whitening, H-S4), or that changes nothing.

    A column that does not vary here is only centred.
    """
    if kind not in SCALINGS:
        raise ValueError(f"a scaling is one of {', '.join(SCALINGS)}; got {kind!r}")
    x_centre, x_scale = _fitted(examples.x, kind)
    if examples.task == "classification":
        return Scaling(x_centre, x_scale, 0.0, 1.0)
    y_centre, y_scale = _fitted(examples.y[:, None], kind)
    return Scaling(x_centre, x_scale, float(y_centre[0]), float(y_scale[0]))


def _fitted(columns: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    if kind == "none":
        return np.zeros(columns.shape[1]), np.ones(columns.shape[1])
    if kind == "range":
        low, high = columns.min(axis=0).astype(np.float64), columns.max(axis=0).astype(np.float64)
        centre, spread = (low + high) / 2.0, (high - low) / 2.0
    else:
        centre, spread = columns.mean(axis=0, dtype=np.float64), columns.std(axis=0, dtype=np.float64)
    # Equal float32 numbers have a float64 sum without rounding, so a constant column has a spread of exactly 0.
    return centre, np.where(spread == 0.0, 1.0, spread)


def scale(scaling: Scaling, examples: Examples) -> Examples:
    """The examples in the scaling's units."""
    x = ((examples.x - scaling.x_centre) / scaling.x_scale).astype(np.float32)
    if examples.task == "classification":
        return examples._replace(x=x)
    return examples._replace(x=x, y=((examples.y - scaling.y_centre) / scaling.y_scale).astype(np.float32))


def unscale(scaling: Scaling, y: ArrayLike) -> np.ndarray:
    """Values of the scaled target, such as predictions, in their own units; a standard deviation needs only y_scale."""
    return np.asarray(y) * scaling.y_scale + scaling.y_centre


def cut(examples: Examples, train: ArrayLike, validation: ArrayLike, test: ArrayLike, *, scaling: str = "standard") -> Split:
    """The split into those rows, scaled by the training rows alone."""
    fitted = fit_scaling(rows(examples, train), scaling)
    return Split(
        train=scale(fitted, rows(examples, train)),
        validation=scale(fitted, rows(examples, validation)),
        test=scale(fitted, rows(examples, test)),
        scaling=fitted,
    )


def split(examples: Examples, seed: int, *, fractions: Sequence[float] = (0.7, 0.15, 0.15), scaling: str = "standard") -> Split:
    """A random split into training, validation and test part, as `parts` makes it; the same for the same seed."""
    return cut(examples, *parts(examples, seed, fractions), scaling=scaling)


def parts(examples: Examples, seed: int, fractions: Sequence[float] = (0.7, 0.15, 0.15)) -> list[np.ndarray]:
    """Training, validation and test rows in a random order; the same for the same seed.

    fractions: shares of the three, which add up to 1; 70/15/15 are Hutchinson's (H-S4), rounded down as there. Classes keep
        their shares in every part. A part may be left empty by a share of 0.
    """
    shares = np.asarray(fractions, np.float64)
    if shares.shape != (3,) or not (shares >= 0.0).all() or abs(shares.sum() - 1.0) > 1e-9:
        raise ValueError(f"fractions are three numbers of at least 0 that add up to 1; got {tuple(fractions)}")
    # The small number undoes rounding in the sums of shares: 0.7 + 0.15 of 1000 rows are 850.
    ends = np.floor(np.cumsum(shares) * len(examples.x) + 1e-6).astype(int)
    found = np.split(_order(examples, seed), ends[:2])
    if not len(found[0]) or any(share > 0.0 and not len(part) for part, share in zip(found, shares, strict=True)):
        raise ValueError(f"{len(examples.x)} rows are too few for parts of {tuple(fractions)}: one would be empty")
    return found


def _order(examples: Examples, seed: int) -> np.ndarray:
    """A random order in which, of every class, each prefix holds its share."""
    order = np.random.default_rng(seed).permutation(len(examples.x))
    if examples.task == "regression":
        return order
    y = examples.y[order]
    place = np.empty(len(y))
    for label in np.unique(y):
        members = y == label
        place[members] = (np.arange(members.sum()) + 0.5) / members.sum()
    return order[np.argsort(place, kind="stable")]


def standard_indices(n: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of the standard split `number` = 0, 1, … of n rows: Hernández-Lobato & Adams 2015, who publish
    twenty for each UCI set and five for protein. Nine rows in ten train."""
    if number < 0:
        raise ValueError(f"splits are numbered from 0; got {number}")
    draws = np.random.RandomState(_STANDARD_SEED)  # the legacy generator, because theirs was
    for _ in range(number + 1):
        order = draws.permutation(n)
    end = round(_STANDARD_SHARE * n)
    return order[:end], order[end:]


def standard_split(examples: Examples, number: int, *, validation: float = 0.1, scaling: str = "standard") -> Split:
    """The standard split `number` (see standard_indices), whose last training rows, a share `validation`, validate.

    Rows that occur twice in a set (wine 240, protein 1711, power 41, concrete 25) can fall on both sides.
    """
    if not 0.0 <= validation < 1.0:
        raise ValueError(f"validation is a share of at least 0 and below 1; got {validation}")
    train, test = standard_indices(len(examples.x), number)
    end = len(train) - round(validation * len(train))
    return cut(examples, train[:end], train[end:], test, scaling=scaling)
