"""GPAR: an autoregressive Gaussian process for learning curves.

Output i is a Gaussian process of the inputs and the previous outputs,

    y_i | y_1 … y_{i−1} ~ GP(0, k_i((x, y_{<i}), (x', y'_{<i}))),

Requeima et al. 2019; Hutchinson, eqs. 2.43–2.50. If no output is observed without all previous
ones, the layers are separate exact regressions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.curves.curve_model import PartialCurves, check_no_gaps
from bonas.curves.gpar_draws import (
    antithetic_normal,
    check_draws,
    draw_curves,
    layer_moments,
    observed_inputs,
    scale_start,
)
from bonas.curves.gpar_layers import GPARPosterior, LayerSettings, Params, layer_data
from bonas.curves.gpar_scales import scale_outputs
from bonas.data import Dataset
from bonas.gp import Noise, Prediction, exact
from bonas.infer import Target, target


@jax.tree_util.register_static
@dataclass(frozen=True)
class GPAR(LayerSettings):
    """Autoregressive Gaussian process of several outputs; see `curves.gpar`."""

    def check(self, data: Dataset) -> None:
        """Raise a ValueError if a curve has gaps, unless `impute` is set."""
        if not self.impute:
            check_no_gaps(data.mask, "to fill such gaps, use curves.gpar(impute=True)")

    def prior(
        self,
        d: int,
        p: int,
        noise: Noise | None = None,
    ) -> Params:
        """Return the prior of the parameters of all layers, a dict with "kernel" and "noise".

        Args:
            d: The number of inputs.
            p: The number of outputs.
            noise: The prior of each noise variance. Default: log-normal.
        """
        layer = self.kernel(p).prior(d + p)
        kernel = {name: part.expand((p, *part.shape())) for name, part in layer.items()}
        if self.tied:
            kernel["lengthscale"] = layer["lengthscale"]
        noise = dist.LogNormal(-6.0, 2.0) if noise is None else noise
        return {"kernel": kernel, "noise": noise.expand((p,))}

    def condition(self, params: Params, data: Dataset) -> GPARPosterior:
        """Condition on curves, after centering and scaling each output by its observed values.

        Args:
            params: The parameters of all layers, as drawn from `prior`.
            data: Points x (n, d) and curves y (n, p), masked where not observed.
        """
        self.check(data)
        return _condition(self, params, data)

    def log_evidence(self, params: Params, data: Dataset) -> Float[Array, ""]:
        """Return log p(y | x, params) of the centered and scaled outputs, summed over layers."""
        self.check(data)
        return _log_evidence(self, params, data)

    def hyperposterior(self, data: Dataset, *, noise: Noise | None = None) -> Target:
        """Return the posterior p(params | data) of all layers jointly; see `bonas.infer`."""
        self.check(data)
        prior = self.prior(data.x.shape[1], data.y.shape[1], noise)
        return target(prior, lambda params: _log_evidence(self, params, data))

    def predict(
        self,
        posterior: GPARPosterior,
        x: ArrayLike,
        observed: PartialCurves | None = None,
        *,
        draws: int = 64,
    ) -> Prediction:
        """Predict the latent outputs at x (m, d): mean and standard deviation (m, p).

        Moments are averages over draws of the previous outputs. The draws are the same in
        every call, so the result is a smooth function of x.

        Args:
            posterior: The model given data.
            x: The points.
            observed: The observed beginnings of the curves at these points, if there are any.
            draws: The number of drawn curves; even, because they come in pairs of opposite signs.
        """
        check_draws(draws)
        p = len(posterior.noise)
        normal = antithetic_normal(draws, p, posterior.noise.dtype)
        start = scale_start(posterior, x, observed)
        start = start._replace(y=observed_inputs(self, posterior, start))
        moments = layer_moments(self, posterior, start, normal)
        mean = moments.mean.mean(axis=0)
        std = jnp.sqrt((moments.std**2).mean(axis=0) + moments.mean.var(axis=0))
        scale = posterior.scale[None, :]
        return Prediction(posterior.level[None, :] + scale * mean, scale * std)

    def sample(
        self,
        key: PRNGKeyArray,
        posterior: GPARPosterior,
        x: ArrayLike,
        k: int,
        observed: PartialCurves | None = None,
    ) -> Float[Array, "k m p"]:
        """Draw k curves of latent outputs jointly at x (m, d).

        Later layers take the draws with noise as inputs, or without noise if `replace` is set,
        which also removes it from the data.

        Args:
            key: A random key.
            posterior: The model given data.
            x: The points.
            k: The number of draws.
            observed: The observed beginnings of the curves at these points, if there are any.
        """
        start = scale_start(posterior, x, observed)
        start = start._replace(y=observed_inputs(self, posterior, start))
        latent = draw_curves(
            key,
            self,
            posterior,
            start,
            k,
        ).latent
        return posterior.level[None, None, :] + posterior.scale[None, None, :] * latent

    def log_density(
        self,
        posterior: GPARPosterior,
        x: ArrayLike,
        y: ArrayLike,
    ) -> Float[Array, "m p"]:
        """Return log p(y_i | x, y_<i, data) of held-out curves, noise included.

        Args:
            posterior: The model given data.
            x: The points (m, d) of the curves.
            y: The curves (m, p), fully observed.
        """
        observed = PartialCurves(jnp.asarray(y), jnp.ones(jnp.shape(y), bool))
        start = scale_start(posterior, x, observed)
        values = start.y
        start = start._replace(y=observed_inputs(self, posterior, start))
        no_draws = jnp.zeros((1, 1, len(posterior.noise)), values.dtype)
        moments = layer_moments(self, posterior, start, no_draws)
        std = jnp.sqrt(moments.std[0] ** 2 + posterior.noise[None, :])
        density = jax.scipy.stats.norm.logpdf(values, moments.mean[0], std)
        return density - jnp.log(posterior.scale)[None, :]


def gpar(
    *,
    linear_inputs: bool = False,
    linear: bool = True,
    nonlinear: bool = False,
    markov: int | None = 1,
    tied: bool = True,
    replace: bool = False,
    impute: bool = False,
    prior_slope: float = 0.0,
    matern: bool = False,
) -> GPAR:
    """Make an autoregressive Gaussian process of several outputs (GPAR).

    The defaults are Hutchinson's choice for learning curves. Every layer has a squared-exponential
    kernel of the inputs, plus the terms that are enabled. An output observed without the previous
    ones raises a ValueError that names the row, unless `impute` is set; under `jit` the evidence
    and the predictions are NaN instead.

    Args:
        linear_inputs: Whether to add a linear kernel of the inputs.
        linear: Whether to add a linear kernel of the previous outputs.
        nonlinear: Whether to add a squared-exponential kernel of the previous outputs.
        markov: The number of previous outputs that each layer takes as inputs; None for all, 0 for
            independent outputs.
        tied: Whether layers share the length scales of the inputs.
        replace: Whether later layers take the fitted means of previous layers as inputs instead of
            the data.
        impute: Whether to fill in missing outputs with fitted means.
        prior_slope: The prior mean of the slope of an output in the previous one, in units of
            standard deviations over all curves, including those that stopped early. With 0, the
            published model, an early checkpoint is uninformative until some curves have continued.
            It requires markov=1.
        matern: Whether to use a Matérn 5/2 kernel of the inputs instead of the squared exponential.
    """
    if markov is not None and markov < 0:
        raise ValueError(
            f"markov must be a number of previous outputs, or None for all; got {markov}"
        )
    if prior_slope and markov != 1:
        raise ValueError(
            f"prior_slope applies to one previous output and needs markov=1; got markov={markov}"
        )
    return GPAR(
        linear_inputs=linear_inputs,
        linear=linear,
        nonlinear=nonlinear,
        markov=markov,
        tied=tied,
        replace=replace,
        impute=impute,
        prior_slope=float(prior_slope),
        matern=matern,
    )


@jax.jit
def _log_evidence(
    model: GPAR,
    params: Params,
    data: Dataset,
) -> Float[Array, ""]:
    scaled, _, _ = scale_outputs(data, model.prior_slope)
    return _each_layer(
        model, exact.log_evidence, *layer_data(model, params, scaled)
    ).sum()


@jax.jit
def _condition(
    model: GPAR,
    params: Params,
    data: Dataset,
) -> GPARPosterior:
    data, level, scale = scale_outputs(data, model.prior_slope)
    kernels, rows, noise = layer_data(model, params, data)
    layers = _each_layer(
        model,
        exact.condition,
        kernels,
        rows,
        noise,
    )
    return GPARPosterior(layers, noise, level, scale)


def _each_layer(
    model: GPAR,
    function: Callable[..., Any],
    kernels: Params,
    rows: Dataset,
    noise: Float[Array, " p"],
) -> Any:
    """Apply a function of `bonas.gp.exact` to every layer; leaves (p, ...)."""
    p = len(noise)
    kernel = model.kernel(p)
    mean = model.mean(p)

    def apply(
        params: Params,
        data: Dataset,
        variance: Float[Array, ""],
    ) -> Any:
        return function(
            kernel,
            params,
            data,
            noise=variance,
            mean=mean,
        )

    return jax.vmap(apply)(kernels, rows, noise)
