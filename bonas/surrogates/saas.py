"""A Gaussian process that looks for the few columns that matter, by NUTS: for search in many dimensions."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas import gp as gaussian
from bonas.data import Dataset, empty, within
from bonas.gp import Kernel, Posterior, Prediction, priors
from bonas.gp.hyper import Noise
from bonas.infer import Target, nuts
from bonas.infer.target import choose
from bonas.spaces import Space
from bonas.surrogates.interface import FitInfo, Surrogate
from bonas.surrogates.posteriors import covariance_each, predict_each, sample_in_turn
from bonas.surrogates.seldom import seldom


class SAASState(NamedTuple):
    """Hyperparameter samples and the posteriors under them."""

    z: Any  # (s, ...) unconstrained hyperparameters
    posterior: Posterior  # (s, ...)
    diverging: Array  # () bool: whether a trajectory of the last chain did
    fits: Array  # () int: how often it was fitted, with a new chain or without


def saas(
    *,
    alpha: float = 0.1,
    noise: Noise = priors.log_normal_noise,
    samples: int = 16,
    thin: int = 4,
    burn: int = 128,
    depth: int = 6,
    every: int = 10,
) -> Surrogate:
    """SAAS: Matérn 5/2 under a prior by which few columns matter, its hyperparameters sampled by NUTS.

    Eriksson & Jankowiak 2021; the prior is that of `gp.saas(alpha)`. They keep 16 of 256 draws after 512 of burn-in, at every
    ask. Options of a Choice have no order; parameters that come and go are refused.

    samples: draws kept, over which acquisitions are averaged; one in `thin`, after `burn`, from where the last chain ended.
    depth: a trajectory has at most 2^depth leapfrog steps.
    every: a chain is run at every so many fits, and before that at intervals that double from 1; in between the draws are kept
        and given the new data. The more data there are, the less a few more say of the hyperparameters.

    FitInfo.log_density is the log evidence, the mean over the draws: that of the hyperparameters varies from draw to draw by as
    much as there are columns.
    """
    if min(samples, thin, depth, every) < 1 or burn < 0:
        raise ValueError(
            f"expected samples, thin, depth and every >= 1 and burn >= 0; got {samples}, {thin}, {depth}, {every} and {burn}"
        )
    return _saas(gaussian.saas(alpha), alpha, noise, samples, thin, burn, depth, every)


@cache
def _saas(kernel: Kernel, alpha: float, noise: Noise, samples: int, thin: int, burn: int, depth: int, every: int) -> Surrogate:
    def target_of(data: Dataset) -> Target:
        return gaussian.hyperposterior(kernel, data, noise=noise)

    def condition(z: Any, data: Dataset) -> Posterior:
        return gaussian.condition_all(kernel, jax.vmap(target_of(data).constrain)(z), data, noise=noise)

    def init(capacity: int, d: int, p: int = 1) -> SAASState:
        data = empty(capacity, d, p)
        z = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (samples, *leaf.shape)), target_of(data).start)
        return SAASState(z, condition(z, data), jnp.asarray(False), jnp.asarray(0))

    def chain(data: Dataset, key: Array, last: Any) -> tuple[Any, Array]:
        z, info = nuts(key, target_of(data).sampling, last, samples=samples, burn=burn, thin=thin, depth=depth)
        return z, info.diverging.any()

    def fit(key: Array, data: Dataset, state: SAASState) -> tuple[SAASState, FitInfo]:
        last = jax.tree.map(lambda leaf: leaf[-1], state.z)
        z, diverging = seldom(
            (state.fits % every == 0) | ((state.fits < every) & (state.fits & (state.fits - 1) == 0)),
            lambda: within(chain, data, key, last),
            lambda: (state.z, state.diverging),
        )
        fine = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(z)]).all()
        kept = SAASState(choose(fine, z, state.z), state.posterior, diverging, state.fits + 1)
        found, info = refresh(data, kept)
        return found, info._replace(converged=fine & ~diverging, finite=fine)

    def update(data: Dataset, state: SAASState) -> SAASState:
        return state._replace(posterior=condition(state.z, data))

    def refresh(data: Dataset, state: SAASState) -> tuple[SAASState, FitInfo]:
        state = update(data, state)
        return state, FitInfo(
            _log_evidence(state.posterior).mean(), ~state.diverging, jnp.asarray(True), state.posterior.jitter.max()
        )

    def predict(state: SAASState, x: Array) -> Prediction:
        return predict_each(state.posterior, x)

    def covariance(state: SAASState, x: Array, at: Array) -> Array:
        return covariance_each(state.posterior, x, at)

    def sample(key: Array, state: SAASState, x: Array, k: int) -> Array:
        return sample_in_turn(key, state.posterior, x, k)

    def adapt(space: Space) -> Surrogate:
        if any(parameter.when is not None for parameter in space.parameters.values()):
            raise ValueError("columns of this model are always there; for parameters that come and go use surrogates.gp()")
        fitting = gaussian.without_order(kernel, space.categories)
        return _saas(fitting, alpha, noise, samples, thin, burn, depth, every)

    return Surrogate(init, fit, update, predict, covariance, sample, adapt, refresh)


def _log_evidence(posterior: Posterior) -> Array:
    """Of each sample (s,), from the factors that conditioning has left; masked rows are unit rows."""
    data = posterior.data  # (s, n, ...)
    n = data.mask[:, :, 0].sum(axis=1)
    scale = jnp.log(jnp.diagonal(posterior.lower, axis1=1, axis2=2)).sum(axis=1)
    return -0.5 * (jnp.einsum("sn,sn->s", data.y[:, :, 0], posterior.alpha) + n * math.log(2.0 * math.pi)) - scale
