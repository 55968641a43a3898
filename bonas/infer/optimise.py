"""Maximum a posteriori by L-BFGS in a fixed number of evaluations.

A line search inside an iteration is a loop of unknown length, and under `vmap` every lane waits for the longest. Here each
iteration evaluates the density once: the trial point is taken if it is an improvement, and otherwise the step is
shortened for the next iteration. Lanes never wait, and the cost is known before.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.flatten_util import ravel_pytree

from bonas.infer.target import Info, Tree, choose, flat

_ARMIJO = 1e-4  # the usual share of the promised improvement that counts as enough
_SHORTEN = 0.3  # how much of the step is kept after a failure
_CURVATURE = 1e-10  # pairs flatter than this, relative to the step, would spoil the memory


def maximise(
    key: Array,
    log_density: Callable[[Tree], Array],
    start: Tree,
    *,
    draw: Callable[[Array], Tree] | None = None,
    restarts: int = 0,
    steps: int = 50,
    memory: int = 8,
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
        return _descend(lambda point: -density(point), z, steps=steps, memory=memory, longest=longest)

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


def _descend(loss: Callable[[Array], Array], start: Array, *, steps: int, memory: int, longest: float):
    """The lowest point, its loss and gradient after a fixed number of evaluations."""
    lbfgs = optax.scale_by_lbfgs(memory)
    value_and_grad = jax.value_and_grad(loss)

    def towards(gradient, scaled):
        """A descent direction of bounded length: the quasi-Newton one, or the gradient where that is none."""
        descends = (scaled @ gradient > 0) & jnp.isfinite(scaled).all()
        unit = gradient / jnp.maximum(jnp.linalg.norm(gradient), 1.0)
        direction = -jnp.where(descends, scaled, unit)
        return direction * jnp.minimum(1.0, longest / jnp.maximum(jnp.max(jnp.abs(direction)), 1e-30))

    def step(carry, _):
        point, value, gradient, direction, length, state = carry
        trial = point + length * direction
        trial_value, trial_gradient = value_and_grad(trial)
        enough = trial_value <= value + _ARMIJO * length * (direction @ gradient)
        taken = enough & jnp.isfinite(trial_gradient).all()
        change = trial - point
        curved = change @ (trial_gradient - gradient) > _CURVATURE * (change @ change)
        scaled, updated = lbfgs.update(trial_gradient, state, trial)
        # a pair that is too flat is left out, but the next one is still measured from here
        passed = state._replace(count=jnp.maximum(state.count, 1), params=trial, updates=trial_gradient)
        state = choose(taken, choose(curved, updated, passed), state)
        point, value, gradient = choose(taken, (trial, trial_value, trial_gradient), (point, value, gradient))
        direction = jnp.where(taken, towards(gradient, jnp.where(curved, scaled, 0.0)), direction)
        return (point, value, gradient, direction, jnp.where(taken, 1.0, _SHORTEN * length), state), None

    # The first step goes nowhere from an infinite value: it evaluates the start, so the density is compiled once.
    nowhere, one = jnp.zeros_like(start), jnp.ones((), start.dtype)
    carry = (start, one * jnp.inf, nowhere, nowhere, one, lbfgs.init(start))
    (point, value, gradient, *_), _ = jax.lax.scan(step, carry, None, length=steps + 1)
    return point, value, gradient
