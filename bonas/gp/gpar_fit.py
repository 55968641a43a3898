"""A GPAR fitted layer by layer, which is how Hutchinson's code does it (H-S11); `GPAR.hyperposterior` is the joint fit."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset
from bonas.gp.gpar import GPAR
from bonas.gp.hyper import Noise
from bonas.infer.optimise import maximise
from bonas.infer.target import Tree


def fit_layers(
    key: Array, model: GPAR, data: Dataset, start: Tree | None = None, *, steps: int = 50, noise: Noise | None = None
) -> Tree:
    """The most probable parameters, constrained, of each layer by its own evidence, with those before it as they were found.

    Length scales that are tied belong to the first layer, which alone trains them. Where they are not tied and layers do not
    see what others make of their data, the joint posterior is a product over layers, and this finds the same as it does.

    start: unconstrained, by default the middle of the prior; steps: evaluations a layer.
    """
    whole = model.hyperposterior(data, noise=noise)
    outputs = jnp.arange(data.y.shape[1])

    def layer(z, given):
        i, key = given
        mine = _of_layer(model, z, i)
        sees = model.hyperposterior(data._replace(mask=data.mask & (outputs <= i)[None, :]), noise=noise)

        def density(free):
            return sees.maximising(jax.tree.map(jnp.where, mine, free, z))

        found, _ = maximise(key, density, z, steps=steps)
        return jax.tree.map(lambda of, new, old: jnp.where(of, new[0], old), mine, found, z), None

    start = whole.start if start is None else start
    z, _ = jax.lax.scan(layer, start, (outputs, jax.random.split(key, len(outputs))))
    return whole.constrain(z)


def _of_layer(model: GPAR, z: dict[str, Any], i: Array) -> dict[str, Any]:
    """Which parameters are those of layer i."""

    def rows(leaf):
        return jnp.broadcast_to((jnp.arange(len(leaf)) == i).reshape(-1, *[1] * (leaf.ndim - 1)), leaf.shape)

    found = jax.tree.map(rows, z)
    if model.tied:
        found["kernel"]["lengthscale"] = jnp.broadcast_to(i == 0, z["kernel"]["lengthscale"].shape)
    return found


def log_predictive(model: GPAR, params: Tree, data: Dataset, x: Array, y: Array) -> Array:
    """log p(curve | data) (m,) of held-out curves y (m, p) at x (m, d), noise included, in the units of y.

    params: s hyperparameter samples, leaves (s, ...), over which densities are averaged; a single optimum has s = 1.
    """
    each = jax.vmap(lambda one: model.log_density(model.condition(one, data), x, y).sum(axis=1))(params)
    return jax.nn.logsumexp(each, axis=0) - jnp.log(len(each))
