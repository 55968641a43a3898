"""Variational networks as surrogates (Hutchinson, Chapter 2): quick to train, and several of them, since one is too sure."""

from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas import nets
from bonas.data import Dataset, clean, empty
from bonas.gp import Prediction
from bonas.infer.target import choose
from bonas.nets import vi_train
from bonas.nets.bnn_vi import VI, draw_weights
from bonas.nets.mlp import Params, apply, masks
from bonas.nets.vi_train import Course, Run, Traits
from bonas.spaces import Space
from bonas.surrogates.features import features, width
from bonas.surrogates.interface import FitInfo, Surrogate
from bonas.surrogates.readings import Mixed, Reading, functions

# Where a network begins: means that far from zero, so that members differ, and deviations small enough to learn by.
_SPREAD, _LOG_STD = 0.7, -3.0


class Drawn(NamedTuple):
    """Networks from the variational posterior."""

    params: Params  # (s, ...)
    noise: Array  # (s,) the variance that they share


class VariationalState(NamedTuple):
    """Trained networks, and draws of them."""

    vectors: Array  # (members, k) means, log deviations and log noise: `vi_train.unpack`
    draws: Drawn  # (s, ...)
    given: Mixed
    fitted: Array  # () bool: false before the first fit


@dataclass(frozen=True)
class _Recipe:
    widths: tuple[int, ...]
    activation: str
    members: int
    draws: int
    steps: int
    later: int
    learning_rate: float
    samples: int
    repeats: float
    prior_variance: float
    floor: float


def variational_network(
    widths: tuple[int, ...] = (30,),
    *,
    activation: str = "tanh",
    members: int = 5,
    draws: int = 60,
    steps: int = 1500,
    later: int = 500,
    learning_rate: float = 0.02,
    samples: int = 4,
    repeats: float = 30.0,
    prior_variance: float = 1.0,
    floor: float = 0.01,
) -> Surrogate:
    """Mean-field Bayesian networks: mean and spread of `draws` networks from posteriors that climb the evidence lower bound.

    A search tells it of its space, as `hmc_network`. Inputs are scaled to [−1, 1].

    members: variational posteriors from different starts, which are mixed. One normal q sits in one mode and doubts hardly
        more far from the data than near them; several disagree there (Wilson & Izmailov 2020).

    steps, later: updates of Adam in the first fit and in those after it, which go on from the last; all rows, with `samples`
        draws each (local reparameterisation, eqs. 2.10–2.12).
    repeats: how many times the likelihood counts. With many more weights than values the bound is highest where every weight
        is at its prior and all is noise (the under-fitting of H-E2), so that a posterior that is 'colder' is needed (H-X12).
    prior_variance: the mode of the inverse-gamma prior of each layer's variance (eq. 2.14).
    floor: standard deviation added to that of the networks, in standard deviations of the values.

    Pending points condition the moments of the draws.
    """
    if not widths or min(members, draws, steps, later, samples) < 1 or draws % members:
        raise ValueError(
            "expected a hidden layer, steps, later and samples of at least 1, and draws a multiple of members; "
            f"got {widths}, {steps}, {later}, {samples}, {draws} and {members}"
        )
    if not min(learning_rate, repeats, prior_variance, floor) > 0.0:
        raise ValueError(
            "expected learning_rate, repeats, prior_variance and floor above 0; "
            f"got {learning_rate}, {repeats}, {prior_variance} and {floor}"
        )
    sizes = (learning_rate, samples, repeats, prior_variance, floor)
    return _variational(_Recipe(tuple(widths), activation, members, draws, steps, later, *sizes), None)


