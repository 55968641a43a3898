"""Bayesian networks as surrogates: draws of networks by Hamiltonian Monte Carlo (Agrawal, Section 5)."""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset, clean, empty, within
from bonas.gp import Prediction
from bonas.infer.gibbs import METHODS as TRAJECTORIES
from bonas.infer.gibbs import Chain
from bonas.infer.target import choose
from bonas.nets import bnn_hmc
from bonas.nets.bnn import BNN
from bonas.nets.bnn_hmc import OUTPUT, Draws
from bonas.spaces import Space
from bonas.surrogates.features import features, width
from bonas.surrogates.interface import FitInfo, Surrogate
from bonas.surrogates.readings import Reading, linear, whole
from bonas.surrogates.walk import walk

METHODS = (*TRAJECTORIES, "metropolis")
_FIRST_NOISE = 0.1  # that a new chain begins with, a variance in variances of the values


class HMCState(NamedTuple):
    """Networks drawn from the posterior, and the chains that the next fit goes on with."""

    chains: Chain  # (chains, ...)
    draws: Draws  # (s, ...)
    given: Any  # what the reading of the networks makes of the data
    fitted: Array  # () bool: false before the first fit


@dataclass(frozen=True)
class _Recipe:
    chains: int
    samples: int
    burn: int
    first: int
    first_step: float
    floor: float
    network: tuple[tuple[str, Any], ...]  # of BNN
    moves: tuple[tuple[str, Any], ...]  # of bnn_hmc.sample
    dtype: str | None


def hmc_network(
    widths: tuple[int, ...] = (50, 50),
    *,
    output: str = "integrated",
    chains: int = 5,
    samples: int = 40,
    burn: int = 2,
    first: int = 100,
    first_step: float = 0.05,
    method: str = "hmc",
    precisions: str = "joint",
    steps: int = 40,
    target: float = 0.8,
    thin: int = 1,
    depth: int = 6,
    activation: str = "tanh",
    index: float | tuple[float, ...] = 2.0,
    shared: bool = False,
    scaled: bool = True,
    whitened: bool = True,
    weight_prior: tuple[float, float] = (2.0, 20.0),
    noise_prior: tuple[float, float] = (0.5, 1e-4),
    floor: float = 1e-3,
    dtype: str | None = None,
) -> Surrogate:
    """A Bayesian network by HMC: the mean and the spread (Agrawal, eqs. 5.8, 5.9) of `samples` networks from its posterior.

    A search tells it of its space: a Choice becomes one input an option, and a parameter that comes and goes one more input,
    which says whether it is there. Inputs are scaled to [−1, 1].

    output: "integrated", chains move the hidden layers alone, and the output layer, normal given those, is integrated out
        of what they see and of each network's prediction; or "sampled" with the other weights, as Agrawal's are. The
        posterior is the same, but the first mixes better, interpolates, and is certain where it should be.
    chains: how many, begun at draws from the prior; `samples` is their total. The first fit burns `first` trajectories a
        chain. Later ones go on from there and burn `burn`.
    first_step: the leapfrog's step size that a new chain begins with. What tens of values allow; hundreds of them need a
        smaller one, for burn-in changes it by 2% a trajectory (G-A3), and until it fits none is accepted.
    method: "hmc" with trajectories of `steps` leapfrog steps; "nuts" of at most 2^depth, which burns `first` each time; or
        "metropolis", a baseline: `steps` steps of a random walk in place of each trajectory, with joint precisions.
    floor: of sampled output layers: standard deviation added to that of the networks, in standard deviations of the values,
        since a hundred draws do not tell certainty.
    dtype: of the networks, such as "float32"; by default that of the data.
    The others are those of `nets.BNN` and `nets.bnn_hmc.sample`.

    Predictions are the moments of the mixture, s = 1. Pending points condition each network's output layer, or for sampled
    ones those moments.

    The widths, the priors and the lengths of the chains were chosen by the log density of values along searches of Branin,
    Ackley and Levy in two dimensions, and by the regret of searches of Branin, Levy and Hartmann 3. `bayes(output="tails")`
    was better there than plain values: noise is inferred, and among huge values small differences pass for noise.
    """
    if method not in METHODS or samples % chains or min(samples, chains, first) < 1 or burn < 0:
        raise ValueError(
            f"expected method in {METHODS}, samples a multiple of chains, first >= 1 and burn >= 0; "
            f"got {method!r}, {samples} and {chains}, {first} and {burn}"
        )
    if not (floor > 0.0 and first_step > 0.0):
        raise ValueError(f"expected floor > 0 and first_step > 0; got {floor} and {first_step}")
    if output not in OUTPUT or (method == "metropolis" and precisions != "joint"):
        raise ValueError(
            f"expected output in {OUTPUT}, and joint precisions for metropolis; got {output!r}, {method!r} and {precisions!r}"
        )
    network = {"widths": tuple(widths), "activation": activation, "index": index, "shared": shared, "scaled": scaled}
    network |= {"whitened": whitened, "weight_prior": weight_prior, "noise_prior": noise_prior}
    moves = {"method": method, "output": output, "precisions": precisions, "steps": steps, "target": target}
    moves |= {"thin": thin, "depth": depth}
    return _network(
        _Recipe(chains, samples, burn, first, first_step, floor, tuple(network.items()), tuple(moves.items()), dtype), None
    )


