"""Maximum a posteriori estimation by BFGS with at most a fixed number of evaluations.

A line search has a variable number of iterations, and under `vmap` every lane waits for the longest
one. Here each iteration evaluates the density once: it accepts the candidate if it is an
improvement, and otherwise shortens the step for the next iteration. There are few hyperparameters,
so the full inverse Hessian takes fewer and simpler operations than a limited-memory one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray

from bonas.infer.posterior import Info, LogDensity, Tree, choose, flat
from bonas.static_settings import check_not_negative

# Fraction of the predicted improvement that a step must reach (Armijo condition).
_ARMIJO = 1e-4
# Factor of the step length after a rejected candidate.
_SHORTEN = 0.3
# Largest change of a coordinate in one step: a factor of 7 on a log scale.
_MAX_STEP = 2.0
# Largest increase of the log density by another step at which the optimization has converged.
_TOLERANCE = 0.1
# Pairs with less curvature, relative to the step, are not used in the inverse Hessian.
_MIN_CURVATURE = 1e-10


class _State(NamedTuple):
    """The state of BFGS on the negative log density."""

    point: Float[Array, " p"]
    value: Float[Array, ""]
    gradient: Float[Array, " p"]
    direction: Float[Array, " p"]
    length: Float[Array, ""]  # length of the next step, as a fraction of the direction
    # estimate of the inverse Hessian; 0 before the first step
    inverse: Float[Array, "p p"]
    decrease: Float[Array, ""]  # decrease of the value in the last accepted step
    evaluations: Int[Array, ""]


def maximize(
    key: PRNGKeyArray,
    log_density: LogDensity,
    start: Tree,
    *,
    draw: Callable[[PRNGKeyArray], Tree] | None = None,
    restarts: int = 0,
    steps: int = 50,
    first_step: ArrayLike = 1.0,
    stop_below: ArrayLike = 0.0,
) -> tuple[Tree, Info]:
    """Maximize a log density by BFGS from one or more starting points.

    Args:
        key: Random key of the restarts.
        log_density: Function of a pytree like `start`.
        start: The first starting point.
        draw: Function from a key to another starting point, such as `target.draw`.
        restarts: Number of further starting points to draw.
        steps: Maximum number of evaluations of the density and its gradient per starting point, not
            counting the first. Ten are enough from a warm start.
        first_step: Largest length of the first step, along the gradient.
        stop_below: Stop before `steps` evaluations if the last step increased the log density by
            less than this, and the next one would, too, according to the quadratic model of BFGS.

    Returns:
        The best point found, with a leading axis of 1, and statistics of the run. `Info.accept` is
        1 if the optimization converged: both increases named under `stop_below` are at most 0.1.
    """
    check_not_negative(restarts=restarts, steps=steps)
    density, vector, unflatten = flat(log_density, start)
    starts = vector[None]
    if restarts:
        if draw is None:
            raise ValueError(
                "restarts need draw=, a function from a key to a starting point, such as "
                "`target.draw`"
            )
        draws = jax.vmap(lambda k: ravel_pytree(draw(k))[0])(
            jax.random.split(key, restarts)
        )
        starts = jnp.concatenate([starts, draws.astype(vector.dtype)])

    climb = partial(_climb, density, steps, first_step, stop_below)
    ends = jax.vmap(climb)(starts)
    best = jnp.argmin(ends.value)
    end = jax.tree.map(lambda leaf: leaf[best], ends)
    converged = _gain(end) <= _TOLERANCE
    info = Info(
        log_density=-end.value[None],
        accept=converged.astype(vector.dtype)[None],
        diverging=~jnp.isfinite(end.value)[None],
        scale=jnp.linalg.norm(end.gradient),
        evaluations=ends.evaluations.sum(),
    )
    return jax.tree.map(lambda leaf: leaf[None], unflatten(end.point)), info


def _gain(state: _State) -> Float[Array, ""]:
    """Return the larger of the last decrease and the one that BFGS expects of the next step."""
    return jnp.maximum(
        0.5 * (state.gradient @ state.inverse @ state.gradient), state.decrease
    )


def _climb(
    density: LogDensity,
    steps: int,
    first_step: ArrayLike,
    stop_below: ArrayLike,
    start: Array,
) -> _State:
    """Return the state at the lowest point after at most `steps` evaluations and that of start."""
    value_and_grad = jax.value_and_grad(lambda point: -density(point))
    one = jnp.ones((), start.dtype)

    def continues(now: _State) -> Array:
        return (now.evaluations <= steps) & ~(_gain(now) < stop_below)

    def step(now: _State) -> Any:
        candidate = now.point + now.length * now.direction
        value, gradient = value_and_grad(candidate)
        slope = now.direction @ now.gradient
        enough = value <= now.value + _ARMIJO * now.length * slope
        accepted = enough & jnp.isfinite(gradient).all()
        inverse = _update_inverse(
            now.inverse, candidate - now.point, gradient - now.gradient
        )
        direction = _direction(inverse, gradient, first_step)
        n = now.evaluations + 1
        gain = now.value - value
        moved = _State(candidate, value, gradient, direction, one, inverse, gain, n)
        stayed = now._replace(length=_SHORTEN * now.length, evaluations=n)
        return choose(accepted, moved, stayed)

    # The first step has length 0 and evaluates the start, so that the density is compiled once.
    zeros = jnp.zeros_like(start)
    inverse = jnp.zeros((len(start), len(start)), start.dtype)
    worst = one * jnp.inf
    state = _State(start, worst, zeros, zeros, one, inverse, worst, jnp.asarray(0))
    last: _State = jax.lax.while_loop(continues, step, state)
    return last


def _update_inverse(inverse: Array, move: Array, change: Array) -> Array:
    """Update the inverse Hessian by a move and the change of gradient along it.

    Nocedal & Wright 2006, eq. 6.17. The first move initializes it to the identity times their
    eq. 6.20. Moves with too little curvature are ignored.
    """
    curvature = move @ change
    scale = curvature / jnp.maximum(change @ change, 1e-300)
    identity = jnp.eye(len(move), dtype=move.dtype)
    started = jnp.where(inverse.any(), inverse, scale * identity)
    rate = 1.0 / jnp.where(curvature > 0.0, curvature, 1.0)
    product = started @ change
    cross = move[:, None] * product[None, :]
    weight = (1.0 + rate * (change @ product)) * rate
    update = weight * (move[:, None] * move[None, :]) - rate * (cross + cross.T)
    curved = curvature > _MIN_CURVATURE * (move @ move)
    return jnp.where(curved, started + update, inverse)


def _direction(inverse: Array, gradient: Array, first_step: ArrayLike) -> Array:
    """Return the quasi-Newton direction, or minus the gradient if that does not descend."""
    scaled = inverse @ gradient
    descends = (scaled @ gradient > 0) & jnp.isfinite(scaled).all()
    unit = first_step * gradient / jnp.maximum(jnp.linalg.norm(gradient), 1.0)
    direction = -jnp.where(descends, scaled, unit)
    return direction * jnp.minimum(
        1.0, _MAX_STEP / jnp.maximum(jnp.max(jnp.abs(direction)), 1e-30)
    )
