"""The data of Swersky et al. 2014, Table 1: 951 networks that ten searches trained on MNIST.

A row is a network of 0 to 5 hidden layers: its depth, and for each layer a learning rate, a bound
on the norm of the weights, a dropout rate and (hidden layers only) a number of units. Parameters of
layers that a network does not have are inactive.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike
from scipy import stats

from bonas.problems.datasets import Source, find, locate
from bonas.problems.npz_files import load_npz

DEEPEST = 5  # hidden layers
SHAPE = (951, 24)
# The order of the authors' config.pb and of the file: input settings, then four blocks of five
# layers.
_OF_LAYERS = ("units", "log_rate", "norm", "dropout")
NAMES = (
    "depth",
    *(f"{name}_0" for name in _OF_LAYERS[1:]),
    *(f"{name}_{layer}" for name in _OF_LAYERS for layer in range(1, DEEPEST + 1)),
)
# The layer that each column belongs to
LAYERS = (0, 0, 0, 0, *(layer for _ in _OF_LAYERS for layer in range(1, DEEPEST + 1)))
BLOCKS = tuple(
    tuple(i for i, layer in enumerate(LAYERS) if layer == one)
    for one in range(DEEPEST + 1)
)

_HOME = "https://github.com/duvenaud/hierarchical-kernels"
FILES = (
    "https://raw.githubusercontent.com/duvenaud/hierarchical-kernels/master/data/numpy"
)
_WHOLE = "raiders_table1_data.npz"  # all ten searches, concatenated
# The ten searches and the sha256 of their arrays (see `digest`), because no hash of the files is
# published. The hashes are of the data behind this project's figures.
RUNS = {
    "arcnet_1": "ab160b6cb390fdab4b13c895146ca746b1b0233f50df943cc9da767c5cbd07cc",
    "arcnet_2": "d9490ca837e26a7c160d3d08753565f369b344ffa0c28e52b9fd817494bdaaab",
    "arcnet_3": "20e1e4aeb3241937c9ceb6af77abd982b318fe7de6977b5411fc285b0ba1e1af",
    "arcnet_4": "b4569f2f0a96b2487cffa478632e08532e0bfc0802e296b4131d07ebff7534cc",
    "arcnet_5": "d83216c5d29e7f26758a2bfcb09cbe6349a37811c13354ac88cde5515ffb8492",
    "indarcnet_1": "9b85770dda499a32bacd9f1af48390ebf9752a6974942c471b40c30e62f9d89e",
    "indarcnet_2": "ead104f8ee25a8811d24a9f7ad6a16df8e66fba4f7971d4d9d2c33d00035299c",
    "indarcnet_3": "f7807037816459f16d652a11e05c837503a1821740ff3a5e53f77a42af34b606",
    "indarcnet_4": "de87dcb0b2126a0cf5e2ce8253f0cbeaf80de83645da4f7eea98e066628b4e1b",
    "indarcnet_5": "63f1dcc6945b61c40e9e1939076e53e96e42d9083104c925277f55423acf57c2",
}


class Table(NamedTuple):
    """Networks and their validation errors."""

    # (n, 24) in the unit cube; column 0 is depth / 5, inactive columns are 0
    x: np.ndarray
    y: np.ndarray  # (n,) validation error, between 0 and 1
    active: np.ndarray  # (n, 24) bool
    depth: np.ndarray  # (n,) hidden layers
    # (n, 24) as in the file; inactive columns hold arbitrary proposals
    recorded: np.ndarray


def active(x: Array) -> Array:
    """Return which columns of a point (24,) are active; a relevance function for `gp.arc`."""
    return jnp.round(x[0] * DEEPEST) >= jnp.asarray(LAYERS)


def load(*, download: bool = True, progress: bool = True) -> Table:
    """Load the authors' table from the folder BONAS_DATA or from their repository.

    Depth is counted from the mask D. The file's first column holds the proposals of the searches,
    and its bins give 171 networks a wrong depth.
    """
    paths = (
        [path]
        if (path := find(_WHOLE))
        else [
            locate(_source(run), download=download, progress=progress) for run in RUNS
        ]
    )
    recorded, y, mask = (
        np.concatenate(parts) for parts in zip(*map(_read, paths), strict=True)
    )
    if recorded.shape != SHAPE:
        raise ValueError(
            f"{paths[0]}: expected X and D {SHAPE} and y ({SHAPE[0]},); got {recorded.shape}"
        )
    return table(recorded, y, mask)


def _read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, values and masks of one file."""
    arrays = load_npz(path, ("X", "y", "D"))
    x, y, mask = (
        arrays["X"].astype(float),
        arrays["y"].astype(float).reshape(-1),
        arrays["D"] > 0,
    )
    if x.shape != mask.shape or x.shape != (len(y), SHAPE[1]):
        raise ValueError(
            f"{path}: expected X and D (n, {SHAPE[1]}) and y (n,); "
            f"got {x.shape}, {mask.shape} and {y.shape}"
        )
    return x, y, mask


