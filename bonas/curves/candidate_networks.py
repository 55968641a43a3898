"""Candidate networks for an ask of a search on learning curves, and the initial design."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.curves.curve_model import PartialCurves
from bonas.curves.training_record import TrainingRecord, is_started, is_unfinished
from bonas.gp import indicator_of
from bonas.search import SAME_POINT
from bonas.spaces import Space

# Finite spaces up to this size are searched entirely.
_SMALL_SPACE = 512


class Candidates(NamedTuple):
    """Networks that an ask can choose from."""

    x: Array  # (m, d)
    observed: PartialCurves  # (m, c) their observed curves
    reached: Array  # (m,) int: checkpoints passed
    available: Array  # (m,) bool: can be chosen
    pending: Array  # (m,) bool: in training
    rank: Array  # (m,) int: position in the initial design; its length if not in it


def is_small(space: Space) -> bool:
    """Return whether all points of a space are candidates."""
    return space.size <= _SMALL_SPACE


def find_candidates(
    key: PRNGKeyArray,
    space: Space,
    record: TrainingRecord,
    design: Float[Array, "k d"],
    *,
    number: int,
) -> Candidates:
    """Return the networks that an ask can choose from.

    In a small space they are all points; in a large one, the started networks, the initial design
    and random points.

    Args:
        key: A random key.
        space: The search space of networks.
        record: The networks started so far.
        design: The networks of the initial design.
        number: The number of random points to add in a large space.
    """
    small = is_small(space)
    data = record.data
    n = len(record.pending)
    x = (
        space.points()
        if small
        else jnp.concatenate([data.x, design, space.sample(key, number)])
    )
    m = len(x)
    # (m, n)
    same = (_differences(x, data.x) < SAME_POINT) & is_started(record)[None, :]
    row = jnp.argmax(same, axis=1)
    started = same.any(axis=1)
    own_row = jnp.ones(m, bool)
    if not small:
        # The first n candidates are the rows of the record, and the only ones to be continued.
        own_row = jnp.arange(m) < n
        first = jnp.minimum(jnp.arange(m), n - 1)
        row = jnp.where(own_row, first, row)
        started = jnp.where(own_row, is_started(record)[first], started)
    mask = data.mask[row] & started[:, None]
    idle = is_unfinished(record) & ~record.pending
    continued = started & own_row & idle[row]
    new = ~started & (data.size < n) & (True if small else ~own_row)
    in_design = _differences(x, design) < SAME_POINT  # (m, k)
    rank = jnp.where(in_design.any(axis=1), jnp.argmax(in_design, axis=1), len(design))
    return Candidates(
        x=x,
        observed=PartialCurves(jnp.where(mask, data.y[row], 0.0), mask),
        reached=mask.sum(axis=1),
        available=continued | new,
        pending=started & record.pending[row],
        rank=rank,
    )


def planned_priority(
    pool: Candidates,
    initial: int,
    thinning: int,
    c: int,
) -> Float[Array, " m"]:
    """Return the priority of each network in the initial design.

    Args:
        pool: The candidates.
        initial: Size of the initial design.
        thinning: One in `thinning` networks reaches the next checkpoint; 1 trains all to the end.
        c: Number of checkpoints.

    Returns:
        0 for networks that are not planned, else a number in (1, 2], highest first.
    """
    if thinning == 1:
        in_design = pool.available & (pool.rank < initial)
        return jnp.where(in_design, 2.0 - pool.rank / initial, 0.0)
    quota = jnp.asarray([-(-initial // thinning**step) for step in range(c)])
    steps = jnp.arange(c)[None, :]
    design = pool.rank[:, None] == jnp.arange(initial)[None, :]  # (m, initial)
    asked = (pool.reached + pool.pending)[:, None]
    # (initial,) checkpoints reached or pending
    asked = jnp.where(design, asked, 0).max(axis=0)
    missing = quota - (asked[:, None] > steps).sum(axis=0)  # (c,)
    in_design = pool.available & (pool.rank < initial)
    # A checkpoint without available networks, because all have diverged, is done.
    waiting = (in_design[:, None] & (pool.reached[:, None] == steps)).any(axis=0)
    step = jnp.argmax((missing > 0) & waiting)
    last_value = jnp.take(pool.observed.y, jnp.maximum(step - 1, 0), axis=1)
    value = jnp.where(step > 0, last_value, pool.rank)
    ready = in_design & (pool.reached == step)
    order = jnp.argsort(jnp.argsort(jnp.where(ready, value, jnp.inf)))
    return jnp.where(ready & (order < missing[step]), 2.0 - order / initial, 0.0)


def model_inputs(space: Space, x: Float[Array, "m d"]) -> Float[Array, "m columns"]:
    """Convert rows to inputs of curve models, with one-hot options at distance 1 of each other."""
    columns = []
    for i, options in enumerate(space.categories):
        if options:
            indicators = jax.vmap(partial(indicator_of, m=options))(x[:, i])
            columns.append(jnp.sqrt(0.5) * indicators)
        else:
            columns.append(x[:, i : i + 1])
    return jnp.concatenate(columns, axis=1)


def _differences(a: Float[Array, "m d"], b: Float[Array, "n d"]) -> Float[Array, "m n"]:
    """Return the largest difference in any column between rows of a and rows of b."""
    return jnp.abs(a[:, None, :] - b[None, :, :]).max(axis=2)
