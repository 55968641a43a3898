"""Learning curves that decay towards asymptotes, related by a Gaussian process (Swersky, Snoek & Adams 2014)."""

from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from bonas import gp
from bonas.data import Dataset, empty
from bonas.gp import Kernel, Posterior, exact
from bonas.gp.gpar import Known
from bonas.infer import Target
from bonas.infer.target import target
from bonas.linalg import factorise
from bonas.surrogates.curve_model import CurveModel, Message, climb, message, standard
from bonas.surrogates.interface import FitInfo

_LEAST = 1e-8  # of the variance of all values: noise below it is rounding, and curves of many checkpoints would be singular


class FreezeThawState(NamedTuple):
    """Parameters, and the asymptotes given data under them."""

    z: Any  # unconstrained parameters
    params: Any  # the same, constrained
    asymptotes: Posterior
    level: Array  # () what was subtracted from every value ...
    scale: Array  # () ... and what it was divided by
    times: Array  # (c,) shares of the whole training


def decay(times: Array, at: Array, alpha: Array, beta: Array) -> Array:
    """β^α / (t + t' + β)^α (c, k): covariances of mixed exponential decays, Swersky, Snoek & Adams 2014, eq. 6 (H-F9)."""
    return (beta / (times[:, None] + at[None, :] + beta)) ** alpha


@cache
def freeze_thaw(kernel: Kernel | None = None, *, steps: int = 10) -> CurveModel:
    """Curves y(x, t) = f(x) + m(t) + decays of their own + noise, fitted by `steps` evaluations from the last optimum.

    f is a GP (default: Matérn 5/2), the decays have the covariance `decay`, and m(t), which the paper does not have, is
    what all networks lose in the same way, a number a checkpoint. Given f the curves are independent, and each is one
    observation of its f (`message`): exact, and no dearer than a GP on as many points as there are networks.
    """
    space_kernel = kernel or gp.matern52()

    def target_of(data: Dataset, times: Array) -> Target:
        d, c = data.x.shape[1], data.y.shape[1]
        prior = {
            "kernel": space_kernel.prior(d) if callable(space_kernel.prior) else space_kernel.prior,
            "height": dist.LogNormal(-1.0, 1.0),
            "alpha": dist.LogNormal(0.0, 1.0),
            "beta": dist.LogNormal(-1.0, 1.0),
            "mean": dist.Normal(0.0, 1.0).expand([c]),
            "noise": dist.LogNormal(-6.0, 2.0),
        }
        return target(prior, lambda params: _log_evidence(space_kernel, params, data, times))

    def condition(z: Any, data: Dataset, level: Array, scale: Array, times: Array) -> FreezeThawState:
        params = target_of(data, times).constrain(z)
        found, rows = _messages(params, data, times)
        asymptotes = exact.condition(space_kernel, params["kernel"], rows, noise=found.noise)
        return FreezeThawState(z, params, asymptotes, level, scale, times)

    def init(capacity: int, d: int, times: Array) -> FreezeThawState:
        data = empty(capacity, d, len(times))
        zero, one = jnp.zeros((), data.y.dtype), jnp.ones((), data.y.dtype)
        return condition(target_of(data, times).start, data, zero, one, times)

    def fit(key: Array, data: Dataset, state: FreezeThawState) -> tuple[FreezeThawState, FitInfo]:
        data, level, scale = standard(data)
        z, info = climb(key, target_of, data, state.z, steps, state.times)
        fitted = condition(z, data, level, scale, state.times)
        return fitted, info._replace(jitter=fitted.asymptotes.jitter)

    def sample(key: Array, state: FreezeThawState, x: Array, known: Known, k: int) -> Array:
        f_key, decay_key = jax.random.split(key)
        f = exact.sample(f_key, state.asymptotes, x, k)
        normal = jax.random.normal(decay_key, (len(x), len(state.times), k), x.dtype)
        seen = jnp.where(known.mask, (known.y - state.level) / state.scale, 0.0)
        curves = jax.vmap(partial(_onwards, state.params, state.times))(f.T, seen, known.mask, normal)
        return state.level + state.scale * jnp.moveaxis(curves, 2, 0)

    return CurveModel(init, fit, sample)


def _curve(params: Any, times: Array) -> tuple[Array, Array]:
    """The covariance (c, c) of a network's own decay, and the variance () of the noise."""
    return params["height"] * decay(times, times, params["alpha"], params["beta"]), params["noise"] + _LEAST


def _messages(params: Any, data: Dataset, times: Array) -> tuple[Message, Dataset]:
    """What each curve says of its asymptote, leaves (n,), and that as data."""
    own, noise = _curve(params, times)
    cov = own + noise * jnp.eye(len(times), dtype=own.dtype)
    found = jax.vmap(message, (None, 0, 0))(cov, data.y - params["mean"][None, :], data.mask)
    return found, Dataset(data.x, found.value[:, None], data.mask.any(axis=1, keepdims=True), data.size)


def _log_evidence(kernel: Kernel, params: Any, data: Dataset, times: Array) -> Array:
    """log p(y | x, params), (): that of the messages, and what is left of each curve."""
    found, rows = _messages(params, data, times)
    return exact.log_evidence(kernel, params["kernel"], rows, noise=found.noise) + found.rest.sum()


def _onwards(params: Any, times: Array, f: Array, y: Array, mask: Array, normal: Array) -> Array:
    """Curves (c, k) of one network with asymptotes f (k,), given what was seen of it, drawn by `normal` (c, k)."""
    own, noise = _curve(params, times)
    mean = f[None, :] + params["mean"][:, None]
    pair = mask[:, None] & mask[None, :]
    lower = jnp.linalg.cholesky(jnp.where(pair, own, 0.0) + jnp.diag(jnp.where(mask, noise, 1.0)))
    white = jax.scipy.linalg.solve_triangular(lower, jnp.where(mask[:, None], own, 0.0), lower=True)
    away = jax.scipy.linalg.solve_triangular(lower, jnp.where(mask[:, None], y[:, None] - mean, 0.0), lower=True)
    left = own - white.T @ white + _LEAST * jnp.eye(len(times), dtype=own.dtype)
    root, _ = factorise(left, jnp.ones(len(times), bool))
    return mean + white.T @ away + root @ normal
