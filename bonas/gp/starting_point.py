"""Starting points for inference if the middle of the prior is a saddle point."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from bonas.data import Dataset
from bonas.infer import Target, Tree, is_distribution, target

# Number of artificial points for the computation of the gradient.
_N_POINTS = 8


def has_centered_leaf(prior: Tree) -> bool:
    """Return whether a prior has a parameter for which `is_centered` holds."""
    leaves = jax.tree.leaves(prior, is_leaf=is_distribution)
    return any(map(is_centered, leaves))


def is_centered(distribution: dist.Distribution) -> bool:
    """Return whether the middle of a distribution may be 0, judging by its support.

    It may if the support is all real numbers, as for the weights of a network, or an interval
    that is symmetric about 0. The default kernels have no such parameters.
    """
    support: Any = distribution.support
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    if support is dist.constraints.real:
        return True
    low = getattr(support, "lower_bound", 0.0)
    high = getattr(support, "upper_bound", 0.0)
    if any(isinstance(bound, jax.core.Tracer) for bound in (low, high)):
        return True  # unknown
    return bool(np.any((np.asarray(low) == -np.asarray(high)) & (np.asarray(low) < 0)))


def leave_saddle(
    posterior: Target,
    prior: Tree,
    log_likelihood: Callable[[Tree, Dataset], Array],
    x: Float[Array, "n d"],
) -> Target:
    """Return the posterior with a starting point that is not a saddle point.

    The prior of a network's weights has median 0. A kernel with such a network has a saddle point
    there: hidden units and their outgoing weights are 0, so the gradient vanishes and no optimizer
    leaves. With normalized features the gradient there is NaN. Parameters that may be 0
    (`is_centered`) whose gradient is exactly 0 or not finite, on artificial data, start at a fixed
    draw from their prior instead.

    Args:
        posterior: The posterior.
        prior: The prior of its parameters.
        log_likelihood: Function of parameters and a dataset.
        x: Points, of which only the number of columns and the type are used.
    """
    examined = jax.tree.map(is_centered, prior, is_leaf=is_distribution)
    data = _artificial_data(x)
    density = target(prior, lambda params: log_likelihood(params, data)).maximizing

    def move(is_examined: bool, slope: Array, middle: Array, drawn: Array) -> Array:
        if not is_examined:
            return middle
        is_stuck = (slope == 0.0).all() | ~jnp.isfinite(slope).all()
        moved: Array = jnp.where(is_stuck, drawn, middle)
        return moved

    def find_start() -> Tree:
        start = posterior.start
        draw = posterior.draw(jax.random.key(0))
        return jax.tree.map(move, examined, jax.grad(density)(start), start, draw)

    return posterior._replace(find_start=find_start)


def _artificial_data(x: Array) -> Dataset:
    """Return random data with the columns and dtype of x."""
    random = np.random.default_rng(0)
    rows = jnp.asarray(random.random((_N_POINTS, x.shape[1])), x.dtype)
    values = jnp.asarray(random.standard_normal((_N_POINTS, 1)), x.dtype)
    mask = jnp.ones((_N_POINTS, 1), bool)
    return Dataset(rows, values, mask, jnp.asarray(_N_POINTS))
