"""What a search has asked and been told, in arrays of fixed capacity."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from bonas.data import Dataset, append, empty
from bonas.search.types import AskInfo, Trial, of_batch

# Two rows are one point where no column differs by more: well above what float32 loses on the way to a configuration and
# back, well below the step of an integer that takes fewer than 100,000 values.
SAME = 1e-6


class Record(NamedTuple):
    """Every point asked or told, in that order."""

    data: Dataset  # (n, d) rows, masked while pending and where failed
    pending: Array  # (n,) bool: asked, and not told yet
    failed: Array  # (n,) bool
    cost: Array  # (n,) of evaluating it; 0 where that is not known


def blank(capacity: int, d: int) -> Record:
    """A record of nothing, with room for `capacity` points of d columns."""
    nothing = jnp.zeros(capacity, bool)
    return Record(empty(capacity, d), nothing, nothing, jnp.zeros(capacity))


def apart(rows: Array, x: Array) -> Array:
    """How far each row (n, d) is from a point (d,): the largest difference in a column, (n,)."""
    return jnp.max(jnp.abs(rows - x[None, :]), axis=1)


def known(record: Record, x: Array) -> Array:
    """() bool: whether a point (d,) was asked or told before, pending and failed ones included."""
    return ((apart(record.data.x, x) < SAME) & (jnp.arange(len(record.pending)) < record.data.size)).any()


def asked(record: Record, x: ArrayLike) -> Record:
    """The record with one more point (d,), pending.

    Past the capacity this is a ValueError on the host; under `jit` the row is dropped, nothing is overwritten, and
    `data.size` still grows, so `data.size > capacity` tells.
    """
    row = record.data.size
    return record._replace(data=append(record.data, x, 0.0, False), pending=record.pending.at[row].set(True, mode="drop"))


def told(record: Record, trial: Trial) -> Record:
    """The record with a trial at the first pending row of its point; at a new row where no such point is pending.

    A trial that is not ok, or whose value is not finite, has failed: its row stays masked. A point asked twice is told
    twice. Past the capacity a point that was never asked is treated as in `asked`.
    """
    data = record.data
    x, y = jnp.asarray(trial.x, data.x.dtype), jnp.asarray(trial.y, data.y.dtype)
    if x.shape != data.x.shape[1:] or y.shape != ():
        raise ValueError(f"a trial has x of shape {data.x.shape[1:]} and y of shape (); got {x.shape} and {y.shape}")
    gap = jnp.where(record.pending, apart(data.x, x), jnp.inf)
    nearest = jnp.argmin(gap)
    expected = gap[nearest] < SAME
    check_room(record, ~expected)
    row = jnp.where(expected, nearest, data.size)
    fine = trial.ok & jnp.isfinite(y) & jnp.isfinite(x).all()
    data = Dataset(
        x=data.x.at[row].set(x, mode="drop"),
        y=data.y.at[row, 0].set(jnp.where(fine, y, 0.0), mode="drop"),
        mask=data.mask.at[row, 0].set(fine, mode="drop"),
        size=data.size + ~expected,
    )
    return Record(
        data=data,
        pending=record.pending.at[row].set(False, mode="drop"),
        failed=record.failed.at[row].set(~fine, mode="drop"),
        cost=record.cost.at[row].set(trial.cost, mode="drop"),
    )


def check_room(record: Record, new: ArrayLike) -> None:
    """A ValueError on the host where `new` more points do not fit; under `jit` the size is not known."""
    capacity, size = len(record.pending), record.data.size + new
    if not isinstance(size, jax.core.Tracer) and int(size) > capacity:
        raise ValueError(f"the search is full: it was started with room for {capacity} points")


def in_turn(ask_one: Callable[[Array, Any], tuple[Array, Any, AskInfo]], batch: int) -> Callable:
    """The `ask` of a search whose state has a record: `batch` points, each asked with those before it pending."""

    def ask(key: Array, state: Any) -> tuple[Array, Any, AskInfo]:
        check_room(state.record, batch)

        def step(state, i):
            x, state, info = ask_one(jax.random.fold_in(key, i), state)
            return state, (x, info)

        state, (points, infos) = jax.lax.scan(step, state, jnp.arange(batch))
        return points, state, of_batch(infos)

    return ask
