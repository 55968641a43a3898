"""Learning curves by an autoregressive Gaussian process: each output given the inputs and the outputs before it (H-D5).

y_i | y_1 … y_{i−1} ~ GP(0, k_i((x, y_{<i}), (x', y'_{<i}))), Hutchinson, eqs. 2.43–2.50; Requeima et al. 2019. With data
that are closed downwards – no output without all those before it – the layers are separate regressions, and all is exact.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from jax.typing import ArrayLike

from bonas.data import Dataset, check_closed, with_holes
from bonas.gp import exact
from bonas.gp.exact import Posterior, Prediction
from bonas.gp.gpar_layers import columns, layer_kernel, layer_mean, layer_prior, layers_of, windows_of
from bonas.gp.gpar_scales import scaled
from bonas.gp.hyper import Noise
from bonas.infer.target import Target, target


class Curves(NamedTuple):
    """A GPAR given data."""

    layers: Posterior  # (p, ...) one an output
    noise: Array  # (p,) variances
    level: Array  # (p,) what was subtracted from each output ...
    scale: Array  # (p,) ... and what it was divided by


class Known(NamedTuple):
    """What has been seen of the curves at m points; they go on from there."""

    y: Array  # (m, p)
    mask: Array  # (m, p) bool, closed downwards: after a gap nothing is known


@jax.tree_util.register_static
@dataclass(frozen=True)
class GPAR:
    """The recipe, made by `gp.gpar`. Static: it may be passed to any jitted function."""

    linear_inputs: bool
    linear: bool
    nonlinear: bool
    markov: int | None
    tied: bool
    replace: bool
    impute: bool
    carry: float
    rough: bool

    def check(self, data: Dataset) -> None:
        """A ValueError that names the row of an output without those before it, unless such are filled in."""
        if not self.impute:
            check_closed(data.mask, "imputing fills it in")

    def prior(self, d: int, p: int, noise: Noise | None = None) -> dict:
        """The prior of everything unknown, for d columns and p outputs: {"kernel": …, "noise": (p,)}."""
        each = layer_prior(self, p)(d + p)
        kernel = {name: part.expand((p, *part.shape())) for name, part in each.items()}
        if self.tied:
            kernel["lengthscale"] = each["lengthscale"]
        noise = dist.LogNormal(-6.0, 2.0) if noise is None else noise
        return {"kernel": kernel, "noise": noise.expand((p,))}

    def condition(self, params: dict, data: Dataset) -> Curves:
        """The model given curves, each output centred and scaled by what was observed of it."""
        self.check(data)
        return _condition(self, params, data)

    def log_evidence(self, params: dict, data: Dataset) -> Array:
        """log p(y | x, params), (): the sum over layers, of outputs centred and scaled."""
        self.check(data)
        return _log_evidence(self, params, data)

    def hyperposterior(self, data: Dataset, *, noise: Noise | None = None) -> Target:
        """p(params | data) for any method of `bonas.infer`: a joint fit of all layers."""
        self.check(data)
        return target(self.prior(data.x.shape[1], data.y.shape[1], noise), lambda params: _log_evidence(self, params, data))

    def predict(self, curves: Curves, x: ArrayLike, known: Known | None = None, *, draws: int = 64) -> Prediction:
        """Mean and standard deviation (m, p) of the latent outputs at x (m, d), over `draws` ancestral draws.

        The draws are the same in every call, in pairs of opposite signs, so that their number is even: the result is a
        smooth function of x.
        """
        check_draws(draws)
        half = jax.random.normal(jax.random.key(0), (draws // 2, 1, len(curves.noise)), curves.noise.dtype)
        points, values, seen = start_of(curves, x, known)
        handed = handed_on(self, curves, points, values, seen)
        found = _ancestral(self, curves, points, handed, seen, jnp.concatenate([half, -half]))
        mean = found.mean.mean(axis=0)
        spread = jnp.sqrt((found.std**2).mean(axis=0) + found.mean.var(axis=0))
        return Prediction(curves.level[None, :] + curves.scale[None, :] * mean, curves.scale[None, :] * spread)

    def sample(self, key: Array, curves: Curves, x: ArrayLike, k: int, known: Known | None = None) -> Array:
        """k joint draws (k, m, p) of the latent outputs at x (m, d); noisy ones are handed from layer to layer (H-S11).

        Where data are replaced, which takes the noise out of them, they are handed on as they are drawn, without noise.
        """
        points, values, seen = start_of(curves, x, known)
        drawn = _joint_draws(self, key, curves, points, handed_on(self, curves, points, values, seen), seen, k)
        return curves.level[None, None, :] + curves.scale[None, None, :] * drawn

    def log_density(self, curves: Curves, x: ArrayLike, y: ArrayLike) -> Array:
        """log p(y_i | x, y_<i, data) of held-out curves y (m, p), noise included: (m, p), in the units of y."""
        points, values, seen = start_of(curves, x, Known(jnp.asarray(y), jnp.ones(jnp.shape(y), bool)))
        handed = handed_on(self, curves, points, values, seen)
        found = _ancestral(self, curves, points, handed, seen, jnp.zeros((1, 1, len(curves.noise)), values.dtype))
        spread = jnp.sqrt(found.std[0] ** 2 + curves.noise[None, :])
        return jax.scipy.stats.norm.logpdf(values, found.mean[0], spread) - jnp.log(curves.scale)[None, :]


def gpar(
    *,
    linear_inputs: bool = False,
    linear: bool = True,
    nonlinear: bool = False,
    markov: int | None = 1,
    tied: bool = True,
    replace: bool = False,
    impute: bool = False,
    carry: float = 0.0,
    rough: bool = False,
) -> GPAR:
    """An autoregressive model of several outputs; by default Hutchinson's choice for learning curves (H-E4).

    Each layer has a squared exponential of the inputs, and adds what is asked for:
    linear_inputs: a line of the inputs.
    linear, nonlinear: a linear function, and a squared exponential, of the outputs before.
    markov: how many of those are seen; None for all, 0 makes outputs independent.
    tied: the layers share the length scales of the inputs.
    replace: layers see what the layer before makes of its data, its mean, instead of the data. So they do of new curves: of
        an output that is known they see the mean given it and the data, and of one that is drawn the draw without noise.
    impute: missing outputs are filled in likewise, so that data need not be closed downwards.
    carry: what of the output before an output is expected to keep, where each is measured in its standard deviation over all
        curves, those that end before it included. 0 is the published model, for which an early checkpoint means nothing
        until it has seen curves that go on; needs markov=1.
    rough: a Matérn 5/2 kernel of the inputs in place of the squared exponential.

    Data that are not closed downwards are a ValueError that names the row, unless they are imputed. Under `jit`, where
    nothing can be raised, their evidence is NaN, and so is what is predicted from them.
    """
    if markov is not None and markov < 0:
        raise ValueError(f"markov is a number of outputs, or None for all; got {markov}")
    if carry and markov != 1:
        raise ValueError(f"carry is of the one output before, so that it needs markov=1; got markov={markov}")
    return GPAR(linear_inputs, linear, nonlinear, markov, tied, replace, impute, float(carry), rough)


@jax.jit
def _log_evidence(model: GPAR, params: dict, data: Dataset) -> Array:
    kernels, rows, noise = layers_of(model, params, scaled(data, model.carry)[0])
    kernel, mean = layer_kernel(model, data.y.shape[1]), layer_mean(model, data.y.shape[1])
    each = jax.vmap(lambda params, rows, level: exact.log_evidence(kernel, params, rows, noise=level, mean=mean))
    return each(kernels, rows, noise).sum()


@jax.jit
def _condition(model: GPAR, params: dict, data: Dataset) -> Curves:
    data, level, scale = scaled(data, model.carry)
    kernels, rows, noise = layers_of(model, params, data)
    kernel, mean = layer_kernel(model, data.y.shape[1]), layer_mean(model, data.y.shape[1])
    each = jax.vmap(lambda params, rows, level: exact.condition(kernel, params, rows, noise=level, mean=mean))
    return Curves(each(kernels, rows, noise), noise, level, scale)


# Draws, layer upon layer.


def check_draws(draws: int) -> None:
    """A ValueError where a number of draws cannot be that of pairs."""
    if draws < 2 or draws % 2:
        raise ValueError(f"draws come in pairs of opposite signs: an even number of at least 2; got {draws}")


def start_of(curves: Curves, x: ArrayLike, known: Known | None) -> tuple[Array, Array, Array]:
    """Points (m, d), what is known of their curves (m, p), scaled, and where it is; under `jit` NaN for a curve with a gap."""
    points, p = jnp.asarray(x), len(curves.noise)
    d = curves.layers.data.x.shape[2] - p
    if points.ndim != 2 or points.shape[1] != d:
        raise ValueError(f"expected points of shape (m, {d}); got {points.shape}")
    if known is None:
        return points, jnp.zeros((len(points), p), points.dtype), jnp.zeros((len(points), p), bool)
    if known.y.shape != (len(points), p) or known.mask.shape != known.y.shape:
        raise ValueError(f"expected known outputs of shape ({len(points)}, {p}); got {known.y.shape} and {known.mask.shape}")
    check_closed(known.mask, "what is known of a curve is its beginning")
    values = (known.y - curves.level[None, :]) / curves.scale[None, :]
    values = jnp.where(with_holes(known.mask)[:, None], jnp.nan, values)
    return points, jnp.where(known.mask, values, 0.0), known.mask


@jax.jit
def handed_on(model: GPAR, curves: Curves, x: Array, y: Array, seen: Array) -> Array:
    """What the layers above see (m, p) of known outputs: these or, where data are replaced, what each layer makes of them.

    That is its mean given its data and the output, which at a point of the data is one of them.
    """
    if not model.replace:
        return y

    def layer(handed, given):
        i, window, posterior, noise = given
        mean, std = exact.predict(posterior, columns(x, handed, window))
        data, d = posterior.data, x.shape[1]
        known_before = ((x[:, None, :] == data.x[None, :, :d]).all(axis=2) & data.mask[None, :, 0]).any(axis=1)
        gain = jnp.where(known_before, 0.0, std**2 / (std**2 + noise))
        return handed.at[:, i].set(jnp.where(seen[:, i], mean + gain * (y[:, i] - mean), 0.0)), None

    layers = (jnp.arange(len(curves.noise)), windows_of(model, len(curves.noise)), curves.layers, curves.noise)
    return jax.lax.scan(layer, jnp.zeros_like(y), layers)[0]


def handed_noise(model: GPAR, noise: Array) -> Array:
    """The variance of what a drawn output has besides its latent value when it is handed on: none where noise is taken out."""
    return jnp.zeros_like(noise) if model.replace else noise


@jax.jit
def _ancestral(model: GPAR, curves: Curves, x: Array, y: Array, seen: Array, normal: Array) -> Prediction:
    """Conditional means and deviations (k, m, p) of each output along k curves, drawn by `normal` (k, 1 or m, p)."""
    p, m, k = len(curves.noise), len(x), len(normal)

    def layer(drawn, given):
        i, window, posterior, noise = given
        inputs = jnp.concatenate([jnp.broadcast_to(x, (k, *x.shape)), jnp.where(window[None, None, :], drawn, 0.0)], axis=2)
        found = exact.predict(posterior, inputs.reshape(k * m, -1))
        mean, std = found.mean.reshape(k, m), found.std.reshape(k, m)
        value = mean + jnp.sqrt(std**2 + handed_noise(model, noise)) * normal[:, :, i]
        return drawn.at[:, :, i].set(jnp.where(seen[None, :, i], y[None, :, i], value)), (mean, std)

    layers = (jnp.arange(p), windows_of(model, p), curves.layers, curves.noise)
    _, (mean, std) = jax.lax.scan(layer, jnp.zeros((k, m, p), x.dtype), layers)
    return Prediction(jnp.moveaxis(mean, 0, 2), jnp.moveaxis(std, 0, 2))


def _joint_draws(model: GPAR, key: Array, curves: Curves, x: Array, y: Array, seen: Array, k: int) -> Array:
    p, m = len(curves.noise), len(x)

    def layer(drawn, given):
        i, window, posterior, noise = given
        latent_key, noise_key = jax.random.split(jax.random.fold_in(key, i))

        def one(key, before):
            return exact.sample(key, posterior, columns(x, before, window), 1)[0]

        latent = jax.vmap(one)(jax.random.split(latent_key, k), drawn)
        passed = latent + jnp.sqrt(handed_noise(model, noise)) * jax.random.normal(noise_key, (k, m), x.dtype)
        return drawn.at[:, :, i].set(jnp.where(seen[None, :, i], y[None, :, i], passed)), latent

    layers = (jnp.arange(p), windows_of(model, p), curves.layers, curves.noise)
    return jnp.moveaxis(jax.lax.scan(layer, jnp.zeros((k, m, p), x.dtype), layers)[1], 0, 2)
