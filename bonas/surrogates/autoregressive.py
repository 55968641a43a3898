"""Learning curves by an autoregressive Gaussian process, at its most probable parameters."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset, empty
from bonas.gp import exact
from bonas.gp.gpar import GPAR, Curves, Known, gpar, handed_noise, handed_on, start_of
from bonas.gp.gpar_layers import windows_of
from bonas.surrogates.curve_model import CurveModel, climb
from bonas.surrogates.interface import FitInfo

_CARRY = 0.9  # a network that is one standard deviation better than most is expected to keep so much at the next checkpoint


class AutoregressiveState(NamedTuple):
    """Parameters, and the model given data under them."""

    z: Any  # unconstrained parameters
    curves: Curves


@cache
def autoregressive(model: GPAR | None = None, *, steps: int = 10) -> CurveModel:
    """GPAR (H-D5), fitted jointly over all layers by `steps` evaluations from the last optimum.

    model: made by `gp.gpar`; by default a Matérn kernel of the inputs, linear in the output before, of which most is
        expected to be kept, with tied length scales. Hutchinson's choice is `gp.gpar()`. Either knows the order of the
        checkpoints and not their times.
    """
    recipe = model or gpar(rough=True, carry=_CARRY)

    def init(capacity: int, d: int, times: Array) -> AutoregressiveState:
        data = empty(capacity, d, len(times))
        target = recipe.hyperposterior(data)
        return AutoregressiveState(target.start, recipe.condition(target.constrain(target.start), data))

    def fit(key: Array, data: Dataset, state: AutoregressiveState) -> tuple[AutoregressiveState, FitInfo]:
        z, info = climb(key, recipe.hyperposterior, data, state.z, steps)
        curves = recipe.condition(recipe.hyperposterior(data).constrain(z), data)
        return AutoregressiveState(z, curves), info._replace(jitter=curves.layers.jitter.max())

    def sample(key: Array, state: AutoregressiveState, x: Array, known: Known, k: int) -> Array:
        if recipe.nonlinear:
            return recipe.sample(key, state.curves, x, k, known)
        return _linear_draws(recipe, key, state.curves, x, known, k)

    return CurveModel(init, fit, sample)


def _linear_draws(model: GPAR, key: Array, curves: Curves, x: Array, known: Known, k: int) -> Array:
    """As `GPAR.sample`, for layers that are linear in the outputs before: one factorisation a layer instead of one a draw.

    Such a layer is f(x, y) = f(x, 0) + Σ_j w_j y_j, almost surely, with w_j = f(x₀, e_j) − f(x₀, 0) at any x₀: joint draws at
    the m points (x, 0) and the p points (x₀, e_j) give it at every y.
    """
    p, m = len(curves.noise), len(x)
    given = handed_on(model, curves, *start_of(curves, x, known))
    windows = windows_of(model, p) & bool(model.linear or model.carry)
    plain = jnp.concatenate([x, jnp.zeros((m, p), x.dtype)], axis=1)
    axes = jnp.concatenate([jnp.broadcast_to(x[:1], (p, x.shape[1])), jnp.eye(p, dtype=x.dtype)], axis=1)
    points = jnp.concatenate([plain, axes])

    def layer(drawn, turn):
        i, window, posterior, noise = turn
        latent_key, noise_key = jax.random.split(jax.random.fold_in(key, i))
        found = exact.sample(latent_key, posterior, points, k)
        slopes = found[:, m:] - found[:, :1]
        latent = found[:, :m] + jnp.einsum("kmp,kp->km", drawn, jnp.where(window[None, :], slopes, 0.0))
        passed = latent + jnp.sqrt(handed_noise(model, noise)) * jax.random.normal(noise_key, (k, m), x.dtype)
        return drawn.at[:, :, i].set(jnp.where(known.mask[None, :, i], given[None, :, i], passed)), latent

    layers = (jnp.arange(p), windows, curves.layers, curves.noise)
    latent = jnp.moveaxis(jax.lax.scan(layer, jnp.zeros((k, m, p), x.dtype), layers)[1], 0, 2)
    return curves.level[None, None, :] + curves.scale[None, None, :] * latent
