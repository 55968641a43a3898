"""Bayesian networks as surrogates: draws of whole networks by Hamiltonian Monte Carlo (Agrawal, Chapter 5)."""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset, clean
from bonas.gp import Prediction
from bonas.infer.gibbs import METHODS, Chain
from bonas.infer.target import choose
from bonas.nets import bnn_hmc
from bonas.nets.bnn import BNN, Weights
from bonas.spaces import Space
from bonas.surrogates.features import features, width
from bonas.surrogates.interface import FitInfo, Surrogate


class HMCState(NamedTuple):
    """Networks drawn from the posterior, and the chains that the next fit goes on with."""

    chains: Chain  # (chains, ...)
    weights: Weights  # (s, ...)
    mix: Array  # (s, s) functions are these sums of what the networks say: none is changed by a fit, all by imagined values
    noise: Array  # () the variance of the noise, its mean over the draws
    learned: Array  # (n,) bool: the rows that the networks were given
    fitted: Array  # () bool: false before the first fit


@dataclass(frozen=True)
class _Recipe:
    chains: int
    samples: int
    burn: int
    first: int
    floor: float
    network: tuple[tuple[str, Any], ...]  # of BNN
    moves: tuple[tuple[str, Any], ...]  # of bnn_hmc.sample
    dtype: str | None


def hmc_network(
    widths: tuple[int, ...] = (50, 50, 50),
    *,
    chains: int = 5,
    samples: int = 100,
    burn: int = 5,
    first: int = 300,
    method: str = "hmc",
    precisions: str = "gibbs",
    steps: int = 20,
    target: float = 0.9,
    thin: int = 1,
    depth: int = 6,
    activation: str = "tanh",
    index: float | tuple[float, ...] = 2.0,
    shared: bool = False,
    scaled: bool = True,
    whitened: bool = True,
    weight_prior: tuple[float, float] = (2.0, 8.0),
    noise_prior: tuple[float, float] = (10.0, 0.02),
    floor: float = 1e-3,
    dtype: str | None = None,
) -> Surrogate:
    """A Bayesian network by HMC: the mean and the spread (Agrawal, eqs. 5.8, 5.9) of `samples` networks from its posterior.

    A search tells it of its space: a Choice becomes one input an option, and a parameter that comes and goes one more input,
    which says whether it is there. Inputs are scaled to [−1, 1].

    chains: how many, begun at draws from the prior; `samples` is their total. The first fit burns `first` trajectories a
        chain, holding the precisions for two thirds of them. Later ones go on from there and burn `burn`.
    method: "hmc" with trajectories of `steps` leapfrog steps, or "nuts" of at most 2^depth, which burns `first` each time.
    floor: standard deviation added to that of the networks, in standard deviations of the values: a hundred draws do not
        tell certainty.
    dtype: of the networks, such as "float32"; by default that of the data.
    The others are those of `nets.BNN` and `nets.bnn_hmc.sample`.

    Predictions are the moments of the mixture, s = 1: an acquisition that took each network for a hyperparameter would see
    no spread. Pending points condition those moments as they would a Gaussian, by new sums of the same networks (an ensemble
    Kalman filter: Bishop, Etherton & Majumdar 2001): no chain is run, and draws stay draws of functions.
    """
    if method not in METHODS or samples % chains or min(samples, chains, first) < 1 or burn < 0 or not floor > 0.0:
        raise ValueError(
            f"expected method in {METHODS}, samples a multiple of chains, first >= 1, burn >= 0 and floor > 0; "
            f"got {method!r}, {samples} and {chains}, {first}, {burn} and {floor}"
        )
    network = {"widths": tuple(widths), "activation": activation, "index": index, "shared": shared, "scaled": scaled}
    network |= {"whitened": whitened, "weight_prior": weight_prior, "noise_prior": noise_prior}
    moves = {"method": method, "precisions": precisions, "steps": steps, "target": target, "thin": thin, "depth": depth}
    return _network(_Recipe(chains, samples, burn, first, floor, tuple(network.items()), tuple(moves.items()), dtype), None)


