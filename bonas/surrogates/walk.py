"""Bayesian networks by a random walk: the poor sampler that Agrawal's Section 3 begins with, as a baseline."""

import math

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset
from bonas.infer.gibbs import Chain
from bonas.infer.metropolis import metropolis
from bonas.infer.target import Info
from bonas.nets.bnn import BNN
from bonas.nets.bnn_hmc import MOVED, Draws, completed

_ACCEPT = 0.234  # what a walk in many dimensions should accept, and how far it then goes: Roberts, Gelman & Gilks 1997
_FAR = 2.38


def walk(
    key: Array,
    bnn: BNN,
    data: Dataset,
    chains: Chain,
    *,
    settled: Array,
    samples: int,
    burn: int,
    first: int,
    thin: int,
    output: str,
) -> tuple[Draws, Chain, Info]:
    """As `nets.bnn_hmc.sample` with joint precisions, by Metropolis (Agrawal, eq. 3.5), `thin` steps a draw.

    settled: whether the chains have been here before, and burn `burn` draws and not `first`. The length of a step changes
    between calls alone.
    """
    moved = MOVED[output]

    def one(lane):
        key, chain = lane
        run_key, complete_key = jax.random.split(key)
        start = moved.part(chain.position), jax.tree.map(jnp.log, chain.aside)
        size = sum(leaf.size for leaf in jax.tree.leaves(start))
        scale = jnp.where(settled, chain.step_size, _FAR / math.sqrt(size))

        def log_density(both):
            position, logs = both
            return moved.joint(bnn, position, logs, data)

        def go(burn):
            return metropolis(run_key, log_density, start, samples=samples, burn=burn * thin, thin=thin, scale=scale)

        (positions, logs), info = jax.lax.cond(settled, lambda: go(burn), lambda: go(first))
        draws, last = completed(complete_key, bnn, data, moved, positions, jax.tree.map(jnp.exp, logs))
        longer = scale * jnp.exp(jnp.mean(info.accept) - _ACCEPT)
        return draws, last._replace(step_size=longer.astype(chain.step_size.dtype)), info

    return jax.lax.map(one, (jax.random.split(key, len(chains.step_size)), chains))
