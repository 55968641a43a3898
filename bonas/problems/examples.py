"""Split labeled examples in NumPy arrays, and scale them by the training part.

`Scaling` standardizes the columns of a data set on the host, in float64. `bonas.standardize`
standardizes the observed values of a search inside a compiled program.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Task = Literal["regression", "classification"]
TASKS = ("regression", "classification")
SCALINGS = ("standard", "range", "none")
# Seed and training share of the splits of Hernández-Lobato & Adams 2015.
_STANDARD_SEED = 1
_STANDARD_SHARE = 0.9
# Above this standard deviation, differences between targets may overflow in float32.
_HUGE = 1e30


class Examples(NamedTuple):
    """The labeled rows of a data set, in NumPy arrays."""

    x: np.ndarray  # (n, d) float32
    y: np.ndarray  # (n,) float32 values, or int32 labels 0, 1, …
    task: Task
    names: tuple[str, ...]  # (d,) names of the columns of x
    classes: tuple[str, ...] = ()  # names of the labels; empty for a regression


class Scaling(NamedTuple):
    """An affine scaling of examples, made by `fit_scaling` and applied by `scale`.

    Inputs become (x - x_center) / x_scale, and the values y of a regression likewise.
    """

    x_center: np.ndarray  # (d,) float64
    x_scale: np.ndarray  # (d,) float64
    y_center: float
    y_scale: float


class Split(NamedTuple):
    """Training, validation and test parts of a data set, scaled by the training part."""

    train: Examples
    validation: Examples
    test: Examples
    scaling: Scaling


def encode_labels(values: ArrayLike) -> tuple[np.ndarray, tuple[str, ...]]:
    """Convert class values to labels (n,) int32 and the names of the classes, in sorted order."""
    classes, y = np.unique(np.asarray(values), return_inverse=True)
    if classes.dtype.kind == "f" and (classes == np.floor(classes)).all():
        classes = classes.astype(np.int64)  # class 3, not class 3.0
    return y.reshape(-1).astype(np.int32), tuple(str(value) for value in classes)


def select_rows(examples: Examples, chosen: ArrayLike) -> Examples:
    """Return the rows of examples at the given positions, or where a boolean mask is true."""
    chosen = np.asarray(chosen)
    return examples._replace(x=examples.x[chosen], y=examples.y[chosen])


def fit_scaling(examples: Examples, kind: str = "standard") -> Scaling:
    """Compute a scaling of inputs and targets from examples; see `scale`.

    Constant columns are only centered, and the labels of a classification are unchanged.

    Args:
        examples: The examples to fit, usually the training rows.
        kind: "standard" gives every column mean 0 and standard deviation 1. "range" maps columns
            onto [-1, 1], as Hutchinson's published code does; his thesis says whitening. "none"
            changes nothing.
    """
    if kind not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}; got {kind!r}")
    x_center, x_scale = _center_and_scale(examples.x, kind)
    if examples.task == "classification":
        return Scaling(x_center, x_scale, 0.0, 1.0)
    y_center, y_scale = _center_and_scale(examples.y[:, None], kind)
    return Scaling(x_center, x_scale, float(y_center[0]), float(y_scale[0]))


def _center_and_scale(columns: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    if kind == "none":
        return np.zeros(columns.shape[1]), np.ones(columns.shape[1])
    if kind == "range":
        low = columns.min(axis=0).astype(np.float64)
        high = columns.max(axis=0).astype(np.float64)
        center = (low + high) / 2.0
        spread = (high - low) / 2.0
    else:
        center = columns.mean(axis=0, dtype=np.float64)
        spread = columns.std(axis=0, dtype=np.float64)
    # The float64 sum of equal float32 numbers is exact, so a constant column has spread exactly 0.
    return center, np.where(spread == 0.0, 1.0, spread)


def scale(scaling: Scaling, examples: Examples) -> Examples:
    """Apply a scaling to the inputs of examples and, in a regression, to their targets.

    Args:
        scaling: The result of `fit_scaling`.
        examples: The examples to scale.
    """
    x = ((examples.x - scaling.x_center) / scaling.x_scale).astype(np.float32)
    if examples.task == "classification":
        return examples._replace(x=x)
    y = examples.y
    if scaling.y_scale > _HUGE:  # float32 differences could overflow
        y = y.astype(np.float64)
    y = ((y - scaling.y_center) / scaling.y_scale).astype(np.float32)
    return examples._replace(x=x, y=y)


def unscale(scaling: Scaling, y: ArrayLike) -> np.ndarray:
    """Convert scaled target values, such as predictions, to the original units.

    Multiply a standard deviation by `scaling.y_scale` instead.

    Args:
        scaling: The scaling of the targets.
        y: Scaled values of any shape.

    Returns:
        The values in the original units, in float64.
    """
    return np.asarray(y, np.float64) * scaling.y_scale + scaling.y_center


def split_by_rows(
    examples: Examples,
    train: ArrayLike,
    validation: ArrayLike,
    test: ArrayLike,
    *,
    scaling: str = "standard",
) -> Split:
    """Split examples by row numbers, and scale all parts by the training rows.

    Args:
        examples: The examples, unscaled.
        train: The positions of the training rows.
        validation: The positions of the validation rows.
        test: The positions of the test rows.
        scaling: The kind of scaling; see `fit_scaling`.
    """
    fitted = fit_scaling(select_rows(examples, train), scaling)
    return Split(
        train=scale(fitted, select_rows(examples, train)),
        validation=scale(fitted, select_rows(examples, validation)),
        test=scale(fitted, select_rows(examples, test)),
        scaling=fitted,
    )


def split(
    examples: Examples,
    seed: int,
    *,
    fractions: Sequence[float] = (0.7, 0.15, 0.15),
    scaling: str = "standard",
) -> Split:
    """Split examples at random into training, validation and test parts.

    In a classification, all parts have the same shares of the classes (stratified). All parts are
    scaled by the training part.

    Args:
        examples: The examples, unscaled.
        seed: The random seed.
        fractions: The shares of the three parts, with sum 1; a share may be 0.
        scaling: The kind of scaling: "standard", "range" or "none"; see `fit_scaling`.
    """
    return split_by_rows(
        examples, *split_rows(examples, seed, fractions), scaling=scaling
    )


def split_rows(
    examples: Examples, seed: int, fractions: Sequence[float] = (0.7, 0.15, 0.15)
) -> list[np.ndarray]:
    """Draw the rows of random training, validation and test parts from a seed.

    In a classification, all parts have the same shares of the classes (stratified).

    Args:
        examples: The examples.
        seed: The random seed.
        fractions: The shares of the three parts, with sum 1; a share may be 0. The default is
            Hutchinson's, rounded down as in his code.

    Returns:
        The positions of the rows of each part.
    """
    shares = np.asarray(fractions, np.float64)
    if (
        shares.shape != (3,)
        or not (shares >= 0.0).all()
        or abs(shares.sum() - 1.0) > 1e-9
    ):
        raise ValueError(
            f"fractions must be three non-negative numbers with sum 1; got {tuple(fractions)}"
        )
    # The small number compensates for rounding: (0.7 + 0.15) · 1000 must give 850 rows.
    ends = np.floor(np.cumsum(shares) * len(examples.x) + 1e-6).astype(int)
    divided = np.split(_order(examples, seed), ends[:2])
    empty = [
        share > 0.0 and not len(part)
        for part, share in zip(divided, shares, strict=True)
    ]
    if not len(divided[0]) or any(empty):
        raise ValueError(
            f"{len(examples.x)} rows are too few for fractions {tuple(fractions)}: "
            "one part would be empty"
        )
    return divided


def _order(examples: Examples, seed: int) -> np.ndarray:
    """Return a random order of the rows such that all prefixes have the same shares of classes."""
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
    """Return the training and test rows of a split published by Hernández-Lobato & Adams 2015.

    There are twenty splits for each UCI set and five for protein, with 90% of the rows for
    training.

    Args:
        n: The number of rows of the data set.
        number: The number of the split, from 0.
    """
    if number < 0:
        raise ValueError(f"splits are numbered from 0; got {number}")
    # the legacy generator, which the authors used
    rng = np.random.RandomState(_STANDARD_SEED)
    for _ in range(number + 1):
        order = rng.permutation(n)
    end = round(_STANDARD_SHARE * n)
    return order[:end], order[end:]


def standard_split(
    examples: Examples,
    number: int,
    *,
    validation: float = 0.1,
    scaling: str = "standard",
) -> Split:
    """Split a UCI data set as published by Hernández-Lobato & Adams 2015.

    All parts are scaled by the training part, which excludes the validation rows.
    Rows that occur twice in a set (wine 240, protein 1711, power 41, concrete 25) can be in several
    parts.

    Args:
        examples: The examples, unscaled.
        number: The number of the split, from 0; see `standard_indices`.
        validation: The share of the training rows, taken from their end, to use for validation.
        scaling: The kind of scaling: "standard", "range" or "none"; see `fit_scaling`.
    """
    if not 0.0 <= validation < 1.0:
        raise ValueError(f"validation must be at least 0 and below 1; got {validation}")
    train, test = standard_indices(len(examples.x), number)
    end = len(train) - round(validation * len(train))
    return split_by_rows(examples, train[:end], train[end:], test, scaling=scaling)
