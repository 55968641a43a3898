"""Bayesian linear regression on the last hidden layer of a trained network (Snoek et al. 2015, DNGO)."""

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas import nets
from bonas.data import Dataset, clean
from bonas.gp import Prediction, affine, basis
from bonas.infer.target import choose
from bonas.nets.epoch import Run
from bonas.nets.mlp import Params, masks
from bonas.nets.train import DIVERGED
from bonas.nets.train import begin as begin_network
from bonas.nets.train import fit as fit_network
from bonas.spaces import Space
from bonas.surrogates.features import features, width
from bonas.surrogates.gaussian import gp
from bonas.surrogates.interface import FitInfo, Surrogate


class LastLayerState(NamedTuple):
    """A network, and the regression on what its last hidden layer says."""

    params: Params
    regression: Any  # the state of a GP
    fitted: Array  # () bool: false before the first fit


@dataclass(frozen=True)
class _Recipe:
    widths: tuple[int, ...]
    activation: str
    steps: int
    learning_rate: float
    weight_decay: float
    warm: bool
    infer: str
    samples: int


def last_layer(
    widths: tuple[int, ...] = (50, 50, 50),
    *,
    activation: str = "tanh",
    steps: int = 500,
    learning_rate: float = 0.01,
    weight_decay: float = 1e-3,
    warm: bool = True,
    infer: str = "slice",
    samples: int = 10,
) -> Surrogate:
    """Bayesian linear regression on the last hidden layer of a network, which is trained in float32: Snoek et al. 2015.

    A point costs what the width of that layer costs, not what the number of observations does. The uncertainty is that of the
    output weights alone; features that are flat far from the data leave it small there.

    steps, learning_rate, weight_decay: of full-batch Adam, whose learning rate falls to zero along half a cosine.
    warm: go on from the last network in place of a new start.
    infer, samples: how the variances of weights and noise are inferred, as in `surrogates.gp`; the paper integrates over
        them by slice sampling.
    """
    if not widths or steps < 1:
        raise ValueError(f"expected a hidden layer and steps >= 1; got {widths} and {steps}")
    return _last_layer(_Recipe(tuple(widths), activation, steps, learning_rate, weight_decay, warm, infer, samples), None)


@cache
def _last_layer(recipe: _Recipe, space: Space | None) -> Surrogate:
    regression = gp(basis(affine), infer=recipe.infer, samples=recipe.samples)
    units = recipe.widths[-1]

    def network_of(d: int) -> tuple[nets.Shape, nets.Architecture]:
        shape = nets.Shape(width(space, d), 1, len(recipe.widths), max(recipe.widths), activations=(recipe.activation,))
        return shape, nets.architecture(shape, recipe.widths)

    def inputs(x: Array) -> Array:
        return (2.0 * features(space, x) - 1.0).astype(jnp.float32)

    def hidden(params: Params, x: Array) -> Array:
        """The last hidden layer (m, units), read by an output layer that changes nothing; smaller by √units, as its sum is."""
        shape, network = network_of(x.shape[1])
        rows = shape.sizes["last"][0]
        reader = {"kernel": jnp.eye(rows, units, dtype=jnp.float32), "bias": jnp.zeros(units, jnp.float32)}
        read = nets.apply(replace(shape, outputs=units), {**params, "last": reader}, inputs(x), network)
        return read.astype(x.dtype) / jnp.sqrt(units)

    def seen(params: Params, data: Dataset) -> Dataset:
        data = clean(data)
        return data._replace(x=hidden(params, data.x))

    def init(capacity: int, d: int, p: int = 1) -> LastLayerState:
        if p != 1:
            raise ValueError(f"a network models one output; got p = {p}")
        like = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.float32), masks(jax.random.key(0), *network_of(d)))
        return LastLayerState(like, regression.init(capacity, units, 1), jnp.asarray(False))

    def fit(key: Array, data: Dataset, state: LastLayerState) -> tuple[LastLayerState, FitInfo]:
        shape, network = network_of(data.x.shape[1])
        start_key, train_key, regression_key = jax.random.split(key, 3)
        mask, start = begin_network(start_key, shape, network, "scaled", jnp.float32)
        if recipe.warm:
            start = choose(state.fitted, state.params, start)
        known = clean(data)
        rows = nets.Examples(inputs(known.x), known.y.astype(jnp.float32), weight=known.mask[:, 0].astype(jnp.float32))
        settings = nets.Settings(optimiser="adam", batch=None, max_epochs=recipe.steps, schedule=nets.cosine)
        hyper = nets.Hyper(learning_rate=recipe.learning_rate, weight_decay=recipe.weight_decay or None)
        result = fit_network(Run(train_key, shape, settings, network, hyper, rows, mask), start)
        fine = result.status != DIVERGED
        params = choose(fine | ~state.fitted, result.params, state.params)
        fitted, info = regression.fit(regression_key, seen(params, data), state.regression)
        return LastLayerState(params, fitted, jnp.asarray(True)), info._replace(finite=info.finite & fine)

    def update(data: Dataset, state: LastLayerState) -> LastLayerState:
        """The regression given the data, on the network as it is."""
        return state._replace(regression=regression.update(seen(state.params, data), state.regression))

    def predict(state: LastLayerState, x: Array) -> Prediction:
        return regression.predict(state.regression, hidden(state.params, x))

    def covariance(state: LastLayerState, x: Array, at: Array) -> Array:
        return regression.covariance(state.regression, hidden(state.params, x), hidden(state.params, at))

    def sample(key: Array, state: LastLayerState, x: Array, k: int) -> Array:
        return regression.sample(key, state.regression, hidden(state.params, x), k)

    return Surrogate(init, fit, update, predict, covariance, sample, adapt=partial(_last_layer, recipe))
