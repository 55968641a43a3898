"""Bayesian networks by random-walk Metropolis (Agrawal, Section 3), as a baseline sampler."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray

from bonas.data import Dataset
from bonas.infer import Chain, Info, metropolis
from bonas.nets import BNN
from bonas.nets.bnn_hmc import SAMPLED_PARTS, Draws, complete_draws

# The optimal acceptance rate of a random walk in many dimensions, and the length of its steps in
# units of the standard deviation times the square root of the dimension: Roberts et al. 1997.
_ACCEPTANCE = 0.234
_STEP = 2.38


def sample_metropolis(
    key: PRNGKeyArray,
    bnn: BNN,
    data: Dataset,
    chains: Chain,
    *,
    resumed: Bool[Array, ""],
    samples: int,
    burn: int,
    first_burn: int,
    thin: int,
    output: str,
) -> tuple[Draws, Chain, Info]:
    """Sample networks by random-walk Metropolis (Agrawal, eq. 3.5).

    The target is the same as for `nets.bnn_hmc.sample` with joint precisions. The step size changes
    only between calls.

    Args:
        key: A random key.
        bnn: The network and its priors.
        data: The observed values.
        chains: The states from which the chains start, leaves (chains, ...).
        resumed: Whether the chains continue earlier ones.
        samples: The number of draws per chain.
        burn: The number of draws to discard if the chains are resumed.
        first_burn: The number of draws to discard if they are new.
        thin: The number of random-walk steps per draw.
        output: "sampled", or "integrated" to integrate the output layer out.

    Returns:
        The networks, the final states of the chains, and diagnostics; leaves (chains, ...).
    """
    parts = SAMPLED_PARTS[output]

    def run_chain(lane: tuple[PRNGKeyArray, Chain]) -> tuple[Draws, Chain, Info]:
        key, chain = lane
        run_key, complete_key = jax.random.split(key)
        start = parts.select(chain.position), jax.tree.map(jnp.log, chain.gibbs_values)
        size = sum(leaf.size for leaf in jax.tree.leaves(start))
        scale = jnp.where(resumed, chain.step_size, _STEP / math.sqrt(size))

        def walk(burn: int) -> tuple[Any, Info]:
            return metropolis(
                run_key,
                lambda z: parts.joint_log_density(bnn, z[0], z[1], data),
                start,
                samples=samples,
                burn=burn * thin,
                thin=thin,
                scale=scale,
            )

        (positions, logs), info = jax.lax.cond(
            resumed, lambda: walk(burn), lambda: walk(first_burn)
        )
        precisions = jax.tree.map(jnp.exp, logs)
        draws, last = complete_draws(
            complete_key, bnn, data, parts, positions, precisions
        )
        step = scale * jnp.exp(jnp.mean(info.accept) - _ACCEPTANCE)
        return draws, last._replace(step_size=step.astype(chain.step_size.dtype)), info

    keys = jax.random.split(key, len(chains.step_size))
    result: tuple[Draws, Chain, Info] = jax.lax.map(run_chain, (keys, chains))
    return result
