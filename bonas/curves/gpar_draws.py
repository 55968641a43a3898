"""Draws of curves from a conditioned GPAR, one output after the other.

`scan_layers` is the loop over layers. The functions below it differ in how one layer draws its
output: from marginals, jointly over points, or jointly and linear in the outputs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bonas.curves.curve_model import PartialCurves, check_no_gaps, has_gap
from bonas.curves.gpar_layers import GPARPosterior, Layer, LayerSettings, layer_inputs
from bonas.gp import Prediction, exact, joint_predictions
from bonas.static_settings import check_static

# k draws at m points, with zeros for outputs that are not drawn yet
Outputs = Float[Array, "k m p"]
Column = Float[Array, "k m"]  # one output
LayerStep = Callable[[Layer, Outputs], tuple[Column, Any]]


class CurveStart(NamedTuple):
    """Points where curves are drawn, and the observed beginnings there, in the model's units."""

    x: Array  # (m, d)
    y: Array  # (m, p) zeros where not observed
    mask: Array  # (m, p) bool


def scale_start(
    posterior: GPARPosterior,
    x: ArrayLike,
    observed: PartialCurves | None,
) -> CurveStart:
    """Check the observed parts of curves and convert them to the model's units.

    A curve with a gap raises a ValueError; under `jit` its values become NaN instead.
    """
    points = jnp.asarray(x)
    p = len(posterior.noise)
    d = posterior.layers.data.x.shape[2] - p
    if points.ndim != 2 or points.shape[1] != d:
        raise ValueError(f"expected points of shape (m, {d}); got {points.shape}")
    shape = (len(points), p)
    if observed is None:
        return CurveStart(
            points, jnp.zeros(shape, points.dtype), jnp.zeros(shape, bool)
        )
    if observed.y.shape != shape or observed.mask.shape != shape:
        raise ValueError(
            f"expected observed outputs of shape {shape}; "
            f"got y {observed.y.shape} and mask {observed.mask.shape}"
        )
    check_no_gaps(observed.mask, "pass only the beginning of each curve")
    values = (observed.y - posterior.level[None, :]) / posterior.scale[None, :]
    values = jnp.where(has_gap(observed.mask)[:, None], jnp.nan, values)
    return CurveStart(points, jnp.where(observed.mask, values, 0.0), observed.mask)


@jax.jit
def observed_inputs(
    model: LayerSettings,
    posterior: GPARPosterior,
    start: CurveStart,
) -> Float[Array, "m p"]:
    """Return the observed outputs as inputs of later layers.

    A model with `replace` uses the mean of each layer given its data and the observed output. At a
    point of the data, the output is already part of the data.
    """
    if not model.replace:
        return start.y
    x = start.x

    def replace(passed: Array, layer: Layer) -> tuple[Array, None]:
        i = layer.output
        mean, std = exact.predict(
            layer.posterior, layer_inputs(x, passed, layer.window)
        )
        data = layer.posterior.data
        same = (x[:, None, :] == data.x[None, :, : x.shape[1]]).all(axis=2)
        in_data = (same & data.mask[None, :, 0]).any(axis=1)
        gain = jnp.where(in_data, 0.0, std**2 / (std**2 + layer.noise))
        updated = mean + gain * (start.y[:, i] - mean)
        return passed.at[:, i].set(jnp.where(start.mask[:, i], updated, 0.0)), None

    return jax.lax.scan(replace, jnp.zeros_like(start.y), model.layers(posterior))[0]


def scan_layers(
    layers: Layer,
    step: LayerStep,
    like: Outputs,
) -> tuple[Outputs, Any]:
    """Draw all outputs in order, each given the previous ones.

    Args:
        layers: All layers, leaves (p, ...).
        step: A function of a layer and the outputs so far that returns the output of this layer,
            and a result to collect.
        like: Zeros of the shape of the outputs.

    Returns:
        The outputs as inputs of later layers, and the collected results, leaves (p, ...).
    """

    def draw(outputs: Outputs, layer: Layer) -> tuple[Outputs, Any]:
        column, result = step(layer, outputs)
        return outputs.at[:, :, layer.output].set(column), result

    return jax.lax.scan(draw, like, layers)


def input_noise(
    model: LayerSettings, noise: Float[Array, "..."]
) -> Float[Array, "..."]:
    """Return the noise variance of drawn outputs that are inputs of later layers."""
    return jnp.zeros_like(noise) if model.replace else noise


@jax.jit
def layer_moments(
    model: LayerSettings,
    posterior: GPARPosterior,
    start: CurveStart,
    normal: Array,
) -> Prediction:
    """Return conditional moments (k, m, p) of each output along k drawn curves.

    Args:
        model: The settings of the GPAR.
        posterior: The GPAR given data.
        start: The points, with observed outputs as inputs of later layers.
        normal: Standard normal numbers (k, 1 or m, p) that determine the draws.
    """
    x = start.x
    k = len(normal)
    m = len(x)

    def step(layer: Layer, outputs: Outputs) -> tuple[Column, tuple[Column, Column]]:
        i = layer.output
        visible = jnp.where(layer.window[None, None, :], outputs, 0.0)
        inputs = jnp.concatenate([jnp.broadcast_to(x, (k, *x.shape)), visible], axis=2)
        prediction = exact.predict(layer.posterior, inputs.reshape(k * m, -1))
        mean = prediction.mean.reshape(k, m)
        std = prediction.std.reshape(k, m)
        value = (
            mean + jnp.sqrt(std**2 + input_noise(model, layer.noise)) * normal[:, :, i]
        )
        return jnp.where(start.mask[None, :, i], start.y[None, :, i], value), (
            mean,
            std,
        )

    zeros = jnp.zeros((k, m, len(posterior.noise)), x.dtype)
    _, (mean, std) = scan_layers(model.layers(posterior), step, zeros)
    return Prediction(jnp.moveaxis(mean, 0, 2), jnp.moveaxis(std, 0, 2))


