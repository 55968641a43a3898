"""Bayesian networks by Hamiltonian Monte Carlo, with Gibbs draws of precisions between trajectories (Agrawal, Section 5)."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset, clean
from bonas.gp import Prediction
from bonas.infer.gibbs import Chain, hmc_within_gibbs
from bonas.infer.target import Info, choose
from bonas.linalg import safe_sqrt
from bonas.nets import bnn_linear, stable
from bonas.nets.bnn import (
    BNN,
    Precisions,
    Weights,
    apply,
    draw_position,
    draw_precisions,
    energy,
    gibbs,
    joint_log_density,
    weights_at,
    without_output,
)

PRECISIONS = ("gibbs", "joint", "fixed")
OUTPUT = ("sampled", "integrated")
# The step size that a new chain begins with (G-S1).
_FIRST_STEP = 0.01


class Draws(NamedTuple):
    """Networks, s of them a chain; those of the prior, and of chains merged, have one axis less."""

    weights: Weights  # (chains, s, ...)
    precisions: Precisions  # (chains, s, ...)


class Moved(NamedTuple):
    """The part of a network that trajectories move, under which density, and how the rest is found again."""

    part: Callable  # position -> what is moved
    energy: Callable
    joint: Callable
    complete: Callable  # (key, bnn, what is moved, precisions, data) -> position


MOVED = {
    "sampled": Moved(lambda position: position, energy, joint_log_density, lambda key, bnn, position, *_: position),
    "integrated": Moved(without_output, bnn_linear.energy, bnn_linear.joint_log_density, bnn_linear.complete),
}


def begin(key: Array, bnn: BNN, chains: int = 1, *, precisions: Precisions | None = None, dtype=None) -> Chain:
    """Chains that begin at draws from the prior, leaves (chains, ...); at these precisions, where they are given."""

    def one(key):
        position_key, precision_key = jax.random.split(key)
        drawn = draw_precisions(precision_key, bnn, dtype) if precisions is None else precisions
        return Chain(draw_position(position_key, bnn, drawn), drawn, jnp.asarray(_FIRST_STEP, jnp.result_type(float)))

    return jax.vmap(one)(jax.random.split(key, chains))


def prior(key: Array, bnn: BNN, samples: int, *, dtype=None) -> Draws:
    """Networks from the prior, leaves (samples, ...): Agrawal's Figure 1 (G-E1)."""
    chain = begin(key, bnn, samples, dtype=dtype)
    return Draws(jax.vmap(partial(weights_at, bnn))(chain.position, chain.aside), chain.aside)


def sample(
    key: Array,
    bnn: BNN,
    data: Dataset,
    chains: Chain,
    *,
    samples: int = 100,
    burn: int | Array = 100,
    hold: int | Array = 0,
    thin: int = 1,
    method: str = "hmc",
    precisions: str = "gibbs",
    output: str = "sampled",
    steps: int = 20,
    target: float = 0.9,
    depth: int = 10,
) -> tuple[Draws, Chain, Info]:
    """`samples` networks a chain given the data, the chains in the end, and what they did; leaves (chains, ...).

    The chains go on from where they are: those of the last search step need a short burn-in.

    precisions: "gibbs", drawn between trajectories from their conditionals; "joint", their logarithms move with the weights;
        or "fixed".
    output: the weights of the output layer are "sampled" with the others, or "integrated" out of what trajectories see and
        drawn given the hidden layers (`nets.bnn_linear`): the same posterior, by steps many times larger.
    hold: trajectories before the first such draw: weights from the prior fit nothing, and precisions drawn at once would
        take all of the data for noise. A part of burn-in.
    The others are those of `bonas.infer.gibbs.hmc_within_gibbs`. Chains run one after the other, each compiled once.
    """
    if precisions not in PRECISIONS:
        raise ValueError(f"precisions are one of {', '.join(PRECISIONS)}; got {precisions!r}")
    if output not in OUTPUT:
        raise ValueError(f"the output layer is one of {', '.join(OUTPUT)}; got {output!r}")
    if output == "integrated":
        bnn_linear.check(bnn)
    if precisions == "gibbs" and not all(map(stable.has_density, bnn.indices)):
        raise ValueError(f"priors of index {bnn.indices} have no conditional to draw precisions from: use 'joint' or 'fixed'")
    data = clean(data)
    settings: dict[str, Any] = {"samples": samples, "burn": burn, "thin": thin, "method": method}
    settings |= {"steps": steps, "target": target, "depth": depth}
    run = partial(_jointly, bnn, data, MOVED[output], settings)
    if precisions != "joint":
        run = partial(_in_turn, bnn, data, MOVED[output], settings, hold if precisions == "gibbs" else None)
    return jax.lax.map(lambda lane: run(*lane), (jax.random.split(key, len(chains.step_size)), chains))


