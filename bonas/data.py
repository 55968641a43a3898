"""Observations in arrays of fixed capacity: data arrive without a change of shape, so nothing is compiled twice."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

# From this capacity on, work on half of it is worth being compiled as well.
_WORTH_HALVING = 32


class Dataset(NamedTuple):
    """Observations of a function; rows that are not used yet, failed or pending are masked."""

    x: Array  # (n, d) unit-cube rows; n is the capacity, never the number observed
    y: Array  # (n, p) values; p > 1 for learning curves
    mask: Array  # (n, p) true where observed; an exact GP has p = 1 and uses mask[:, 0]
    size: Array  # () rows used, failed and pending ones included: the next row to write


def empty(capacity: int, d: int, p: int = 1, dtype=None) -> Dataset:
    """A dataset of no observations with room for `capacity` rows of d columns and p outputs."""
    if capacity < 1 or d < 1 or p < 1:
        raise ValueError(f"capacity, d and p must be at least 1; got {capacity}, {d} and {p}")
    return Dataset(
        x=jnp.zeros((capacity, d), dtype),
        y=jnp.zeros((capacity, p), dtype),
        mask=jnp.zeros((capacity, p), bool),
        size=jnp.zeros((), jnp.int32),
    )


def dataset(x: ArrayLike, y: ArrayLike, capacity: int | None = None) -> Dataset:
    """The dataset of rows x (n, d) with values y (n,) or (n, p), with room for `capacity` rows (default: just these).

    Call it outside `jit`: bad data are refused here, with the row named. A NaN in y (n, p) with p > 1 is an output that
    was not observed.
    """
    x, y = np.asarray(x), np.asarray(y)
    if x.ndim != 2 or y.ndim not in (1, 2) or len(x) != len(y):
        raise ValueError(f"expected x of shape (n, d) and y of shape (n,) or (n, p); got {x.shape} and {y.shape}")
    y = y[:, None] if y.ndim == 1 else y
    bad = ~np.isfinite(x).all(axis=1)
    observed = ~np.isnan(y) if y.shape[1] > 1 else np.ones(y.shape, bool)
    bad |= (observed & ~np.isfinite(y)).any(axis=1)
    if bad.any():
        raise ValueError(f"row {int(bad.argmax())} holds a NaN or an infinite value: x {x[bad][0]}, y {y[bad][0]}")
    n = len(x)
    capacity = max(n, 1) if capacity is None else capacity
    if n > capacity:
        raise ValueError(f"{n} rows do not fit into a capacity of {capacity}")
    kind = jnp.result_type(float)
    blank = empty(capacity, x.shape[1], y.shape[1], kind)
    return Dataset(
        x=blank.x.at[:n].set(jnp.asarray(x, kind)),
        y=blank.y.at[:n].set(jnp.asarray(np.where(observed, y, 0.0), kind)),
        mask=blank.mask.at[:n].set(observed),
        size=jnp.asarray(n, jnp.int32),
    )


def append(data: Dataset, x: ArrayLike, y: ArrayLike, observed: ArrayLike = True) -> Dataset:
    """The dataset with one more row: x (d,), y () or (p,), and whether it counts; a NaN or an infinite value never does.

    Past the capacity this is a ValueError on the host; under `jit`, where the size is not known, the row is dropped and
    `size` still grows, so `size > capacity` tells.
    """
    (capacity, p), d = data.y.shape, data.x.shape[1]
    if jnp.shape(x) != (d,) or jnp.shape(y) not in ((), (p,)):
        raise ValueError(f"expected x of shape ({d},) and y of shape () or ({p},); got {jnp.shape(x)} and {jnp.shape(y)}")
    if not isinstance(data.size, jax.core.Tracer) and int(data.size) >= capacity:
        raise ValueError(f"the dataset is full: its capacity is {capacity} rows. Start with a larger one, or use bonas.grow")
    row, x = data.size, jnp.asarray(x, data.x.dtype)
    y, observed = jnp.broadcast_to(jnp.asarray(y, data.y.dtype), (p,)), jnp.broadcast_to(jnp.asarray(observed, bool), (p,))
    return Dataset(
        x=data.x.at[row].set(x, mode="drop"),
        y=data.y.at[row].set(y, mode="drop"),
        mask=data.mask.at[row].set(observed & jnp.isfinite(y) & jnp.isfinite(x).all(), mode="drop"),
        size=row + 1,
    )


def grow(data: Dataset, capacity: int) -> Dataset:
    """The same observations with room for `capacity` rows: a new shape, so whatever uses it is compiled once more."""
    extra = capacity - len(data.x)
    if extra < 0:
        raise ValueError(f"cannot shrink a capacity of {len(data.x)} rows to {capacity}")
    x, y, mask = (jnp.pad(field, ((0, extra), (0, 0))) for field in data[:3])
    return Dataset(x=x, y=y, mask=mask, size=data.size)


def clean(data: Dataset) -> Dataset:
    """The dataset with zeros in every masked place.

    Kernels must see this: a NaN behind an outer `where` gives right values and NaN gradients.
    """
    return data._replace(x=jnp.where(data.mask.any(axis=1, keepdims=True), data.x, 0.0), y=jnp.where(data.mask, data.y, 0.0))


def with_holes(mask: Array) -> Array:
    """(n,) bool: which rows of a mask (n, p) have an output without one before it."""
    return (mask[:, 1:] & ~mask[:, :-1]).any(axis=1)


def check_closed(mask: Array, advice: str) -> None:
    """A ValueError, which ends with advice, that names the row of a mask (n, p) with a hole; outside `jit` alone."""
    if isinstance(mask, jax.core.Tracer):
        return
    bad = np.asarray(with_holes(mask))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"row {row} has an output without one before it: observed {np.asarray(mask)[row].tolist()}; {advice}")


def standardise(data: Dataset) -> tuple[Dataset, Array, Array]:
    """The data with values of mean 0 and variance 1, and the mean and standard deviation they had.

    Values that are equal but for rounding have no scale of their own: they become zeros, and the scale is 1.
    """
    y, n = jnp.where(data.mask, data.y, 0.0), jnp.maximum(data.mask.sum(), 1)
    mean = y.sum() / n
    deviation = jnp.where(data.mask, y - mean, 0.0)
    variance = jnp.sum(deviation**2) / n
    rounding = 8 * jnp.finfo(y.dtype).eps * jnp.max(jnp.abs(y))
    constant = variance <= rounding**2
    scale = jnp.sqrt(jnp.where(constant, 1.0, variance))
    return data._replace(y=jnp.where(constant, 0.0, deviation / scale)), mean, scale


def within(function: Callable[..., Any], data: Dataset, *rest: Any) -> Any:
    """function(data, *rest), given the first half of the rows alone while all that are used are there.

    For work that grows with the cube of the capacity and whose result does not depend on it: half of a search then costs an
    eighth. Under `vmap` half is taken when it does for every lane, and one of the two is computed, not both.
    """
    half = len(data.x) // 2
    if len(data.x) < _WORTH_HALVING:
        return function(data, *rest)

    def on_half(data, *rest):
        return function(Dataset(data.x[:half], data.y[:half], data.mask[:half], data.size), *rest)

    def choose(small, data, *rest):
        return jax.lax.cond(small, on_half, function, data, *rest)

    # As one of its constants too, because `custom_vmap` has no place for constants that have lanes.
    traced, shape = jax.make_jaxpr(choose, return_shape=True)(True, data, *rest)

    def call(small, operands):
        return jax.tree.unflatten(
            jax.tree.structure(shape), jax.core.eval_jaxpr(traced.jaxpr, operands[0], small, *jax.tree.leaves(operands[1:]))
        )

    @jax.custom_batching.custom_vmap
    def one(operands):
        return call(operands[1].size <= half, operands)

    @one.def_vmap
    def lanes(axis_size, batched, operands):
        small = (operands[1].size <= half).all()  # without lanes, so that the condition stays one
        axes = jax.tree.map(lambda has_lanes: 0 if has_lanes else None, tuple(batched[0]))
        result = jax.vmap(lambda operands: call(small, operands), (axes,), axis_size=axis_size)(operands)
        return result, jax.tree.map(lambda _: True, result)

    return one((traced.consts, data, *rest))
