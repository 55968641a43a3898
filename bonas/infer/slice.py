"""Slice sampling of one coordinate at a time, with stepping out and shrinking.

Neal 2003; Wilton 2020, Algorithm 1. The whole chain is one loop; every iteration evaluates
the density once, at the left end of the interval, the right end, or a point inside. Under `vmap`,
chains therefore do not wait for each other at every coordinate, and the density is compiled once.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from bonas.infer.posterior import Info, LogDensity, Tree, choose, flat
from bonas.static_settings import check_chain

# The point that the next evaluation tests: an end of the interval, or a point inside.
_LEFT = 0
_RIGHT = 1
_INSIDE = 2
# After this many rejections the interval is as small as rounding errors; the value is kept.
_MAX_REJECTIONS = 100


class _State(NamedTuple):
    """The state of the chain within the update of one coordinate."""

    sweep: Int[Array, ""]  # sweeps completed
    coordinate: Int[Array, ""]
    phase: Int[Array, ""]  # _LEFT, _RIGHT or _INSIDE
    z: Float[Array, " d"]
    log_density: Float[Array, ""]  # at z
    level: Float[Array, ""]  # log height of the slice
    left: Float[Array, ""]  # ends of the interval
    right: Float[Array, ""]
    budget: Int[Array, "2"]  # steps out that remain for each side
    rejected: Int[Array, ""]  # points rejected in this update
    widths: Float[Array, " d"]
    evaluations: Int[Array, ""]
    samples: Float[Array, "s d"]
    densities: Float[Array, " s"]


def slice_sample(
    key: PRNGKeyArray,
    log_density: LogDensity,
    start: Tree,
    *,
    samples: int = 16,
    burn: int = 16,
    thin: int = 1,
    width: float | Float[Array, "*d"] = 1.0,
    patience: int = 3,
    max_steps_out: int = 50,
) -> tuple[Tree, Info]:
    """Draw samples by slice sampling of one coordinate at a time.

    A sweep updates every coordinate once.

    Args:
        key: Random key.
        log_density: Function of a pytree like `start`.
        start: The first position.
        samples: Number of samples to keep.
        burn: Number of sweeps before the first sample.
        thin: Number of sweeps per sample.
        width: Initial width of the intervals, one number or one per coordinate. To continue a
            chain, pass the `Info.scale` of its last run.
        patience: During burn-in only, a width doubles after more than this many steps out and
            halves after more than this many rejections. Wilton's Algorithm 1 doubles the width by
            wall-clock time during the whole run, which is neither repeatable nor exact.
        max_steps_out: Maximum number of steps out, split at random between the two sides to keep
            the draws exact.

    Returns:
        The samples, with a leading axis, and statistics of the run.
    """
    check_chain(samples, burn, thin)
    if max_steps_out < 1:
        raise ValueError(f"max_steps_out must be at least 1; got {max_steps_out}")
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

    def unfinished(state: _State) -> Array:
        return state.sweep < burn + samples * thin

    def evaluate_once(state: _State) -> _State:
        uniform = jax.random.uniform(
            jax.random.fold_in(key, state.evaluations), (4,), vector.dtype
        )
        within = state.left + uniform[0] * (state.right - state.left)
        probe = jnp.stack([state.left, state.right, within])[state.phase]
        value = density(state.z.at[state.coordinate].set(probe))
        above = value > state.level
        state = state._replace(evaluations=state.evaluations + 1)
        done = (state.phase == _INSIDE) & (above | (state.rejected >= _MAX_REJECTIONS))
        moved = _end_update(
            state,
            probe,
            value,
            above,
            burn=burn,
            thin=thin,
            patience=patience,
            max_steps_out=max_steps_out,
        )
        moved = _start_update(moved, uniform[1:], max_steps_out)
        state = choose(done, moved, _adjust_interval(state, probe, above))
        return state

    uniform = jax.random.uniform(jax.random.fold_in(key, 0), (3,), vector.dtype)
    last = jax.lax.while_loop(
        unfinished, evaluate_once, _start_update(first, uniform, max_steps_out)
    )
    info = Info(
        log_density=last.densities,
        accept=jnp.ones(samples, vector.dtype),
        diverging=~jnp.isfinite(last.densities),
        scale=last.widths,
        evaluations=last.evaluations,
    )
    return jax.vmap(unflatten)(last.samples), info


def _start_update(
    state: _State, uniform: Float[Array, "3"], max_steps_out: int
) -> _State:
    """Draw the level of the slice and an interval around the current coordinate."""
    here = state.z[state.coordinate]
    width = state.widths[state.coordinate]
    left = here - width * uniform[1]
    to_left = jnp.floor(uniform[2] * max_steps_out).astype(int)
    return state._replace(
        phase=jnp.asarray(_LEFT),
        level=state.log_density + jnp.log1p(-uniform[0]),
        left=left,
        right=left + width,
        budget=jnp.stack([to_left, max_steps_out - 1 - to_left]),
        rejected=jnp.asarray(0),
    )


def _adjust_interval(
    state: _State, probe: Float[Array, ""], above: Bool[Array, ""]
) -> _State:
    """Step out by one width, go to the next phase, or shrink the interval to a rejected point."""
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


def _end_update(
    state: _State,
    probe: Float[Array, ""],
    value: Float[Array, ""],
    above: Bool[Array, ""],
    *,
    burn: int,
    thin: int,
    patience: int,
    max_steps_out: int,
) -> _State:
    """Accept the point, adapt the width during burn-in, and store a sample after each sweep."""
    i = state.coordinate
    z = jnp.where(above, state.z.at[i].set(probe), state.z)
    value = jnp.where(above, value, state.log_density)
    outward = max_steps_out - 1 - state.budget.sum()
    factor = jnp.where(
        outward > patience, 2.0, jnp.where(state.rejected > patience, 0.5, 1.0)
    )
    widths = state.widths.at[i].multiply(
        jnp.where(state.sweep < burn, factor, 1.0).astype(z.dtype)
    )
    end = i == len(z) - 1
    sweep = state.sweep + end.astype(int)
    kept = sweep - burn
    store = end & (kept > 0) & (kept % thin == 0)
    # a row past the end is dropped
    row = jnp.where(store, kept // thin - 1, len(state.samples))
    return state._replace(
        sweep=sweep,
        coordinate=jnp.where(end, 0, i + 1),
        z=z,
        log_density=value,
        widths=widths,
        samples=state.samples.at[row].set(z, mode="drop"),
        densities=state.densities.at[row].set(value, mode="drop"),
    )