class LayerDraws(NamedTuple):
    """Draws of all outputs of a GPAR."""

    outputs: Array  # (k, m, p) inputs of later layers, noise included
    latent: Array  # (k, m, p) without noise


def draw_curves(
    key: PRNGKeyArray,
    model: LayerSettings,
    posterior: GPARPosterior,
    start: CurveStart,
    k: int,
    *,
    first: Int[Array, " m"] | None = None,
) -> LayerDraws:
    """Draw k curves jointly over the points, with one factorization per layer and draw.

    Args:
        key: A random key.
        model: The settings of the GPAR.
        posterior: The GPAR given data.
        start: The points, with observed outputs as inputs of later layers.
        k: The number of draws.
        first: For points without observations, the position of the first point that is equal to
            each. Equal points have one curve.
    """

    def draw_latent(key: PRNGKeyArray, layer: Layer, outputs: Outputs) -> Column:
        return _draw_layer(key, layer, start.x, outputs)

    def keep_first(i: Int[Array, ""], output: Column) -> Column:
        return output[:, first]

    keep = _keep_observed(start) if first is None else keep_first
    layers = model.layers(posterior)
    return _draw_outputs(key, model, layers, start.x, k, draw_latent, keep)


def draw_linear_curves(
    key: PRNGKeyArray,
    model: LayerSettings,
    posterior: GPARPosterior,
    start: CurveStart,
    k: int,
) -> LayerDraws:
    """Draw curves like `draw_curves`, with one factorization per layer, for linear layers.

    A layer linear in the outputs is f(x, y) = f(x, 0) + Σ_j w_j y_j almost surely, with
    w_j = f(x₀, e_j) − f(x₀, 0) at any x₀: joint draws at the m points (x, 0) and the p points
    (x₀, e_j) determine f at every y.
    """
    x = start.x
    m = len(x)
    p = len(posterior.noise)
    windows = model.windows(p) & bool(model.linear or model.prior_slope)
    origins = jnp.concatenate([x, jnp.zeros((m, p), x.dtype)], axis=1)
    unit_outputs = jnp.eye(p, dtype=x.dtype)
    units = jnp.concatenate(
        [jnp.broadcast_to(x[:1], (p, x.shape[1])), unit_outputs], axis=1
    )
    points = jnp.concatenate([origins, units])

    def draw_latent(key: PRNGKeyArray, layer: Layer, outputs: Outputs) -> Column:
        values = joint_predictions.sample(key, layer.posterior, points, k)
        slopes = values[:, m:] - values[:, :1]
        slopes = jnp.where(layer.window[None, :], slopes, 0.0)
        return values[:, :m] + jnp.einsum("kmp,kp->km", outputs, slopes)

    layers = model.layers(posterior)._replace(window=windows)
    keep = _keep_observed(start)
    return _draw_outputs(key, model, layers, x, k, draw_latent, keep)


def _draw_outputs(
    key: PRNGKeyArray,
    model: LayerSettings,
    layers: Layer,
    x: Float[Array, "m d"],
    k: int,
    draw_latent: Callable[[PRNGKeyArray, Layer, Outputs], Column],
    keep: Callable[[Int[Array, ""], Column], Column],
) -> LayerDraws:
    """Draw latent outputs layer by layer; later layers take them with noise, changed by `keep`."""
    m = len(x)

    def step(layer: Layer, outputs: Outputs) -> tuple[Column, Column]:
        latent_key, noise_key = jax.random.split(jax.random.fold_in(key, layer.output))
        latent = draw_latent(latent_key, layer, outputs)
        std = jnp.sqrt(input_noise(model, layer.noise))
        noisy = latent + std * jax.random.normal(noise_key, (k, m), x.dtype)
        return keep(layer.output, noisy), latent

    zeros = jnp.zeros((k, m, len(layers.noise)), x.dtype)
    outputs, latent = scan_layers(layers, step, zeros)
    return LayerDraws(outputs, jnp.moveaxis(latent, 0, 2))


def _keep_observed(start: CurveStart) -> Callable[[Int[Array, ""], Column], Column]:
    """Return a function that replaces drawn outputs by observed ones."""

    def keep(i: Int[Array, ""], output: Column) -> Column:
        return jnp.where(start.mask[None, :, i], start.y[None, :, i], output)

    return keep


def _draw_layer(
    key: PRNGKeyArray,
    layer: Layer,
    x: Float[Array, "m d"],
    outputs: Outputs,
) -> Column:
    """Draw one layer jointly over the points, once for each draw of the previous outputs."""

    def draw(key: PRNGKeyArray, before: Float[Array, "m p"]) -> Float[Array, " m"]:
        return joint_predictions.sample(
            key, layer.posterior, layer_inputs(x, before, layer.window), 1
        )[0]

    return jax.vmap(draw)(jax.random.split(key, len(outputs)), outputs)


def antithetic_normal(
    draws: int,
    p: int,
    dtype: Any,
) -> Float[Array, "draws 1 p"]:
    """Return fixed standard normal numbers in pairs of opposite signs."""
    half = jax.random.normal(jax.random.key(0), (draws // 2, 1, p), dtype)
    return jnp.concatenate([half, -half])


def check_draws(draws: int) -> None:
    """Raise a ValueError unless `draws` is a positive even number."""
    check_static("draws", draws)
    if draws < 2 or draws % 2:
        raise ValueError(
            "draws must be an even number of at least 2, because they come in pairs of opposite "
            f"signs; got {draws}"
        )
