"""Covariances of the last output of a GPAR between points, estimated from draws."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bonas.curves.gpar_draws import CurveStart, draw_curves
from bonas.curves.gpar_layers import GPARPosterior, layer_inputs
from bonas.curves.gpar_model import GPAR
from bonas.gp import exact, joint_predictions


def last_covariance(
    model: GPAR,
    posterior: GPARPosterior,
    x: Float[Array, "m d"],
    at: Float[Array, "k d"],
    *,
    draws: int = 64,
) -> Float[Array, "m k"]:
    """Return the covariance of the latent last output between two sets of points.

    It is exact for a single output. Otherwise the previous outputs are drawn jointly at all points,
    with the same draws in every call; given them, the last output is a Gaussian process. Equal
    points are one network with one curve. The resulting correlations are combined with the standard
    deviations of `model.predict`. The cost is one factorization of m + k points per draw.

    Args:
        model: The GPAR.
        posterior: The GPAR given data.
        x: The first set of points.
        at: The second set of points.
        draws: The number of drawn curves; even.
    """
    p = len(posterior.noise)
    last = jax.tree.map(lambda leaf: leaf[-1], posterior.layers)
    window = model.windows(p)[-1]
    if p == 1:
        rows = layer_inputs(x, jnp.zeros((len(x), 1), x.dtype), window)
        rows_at = layer_inputs(at, jnp.zeros((len(at), 1), at.dtype), window)
        return posterior.scale[0] ** 2 * joint_predictions.covariance(
            last, rows, rows_at
        )
    m = len(x)
    points = jnp.concatenate([x, at])

    def moments(outputs: Float[Array, "n p"]) -> tuple[Array, Array, Array]:
        """Return means (n,), variances (n,) and covariances (m, k) given the previous outputs."""
        inputs = layer_inputs(points, outputs, window)
        prediction = exact.predict(last, inputs)
        cross = joint_predictions.covariance(last, inputs[:m], inputs[m:])
        return prediction.mean, prediction.std**2, cross

    first = _first_equal_point(x, at)
    unseen = jnp.zeros((len(points), p), points.dtype)
    start = CurveStart(points, unseen, unseen.astype(bool))
    drawn = draw_curves(jax.random.key(0), model, posterior, start, draws, first=first)
    mean, variance, cross = jax.vmap(moments)(drawn.outputs)
    residual = mean - mean.mean(axis=0)[None, :]
    spread = jnp.sqrt(variance.mean(axis=0) + (residual**2).mean(axis=0))
    between_draws = residual[:, :m].T @ residual[:, m:] / draws
    covariance = cross.mean(axis=0) + between_draws
    correlation = covariance / (spread[:m, None] * spread[None, m:])
    std = model.predict(posterior, points, draws=draws).std[:, -1]
    return correlation * std[:m, None] * std[None, m:]


def _first_equal_point(
    x: Float[Array, "m d"], at: Float[Array, "k d"]
) -> Int[Array, " n"]:
    """Return, for each of the n = m + k points, the position of the first point equal to it."""
    same = (at[:, None, :] == x[None, :, :]).all(axis=2)
    own = len(x) + jnp.arange(len(at))
    equal = jnp.where(same.any(axis=1), jnp.argmax(same, axis=1), own)
    return jnp.concatenate([jnp.arange(len(x)), equal])
