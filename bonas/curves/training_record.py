"""Record the networks of a search on learning curves, with their checkpoints and values."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from bonas.data import Dataset, empty
from bonas.search import SAME_POINT, Observation, max_difference, point_and_value
from bonas.static_settings import check_static


class TrainingRecord(NamedTuple):
    """The networks of a search, ordered by the start of training, in arrays of fixed capacity."""

    data: Dataset  # (n, d) rows and curves (n, c), masked from the next checkpoint on
    pending: Array  # (n,) bool: training to the next checkpoint
    failed: Array  # (n,) bool: diverged; earlier checkpoints are kept


def empty_record(
    capacity: int,
    d: int,
    c: int,
) -> TrainingRecord:
    """Return a record without networks, for `capacity` rows of d columns and c checkpoints."""
    none = jnp.zeros(capacity, bool)
    return TrainingRecord(empty(capacity, d, c), none, none)


def checkpoints_reached(record: TrainingRecord) -> Int[Array, " n"]:
    """Return the number of checkpoints that each network has passed."""
    return record.data.mask.sum(axis=1)


def is_started(record: TrainingRecord) -> Bool[Array, " n"]:
    """Return which rows hold a network."""
    return jnp.arange(len(record.pending)) < record.data.size


def is_complete(record: TrainingRecord) -> Bool[Array, " n"]:
    """Return which networks have been trained to the end."""
    return record.data.mask[:, -1]


def is_unfinished(record: TrainingRecord) -> Bool[Array, " n"]:
    """Return which networks have started, have not reached the end, and have not failed."""
    return is_started(record) & ~is_complete(record) & ~record.failed


def best_final_value(record: TrainingRecord) -> Float[Array, ""]:
    """Return the lowest final value of the complete networks; infinity without any."""
    return jnp.min(jnp.where(is_complete(record), record.data.y[:, -1], jnp.inf))


def find_row(record: TrainingRecord, x: Float[Array, " d"]) -> Int[Array, ""]:
    """Return the row of the unfinished network at x, or the next free row.

    Return the capacity if all rows are used.
    """
    gap = jnp.where(is_unfinished(record), max_difference(record.data.x, x), jnp.inf)
    nearest = jnp.argmin(gap)
    return jnp.where(
        gap[nearest] < SAME_POINT, nearest, jnp.minimum(record.data.size, len(gap))
    )


def mark_pending(record: TrainingRecord, x: Float[Array, " d"]) -> TrainingRecord:
    """Mark the network at x as pending; add it if it is not an unfinished network.

    A new network beyond the capacity is dropped.
    """
    row = find_row(record, x)
    data = record.data
    data = data._replace(
        x=data.x.at[row].set(x, mode="drop"),
        size=jnp.maximum(data.size, row + 1).astype(data.size.dtype),
    )
    return record._replace(
        data=data, pending=record.pending.at[row].set(True, mode="drop")
    )


def add_checkpoint(record: TrainingRecord, observation: Observation) -> TrainingRecord:
    """Add the value of one checkpoint to the network at the observation's x.

    A network that is not in the record is added. If the value is not finite, or the observation
    failed, the network has failed: its earlier checkpoints are kept, and it is not trained further.

    Raises:
        ValueError: If the checkpoint is not the next one of the network. Under `jit` this cannot be
            checked, and the value is added to the next checkpoint.
    """
    data = record.data
    x, y = point_and_value(observation, data)
    row = find_row(record, x)
    record = mark_pending(record, x)
    data = record.data
    ok = observation.ok & jnp.isfinite(y)
    step = checkpoints_reached(record)[row]
    _check_step(x, step, observation.step)
    data = data._replace(
        y=data.y.at[row, step].set(jnp.where(ok, y, 0.0), mode="drop"),
        mask=data.mask.at[row, step].set(ok, mode="drop"),
    )
    return TrainingRecord(
        data=data,
        pending=record.pending.at[row].set(False, mode="drop"),
        failed=record.failed.at[row].set(~ok, mode="drop"),
    )


def _check_step(
    x: Array,
    expected: Array,
    step: Array,
) -> None:
    """Raise a ValueError if a checkpoint is not the expected one; not under `jit`."""
    if isinstance(expected, jax.core.Tracer) or isinstance(step, jax.core.Tracer):
        return
    if int(expected) != int(step):
        raise ValueError(
            f"expected checkpoint {int(expected)} of the network at {x}; got checkpoint {int(step)}"
            "; report the checkpoints of a network in order"
        )


def check_steps(steps: ArrayLike | Sequence[int]) -> tuple[int, ...]:
    """Check the numbers of training steps up to each checkpoint, and return them as a tuple.

    Raises:
        ValueError: If they are not positive, increasing integers.
    """
    check_static("steps", steps)
    values = np.asarray(steps)
    if values.ndim != 1 or not len(values) or not (values == np.round(values)).all():
        raise ValueError(
            f"steps must be a list of integers, one per checkpoint; got {steps!r}"
        )
    if values[0] <= 0 or (np.diff(values) <= 0).any():
        raise ValueError(
            f"steps must be positive and increase with the checkpoints; got {values.tolist()}"
        )
    return tuple(int(value) for value in values)