def _in_turn(bnn: BNN, data: Dataset, moved: Moved, settings: dict, hold: int | Array | None, key: Array, chain: Chain):
    run_key, complete_key = jax.random.split(key)

    def log_density(position, aside):
        return -moved.energy(bnn, position, aside[0], data)

    def between(key, position, aside):
        precisions, waited = aside
        whole_key, gibbs_key = jax.random.split(key)
        whole = moved.complete(whole_key, bnn, position, precisions, data)
        whole, drawn = gibbs(gibbs_key, bnn, whole, precisions, data)
        position, precisions = choose(waited < hold, (position, precisions), (moved.part(whole), drawn))
        return position, (precisions, waited + 1)

    start = Chain(moved.part(chain.position), (chain.aside, jnp.zeros((), jnp.int32)), chain.step_size)
    trace, last, info = hmc_within_gibbs(run_key, log_density, None if hold is None else between, start, **settings)
    draws, chain = completed(complete_key, bnn, data, moved, trace.position, trace.aside[0])
    return draws, chain._replace(step_size=last.step_size), info


def _jointly(bnn: BNN, data: Dataset, moved: Moved, settings: dict, key: Array, chain: Chain):
    run_key, complete_key = jax.random.split(key)

    def log_density(both, aside):
        position, logs = both
        return moved.joint(bnn, position, logs, data)

    both = Chain((moved.part(chain.position), jax.tree.map(jnp.log, chain.aside)), (), chain.step_size)
    trace, last, info = hmc_within_gibbs(run_key, log_density, None, both, **settings)
    positions, logs = trace.position
    draws, chain = completed(complete_key, bnn, data, moved, positions, jax.tree.map(jnp.exp, logs))
    return draws, chain._replace(step_size=last.step_size), info


def completed(key: Array, bnn: BNN, data: Dataset, moved: Moved, positions: Weights, precisions: Precisions):
    """The networks of what was moved, leaves (s, ...), and a chain that goes on from the last one."""

    def one(key, position, precisions):
        position = moved.complete(key, bnn, position, precisions, data)
        return position, weights_at(bnn, position, precisions)

    whole, weights = jax.vmap(one)(jax.random.split(key, len(precisions.noise)), positions, precisions)
    position, aside = jax.tree.map(lambda leaf: leaf[-1], (whole, precisions))
    return Draws(weights, precisions), Chain(position, aside, jnp.zeros(()))


def merge(draws: Draws) -> Draws:
    """The draws of all chains as those of one, leaves (chains · s, ...)."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), draws)


def outputs(bnn: BNN, weights: Weights, x: Array) -> Array:
    """What each of s networks, leaves (s, ...), says at rows x (m, inputs): (s, m, outputs)."""
    return jax.vmap(lambda one: apply(bnn, one, x))(weights)


def predict(bnn: BNN, weights: Weights, x: Array) -> Prediction:
    """Mean and standard deviation (m, outputs) over s networks, without noise: Agrawal, eqs. 5.8 and 5.9."""
    values = outputs(bnn, weights, x)
    return Prediction(values.mean(axis=0), safe_sqrt(values.var(axis=0)))
