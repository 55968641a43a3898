"""The layers of a GPAR: their settings, kernels, means and data."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int

from bonas.curves.curve_model import has_gap
from bonas.data import Dataset
from bonas.distances import squared_distances
from bonas.gp import Kernel, Mean, Posterior, exact, matern52_profile, se_profile, zero

Params = dict[str, Any]


class GPARPosterior(NamedTuple):
    """Posterior of a Gaussian process autoregressive regression: one process per output."""

    layers: Posterior  # leaves (p, ...)
    noise: Array  # (p,) noise variances
    level: Array  # (p,) subtracted from each output
    scale: Array  # (p,) divisor of each output


class Layer(NamedTuple):
    """One layer of a conditioned GPAR, in the form that a scan over the layers receives."""

    output: Array  # () int: the output that the layer predicts
    window: Array  # (p,) bool: the outputs that it takes as inputs
    posterior: Posterior
    noise: Array  # () noise variance


@jax.tree_util.register_static
@dataclass(frozen=True)
class LayerSettings:
    """Settings of a GPAR, the arguments of `curves.gpar`, and the layers that result from them."""

    linear_inputs: bool
    linear: bool
    nonlinear: bool
    markov: int | None
    tied: bool
    replace: bool
    impute: bool
    prior_slope: float
    matern: bool

    def windows(self, p: int) -> Bool[Array, "p p"]:
        """Return which outputs (columns) each layer (row) takes as inputs."""
        layer = jnp.arange(p)[:, None]
        output = jnp.arange(p)[None, :]
        order = p if self.markov is None else self.markov
        return (output < layer) & (output >= layer - order)

    def kernel(self, p: int) -> Kernel:
        """Return the kernel of one layer over the columns (x, y) with p outputs y.

        Outputs that are not inputs of the layer must be zeros.
        """
        return LayerKernel(self, p)

    def mean(self, p: int) -> Mean:
        """Return the prior mean of one layer: `prior_slope` times the previous output."""
        return Mean(_ScaledOutput(self.prior_slope, p)) if self.prior_slope else zero

    def layers(self, posterior: GPARPosterior) -> Layer:
        """Return the layers of a conditioned GPAR, leaves (p, ...), to scan over."""
        p = len(posterior.noise)
        return Layer(jnp.arange(p), self.windows(p), posterior.layers, posterior.noise)


@dataclass(frozen=True)
class LayerKernel(Kernel):
    """Kernel of one layer of a GPAR over rows (x, y) with p outputs y."""

    settings: LayerSettings
    p: int

    def prior(self, d: int) -> Params:
        """Return the prior of the parameters for rows of d columns, outputs included."""
        inputs = d - self.p
        location = math.log(0.5) + 0.5 * math.log(inputs)
        prior: Params = {
            "variance": dist.LogNormal(0.0, 1.0),
            "lengthscale": dist.LogNormal(location, 1.0).expand([inputs]),
        }
        if self.settings.linear_inputs:
            prior["bias"] = dist.HalfNormal(1.0)
            prior["line"] = dist.HalfNormal(1.0).expand([inputs])
        if self.settings.linear:
            # With a prior slope, this is the deviation of the slope from it, which is smaller.
            slope_location = -1.0 if self.settings.prior_slope else 0.0
            prior["slope"] = dist.LogNormal(slope_location, 1.0).expand([self.p])
        if self.settings.nonlinear:
            prior["bend"] = dist.LogNormal(-1.0, 1.0)
            prior["reach"] = dist.LogNormal(0.0, 1.0).expand([self.p])
        return prior

    def value(
        self,
        params: Params,
        a: Float[Array, " columns"],
        b: Float[Array, " columns"],
    ) -> Float[Array, ""]:
        """Return the covariance of two rows."""
        return self.gram(params, a[None, :], b[None, :])[0, 0]

    def gram(
        self,
        params: Params,
        a: Float[Array, "n columns"],
        b: Float[Array, "m columns"],
    ) -> Float[Array, "n m"]:
        """Return the covariances between two sets of rows."""
        x_a = a[:, : -self.p]
        y_a = a[:, -self.p :]
        x_b = b[:, : -self.p]
        y_b = b[:, -self.p :]
        profile = matern52_profile if self.settings.matern else se_profile
        length = params["lengthscale"][None, :]
        squared = squared_distances(x_a / length, x_b / length)
        gram = params["variance"] * profile(params, squared)
        if self.settings.linear_inputs:
            line = params["line"][None, :]
            gram += params["bias"] ** 2 + (x_a * line) @ (x_b * line).T
        if self.settings.linear:
            slope = params["slope"][None, :]
            gram += (y_a * slope) @ (y_b * slope).T
        if self.settings.nonlinear:
            reach = params["reach"][None, :]
            squared = squared_distances(y_a / reach, y_b / reach)
            gram += params["bend"] * jnp.exp(-0.5 * squared)
        return gram


@dataclass(frozen=True)
class _ScaledOutput:
    """Prior mean of a layer with one previous output: a multiple of it."""

    prior_slope: float
    p: int

    def __call__(
        self,
        params: Params,
        data: Dataset,
        row: Array,
    ) -> Float[Array, ""]:
        return self.prior_slope * row[-self.p :].sum()


def layer_inputs(
    x: Float[Array, "n d"],
    y: Float[Array, "n p"],
    window: Bool[Array, " p"],
) -> Float[Array, "n columns"]:
    """Return the rows (x, y) of one layer, with zeros for the outputs outside its window."""
    return jnp.concatenate([x, jnp.where(window[None, :], y, 0.0)], axis=1)


def layer_data(
    settings: LayerSettings,
    params: Params,
    data: Dataset,
) -> tuple[Params, Dataset, Float[Array, " p"]]:
    """Return kernel parameters, data and noise of every layer, leaves (p, ...).

    Args:
        settings: The settings of the GPAR.
        params: The parameters of all layers, as drawn from `GPAR.prior`.
        data: Curves in the model's units (`gpar_scales.scale_outputs`).

    Returns:
        Parameters, data and noise. The noise is NaN if an output is observed without the previous
        one and the model does not impute, because no error can be raised under `jit`.
    """
    p = data.y.shape[1]
    noise = params["noise"]
    if not settings.impute:
        noise = jnp.where(has_gap(data.mask).any(), jnp.nan, noise)
    windows = settings.windows(p)
    kernels = _kernel_params(settings, params)
    y = data.y
    if settings.replace or settings.impute:
        y = _fill_outputs(settings, kernels, noise, data)
    inputs = jax.vmap(layer_inputs, (None, None, 0))(data.x, y, windows)
    size = jnp.broadcast_to(data.size, (p,))
    return (
        kernels,
        Dataset(inputs, data.y.T[:, :, None], data.mask.T[:, :, None], size),
        noise,
    )


def _kernel_params(settings: LayerSettings, params: Params) -> Params:
    """Return the kernel parameters with one row (p, ...) per layer."""
    p = len(params["noise"])
    kernel = dict(params["kernel"])
    if settings.tied:
        length = kernel["lengthscale"]
        kernel["lengthscale"] = jnp.broadcast_to(length, (p, *length.shape))
    if settings.nonlinear:
        # A layer without previous outputs has no nonlinear term.
        kernel["bend"] = jnp.where(settings.windows(p).any(axis=1), kernel["bend"], 0.0)
    return kernel


def _fill_outputs(
    settings: LayerSettings,
    kernels: Params,
    noise: Float[Array, " p"],
    data: Dataset,
) -> Float[Array, "n p"]:
    """Return the inputs of later layers: outputs observed, replaced by fitted means, or imputed."""
    p = data.y.shape[1]

    def fill(
        filled: Float[Array, "n p"],
        layer: tuple[Int[Array, ""], Bool[Array, " p"], Params, Float[Array, ""]],
    ) -> tuple[Float[Array, "n p"], None]:
        i, window, params, variance = layer
        inputs = layer_inputs(data.x, filled, window)
        y = data.y[:, i]
        mask = data.mask[:, i]
        rows = Dataset(inputs, y[:, None], mask[:, None], data.size)
        kernel = settings.kernel(p)
        posterior = exact.condition(
            kernel,
            params,
            rows,
            noise=variance,
            mean=settings.mean(p),
        )
        fitted = exact.predict(posterior, inputs).mean
        keep = mask & (not settings.replace)
        column = jnp.where(keep, y, jnp.where(mask | settings.impute, fitted, 0.0))
        return filled.at[:, i].set(column), None

    layers = (jnp.arange(p), settings.windows(p), kernels, noise)
    return jax.lax.scan(fill, data.y, layers)[0]