@cache
def _variational(recipe: _Recipe, space: Space | None) -> Surrogate:
    traits = Traits(recipe.learning_rate, recipe.prior_variance, noise=0.1, repeats=recipe.repeats)

    def inputs(x: Array) -> Array:
        return 2.0 * features(space, x) - 1.0

    def network_of(d: int) -> tuple[nets.Shape, nets.Architecture]:
        shape = nets.Shape(width(space, d), 1, len(recipe.widths), max(recipe.widths), activations=(recipe.activation,))
        return shape, nets.architecture(shape, recipe.widths)

    def reading_of(d: int) -> Reading:
        shape, network = network_of(d)

        def plain(draws: Drawn, x: Array) -> Array:
            return jax.vmap(lambda params: apply(shape, params, inputs(x), network)[:, 0])(draws.params)

        return functions(plain, lambda draws: draws.noise.mean(), recipe.floor)

    def run_of(key: Array, data: Dataset) -> Run:
        shape, network = network_of(data.x.shape[1])
        rows = nets.Examples(inputs(data.x), data.y, weight=data.mask[:, 0].astype(data.x.dtype))
        return Run(key, shape, VI(samples=recipe.samples), Course(), network, traits, rows)

    def drawn(key: Array, run: Run, vectors: Array) -> Drawn:
        """As many networks of each member."""
        mask, each = masks(key, run.shape, run.architecture), recipe.draws // recipe.members

        def member(key, vector):
            q = vi_train.unpack(vector, run.shape)
            params = jax.vmap(lambda key: draw_weights(key, run.shape, q, mask))(jax.random.split(key, each))
            return Drawn(params, jnp.broadcast_to(jnp.exp(q.log_noise), (each,)))

        found = jax.vmap(member)(jax.random.split(key, recipe.members), vectors)
        return jax.tree.map(lambda leaf: leaf.reshape(recipe.draws, *leaf.shape[2:]), found)

    def init(capacity: int, d: int, p: int = 1) -> VariationalState:
        if p != 1:
            raise ValueError(f"a network models one output; got p = {p}")

        def like():
            key, data = jax.random.key(0), clean(empty(capacity, d, 1))
            run = run_of(key, data)
            vectors = jnp.stack([vi_train.begin(run).vector] * recipe.members)
            draws = drawn(key, run, vectors)
            return vectors, draws, reading_of(d).learn(draws, data)

        vectors, draws, given = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(like))
        return VariationalState(vectors, draws, given, jnp.asarray(False))

    def fit(key: Array, data: Dataset, state: VariationalState) -> tuple[VariationalState, FitInfo]:
        data, (run_key, draw_key) = clean(data), jax.random.split(key)

        def one(lane):
            key, last = lane
            run = run_of(key, data)
            start = vi_train.begin(run, spread=_SPREAD, log_std=_LOG_STD)
            start = start._replace(vector=jnp.where(state.fitted, last, start.vector))
            end, bound = vi_train.climb(run, start, jnp.where(state.fitted, recipe.later, recipe.steps))
            return end.vector, bound, end.finite

        vectors, bounds, finite = jax.lax.map(one, (jax.random.split(run_key, recipe.members), state.vectors))
        draws, fine, bound = drawn(draw_key, run_of(key, data), vectors), finite.all(), bounds.mean()
        found = VariationalState(vectors, draws, reading_of(data.x.shape[1]).learn(draws, data), jnp.asarray(True))
        return choose(fine | ~state.fitted, found, state), FitInfo(bound, fine, fine, jnp.zeros_like(bound))

    def update(data: Dataset, state: VariationalState) -> VariationalState:
        return state._replace(given=reading_of(data.x.shape[1]).update(state.draws, state.given, clean(data)))

    def predict(state: VariationalState, x: Array) -> Prediction:
        return reading_of(x.shape[1]).predict(state.draws, state.given, x)

    def covariance(state: VariationalState, x: Array, at: Array) -> Array:
        return reading_of(x.shape[1]).covariance(state.draws, state.given, x, at)

    def sample(key: Array, state: VariationalState, x: Array, k: int) -> Array:
        return reading_of(x.shape[1]).sample(key, state.draws, state.given, x, k)

    return Surrogate(init, fit, update, predict, covariance, sample, adapt=partial(_variational, recipe))
