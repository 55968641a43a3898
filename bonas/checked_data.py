"""Create datasets from arrays, with a check of their values, and enlarge them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.data import Dataset, empty
from bonas.static_settings import check_static


def dataset(
    x: ArrayLike,
    y: ArrayLike,
    capacity: int | None = None,
    *,
    noise: ArrayLike | None = None,
) -> Dataset:
    """Create a dataset from arrays of points and values.

    The values are checked, so this function cannot be called inside `jit`.

    Args:
        x: Points (n, d), one per row.
        y: Values (n,), or (n, p) for p outputs. With p > 1, NaN marks an output that was not
            observed.
        capacity: Number of rows of the dataset, at least n (default: n). `append` fills the unused
            rows.
        noise: Known noise variances (n,) of the values; None if they are not known.

    Raises:
        ValueError: If shapes do not match, the capacity is less than n, or a row contains a NaN or
            a value that is infinite in the default precision of JAX; the message names the row.
    """
    x = np.asarray(x)
    y = np.asarray(y)
    if x.ndim != 2 or y.ndim not in (1, 2) or len(x) != len(y):
        raise ValueError(
            f"expected x of shape (n, d) and y of shape (n,) or (n, p); got {x.shape} and {y.shape}"
        )
    y = y[:, None] if y.ndim == 1 else y
    observed = ~np.isnan(y) if y.shape[1] > 1 else np.ones(y.shape, bool)
    dtype = jnp.result_type(float)
    outside = [~(abs(part) <= jnp.finfo(dtype).max) for part in (x, y)]
    bad = outside[0].any(axis=1) | (observed & outside[1]).any(axis=1)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"row {row} has a NaN or an infinite value in {dtype}: x {x[row]}, y {y[row]}"
        )
    n = len(x)
    check_static("capacity", capacity)
    capacity = max(n, 1) if capacity is None else capacity
    if n > capacity:
        raise ValueError(
            f"capacity must be at least {n}, the number of rows; got {capacity}"
        )
    blank = empty(capacity, x.shape[1], y.shape[1], dtype)
    return Dataset(
        x=blank.x.at[:n].set(jnp.asarray(x, dtype)),
        y=blank.y.at[:n].set(jnp.asarray(np.where(observed, y, 0.0), dtype)),
        mask=blank.mask.at[:n].set(observed),
        size=jnp.asarray(n, jnp.int32),
        noise=None if noise is None else _noise_column(noise, n, capacity),
    )


def grow(data: Dataset, capacity: int) -> Dataset:
    """Return a copy of a dataset with a larger capacity.

    Compiled functions of the dataset are compiled again, because its shape changes.

    Args:
        data: The dataset.
        capacity: The new number of rows, at least the present one.
    """
    check_static("capacity", capacity)
    extra = capacity - len(data.x)
    if extra < 0:
        raise ValueError(f"capacity must be at least {len(data.x)}; got {capacity}")
    grown: Dataset = jax.tree.map(
        lambda leaf: (
            jnp.pad(leaf, [(0, extra), (0, 0)][: leaf.ndim]) if leaf.ndim else leaf
        ),
        data,
    )
    return grown


def _noise_column(noise: ArrayLike, n: int, capacity: int) -> Array:
    variances = np.asarray(noise, float)
    if variances.shape != (n,):
        raise ValueError(
            f"noise must have shape ({n},), one variance per row; got shape {variances.shape}"
        )
    valid = np.isfinite(variances) & (variances >= 0)
    if not valid.all():
        row = int(valid.argmin())
        raise ValueError(
            f"noise must be finite and at least 0; got {variances[row]} in row {row}"
        )
    return jnp.zeros(capacity).at[:n].set(variances)
