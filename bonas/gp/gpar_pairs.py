"""Covariances of the last output of a GPAR between points, which no formula gives where there are outputs before it."""

import jax
import jax.numpy as jnp
from jax import Array

from bonas.gp import exact
from bonas.gp.gpar import GPAR, Curves, handed_noise
from bonas.gp.gpar_layers import columns, windows_of


def last_covariance(model: GPAR, curves: Curves, x: Array, at: Array, *, draws: int = 64) -> Array:
    """Covariance (m, k) of the latent last outputs at x (m, d) and at (k, d); exact where there is one output.

    Given the outputs before, it is that of a Gaussian process. Those are drawn jointly at all points, the same in every call,
    which factorises a matrix of m + k points a draw. Points that are equal are one network, with one curve. Correlations found
    so are put together with the standard deviations of `model.predict`.
    """
    p, last = len(curves.noise), jax.tree.map(lambda leaf: leaf[-1], curves.layers)
    window = windows_of(model, p)[-1]

    def seen(points: Array, y: Array) -> Array:
        return columns(points, y, window)

    if p == 1:
        blank = (jnp.zeros((len(points), 1), points.dtype) for points in (x, at))
        return curves.scale[0] ** 2 * exact.covariance(last, *map(seen, (x, at), blank))
    m, points = len(x), jnp.concatenate([x, at])

    def given(y: Array) -> tuple[Array, Array, Array]:
        """Means and variances (m + k,) and covariances (m, k) for curves (m + k, p)."""
        inputs = seen(points, y)
        found = exact.predict(last, inputs)
        return found.mean, found.std**2, exact.covariance(last, inputs[:m], inputs[m:])

    mean, variance, cross = jax.vmap(given)(_drawn(model, curves, points, _first_of_equals(x, at), draws))
    away = mean - mean.mean(axis=0)[None, :]
    spread = jnp.sqrt(variance.mean(axis=0) + (away**2).mean(axis=0))
    correlation = (cross.mean(axis=0) + away[:, :m].T @ away[:, m:] / draws) / (spread[:m, None] * spread[None, m:])
    std = model.predict(curves, points, draws=draws).std[:, -1]
    return correlation * std[:m, None] * std[None, m:]


def _first_of_equals(x: Array, at: Array) -> Array:
    """For each of the points (m + k,) the position of the point that it is equal to, or its own."""
    same = (at[:, None, :] == x[None, :, :]).all(axis=2)
    own = len(x) + jnp.arange(len(at))
    return jnp.concatenate([jnp.arange(len(x)), jnp.where(same.any(axis=1), jnp.argmax(same, axis=1), own)])


def _drawn(model: GPAR, curves: Curves, points: Array, first: Array, draws: int) -> Array:
    """Joint draws (draws, m, p) of the outputs at all points, as they are handed on."""
    p, m = len(curves.noise), len(points)

    def layer(y, given):
        i, window, posterior, noise = given
        latent_key, noise_key = jax.random.split(jax.random.fold_in(jax.random.key(0), i))

        def one(key, before):
            return exact.sample(key, posterior, columns(points, before, window), 1)[0]

        latent = jax.vmap(one)(jax.random.split(latent_key, draws), y)
        passed = latent + jnp.sqrt(handed_noise(model, noise)) * jax.random.normal(noise_key, (draws, m), points.dtype)
        return y.at[:, :, i].set(passed[:, first]), None

    layers = (jnp.arange(p), windows_of(model, p), curves.layers, curves.noise)
    return jax.lax.scan(layer, jnp.zeros((draws, m, p), points.dtype), layers)[0]
