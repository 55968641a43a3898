"""Maximum a posteriori by BFGS in a fixed number of evaluations.

A line search inside an iteration is a loop of unknown length, and under `vmap` every lane waits for the longest. Here each
iteration evaluates the density once: the trial point is taken if it is an improvement, and otherwise the step is
shortened for the next iteration. Lanes never wait, and the cost is known before. Hyperparameters are few: their inverse
Hessian is kept as a whole, which takes fewer and simpler operations than a limited memory of it.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from bonas.infer.target import Info, Tree, choose, flat

_ARMIJO = 1e-4  # the usual share of the promised improvement that counts as enough
_SHORTEN = 0.3  # how much of the step is kept after a failure
_CURVATURE = 1e-10  # pairs flatter than this, relative to the step, would spoil the memory


class _Climb(NamedTuple):
    """Where an ascent is, and where it goes next."""

    point: Array  # (p,)
    value: Array  # ()
    gradient: Array  # (p,)
    direction: Array  # (p,)
    length: Array  # () of the next step, as a share of the direction
    inverse: Array  # (p, p) of the Hessian, as far as it is known


def maximise(
    key: Array,
    log_density: Callable[[Tree], Array],
    start: Tree,
    *,
    draw: Callable[[Array], Tree] | None = None,
    restarts: int = 0,
    steps: int = 50,
    longest: float = 2.0,
    tolerance: float = 1e-4,
) -> tuple[Tree, Info]:
    """The highest point found, with a leading axis of 1, from `start` and `restarts` draws of draw(key).

    steps: evaluations of the density and its gradient a start, after the first. From a warm start ten do.
    longest: the most any coordinate moves in one step; on the scale of logarithms, two is a factor of seven.
    tolerance: Info.accept is 1 where the norm of the gradient is below it, relative to 1 + |log density|.
    """
    if restarts and draw is None:
        raise ValueError("restarts need a draw(key) that gives starting points, such as `target.draw`")
    density, vector, unflatten = flat(log_density, start)
    starts = vector[None]
    if draw is not None and restarts:
        draws = jax.vmap(lambda k: ravel_pytree(draw(k))[0])(jax.random.split(key, restarts))
        starts = jnp.concatenate([starts, draws.astype(vector.dtype)])

    def climb(z):
        return _descend(lambda point: -density(point), z, steps=steps, longest=longest)

    points, losses, gradients = jax.vmap(climb)(starts)
    best = jnp.argmin(losses)
    size = jnp.linalg.norm(gradients[best])
    info = Info(
        log_density=-losses[best][None],
        accept=((size <= tolerance * (1.0 + jnp.abs(losses[best]))) & jnp.isfinite(losses[best])).astype(vector.dtype)[None],
        diverging=~jnp.isfinite(losses[best])[None],
        scale=size,
        evaluations=jnp.asarray(len(starts) * (steps + 1)),
    )
    return jax.tree.map(lambda leaf: leaf[None], unflatten(points[best])), info


def _descend(loss: Callable[[Array], Array], start: Array, *, steps: int, longest: float):
    """The lowest point, its loss and gradient after a fixed number of evaluations."""
    value_and_grad = jax.value_and_grad(loss)

    def step(carry: _Climb, _):
        trial = carry.point + carry.length * carry.direction
        value, gradient = value_and_grad(trial)
        enough = value <= carry.value + _ARMIJO * carry.length * (carry.direction @ carry.gradient)
        taken = enough & jnp.isfinite(gradient).all()
        inverse = _learn(carry, trial - carry.point, gradient - carry.gradient)
        moved = _Climb(trial, value, gradient, _towards(inverse, gradient, longest), jnp.ones_like(carry.length), inverse)
        return choose(taken, moved, carry._replace(length=_SHORTEN * carry.length)), None

    # The first step goes nowhere from an infinite value: it evaluates the start, so the density is compiled once.
    nowhere, one = jnp.zeros_like(start), jnp.ones((), start.dtype)
    begin = _Climb(start, one * jnp.inf, nowhere, nowhere, one, jnp.zeros((len(start), len(start)), start.dtype))
    last, _ = jax.lax.scan(step, begin, None, length=steps + 1)
    return last.point, last.value, last.gradient


def _learn(carry: _Climb, move: Array, change: Array) -> Array:
    """The inverse Hessian (p, p) after a move and the change of gradient along it: Nocedal & Wright 2006, eq. 6.17.

    Before the first pair it is zero; the first starts it at the identity times their eq. 6.20. A pair that is too flat
    is left out.
    """
    curvature = move @ change
    fresh = ~carry.inverse.any()
    scale = jnp.where(fresh, curvature, 1.0) / jnp.where(fresh, jnp.maximum(change @ change, 1e-300), 1.0)
    inverse = jnp.where(fresh, scale * jnp.eye(len(move), dtype=move.dtype), carry.inverse)
    rate = 1.0 / jnp.where(curvature > 0.0, curvature, 1.0)
    reached = inverse @ change
    cross = move[:, None] * reached[None, :]
    update = (1.0 + rate * (change @ reached)) * rate * (move[:, None] * move[None, :]) - rate * (cross + cross.T)
    curved = curvature > _CURVATURE * (move @ move)
    return jnp.where(curved, inverse + update, carry.inverse)


def _towards(inverse: Array, gradient: Array, longest: float) -> Array:
    """A descent direction of bounded length: the quasi-Newton one, or the gradient where that is none."""
    scaled = inverse @ gradient
    descends = (scaled @ gradient > 0) & jnp.isfinite(scaled).all()
    unit = gradient / jnp.maximum(jnp.linalg.norm(gradient), 1.0)
    direction = -jnp.where(descends, scaled, unit)
    return direction * jnp.minimum(1.0, longest / jnp.maximum(jnp.max(jnp.abs(direction)), 1e-30))