@cache
def _network(recipe: _Recipe, space: Space | None) -> Surrogate:
    chains, samples = recipe.chains, recipe.samples
    moves = dict(recipe.moves)

    def bnn_of(d: int) -> BNN:
        return BNN(width(space, d), **dict(recipe.network))

    def reading_of(d: int) -> Reading:
        return whole(bnn_of(d), recipe.floor) if moves["output"] == "sampled" else linear(bnn_of(d))

    def kind(like: Array):
        return like.dtype if recipe.dtype is None else jnp.dtype(recipe.dtype)

    def inputs(x: Array) -> Array:
        return (2.0 * features(space, x) - 1.0).astype(kind(x))

    def rows(data: Dataset) -> Dataset:
        data = clean(data)
        return data._replace(x=inputs(data.x))

    def begin(key: Array, bnn: BNN, dtype) -> Chain:
        """Networks from the prior, and the noise that suits them.

        Hidden layers from the prior fit no better than their number allows, so at first much of the values is noise. With
        the output layer sampled, or the noise fixed, it is what the prior expects.
        """
        chain = bnn_hmc.begin(key, bnn, chains, dtype=dtype)
        shape, rate = bnn.noise_prior
        stays = moves["output"] == "sampled" or moves["precisions"] == "fixed"
        noise = jnp.full_like(chain.aside.noise, shape / rate if stays else 1.0 / _FIRST_NOISE)
        return Chain(chain.position, chain.aside._replace(noise=noise), jnp.full_like(chain.step_size, recipe.first_step))

    def init(capacity: int, d: int, p: int = 1) -> HMCState:
        if p != 1:
            raise ValueError(f"a network models one output; got p = {p}")
        bnn, nothing = bnn_of(d), empty(capacity, d, 1)
        key, dtype = jax.random.key(0), kind(nothing.x)  # nothing is drawn: these are shapes

        def like():
            draws = bnn_hmc.prior(key, bnn, samples, dtype=dtype)
            return begin(key, bnn, dtype), draws, reading_of(d).learn(draws, rows(nothing))

        chain, draws, given = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(like))
        return HMCState(chain, draws, given, jnp.asarray(False))

    def chain_of(data: Dataset, key: Array, start: Chain, fitted: Array):
        bnn, each = bnn_of(data.x.shape[1]), samples // chains
        known = rows(data)
        known = known._replace(y=known.y.astype(kind(known.y)))
        if moves["method"] == "metropolis":
            several = {"samples": each, "burn": recipe.burn, "first": recipe.first, "thin": moves["steps"] * moves["thin"]}
            return walk(key, bnn, known, start, settled=fitted, output=moves["output"], **several)
        hold = jnp.where(fitted, 0, 2 * recipe.first // 3)
        burn = recipe.first if moves["method"] == "nuts" else jnp.where(fitted, recipe.burn, recipe.first)
        return bnn_hmc.sample(key, bnn, known, start, samples=each, burn=burn, hold=hold, **moves)

    def fit(key: Array, data: Dataset, state: HMCState) -> tuple[HMCState, FitInfo]:
        d, (begin_key, run_key) = data.x.shape[1], jax.random.split(key)
        start = choose(state.fitted, state.chains, begin(begin_key, bnn_of(d), kind(data.x)))
        draws, chain, info = within(chain_of, data, run_key, start, state.fitted)
        if moves["method"] == "hmc":  # a few trajectories of burn-in are too few to follow the data with 2% each (G-A3)
            follow = jnp.exp(info.accept.mean(axis=1) - moves["target"])
            chain = chain._replace(step_size=(chain.step_size * follow).astype(chain.step_size.dtype))
        draws = bnn_hmc.merge(draws)
        fine = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((draws, chain))]).all()
        found = HMCState(chain, draws, reading_of(d).learn(draws, rows(data)), jnp.asarray(True))
        density = info.log_density.mean().astype(data.y.dtype)
        jitter = found.given.jitter.max() if moves["output"] == "integrated" else jnp.zeros_like(density)
        report = FitInfo(density, ~info.diverging.any(), fine, jitter)
        return choose(fine | ~state.fitted, found, state), report

    def update(data: Dataset, state: HMCState) -> HMCState:
        return state._replace(given=reading_of(data.x.shape[1]).update(state.draws, state.given, rows(data)))

    def predict(state: HMCState, x: Array) -> Prediction:
        return reading_of(x.shape[1]).predict(state.draws, state.given, inputs(x))

    def covariance(state: HMCState, x: Array, at: Array) -> Array:
        return reading_of(x.shape[1]).covariance(state.draws, state.given, inputs(x), inputs(at))

    def sample(key: Array, state: HMCState, x: Array, k: int) -> Array:
        return reading_of(x.shape[1]).sample(key, state.draws, state.given, inputs(x), k)

    return Surrogate(init, fit, update, predict, covariance, sample, adapt=partial(_network, recipe))
