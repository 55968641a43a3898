"""Bayesian networks sampled by Hamiltonian Monte Carlo, with Gibbs draws of the precisions.

The method is that of Agrawal (2016, Section 5).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset, clean
from bonas.gp import Prediction
from bonas.infer import Chain, Info, choose, hmc_within_gibbs
from bonas.linalg import safe_sqrt
from bonas.nets import integrated_output, stable_prior
from bonas.nets.bnn import (
    BNN,
    Precisions,
    Weights,
    apply,
    draw_position,
    draw_precisions,
    energy,
    hidden_weights,
    joint_log_density,
    weights_at,
)
from bonas.nets.bnn_gibbs import gibbs

PRECISIONS = ("gibbs", "joint", "fixed")
OUTPUT_LAYER = ("sampled", "integrated")
# Step size of a new chain, from the HMC tutorial that Agrawal cites for his settings.
_INITIAL_STEP_SIZE = 0.01


class Draws(NamedTuple):
    """Sampled networks, s per chain; prior draws and merged draws have no axis of chains."""

    weights: Weights  # (chains, s, ...)
    precisions: Precisions  # (chains, s, ...)


@dataclass(frozen=True)
class SampledPart:
    """The part of a network that HMC samples, its density, and how to restore the rest.

    Args:
        select: Maps a position to the part that is sampled.
        energy: Negative log density (bnn, part, precisions, data) -> ().
        joint_log_density: Log density (bnn, part, log precisions, data) -> ().
        complete: Draws the rest, (key, bnn, part, precisions, data) -> position.
    """

    select: Callable[[Weights], Weights]
    energy: Callable[..., Array]
    joint_log_density: Callable[..., Array]
    complete: Callable[..., Weights]


SAMPLED_PARTS = {
    "sampled": SampledPart(
        select=lambda position: position,
        energy=energy,
        joint_log_density=joint_log_density,
        complete=lambda key, bnn, position, *_: position,
    ),
    "integrated": SampledPart(
        select=hidden_weights,
        energy=integrated_output.energy,
        joint_log_density=integrated_output.joint_log_density,
        complete=integrated_output.complete,
    ),
}


def init_chains(
    key: PRNGKeyArray,
    bnn: BNN,
    chains: int = 1,
    *,
    precisions: Precisions | None = None,
    dtype: Any = None,
) -> Chain:
    """Initialize chains by draws from the prior.

    Args:
        key: Random key.
        bnn: The network and its priors.
        chains: Number of chains.
        precisions: Precisions of all chains; drawn from their prior if None.
        dtype: Floating-point type of drawn precisions; the default of JAX if None.

    Returns:
        State of the chains, leaves (chains, ...).
    """

    def init_chain(key: Array) -> Chain:
        position_key, precision_key = jax.random.split(key)
        drawn = (
            draw_precisions(precision_key, bnn, dtype)
            if precisions is None
            else precisions
        )
        step_size = jnp.asarray(_INITIAL_STEP_SIZE, jnp.result_type(float))
        return Chain(draw_position(position_key, bnn, drawn), drawn, step_size)

    return jax.vmap(init_chain)(jax.random.split(key, chains))


def prior(key: PRNGKeyArray, bnn: BNN, samples: int, *, dtype: Any = None) -> Draws:
    """Draw `samples` networks from the prior, leaves (samples, ...) (Agrawal, Figure 1)."""
    position, precisions, _ = init_chains(key, bnn, samples, dtype=dtype)
    return Draws(jax.vmap(partial(weights_at, bnn))(position, precisions), precisions)


def sample(
    key: PRNGKeyArray,
    bnn: BNN,
    data: Dataset,
    chains: Chain,
    *,
    samples: int = 100,
    burn: int | Array = 100,
    gibbs_delay: int | Array = 0,
    thin: int = 1,
    method: str = "hmc",
    precisions: str = "gibbs",
    output: str = "sampled",
    steps: int = 20,
    target: float = 0.9,
    depth: int = 10,
) -> tuple[Draws, Chain, Info]:
    """Sample networks from the posterior by HMC or NUTS.

    Chains continue from the given state, so chains that were run on slightly fewer data, as in the
    previous step of a search, need only a short burn-in. They run one after the other in one
    compiled program.

    Args:
        key: Random key.
        bnn: The network and its priors.
        data: Observed values.
        chains: State of the chains; see `init_chains`.
        samples: Networks kept per chain.
        burn: Burn-in iterations; may be traced for "hmc".
        gibbs_delay: Burn-in iterations before the first Gibbs draw. Weights from the prior do not
            fit the data, so precisions drawn immediately would explain all data as noise.
        thin: Iterations per network kept.
        method: "hmc" or "nuts"; see `bonas.infer.hmc_within_gibbs`.
        precisions: "gibbs" draws the precisions from their conditionals between trajectories,
            "joint" samples their logarithms together with the weights, "fixed" keeps their values.
        output: "sampled" samples the weights of the output layer with the others; "integrated"
            integrates them out and draws them given the hidden layers
            (`nets.integrated_output`), which allows much larger steps for the same posterior.
        steps: Leapfrog steps of a trajectory for "hmc".
        target: Target acceptance probability.
        depth: Largest tree depth for "nuts".

    Returns:
        Networks, the final state of the chains, and diagnostics; leaves (chains, ...).
    """
    _check(bnn, precisions, output)
    data = clean(data)
    settings: dict[str, Any] = {
        "samples": samples,
        "burn": burn,
        "thin": thin,
        "method": method,
        "steps": steps,
        "target": target,
        "depth": depth,
    }
    part = SAMPLED_PARTS[output]
    run: Callable[..., tuple[Draws, Chain, Info]]
    if precisions == "joint":
        run = partial(_sample_jointly, bnn, data, part, settings)
    else:
        gibbs_from = gibbs_delay if precisions == "gibbs" else None
        run = partial(_sample_alternately, bnn, data, part, settings, gibbs_from)
    keys = jax.random.split(key, len(chains.step_size))
    return jax.lax.map(lambda chain: run(*chain), (keys, chains))


def _check(bnn: BNN, precisions: str, output: str) -> None:
    if precisions not in PRECISIONS:
        raise ValueError(
            f"precisions must be one of {', '.join(PRECISIONS)}; got {precisions!r}"
        )
    if output not in OUTPUT_LAYER:
        raise ValueError(
            f"output must be one of {', '.join(OUTPUT_LAYER)}; got {output!r}"
        )
    if output == "integrated":
        integrated_output.check(bnn)
    if precisions == "gibbs" and not all(map(stable_prior.has_density, bnn.indices)):
        raise ValueError(
            f"priors of index {bnn.indices} have no conditional distribution of the precisions; "
            "use precisions='joint' or 'fixed'"
        )


def _sample_alternately(
    bnn: BNN,
    data: Dataset,
    part: SampledPart,
    settings: dict,
    gibbs_from: int | Array | None,
    key: Array,
    chain: Chain,
) -> tuple[Draws, Chain, Info]:
    """Sample weights given precisions; from iteration `gibbs_from` on, draw precisions as well."""
    run_key, complete_key = jax.random.split(key)
    position, precisions, step_size = chain

    def log_density(position: Weights, conditioned: tuple) -> Array:
        return -part.energy(bnn, position, conditioned[0], data)

    def draw_conditioned(key: Array, position: Weights, conditioned: tuple) -> tuple:
        precisions, iteration = conditioned
        complete_key, gibbs_key = jax.random.split(key)
        whole = part.complete(complete_key, bnn, position, precisions, data)
        whole, drawn = gibbs(gibbs_key, bnn, whole, precisions, data)
        position, precisions = choose(
            iteration < gibbs_from, (position, precisions), (part.select(whole), drawn)
        )
        return position, (precisions, iteration + 1)

    start = Chain(
        part.select(position), (precisions, jnp.zeros((), jnp.int32)), step_size
    )
    between = None if gibbs_from is None else draw_conditioned
    trace, last, info = hmc_within_gibbs(
        run_key, log_density, between, start, **settings
    )
    positions, (drawn_precisions, _) = trace
    draws, chain = complete_draws(
        complete_key, bnn, data, part, positions, drawn_precisions
    )
    return draws, chain._replace(step_size=last.step_size), info


def _sample_jointly(
    bnn: BNN, data: Dataset, part: SampledPart, settings: dict, key: Array, chain: Chain
) -> tuple[Draws, Chain, Info]:
    """Sample weights and log precisions together."""
    run_key, complete_key = jax.random.split(key)
    position, precisions, step_size = chain

    def log_density(joint: tuple[Weights, Precisions], conditioned: tuple) -> Array:
        position, logs = joint
        return part.joint_log_density(bnn, position, logs, data)

    start = Chain(
        (part.select(position), jax.tree.map(jnp.log, precisions)), (), step_size
    )
    trace, last, info = hmc_within_gibbs(run_key, log_density, None, start, **settings)
    positions, logs = trace.position
    drawn_precisions = jax.tree.map(jnp.exp, logs)
    draws, chain = complete_draws(
        complete_key, bnn, data, part, positions, drawn_precisions
    )
    return draws, chain._replace(step_size=last.step_size), info


def complete_draws(
    key: PRNGKeyArray,
    bnn: BNN,
    data: Dataset,
    part: SampledPart,
    positions: Weights,
    precisions: Precisions,
) -> tuple[Draws, Chain]:
    """Restore whole networks from the sampled part, leaves (s, ...).

    Returns:
        The networks, and a chain that continues from the last one, with step size 0.
    """

    def complete(
        key: Array, position: Weights, precisions: Precisions
    ) -> tuple[Weights, Weights]:
        position = part.complete(key, bnn, position, precisions, data)
        return position, weights_at(bnn, position, precisions)

    keys = jax.random.split(key, len(precisions.noise))
    completed, weights = jax.vmap(complete)(keys, positions, precisions)
    position, last_precisions = jax.tree.map(
        lambda leaf: leaf[-1], (completed, precisions)
    )
    return Draws(weights, precisions), Chain(position, last_precisions, jnp.zeros(()))


def merge_chains(draws: Draws) -> Draws:
    """Merge the draws of all chains: leaves (chains, s, ...) become (chains · s, ...)."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), draws)


def outputs(
    bnn: BNN, weights: Weights, x: Float[Array, "m inputs"]
) -> Float[Array, "s m outputs"]:
    """Compute the outputs of s networks, leaves (s, ...), at rows x."""
    return jax.vmap(lambda network: apply(bnn, network, x))(weights)


def predict(bnn: BNN, weights: Weights, x: Float[Array, "m inputs"]) -> Prediction:
    """Predict the mean and standard deviation (m, outputs) over networks, without noise.

    Args:
        bnn: The network.
        weights: Weights of s networks, leaves (s, ...); see `merge_chains`.
        x: Input rows.

    Returns:
        The prediction of Agrawal, eqs. 5.8 and 5.9.
    """
    values = outputs(bnn, weights, x)
    return Prediction(values.mean(axis=0), safe_sqrt(values.var(axis=0)))
