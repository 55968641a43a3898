"""What a search on learning curves has begun, how far each network is, and what is asked, in arrays of fixed capacity."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.data import Dataset, empty
from bonas.search.record import SAME, apart
from bonas.search.types import Trial


class Networks(NamedTuple):
    """Every network begun, in that order."""

    data: Dataset  # (n, d) rows and their curves (n, c), masked from the next checkpoint on
    pending: Array  # (n,) bool: asked to advance, and not told yet
    failed: Array  # (n,) bool: diverged; what was seen before is kept


def none_begun(capacity: int, d: int, c: int) -> Networks:
    """No networks, with room for `capacity` of d columns and c checkpoints."""
    nothing = jnp.zeros(capacity, bool)
    return Networks(empty(capacity, d, c), nothing, nothing)


def reached(networks: Networks) -> Array:
    """How many checkpoints each network (n,) has behind it: the position of its next one."""
    return networks.data.mask.sum(axis=1)


def begun(networks: Networks) -> Array:
    """(n,) bool: which rows are in use."""
    return jnp.arange(len(networks.pending)) < networks.data.size


def complete(networks: Networks) -> Array:
    """(n,) bool: which networks were trained to the end."""
    return networks.data.mask[:, -1]


def unfinished(networks: Networks) -> Array:
    """(n,) bool: which networks can go on."""
    return begun(networks) & ~complete(networks) & ~networks.failed


def best_complete(networks: Networks) -> Array:
    """The least final value () of a network trained to the end; infinite where there is none."""
    return jnp.min(jnp.where(complete(networks), networks.data.y[:, -1], jnp.inf))


def row_of(networks: Networks, x: Array) -> Array:
    """The row () of the network at x (d,) that can go on; the next row where there is none, the capacity when that is full."""
    gap = jnp.where(unfinished(networks), apart(networks.data.x, x), jnp.inf)
    nearest = jnp.argmin(gap)
    return jnp.where(gap[nearest] < SAME, nearest, jnp.minimum(networks.data.size, len(gap)))


def asked(networks: Networks, x: Array) -> Networks:
    """The networks with the one at x (d,) pending, a new one where none there can go on; dropped past the capacity."""
    row, data = row_of(networks, x), networks.data
    data = data._replace(x=data.x.at[row].set(x, mode="drop"), size=jnp.maximum(data.size, row + 1).astype(data.size.dtype))
    return networks._replace(data=data, pending=networks.pending.at[row].set(True, mode="drop"))


def told(networks: Networks, trial: Trial) -> Networks:
    """The networks with one more checkpoint of the one at the trial's x, which is begun where it was not.

    A value that is not finite, or not ok, is where the network failed: what was seen before it is kept, and it never goes
    on. A checkpoint that is not the network's next is a ValueError on the host; under `jit`, where it is not known, it is
    taken for the next.
    """
    data = networks.data
    x, y = jnp.asarray(trial.x, data.x.dtype), jnp.asarray(trial.y, data.y.dtype)
    if x.shape != data.x.shape[1:] or y.shape != ():
        raise ValueError(f"a trial has x of shape {data.x.shape[1:]} and y of shape (); got {x.shape} and {y.shape}")
    row = row_of(networks, x)
    networks = asked(networks, x)
    data, fine = networks.data, trial.ok & jnp.isfinite(y)
    step = reached(networks)[row]
    if not isinstance(step, jax.core.Tracer) and not isinstance(trial.step, jax.core.Tracer) and int(step) != int(trial.step):
        raise ValueError(f"the next checkpoint of the network at {x} is {int(step)}; the trial has {int(trial.step)}")
    data = data._replace(
        y=data.y.at[row, step].set(jnp.where(fine, y, 0.0), mode="drop"),
        mask=data.mask.at[row, step].set(fine, mode="drop"),
    )
    return Networks(
        data=data,
        pending=networks.pending.at[row].set(False, mode="drop"),
        failed=networks.failed.at[row].set(~fine, mode="drop"),
    )


def checked_steps(steps: ArrayLike | Sequence[int]) -> tuple[int, ...]:
    """The training steps at each checkpoint as a tuple, or a ValueError where they are not positive and increasing."""
    values = np.asarray(steps)
    if values.ndim != 1 or not len(values) or not (values == np.round(values)).all():
        raise ValueError(f"steps are whole numbers of training steps, one a checkpoint; got {steps!r}")
    if values[0] <= 0 or (np.diff(values) <= 0).any():
        raise ValueError(f"steps are positive and increase from checkpoint to checkpoint; got {values.tolist()}")
    return tuple(int(value) for value in values)
