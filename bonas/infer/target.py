"""What is inferred: a prior and a likelihood as log densities over unconstrained parameters, and what inference reports.

Every method has one call shape, method(key, log_density, start) -> (samples, Info), over pytrees of unconstrained arrays.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from jax.flatten_util import ravel_pytree
from numpyro.distributions import biject_to

Tree = Any  # a pytree of arrays


class Info(NamedTuple):
    """What a run of inference did; s is the number of samples kept, 1 for an optimum."""

    log_density: Array  # (s,) at each sample
    accept: Array  # (s,) probability of accepting each move; 1 for slice sampling; for an optimum: has it converged
    diverging: Array  # (s,) bool: a trajectory that left the energy surface (HMC, NUTS)
    scale: Array  # step size, proposal scale or slice widths in the end; for an optimum the norm of the gradient
    evaluations: Array  # () int: how often the density was evaluated, burn-in included; its gradient for HMC, NUTS and optima


class Target(NamedTuple):
    """A posterior over unconstrained parameters z. `sampling` and `maximising` differ by the Jacobian of the constraint.

    A sampler needs the density of z itself, log p(θ(z)) + log |dθ/dz|; the most probable θ does not depend on how θ is
    written, so maximising uses log p(θ(z)) alone.
    """

    sampling: Callable[[Tree], Array]
    maximising: Callable[[Tree], Array]
    constrain: Callable[[Tree], Tree]  # z -> θ
    unconstrain: Callable[[Tree], Tree]  # θ -> z
    draw: Callable[[Array], Tree]  # key -> z from the prior
    start: Tree  # z at the middle of the prior


def target(prior: Tree, log_likelihood: Callable[[Tree], Array]) -> Target:
    """The posterior of a prior, nested dicts of NumPyro distributions, and a log likelihood of constrained parameters."""
    transforms = _map(lambda d: biject_to(d.support), prior)

    def constrain(z):
        return jax.tree.map(lambda t, leaf: t(leaf), transforms, z, is_leaf=callable)

    def unconstrain(params):
        return jax.tree.map(lambda t, leaf: t.inv(leaf), transforms, params, is_leaf=callable)

    def log_prior(params):
        terms = jax.tree.map(lambda d, leaf: d.log_prob(leaf).sum(), prior, params, is_leaf=is_distribution)
        return sum(jax.tree.leaves(terms), jnp.zeros(()))

    def log_jacobian(z, params):
        terms = jax.tree.map(lambda t, a, b: t.log_abs_det_jacobian(a, b).sum(), transforms, z, params, is_leaf=callable)
        return sum(jax.tree.leaves(terms), jnp.zeros(()))

    def maximising(z):
        params = constrain(z)
        return log_prior(params) + log_likelihood(params)

    def sampling(z):
        params = constrain(z)
        return log_prior(params) + log_likelihood(params) + log_jacobian(z, params)

    def draw(key):
        leaves, structure = jax.tree.flatten(prior, is_leaf=is_distribution)
        keys = jax.random.split(key, max(len(leaves), 1))
        drawn = [d.sample(k) for d, k in zip(leaves, keys, strict=False)]
        return unconstrain(jax.tree.unflatten(structure, drawn))

        # of a definite kind: what began as a Python number would be compiled once more for the first array in its place

    start = jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), unconstrain(_map(_middle, prior)))
    return Target(sampling, maximising, constrain, unconstrain, draw, start)


def is_distribution(node) -> bool:
    """Whether a node of a prior is a leaf."""
    return isinstance(node, dist.Distribution)


def _map(function, prior):
    for leaf in jax.tree.leaves(prior, is_leaf=is_distribution):
        if not is_distribution(leaf) or leaf.support.is_discrete or isinstance(leaf, dist.Delta):
            raise ValueError(f"a prior is made of continuous NumPyro distributions; got {leaf!r}")
    return jax.tree.map(function, prior, is_leaf=is_distribution)


def _middle(distribution: dist.Distribution) -> Array:
    """The median, or failing that the mean, or failing that the image of 0: a safe place to start."""
    shape = distribution.shape()
    while isinstance(distribution, (dist.ExpandedDistribution, dist.Independent)):  # these hide the median
        distribution = distribution.base_dist
    try:
        middle = distribution.icdf(jnp.full(distribution.shape(), 0.5))
    except (NotImplementedError, AttributeError, ImportError):  # the last: NumPyro leaves some quantiles to another library
        middle = _mean_or_centre(distribution)
    return jnp.broadcast_to(middle, shape)


def _mean_or_centre(distribution: dist.Distribution) -> Array:
    transform = biject_to(distribution.support)
    centre = transform(jnp.zeros(transform.inverse_shape(distribution.shape())))
    try:
        return jnp.where(jnp.isfinite(distribution.mean), distribution.mean, centre)
    except (NotImplementedError, AttributeError):
        return centre


def check_counts(samples: int, burn: int, thin: int) -> None:
    """A ValueError where a chain of these lengths makes no sense."""
    if samples < 1 or burn < 0 or thin < 1:
        raise ValueError(f"expected samples >= 1, burn >= 0 and thin >= 1; got {samples}, {burn} and {thin}")


def flat(log_density: Callable[[Tree], Array], start: Tree) -> tuple[Callable[[Array], Array], Array, Callable]:
    """The density over flat vectors with −inf for NaN, the start as a vector, and the way back to pytrees."""
    # whole numbers would make every step a whole number
    start = jax.tree.map(lambda leaf: leaf if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf * 1.0, start)
    vector, unflatten = ravel_pytree(start)

    def density(z):
        value = jnp.asarray(log_density(unflatten(z)), z.dtype)
        if value.ndim:
            raise ValueError(f"a log density is one number; got shape {value.shape}")
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    return density, vector, unflatten


def choose(condition: Array, yes: Tree, no: Tree) -> Tree:
    """One of two pytrees of the same shapes, by a condition known at run time only."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