def digest(x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> str:
    """Return the sha256 of x and y as little-endian float64 rows, then of the mask as bytes."""
    return hashlib.sha256(
        x.astype("<f8").tobytes()
        + y.astype("<f8").tobytes()
        + mask.astype("u1").tobytes()
    ).hexdigest()


def _source(run: str) -> Source:
    def same(path: Path) -> None:
        if (found := digest(*_read(path))) != RUNS[run]:
            raise ValueError(
                f"expected the contents of the search {run} with sha256 {RUNS[run]}; got {found}"
            )

    form = (
        f"or one file {_WHOLE} with X {SHAPE}, y and D of all ten searches concatenated, "
        "arcnet_1 to indarcnet_5"
    )
    return Source(
        f"raiders/{run}.npz",
        f"{_HOME} (data/numpy/{run}.npz, {form})",
        f"{FILES}/{run}.npz",
        check=same,
    )


def table(recorded: np.ndarray, y: np.ndarray, mask: np.ndarray) -> Table:
    """Check points, values and masks (n, 24), and return the table."""
    depth = (mask.sum(axis=1) - len(BLOCKS[0])) // len(BLOCKS[1])
    wrong = (mask != (depth[:, None] >= np.asarray(LAYERS))).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"row {row}: expected the mask of a depth from 0 to {DEEPEST}; "
            f"got {mask[row].astype(int)}"
        )
    bad = ~((recorded > -1e-9) & (recorded < 1 + 1e-9)).all(axis=1) | ~(
        (y > 0.0) & (y <= 1.0)
    )
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"row {row}: expected a point of the unit cube and an error rate; "
            f"got {recorded[row]} and {y[row]}"
        )
    x = np.where(mask, np.clip(recorded, 0.0, 1.0), 0.0)
    x[:, 0] = depth / DEEPEST
    return Table(x, y, mask, depth, recorded)


def fill(table: Table, how: str, seed: int = 0) -> np.ndarray:
    """Fill the inactive columns of the points (n, 24), for models without relevance.

    Args:
        how: "random" for uniform numbers, as in Table 1; "constant" for −1, as in the authors'
            code; "recorded" for the proposals of the searches; "zero" as in the table.
    """
    fillings = {
        "random": lambda: np.random.default_rng(seed).random(table.x.shape),
        "constant": lambda: np.full(table.x.shape, -1.0),
        "recorded": lambda: table.recorded,
        "zero": lambda: np.zeros(table.x.shape),
    }
    if how not in fillings:
        raise ValueError(f"how must be one of {', '.join(fillings)}; got {how!r}")
    return np.where(table.active, table.x, fillings[how]())


def repeated(table: Table) -> np.ndarray:
    """Return which networks (n,) occur more than once, equal in all active columns.

    If one is held out, a model that uses relevance can learn its value from the other.
    """
    _, which, counts = np.unique(
        table.x, axis=0, return_inverse=True, return_counts=True
    )
    return counts[which.reshape(-1)] > 1


def expected_error(mean: ArrayLike, std: ArrayLike) -> np.ndarray:
    """Return the mean of min(exp z, 1) for z ~ N(mean, std²): the error expected by a model of
    logs.
    """
    level, width = np.asarray(mean, float), np.maximum(np.asarray(std, float), 1e-12)
    # in logarithms, because the first factor may overflow
    below = np.exp(level + 0.5 * width**2 + stats.norm.logcdf(-level / width - width))
    return below + stats.norm.cdf(level / width)


def synthetic(key: Array, n: int) -> Table:
    """Create a table with the same columns from a formula.

    The error falls with units and depth, and rises if learning rates or dropout are too high.
    """
    point_key, noise_key = jax.random.split(key)
    recorded = np.array(jax.random.uniform(point_key, (n, SHAPE[1])), float)
    depth = np.minimum((recorded[:, 0] * (DEEPEST + 1)).astype(int), DEEPEST)
    mask = depth[:, None] >= np.asarray(LAYERS)
    total = {kind: np.zeros(n) for kind in _OF_LAYERS}
    for i, name in enumerate(NAMES[1:], start=1):
        kind = name.rpartition("_")[0]
        total[kind] = total[kind] + np.where(mask[:, i], recorded[:, i], 0.0)
    trouble = (
        4.0 * (total["log_rate"] / (depth + 1) - 0.5) ** 2
        + 2.0 * (total["dropout"] / (depth + 1)) ** 3
    )
    level = (
        -3.0
        - 0.2 * total["units"]
        + trouble * (1.0 + 0.3 * depth)
        + 0.3 * np.sin(3.0 * total["norm"])
    )
    noise = 0.05 * np.asarray(jax.random.normal(noise_key, (n,)))
    return table(recorded, np.exp(np.minimum(level + noise, -0.05)), mask)
