"""Maximum a posteriori estimation by BFGS with a fixed number of evaluations.

A line search has a variable number of iterations, and under `vmap` every lane waits for the longest
one. Here each iteration evaluates the density once: it accepts the candidate if it is an
improvement, and otherwise shortens the step for the next iteration. There are few hyperparameters,
so the full inverse Hessian takes fewer and simpler operations than a limited-memory one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.infer.posterior import Info, LogDensity, Tree, choose, flat
from bonas.static_settings import check_not_negative

# Fraction of the predicted improvement that a step must reach (Armijo condition).
_ARMIJO = 1e-4
# Factor of the step length after a rejected candidate.
_SHORTEN = 0.3
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


def maximize(
    key: PRNGKeyArray,
    log_density: LogDensity,
    start: Tree,
    *,
    draw: Callable[[PRNGKeyArray], Tree] | None = None,
    restarts: int = 0,
    steps: int = 50,
    max_step: float = 2.0,
    tolerance: float = 0.1,
) -> tuple[Tree, Info]:
    """Maximize a log density; return the best point found, with a leading axis of 1.

    Args:
        key: Random key of the restarts.
        log_density: Function of a pytree like `start`.
        start: The first starting point.
        draw: Function from a key to another starting point, such as `target.draw`.
        restarts: Number of starting points to draw.
        steps: Evaluations of the density and its gradient per starting point, not counting the
            first. Ten are enough from a warm start.
        max_step: Largest change of a coordinate in one step; 2 is a factor of 7 on a log scale.
        tolerance: Info.accept is 1 if the last step increased the log density by at most this, and
            another one would, too, according to the quadratic model of BFGS.
    """
    check_not_negative(restarts=restarts, steps=steps)
    if restarts and draw is None:
        raise ValueError(
            "restarts need draw=, a function from a key to a starting point, such as `target.draw`"
        )
    density, vector, unflatten = flat(log_density, start)
    starts = vector[None]
    if draw is not None and restarts:
        draws = jax.vmap(lambda k: ravel_pytree(draw(k))[0])(
            jax.random.split(key, restarts)
        )
        starts = jnp.concatenate([starts, draws.astype(vector.dtype)])

    def climb(z: Array) -> _State:
        return _descend(
            lambda point: -density(point), z, steps=steps, max_step=max_step
        )

    ends = jax.vmap(climb)(starts)
    best = jnp.argmin(ends.value)
    end = jax.tree.map(lambda leaf: leaf[best], ends)
    gain = 0.5 * (end.gradient @ end.inverse @ end.gradient)
    converged = jnp.maximum(gain, end.decrease) <= tolerance
    info = Info(
        log_density=-end.value[None],
        accept=converged.astype(vector.dtype)[None],
        diverging=~jnp.isfinite(end.value)[None],
        scale=jnp.linalg.norm(end.gradient),
        evaluations=jnp.asarray(len(starts) * (steps + 1)),
    )
    return jax.tree.map(lambda leaf: leaf[None], unflatten(end.point)), info


def _descend(
    loss: Callable[[Array], Array],
    start: Array,
    *,
    steps: int,
    max_step: float,
) -> _State:
    """Return the state at the lowest point after a fixed number of evaluations."""
    value_and_grad = jax.value_and_grad(loss)

    def step(now: _State, _: Any) -> tuple[_State, None]:
        candidate = now.point + now.length * now.direction
        value, gradient = value_and_grad(candidate)
        enough = value <= now.value + _ARMIJO * now.length * (
            now.direction @ now.gradient
        )
        accepted = enough & jnp.isfinite(gradient).all()
        inverse = _update_inverse(
            now.inverse, candidate - now.point, gradient - now.gradient
        )
        direction = _direction(inverse, gradient, max_step)
        length = jnp.ones_like(now.length)
        decrease = now.value - value
        moved = _State(candidate, value, gradient, direction, length, inverse, decrease)
        return choose(accepted, moved, now._replace(length=_SHORTEN * now.length)), None

    # The first step has length 0 and evaluates the start, so that the density is compiled once.
    p = len(start)
    zeros = jnp.zeros_like(start)
    one = jnp.ones((), start.dtype)
    inverse = jnp.zeros((p, p), start.dtype)
    first = _State(start, one * jnp.inf, zeros, zeros, one, inverse, one * jnp.inf)
    last, _ = jax.lax.scan(step, first, None, length=steps + 1)
    return last


def _update_inverse(inverse: Array, move: Array, change: Array) -> Array:
    """Update the inverse Hessian by a move and the change of gradient along it.

    Nocedal & Wright 2006, eq. 6.17. The first move initializes it to the identity times their
    eq. 6.20. Moves with too little curvature are ignored.
    """
    before = inverse
    curvature = move @ change
    first = ~before.any()
    numerator = jnp.where(first, curvature, 1.0)
    scale = numerator / jnp.where(first, jnp.maximum(change @ change, 1e-300), 1.0)
    inverse = jnp.where(first, scale * jnp.eye(len(move), dtype=move.dtype), before)
    rate = 1.0 / jnp.where(curvature > 0.0, curvature, 1.0)
    product = inverse @ change
    cross = move[:, None] * product[None, :]
    weight = (1.0 + rate * (change @ product)) * rate
    update = weight * (move[:, None] * move[None, :]) - rate * (cross + cross.T)
    curved = curvature > _MIN_CURVATURE * (move @ move)
    return jnp.where(curved, inverse + update, before)


def _direction(inverse: Array, gradient: Array, max_step: float) -> Array:
    """Return the quasi-Newton direction, or minus the gradient if that does not descend."""
    scaled = inverse @ gradient
    descends = (scaled @ gradient > 0) & jnp.isfinite(scaled).all()
    unit = gradient / jnp.maximum(jnp.linalg.norm(gradient), 1.0)
    direction = -jnp.where(descends, scaled, unit)
    return direction * jnp.minimum(
        1.0, max_step / jnp.maximum(jnp.max(jnp.abs(direction)), 1e-30)
    )
