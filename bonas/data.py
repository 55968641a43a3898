"""Observations in arrays of fixed capacity.

New observations do not change the shape of the arrays, so nothing is recompiled.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from bonas.extreme_values import divide_positive, into_range
from bonas.static_settings import check_counts


class Dataset(NamedTuple):
    """Observations of a function, in arrays of fixed capacity.

    Rows that are unused, failed or pending are masked.
    """

    # points of the unit cube, one per row; n is the capacity, not the number of observations
    x: Float[Array, "n d"]
    y: Float[Array, "n p"]  # values; p > 1 for learning curves
    mask: Bool[Array, "n p"]  # True where observed; an exact GP has p = 1
    # number of rows in use, including failed and pending ones; the next row to write
    size: Int[Array, ""]
    # (n,) known noise variances, added to the model's noise; None if they are not known
    noise: Float[Array, " n"] | None = None


def empty(capacity: int, d: int, p: int = 1, dtype: Any = None) -> Dataset:
    """Create a dataset without observations.

    Args:
        capacity: Number of rows.
        d: Number of columns of a point.
        p: Number of outputs, more than 1 for learning curves.
        dtype: Type of points and values (default: the default precision of JAX).
    """
    check_counts(capacity=capacity, d=d, p=p)
    return Dataset(
        x=jnp.zeros((capacity, d), dtype),
        y=jnp.zeros((capacity, p), dtype),
        mask=jnp.zeros((capacity, p), bool),
        size=jnp.zeros((), jnp.int32),
    )


def append(
    data: Dataset, x: ArrayLike, y: ArrayLike, observed: ArrayLike = True
) -> Dataset:
    """Return the dataset with one more row.

    Args:
        data: The dataset.
        x: The point (d,).
        y: Its value (), or values (p,) for p outputs.
        observed: Whether each value is observed. NaN and infinite values are always masked.

    Raises:
        ValueError: If a shape is wrong, or if the dataset is full. Under `jit`, the row is dropped
            from a full dataset instead, and `size` grows beyond the capacity.
    """
    capacity, p = data.y.shape
    d = data.x.shape[1]
    if jnp.shape(x) != (d,) or jnp.shape(y) not in ((), (p,)):
        raise ValueError(
            f"expected x of shape ({d},) and y of shape () or ({p},); "
            f"got {jnp.shape(x)} and {jnp.shape(y)}"
        )
    if not isinstance(data.size, jax.core.Tracer) and int(data.size) >= capacity:
        raise ValueError(
            f"the dataset is full: its capacity is {capacity} rows. Start with a larger one, or "
            "use bonas.grow"
        )
    row = data.size
    x = jnp.asarray(x, data.x.dtype)
    y = jnp.broadcast_to(jnp.asarray(y, data.y.dtype), (p,))
    observed = jnp.broadcast_to(jnp.asarray(observed, bool), (p,))
    mask = observed & jnp.isfinite(y) & jnp.isfinite(x).all()
    return data._replace(
        x=data.x.at[row].set(x, mode="drop"),
        y=data.y.at[row].set(y, mode="drop"),
        mask=data.mask.at[row].set(mask, mode="drop"),
        size=row + 1,
    )


def clean(data: Dataset) -> Dataset:
    """Return the dataset with zeros in place of all masked entries.

    Apply it before evaluating a kernel. To mask the result of the kernel is not enough: with NaN in
    a masked row, the values would be correct, but the gradients NaN.
    """
    return data._replace(
        x=jnp.where(data.mask.any(axis=1, keepdims=True), data.x, 0.0),
        y=jnp.where(data.mask, data.y, 0.0),
    )


def standardize(data: Dataset) -> tuple[Dataset, Float[Array, ""], Float[Array, ""]]:
    """Scale the observed values to mean 0 and variance 1.

    Values that are equal up to rounding become zeros, with a standard deviation of 1. Known noise
    variances are divided by the variance of the values.

    Returns:
        The standardized dataset, and the mean and standard deviation of the observed values.
    """
    data, factor = into_range(data)
    scaled, mean, std = standardize_in_range(data)
    std = jnp.where(scaled.y.any(), divide_positive(std, factor), 1.0)
    return scaled, mean / factor, std


def standardize_in_range(
    data: Dataset,
) -> tuple[Dataset, Float[Array, ""], Float[Array, ""]]:
    """Standardize values whose squares neither overflow nor underflow; see `into_range`."""
    y = jnp.where(data.mask, data.y, 0.0)
    n = jnp.maximum(data.mask.sum(), 1)
    mean = y.sum() / n
    deviation = jnp.where(data.mask, y - mean, 0.0)
    variance = jnp.sum(deviation**2) / n
    rounding = 8 * jnp.finfo(y.dtype).eps * jnp.max(jnp.abs(y))
    constant = variance <= rounding**2
    scale = jnp.sqrt(jnp.where(constant, 1.0, variance))
    noise = None if data.noise is None else data.noise / scale**2
    y = jnp.where(constant, 0.0, deviation / scale)
    return data._replace(y=y, noise=noise), mean, scale
