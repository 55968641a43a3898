"""One layer of an autoregressive model, and the data that it sees: the parts of `gp.gpar`."""

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from bonas.data import Dataset, with_holes
from bonas.gp import exact
from bonas.gp.kernel import Kernel, Params
from bonas.gp.kernels import matern52_profile, se_profile
from bonas.gp.means import Mean, zero
from bonas.linalg import squared_distances

if TYPE_CHECKING:  # which is made of these
    from bonas.gp.gpar import GPAR


@cache
def layer_prior(model: "GPAR", p: int) -> Callable[[int], dict]:
    """prior(columns), of one layer's kernel where p of the columns are outputs."""

    def prior(columns: int) -> dict:
        d = columns - p
        found = {
            "variance": dist.LogNormal(0.0, 1.0),
            "lengthscale": dist.LogNormal(math.log(0.5) + 0.5 * math.log(d), 1.0).expand([d]),
        }
        found |= {"bias": dist.HalfNormal(1.0), "line": dist.HalfNormal(1.0).expand([d])} if model.linear_inputs else {}
        # of the slope, or of how far it is from what is carried on
        found |= {"slope": dist.LogNormal(-1.0 if model.carry else 0.0, 1.0).expand([p])} if model.linear else {}
        if model.nonlinear:
            found |= {"bend": dist.LogNormal(-1.0, 1.0), "reach": dist.LogNormal(0.0, 1.0).expand([p])}
        return found

    return prior


@cache
def layer_kernel(model: "GPAR", p: int) -> Kernel:
    """Of the columns (x, y), in which outputs that the layer does not see are zeros."""
    profile = matern52_profile if model.rough else se_profile

    def matrix(params: Params, a: Array, b: Array) -> Array:
        (x, y), (at, given) = ((rows[:, :-p], rows[:, -p:]) for rows in (a, b))
        length = params["lengthscale"][None, :]
        found = params["variance"] * profile(params, squared_distances(x / length, at / length))
        if model.linear_inputs:
            line = params["line"][None, :]
            found += params["bias"] ** 2 + (x * line) @ (at * line).T
        if model.linear:
            slope = params["slope"][None, :]
            found += (y * slope) @ (given * slope).T
        if model.nonlinear:
            reach = params["reach"][None, :]
            found += params["bend"] * jnp.exp(-0.5 * squared_distances(y / reach, given / reach))
        return found

    return Kernel(layer_prior(model, p), lambda params, a, b: matrix(params, a[None, :], b[None, :])[0, 0], matrix)


@cache
def layer_mean(model: "GPAR", p: int) -> Mean:
    """What is carried on of the output before: the only one that a layer sees."""
    return Mean(lambda params, data, row: model.carry * row[-p:].sum()) if model.carry else zero


def windows_of(model: "GPAR", p: int) -> Array:
    """Which outputs each layer sees (p, p)."""
    layer, before = jnp.arange(p)[:, None], jnp.arange(p)[None, :]
    return (before < layer) & (before >= layer - (p if model.markov is None else model.markov))


def columns(x: Array, y: Array, window: Array) -> Array:
    """What a layer sees (n, d + p)."""
    return jnp.concatenate([x, jnp.where(window[None, :], y, 0.0)], axis=1)


def _each_layer(model: "GPAR", params: dict) -> dict:
    """The kernel's parameters, a row (p, ...) an output; one that sees no other has nothing that bends."""
    p, kernel = len(params["noise"]), dict(params["kernel"])
    if model.tied:
        kernel["lengthscale"] = jnp.broadcast_to(kernel["lengthscale"], (p, *kernel["lengthscale"].shape))
    if model.nonlinear:
        kernel["bend"] = jnp.where(windows_of(model, p).any(axis=1), kernel["bend"], 0.0)
    return kernel


def layers_of(model: "GPAR", params: dict, data: Dataset) -> tuple[dict, Dataset, Array]:
    """Parameters, data and noise of each layer, leaves (p, ...); `data` are scaled.

    The noise is NaN where the model has no place for the data: under `jit` nothing can be raised.
    """
    p, noise = data.y.shape[1], params["noise"]
    if not model.impute:
        noise = jnp.where(with_holes(data.mask).any(), jnp.nan, noise)
    windows, kernels, y = windows_of(model, p), _each_layer(model, params), data.y
    if model.replace or model.impute:
        y = _filled(model, kernels, noise, data)
    inputs = jax.vmap(columns, (None, None, 0))(data.x, y, windows)
    size = jnp.broadcast_to(data.size, (p,))
    return kernels, Dataset(inputs, data.y.T[:, :, None], data.mask.T[:, :, None], size), noise


def _filled(model: "GPAR", kernels: dict, noise: Array, data: Dataset) -> Array:
    """Outputs (n, p) as the layers above see them."""
    p = data.y.shape[1]

    def layer(seen, given):
        i, window, params, level = given
        inputs = columns(data.x, seen, window)
        y, mask = data.y[:, i], data.mask[:, i]
        rows = Dataset(inputs, y[:, None], mask[:, None], data.size)
        here = exact.condition(layer_kernel(model, p), params, rows, noise=level, mean=layer_mean(model, p))
        fitted = exact.predict(here, inputs).mean
        keep = mask & (not model.replace)
        return seen.at[:, i].set(jnp.where(keep, y, jnp.where(mask | model.impute, fitted, 0.0))), None

    return jax.lax.scan(layer, data.y, (jnp.arange(p), windows_of(model, p), kernels, noise))[0]
