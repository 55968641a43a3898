"""The data behind Table 1 of Raiders: 951 networks that ten searches trained on MNIST (Swersky et al. 2014; R-S1, R-S4).

A row is a network of 0 to 5 hidden layers: its depth, and a learning rate, a bound on the weights' norm, a dropout rate
and (hidden layers alone) a number of units for each layer. What belongs to layers that a network does not have is inactive.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike
from scipy import stats

from bonas.problems.datasets import Source, locate
from bonas.problems.files import load_npz

DEEPEST = 5  # hidden layers
SHAPE = (951, 24)
# The order of the authors' config.pb, which the file keeps: what concerns the input first, then four blocks of five layers.
_OF_LAYERS = ("units", "log_rate", "norm", "dropout")
NAMES = (
    "depth",
    *(f"{name}_0" for name in _OF_LAYERS[1:]),
    *(f"{name}_{layer}" for name in _OF_LAYERS for layer in range(1, DEEPEST + 1)),
)
LAYERS = (0, 0, 0, 0, *(layer for _ in _OF_LAYERS for layer in range(1, DEEPEST + 1)))  # the layer of each column
BLOCKS = tuple(tuple(i for i, layer in enumerate(LAYERS) if layer == one) for one in range(DEEPEST + 1))

_SOURCE = Source(
    "raiders_table1_data.npz",
    "https://github.com/duvenaud/hierarchical-kernels (one npz file with the arrays X (951, 24), y (951,) and D (951, 24) "
    "of data/numpy/arcnet_1.npz to arcnet_5.npz and then indarcnet_1.npz to indarcnet_5.npz, one below the other)",
)


class Table(NamedTuple):
    """Networks and their validation errors."""

    x: np.ndarray  # (n, 24) in the unit cube; column 0 is depth / 5, inactive columns are 0
    y: np.ndarray  # (n,) validation error, between 0 and 1
    active: np.ndarray  # (n, 24) bool
    depth: np.ndarray  # (n,) hidden layers
    recorded: np.ndarray  # (n, 24) what the file holds: in inactive columns what a search happened to propose


def active(x: Array) -> Array:
    """Which columns of a point (24,) matter: those of the layers it has. A relevance function for `gp.arc`."""
    return jnp.round(x[0] * DEEPEST) >= jnp.asarray(LAYERS)


def load() -> Table:
    """The authors' table. Depth is counted from the mask D: the file's first column holds what the searches proposed, and
    its bins give 171 networks another depth than they had (R-S1)."""
    path = locate(_SOURCE)
    arrays = load_npz(path, ("X", "y", "D"))
    recorded, y, mask = arrays["X"].astype(float), arrays["y"].astype(float).reshape(-1), arrays["D"] > 0
    if recorded.shape != SHAPE or mask.shape != SHAPE or y.shape != SHAPE[:1]:
        raise ValueError(f"{path}: expected X and D {SHAPE} and y ({SHAPE[0]},); got {recorded.shape}, {mask.shape}, {y.shape}")
    return table(recorded, y, mask)


def table(recorded: np.ndarray, y: np.ndarray, mask: np.ndarray) -> Table:
    """The table of points, values and masks (n, 24), where each mask is that of some depth and each value an error rate."""
    depth = (mask.sum(axis=1) - len(BLOCKS[0])) // len(BLOCKS[1])
    wrong = (mask != (depth[:, None] >= np.asarray(LAYERS))).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"row {row}: the mask {mask[row].astype(int)} is that of no depth from 0 to {DEEPEST}")
    bad = ~((recorded > -1e-9) & (recorded < 1 + 1e-9)).all(axis=1) | ~((y > 0.0) & (y <= 1.0))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"row {row}: expected a point of the unit cube and an error rate; got {recorded[row]} and {y[row]}")
    x = np.where(mask, np.clip(recorded, 0.0, 1.0), 0.0)
    x[:, 0] = depth / DEEPEST
    return Table(x, y, mask, depth, recorded)


def fill(table: Table, how: str, seed: int = 0) -> np.ndarray:
    """The points (n, 24) for a model that knows nothing of relevance, with something in their inactive columns.

    how: "random", uniform draws, as for the GP and the linear model of Table 1; "constant", −1, the authors' poor man's
    embedding (R-S2); "recorded", what the searches proposed; "zero", as in the table.
    """
    fillings = {
        "random": lambda: np.random.default_rng(seed).random(table.x.shape),
        "constant": lambda: np.full(table.x.shape, -1.0),
        "recorded": lambda: table.recorded,
        "zero": lambda: np.zeros(table.x.shape),
    }
    if how not in fillings:
        raise ValueError(f"how is one of {', '.join(fillings)}; got {how!r}")
    return np.where(table.active, table.x, fillings[how]())


def repeated(table: Table) -> np.ndarray:
    """Which networks (n,) are in the table more than once, alike in all that matters to them.

    Where one is held out, a model that sees what matters has its twin to learn from.
    """
    _, which, counts = np.unique(table.x, axis=0, return_inverse=True, return_counts=True)
    return counts[which.reshape(-1)] > 1


def expected_error(mean: ArrayLike, std: ArrayLike) -> np.ndarray:
    """The mean of min(exp z, 1) for z ~ N(mean, std²): the error rate that a model of its logarithm expects."""
    level, width = np.asarray(mean, float), np.maximum(np.asarray(std, float), 1e-12)
    # by logarithms, since the first factor may overflow
    below = np.exp(level + 0.5 * width**2 + stats.norm.logcdf(-level / width - width))
    return below + stats.norm.cdf(level / width)


def synthetic(key: Array, n: int) -> Table:
    """A table of the same form from a formula, for trying things out: the error falls with the units and the depth, and rises
    where a rate or a dropout is too high, more so in deep networks."""
    point_key, noise_key = jax.random.split(key)
    recorded = np.array(jax.random.uniform(point_key, (n, SHAPE[1])), float)
    depth = np.minimum((recorded[:, 0] * (DEEPEST + 1)).astype(int), DEEPEST)
    mask = depth[:, None] >= np.asarray(LAYERS)
    total = {kind: np.zeros(n) for kind in _OF_LAYERS}
    for i, name in enumerate(NAMES[1:], start=1):
        kind = name.rpartition("_")[0]
        total[kind] = total[kind] + np.where(mask[:, i], recorded[:, i], 0.0)
    trouble = 4.0 * (total["log_rate"] / (depth + 1) - 0.5) ** 2 + 2.0 * (total["dropout"] / (depth + 1)) ** 3
    level = -3.0 - 0.2 * total["units"] + trouble * (1.0 + 0.3 * depth) + 0.3 * np.sin(3.0 * total["norm"])
    noise = 0.05 * np.asarray(jax.random.normal(noise_key, (n,)))
    return table(recorded, np.exp(np.minimum(level + noise, -0.05)), mask)
