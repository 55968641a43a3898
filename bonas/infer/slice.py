"""Slice sampling one coordinate at a time, with stepping out and shrinking (Neal 2003; Wilton 2020, Algorithm 1).

The whole chain is one loop in which every iteration evaluates the density once, whatever it is doing for the current
coordinate: testing the left end of the interval, the right end, or a point inside. Chains under `vmap` therefore do not
wait for each other at every coordinate, and the density is compiled once.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.infer.target import Info, Tree, check_counts, choose, flat

_LEFT, _RIGHT, _INSIDE = 0, 1, 2  # what the next evaluation tests
_HOPELESS = 100  # rejections after which the interval has shrunk to rounding: the coordinate stays where it is


class _State(NamedTuple):
    """Where the chain stands within the update of one coordinate."""

    sweep: Array  # () int: sweeps done
    coordinate: Array  # () int
    phase: Array  # () int: _LEFT, _RIGHT or _INSIDE
    z: Array  # (d,)
    log_density: Array  # () at z
    level: Array  # () log height of the slice
    left: Array  # () ends of the interval
    right: Array  # ()
    budget: Array  # (2,) int: steps out that are left for each side
    rejected: Array  # () int: points rejected in this update
    widths: Array  # (d,)
    evaluations: Array  # () int
    samples: Array  # (s, d)
    densities: Array  # (s,)


def slice_sample(
    key: Array,
    log_density: Callable[[Tree], Array],
    start: Tree,
    *,
    samples: int = 16,
    burn: int = 16,
    thin: int = 1,
    width: float | Array = 1.0,
    patience: int = 3,
    most: int = 50,
) -> tuple[Tree, Info]:
    """`samples` draws with a leading axis, one every `thin` sweeps over all coordinates after `burn` sweeps.

    width: initial length of the interval, one number or one a coordinate (pass Info.scale of the last run to go on).
    patience: during burn-in only, a coordinate's width doubles when it took more than this many steps out, and halves
        when it rejected more points than that. Wilton's Algorithm 1 doubles by the clock and at any time, which is
        neither repeatable nor exact (W-X5).
    most: steps out at most, shared between the two sides at random, so that the draws stay exact.
    """
    check_counts(samples, burn, thin)
    if most < 1:
        raise ValueError(f"most must be at least 1; got {most}")
    density, vector, unflatten = flat(log_density, start)
    first = _State(
        sweep=jnp.asarray(0),
        coordinate=jnp.asarray(0),
        phase=jnp.asarray(_LEFT),
        z=vector,
        log_density=density(vector),
        level=jnp.zeros((), vector.dtype),
        left=jnp.zeros((), vector.dtype),
        right=jnp.zeros((), vector.dtype),
        budget=jnp.zeros(2, int),
        rejected=jnp.asarray(0),
        widths=jnp.broadcast_to(jnp.asarray(width, vector.dtype), vector.shape),
        evaluations=jnp.asarray(1),
        samples=jnp.zeros((samples, len(vector)), vector.dtype),
        densities=jnp.zeros(samples, vector.dtype),
    )

    def unfinished(state):
        return state.sweep < burn + samples * thin

    def evaluate_once(state):
        uniform = jax.random.uniform(jax.random.fold_in(key, state.evaluations), (4,), vector.dtype)
        within = state.left + uniform[0] * (state.right - state.left)
        probe = jnp.stack([state.left, state.right, within])[state.phase]
        value = density(state.z.at[state.coordinate].set(probe))
        above = value > state.level
        state = state._replace(evaluations=state.evaluations + 1)
        done = (state.phase == _INSIDE) & (above | (state.rejected >= _HOPELESS))
        moved = _finish(state, probe, value, above, burn=burn, thin=thin, patience=patience, most=most)
        moved = _begin(moved, uniform[1:], most)
        return choose(done, moved, _narrow_down(state, probe, above))

    begun = _begin(first, jax.random.uniform(jax.random.fold_in(key, 0), (3,), vector.dtype), most)
    last = jax.lax.while_loop(unfinished, evaluate_once, begun)
    info = Info(
        log_density=last.densities,
        accept=jnp.ones(samples, vector.dtype),
        diverging=~jnp.isfinite(last.densities),
        scale=last.widths,
        evaluations=last.evaluations,
    )
    return jax.vmap(unflatten)(last.samples), info


def _begin(state: _State, uniform: Array, most: int) -> _State:
    """Draw the slice's level and an interval around the current coordinate."""
    here, width = state.z[state.coordinate], state.widths[state.coordinate]
    left = here - width * uniform[1]
    to_left = jnp.floor(uniform[2] * most).astype(int)
    return state._replace(
        phase=jnp.asarray(_LEFT),
        level=state.log_density + jnp.log1p(-uniform[0]),
        left=left,
        right=left + width,
        budget=jnp.stack([to_left, most - 1 - to_left]),
        rejected=jnp.asarray(0),
    )


def _narrow_down(state: _State, probe: Array, above: Array) -> _State:
    """Step out by one width, go on to the next phase, or shrink the interval to a rejected point."""
    stepping = state.phase < _INSIDE
    side = jnp.minimum(state.phase, _RIGHT)
    further = stepping & above & (state.budget[side] > 0)
    width = state.widths[state.coordinate]
    before = probe < state.z[state.coordinate]
    left = jnp.where(further & (side == _LEFT), state.left - width, state.left)
    right = jnp.where(further & (side == _RIGHT), state.right + width, state.right)
    return state._replace(
        phase=jnp.where(stepping & ~further, state.phase + 1, state.phase),
        left=jnp.where(~stepping & before, probe, left),
        right=jnp.where(~stepping & ~before, probe, right),
        budget=state.budget.at[side].add(-further.astype(int)),
        rejected=state.rejected + (~stepping).astype(int),
    )


def _finish(state: _State, probe, value, above, *, burn: int, thin: int, patience: int, most: int) -> _State:
    """Take the point, adapt the width in burn-in, store a sample at the end of a sweep; on to the next coordinate."""
    i = state.coordinate
    z = jnp.where(above, state.z.at[i].set(probe), state.z)
    value = jnp.where(above, value, state.log_density)
    outward = most - 1 - state.budget.sum()
    factor = jnp.where(outward > patience, 2.0, jnp.where(state.rejected > patience, 0.5, 1.0))
    widths = state.widths.at[i].multiply(jnp.where(state.sweep < burn, factor, 1.0).astype(z.dtype))
    end = i == len(z) - 1
    sweep = state.sweep + end.astype(int)
    kept = sweep - burn
    store = end & (kept > 0) & (kept % thin == 0)
    row = jnp.where(store, kept // thin - 1, len(state.samples))  # a row past the end is dropped
    return state._replace(
        sweep=sweep,
        coordinate=jnp.where(end, 0, i + 1),
        z=z,
        log_density=value,
        widths=widths,
        samples=state.samples.at[row].set(z, mode="drop"),
        densities=state.densities.at[row].set(value, mode="drop"),
    )