@cache
def _network(recipe: _Recipe, space: Space | None) -> Surrogate:
    chains, samples, floor = recipe.chains, recipe.samples, recipe.floor
    moves = dict(recipe.moves)

    def bnn_of(d: int) -> BNN:
        return BNN(width(space, d), **dict(recipe.network))

    def kind(like: Array):
        return like.dtype if recipe.dtype is None else jnp.dtype(recipe.dtype)

    def inputs(x: Array) -> Array:
        return (2.0 * features(space, x) - 1.0).astype(kind(x))

    def outputs(state: HMCState, x: Array) -> Array:
        """What each of the functions says (s, m)."""
        values = bnn_hmc.outputs(bnn_of(x.shape[1]), state.weights, inputs(x))[:, :, 0]
        return state.mix @ values.astype(state.mix.dtype)

    def begin(key: Array, bnn: BNN, dtype) -> Chain:
        """Networks from the prior, with as little noise as the prior expects: what is noise is seen when they fit."""
        chain = bnn_hmc.begin(key, bnn, chains, dtype=dtype)
        shape, rate = bnn.noise_prior
        quiet = jnp.full_like(chain.aside.noise, shape / rate)
        return chain._replace(aside=chain.aside._replace(noise=quiet))

    def init(capacity: int, d: int, p: int = 1) -> HMCState:
        if p != 1:
            raise ValueError(f"a network models one output; got p = {p}")
        bnn, plain = bnn_of(d), jnp.zeros(())
        key = jax.random.key(0)  # nothing is drawn: these are shapes
        like = jax.eval_shape(
            lambda: (begin(key, bnn, kind(plain)), bnn_hmc.prior(key, bnn, samples, dtype=kind(plain)).weights)
        )
        chain, weights = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)
        return HMCState(chain, weights, jnp.eye(samples), plain, jnp.zeros(capacity, bool), jnp.asarray(False))

    def fit(key: Array, data: Dataset, state: HMCState) -> tuple[HMCState, FitInfo]:
        bnn, data = bnn_of(data.x.shape[1]), clean(data)
        begin_key, run_key = jax.random.split(key)
        start = choose(state.fitted, state.chains, begin(begin_key, bnn, kind(data.x)))
        hold = jnp.where(state.fitted, 0, 2 * recipe.first // 3)
        burn = recipe.first if moves["method"] == "nuts" else jnp.where(state.fitted, recipe.burn, recipe.first)
        rows = data._replace(x=inputs(data.x), y=data.y.astype(kind(data.y)))
        draws, chain, info = bnn_hmc.sample(run_key, bnn, rows, start, samples=samples // chains, burn=burn, hold=hold, **moves)
        draws = bnn_hmc.merge(draws)
        fine = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((draws, chain))]).all()
        noise = jnp.mean(1.0 / draws.precisions.noise).astype(data.y.dtype)
        found = HMCState(chain, draws.weights, jnp.eye(samples, dtype=data.y.dtype), noise, data.mask[:, 0], jnp.asarray(True))
        density = info.log_density.mean().astype(data.y.dtype)
        report = FitInfo(density, ~info.diverging.any(), fine, jnp.zeros_like(density))
        return choose(fine | ~state.fitted, found, state), report

    def update(data: Dataset, state: HMCState) -> HMCState:
        """The moments of the networks given the rows that they were not fitted to."""
        data = clean(data)
        new = data.mask[:, 0] & ~state.learned
        plain = outputs(state._replace(mix=jnp.eye(samples, dtype=data.y.dtype)), data.x)
        return state._replace(mix=_condition(plain, data.y[:, 0], new, state.noise + floor**2))

    def predict(state: HMCState, x: Array) -> Prediction:
        values = outputs(state, x)
        return Prediction(values.mean(axis=0)[None], jnp.sqrt(values.var(axis=0) + floor**2)[None])

    def covariance(state: HMCState, x: Array, at: Array) -> Array:
        here, there = (values - values.mean(axis=0)[None, :] for values in (outputs(state, x), outputs(state, at)))
        same = (x[:, None, :] == at[None, :, :]).all(axis=2)
        return (here.T @ there / samples + jnp.where(same, floor**2, 0.0))[None]

    def sample(key: Array, state: HMCState, x: Array, k: int) -> Array:
        """Functions drawn at random from those there are, and the floor as noise."""
        which_key, noise_key = jax.random.split(key)
        which = jax.random.randint(which_key, (k,), 0, samples)
        return outputs(state, x)[which] + floor * jax.random.normal(noise_key, (k, len(x)), x.dtype)

    return Surrogate(init, fit, update, predict, covariance, sample, adapt=partial(_network, recipe))


def _condition(values: Array, y: Array, new: Array, noise: Array) -> Array:
    """Sums (s, s) of functions with values (s, n), whose mean and covariance are those of a Gaussian process given y (n,).

    That process has the mean and the covariance of the functions, and y is observed with this noise where `new` (n,) holds.
    """
    s = len(values)
    centre = jnp.eye(s, dtype=values.dtype) - 1.0 / s
    spread = jnp.where(new[None, :], values - values.mean(axis=0)[None, :], 0.0) / jnp.sqrt(s * noise)
    error = jnp.where(new, y - values.mean(axis=0), 0.0) / jnp.sqrt(noise)
    eigenvalues, vectors = jnp.linalg.eigh(spread.T @ spread)
    basis, q = spread @ vectors, jnp.sqrt(1.0 + jnp.maximum(eigenvalues, 0.0))
    shift = basis @ ((vectors.T @ error) / q**2) / jnp.sqrt(s)
    # the symmetric root of (I + spread spread')⁻¹, which leaves the mean where it is
    shrink = centre - (basis / (q * (q + 1.0))[None, :]) @ (basis.T @ centre)
    return 1.0 / s + (centre @ shift)[None, :] + shrink
