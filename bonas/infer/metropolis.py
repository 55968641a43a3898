"""Metropolis and Metropolis-Hastings: the simplest samplers, kept as the baseline that they are."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from bonas.infer.target import Info, Tree, check_counts, flat

Proposal = Callable[[Array, Array], tuple[Array, Array]]  # (key, z) -> proposed z', log q(z | z') − log q(z' | z)


def metropolis(
    key: Array,
    log_density: Callable[[Tree], Array],
    start: Tree,
    *,
    samples: int = 1000,
    burn: int = 1000,
    thin: int = 1,
    scale: float | Array = 0.5,
) -> tuple[Tree, Info]:
    """`samples` draws by a Gaussian random walk of standard deviation `scale`: Agrawal, eq. 3.5."""

    def walk(step_key, z):
        return z + jnp.asarray(scale, z.dtype) * jax.random.normal(step_key, z.shape, z.dtype), jnp.zeros((), z.dtype)

    chain, info = metropolis_hastings(key, log_density, start, walk, samples=samples, burn=burn, thin=thin)
    return chain, info._replace(scale=jnp.asarray(scale))


def metropolis_hastings(
    key: Array,
    log_density: Callable[[Tree], Array],
    start: Tree,
    propose: Proposal,
    *,
    samples: int = 1000,
    burn: int = 1000,
    thin: int = 1,
) -> tuple[Tree, Info]:
    """`samples` draws with any proposal: Wilton 2020, A.4.1, accepting with min(1, f(y) q(x|y) / f(x) q(y|x)).

    propose(key, z) -> (z', log q(z | z') − log q(z' | z)) works on the flattened parameters.
    """
    check_counts(samples, burn, thin)
    density, vector, unflatten = flat(log_density, start)

    def step(state, i):
        z, value = state
        propose_key, accept_key = jax.random.split(jax.random.fold_in(key, i))
        candidate, correction = propose(propose_key, z)
        candidate_value = density(candidate)
        # a chain that starts where the density is 0 takes any candidate that is not
        ratio = jnp.where(value == -jnp.inf, 0.0, candidate_value - value + correction)
        ratio = jnp.where(candidate_value == -jnp.inf, -jnp.inf, ratio)
        accepted = jnp.log(jax.random.uniform(accept_key, dtype=z.dtype)) < ratio
        state = jnp.where(accepted, candidate, z), jnp.where(accepted, candidate_value, value)
        return state, (*state, jnp.exp(jnp.minimum(ratio, 0.0)))

    total = burn + samples * thin
    _, (chain, values, accept) = jax.lax.scan(step, (vector, density(vector)), jnp.arange(total))
    kept = slice(burn + thin - 1, None, thin)
    info = Info(
        log_density=values[kept],
        accept=accept[kept],
        diverging=jnp.zeros(samples, bool),
        scale=jnp.full((), jnp.nan),
        evaluations=jnp.asarray(total + 1),
    )
    return jax.vmap(unflatten)(chain[kept]), info
