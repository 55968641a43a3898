"""Posteriors as log densities over unconstrained parameters, and functions that methods share.

A method has the form method(key, log_density, start) -> (samples, Info), over pytrees of
unconstrained arrays.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from numpyro.distributions import biject_to

from bonas.infer.prior_middle import middle

Tree = Any  # a pytree of arrays
LogDensity = Callable[[Tree], Float[Array, ""]]


class Info(NamedTuple):
    """Statistics of an inference run; s is the number of samples, 1 for an optimum."""

    log_density: Float[Array, " s"]  # log density at each sample
    # acceptance probability; 1 for slice sampling; for an optimum, 1 if it converged, else 0
    accept: Float[Array, " s"]
    # whether a trajectory of HMC or NUTS diverged; for other methods, whether the density is not
    # finite (never for Metropolis)
    diverging: Bool[Array, " s"]
    # the last step size, proposal scale or slice widths; for an optimum, the norm of the gradient
    scale: Float[Array, "..."]
    # number of evaluations of the density, with gradients for HMC, NUTS and optima
    evaluations: Int[Array, ""]


class Target(NamedTuple):
    """A posterior of parameters θ, as functions of unconstrained parameters z.

    Samplers need the density of z itself, log p(θ(z)) + log |dθ/dz|. The most probable θ must not
    depend on the parametrization, so optimizers maximize log p(θ(z)) without the Jacobian.
    """

    sampling: LogDensity  # log density of z, for samplers
    maximizing: LogDensity  # log density of θ at z, for optimizers
    constrain: Callable[[Tree], Tree]  # map z to θ
    unconstrain: Callable[[Tree], Tree]  # map θ to z
    draw: Callable[[PRNGKeyArray], Tree]  # draw z from the prior, given a random key
    find_start: Callable[[], Tree]  # compute `start`, only where it is needed

    @property
    def start(self) -> Tree:
        """The point z from which inference starts, by default the middle of the prior.

        The middle is the median, or the mean of a distribution without a quantile function, or
        z = 0 if the mean is not known or infinite.
        """
        return self.find_start()


def target(prior: Tree, log_likelihood: LogDensity) -> Target:
    """Create a posterior from a prior and a log likelihood.

    Args:
        prior: Nested dicts of continuous NumPyro distributions.
        log_likelihood: Function of the constrained parameters, nested dicts of the same structure.
    """
    transforms = _map(lambda d: biject_to(d.support), prior)

    def constrain(z: Tree) -> Tree:
        return jax.tree.map(lambda t, leaf: t(leaf), transforms, z, is_leaf=callable)

    def unconstrain(params: Tree) -> Tree:
        return jax.tree.map(
            lambda t, leaf: t.inv(leaf), transforms, params, is_leaf=callable
        )

    def log_prior(params: Tree) -> Array:
        return _sum(
            lambda d, leaf: d.log_prob(leaf).sum(), is_distribution, prior, params
        )

    def log_jacobian(z: Tree, params: Tree) -> Array:
        return _sum(
            lambda t, a, b: t.log_abs_det_jacobian(a, b).sum(),
            callable,
            transforms,
            z,
            params,
        )

    def maximizing(z: Tree) -> Array:
        params = constrain(z)
        return log_prior(params) + log_likelihood(params)

    def sampling(z: Tree) -> Array:
        params = constrain(z)
        return log_prior(params) + log_likelihood(params) + log_jacobian(z, params)

    def draw(key: PRNGKeyArray) -> Tree:
        leaves, structure = jax.tree.flatten(prior, is_leaf=is_distribution)
        keys = jax.random.split(key, max(len(leaves), 1))
        drawn = [d.sample(k) for d, k in zip(leaves, keys, strict=False)]
        return unconstrain(jax.tree.unflatten(structure, drawn))

    def find_start() -> Tree:
        # not weakly typed: a strongly typed start would compile the program again
        return jax.tree.map(
            lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype),
            unconstrain(_map(middle, prior)),
        )

    return Target(sampling, maximizing, constrain, unconstrain, draw, find_start)


def _sum(
    term: Callable[..., Array], is_leaf: Callable[[Any], bool], *trees: Tree
) -> Array:
    terms = jax.tree.map(term, *trees, is_leaf=is_leaf)
    return sum(jax.tree.leaves(terms), jnp.zeros(()))


def is_distribution(node: Any) -> bool:
    """Return whether an object is a NumPyro distribution, which is a leaf of a prior."""
    return isinstance(node, dist.Distribution)


def _map(function: Callable[[Any], Any], prior: Tree) -> Tree:
    for leaf in jax.tree.leaves(prior, is_leaf=is_distribution):
        if (
            not is_distribution(leaf)
            or leaf.support.is_discrete
            or isinstance(leaf, dist.Delta)
        ):
            raise ValueError(
                f"a prior must consist of continuous NumPyro distributions; got {leaf!r}"
            )
    return jax.tree.map(function, prior, is_leaf=is_distribution)


def flat(
    log_density: LogDensity, start: Tree
) -> tuple[Callable[[Array], Array], Float[Array, " p"], Callable[[Array], Tree]]:
    """Convert a density of pytrees to a density of vectors.

    Returns:
        The density of vectors, with −inf in place of NaN; the start as a vector; and the function
        from vectors to pytrees.
    """

    def as_float(leaf: Any) -> Any:  # an integer leaf would make its steps integers
        return (
            leaf if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf * 1.0
        )

    vector, unflatten = ravel_pytree(jax.tree.map(as_float, start))

    def density(z: Array) -> Array:
        value = jnp.asarray(log_density(unflatten(z)), z.dtype)
        if value.ndim:
            raise ValueError(
                f"the log density must return one number; got shape {value.shape}"
            )
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    return density, vector, unflatten


def choose(condition: Bool[Array, ""], yes: Tree, no: Tree) -> Tree:
    """Select one of two pytrees of the same structure by a condition, which may be traced."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def all_finite(tree: Tree) -> Bool[Array, ""]:
    """Return whether all entries of all leaves are finite."""
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()
