"""Metropolis and Metropolis-Hastings sampling, as baselines."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.infer.posterior import Info, LogDensity, Tree, flat
from bonas.static_settings import check_chain

# (key, z) -> (proposed z', log q(z | z') − log q(z' | z))
Proposal = Callable[[PRNGKeyArray, Array], tuple[Array, Array]]


def metropolis(
    key: PRNGKeyArray,
    log_density: LogDensity,
    start: Tree,
    *,
    samples: int = 1000,
    burn: int = 1000,
    thin: int = 1,
    scale: float | Float[Array, ""] = 0.5,
) -> tuple[Tree, Info]:
    """Draw samples by the Metropolis algorithm with Gaussian steps (Agrawal, eq. 3.5).

    Args:
        key: Random key.
        log_density: Function of a pytree like `start`.
        start: The first position.
        samples: Number of samples to keep.
        burn: Number of steps before the first sample.
        thin: Number of steps per sample.
        scale: Standard deviation of a step in each coordinate.

    Returns:
        The samples, with a leading axis, and statistics of the run.
    """

    def walk(step_key: PRNGKeyArray, z: Array) -> tuple[Array, Array]:
        step = jnp.asarray(scale, z.dtype) * jax.random.normal(
            step_key, z.shape, z.dtype
        )
        return z + step, jnp.zeros((), z.dtype)

    chain, info = metropolis_hastings(
        key, log_density, start, walk, samples=samples, burn=burn, thin=thin
    )
    return chain, info._replace(scale=jnp.asarray(scale))


def metropolis_hastings(
    key: PRNGKeyArray,
    log_density: LogDensity,
    start: Tree,
    propose: Proposal,
    *,
    samples: int = 1000,
    burn: int = 1000,
    thin: int = 1,
) -> tuple[Tree, Info]:
    """Draw samples by Metropolis-Hastings with a given proposal (Wilton 2020, A.4.1).

    From position x with density f(x), a candidate y from the proposal q(y|x) is accepted with
    probability min(1, f(y) q(x|y) / f(x) q(y|x)).

    Args:
        key: Random key.
        log_density: Function of a pytree like `start`.
        start: The first position.
        propose: Function (key, z) -> (z', log q(z | z') − log q(z' | z)), where z is the position
            as a vector and z' the candidate.
        samples: Number of samples to keep.
        burn: Number of steps before the first sample.
        thin: Number of steps per sample.

    Returns:
        The samples, with a leading axis, and statistics of the run.
    """
    check_chain(samples, burn, thin)
    density, vector, unflatten = flat(log_density, start)

    def step(
        state: tuple[Array, Array], i: Array
    ) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        z, value = state
        propose_key, accept_key = jax.random.split(jax.random.fold_in(key, i))
        candidate, correction = propose(propose_key, z)
        candidate_value = density(candidate)
        # a chain that starts at density 0 accepts any candidate of positive density
        ratio = jnp.where(value == -jnp.inf, 0.0, candidate_value - value + correction)
        ratio = jnp.where(candidate_value == -jnp.inf, -jnp.inf, ratio)
        accepted = jnp.log(jax.random.uniform(accept_key, dtype=z.dtype)) < ratio
        z = jnp.where(accepted, candidate, z)
        value = jnp.where(accepted, candidate_value, value)
        return (z, value), (z, value, jnp.exp(jnp.minimum(ratio, 0.0)))

    total = burn + samples * thin
    _, (chain, values, accept) = jax.lax.scan(
        step, (vector, density(vector)), jnp.arange(total)
    )
    kept = slice(burn + thin - 1, None, thin)
    info = Info(
        log_density=values[kept],
        accept=accept[kept],
        diverging=jnp.zeros(samples, bool),
        scale=jnp.full((), jnp.nan),
        evaluations=jnp.asarray(total + 1),
    )
    return jax.vmap(unflatten)(chain[kept]), info
