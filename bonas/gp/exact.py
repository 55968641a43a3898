"""Exact Gaussian-process regression with fixed parameters: condition, predict, sample, log evidence.

Everything is a function of arrays of fixed capacity: rows outside the mask change nothing, so data may arrive without
recompiling. Noise is a variance. Predictions are of the latent function.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.data import Dataset, clean
from bonas.gp.kernel import Kernel, Params, check_kernel, check_params, check_points, gram, variances
from bonas.gp.means import Mean, zero
from bonas.linalg import factorise, log_gaussian, mask_covariance, safe_sqrt, solve_lower, solve_upper

# A posterior variance is a difference of numbers as large as the prior's: this many units of rounding remain.
_ROUNDING = 16.0


class Posterior(NamedTuple):
    """A Gaussian process given data. Kernel and mean are static, so a posterior passes through jit, vmap and scan."""

    kernel: Kernel
    mean: Mean
    params: Params  # of the kernel
    mean_params: Params
    data: Dataset  # cleaned
    lower: Array  # (n, n) Cholesky factor of K + noise I, masked rows unit rows
    alpha: Array  # (n,) (K + noise I)⁻¹ (y − mean)
    jitter: Array  # () added to the diagonal to factorise; 0 where none was needed


class Prediction(NamedTuple):
    """What a model says of points: the latent function, without noise."""

    mean: Array  # (m,)
    std: Array  # (m,)


def condition(
    kernel: Kernel,
    params: Params,
    data: Dataset,
    *,
    noise: ArrayLike,
    mean: Mean = zero,
    mean_params: Params | None = None,
) -> Posterior:
    """The posterior of f ~ GP(mean, kernel) given y = f(x) + N(0, noise): Twist, Theorem 3.1 and T-D12; Wilton, W-D5.

    noise may be a number or one variance a row (n,); mean_params is needed by a mean with parameters only.
    """
    _check(kernel, params, data, noise, mean)
    return _condition(kernel, params, data, noise, mean, {} if mean_params is None else mean_params)


@jax.jit
def _condition(kernel, params, data, noise, mean, mean_params) -> Posterior:
    data, cov, residual = _joint(kernel, params, data, noise, mean, mean_params)
    lower, jitter = factorise(cov, data.mask[:, 0])
    alpha = solve_upper(lower, solve_lower(lower, residual))
    return Posterior(kernel, mean, params, mean_params, data, lower, alpha, jitter)


def log_evidence(
    kernel: Kernel,
    params: Params,
    data: Dataset,
    *,
    noise: ArrayLike,
    mean: Mean = zero,
    mean_params: Params | None = None,
) -> Array:
    """log p(y | x, params), () : log N(y; mean, K + noise I) over the observed rows."""
    _check(kernel, params, data, noise, mean)
    return _log_evidence(kernel, params, data, noise, mean, {} if mean_params is None else mean_params)


@jax.jit
def _log_evidence(kernel, params, data, noise, mean, mean_params) -> Array:
    data, cov, residual = _joint(kernel, params, data, noise, mean, mean_params)
    return log_gaussian(cov, residual, data.mask[:, 0])


def _joint(kernel, params, data, noise, mean, mean_params):
    """Cleaned data, masked covariance (n, n) and residual (n,)."""
    data = clean(data)
    mask = data.mask[:, 0]
    cov = mask_covariance(gram(kernel, params, data.x, data.x), mask, jnp.asarray(noise, data.x.dtype))
    level = jax.vmap(lambda x: mean.value(mean_params, data, x))(data.x)
    return data, cov, jnp.where(mask, data.y[:, 0] - level, 0.0)


def _check(kernel, params, data, noise, mean) -> None:
    check_kernel(kernel)
    if not isinstance(data, Dataset):
        raise ValueError(f"expected a Dataset, as bonas.dataset(x, y) makes one; got {type(data).__name__}")
    if not isinstance(mean, Mean):
        raise ValueError(f"expected a mean, such as gp.zero or gp.constant(0.5); got {mean!r}")
    n, p = data.y.shape
    if p != 1:
        raise ValueError(f"an exact GP has one output; the dataset has {p}")
    if jnp.shape(noise) not in ((), (n,)):
        raise ValueError(f"noise is one variance, or one for each of the {n} rows of capacity; got shape {jnp.shape(noise)}")
    check_params(kernel, params, data.x.shape[1])
    check_data(kernel, data)


def check_data(kernel: Kernel, data: Dataset) -> None:
    """A ValueError where an observed point is none that the kernel is for; outside `jit` alone."""
    if not isinstance(data.x, jax.core.Tracer) and not isinstance(data.mask, jax.core.Tracer):
        check_points(kernel, np.asarray(data.x)[np.asarray(data.mask).any(axis=1)])


def predict(posterior: Posterior, x: ArrayLike) -> Prediction:
    """Mean and standard deviation (m,) of the latent function at x (m, d).

    A variance below rounding of the prior's is lifted to it, so std is never 0 and at least 6e-8 of the prior's in float64.
    """
    return _predict(posterior, _points(posterior, x))


@jax.jit
def _predict(posterior: Posterior, x: Array) -> Prediction:
    mean, white = _project(posterior, x)
    prior = variances(posterior.kernel, posterior.params, x)
    variance = jnp.maximum(prior - jnp.sum(white * white, axis=0), _ROUNDING * jnp.finfo(prior.dtype).eps * prior)
    return Prediction(mean, safe_sqrt(variance))


def joint(posterior: Posterior, x: ArrayLike) -> tuple[Array, Array]:
    """Mean (m,) and covariance (m, m) of the latent function at x (m, d)."""
    return _all_pairs(posterior, _points(posterior, x))


@jax.jit
def _all_pairs(posterior: Posterior, x: Array) -> tuple[Array, Array]:
    mean, white = _project(posterior, x)
    return mean, gram(posterior.kernel, posterior.params, x, x) - white.T @ white


def covariance(posterior: Posterior, a: ArrayLike, b: ArrayLike) -> Array:
    """Covariance (m, k) of the latent function between the points a (m, d) and b (k, d)."""
    return _between(posterior, _points(posterior, a), _points(posterior, b))


@jax.jit
def _between(posterior: Posterior, a: Array, b: Array) -> Array:
    (_, left), (_, right) = _project(posterior, a), _project(posterior, b)
    return gram(posterior.kernel, posterior.params, a, b) - left.T @ right


def sample(key: Array, posterior: Posterior, x: ArrayLike, k: int) -> Array:
    """k joint draws (k, m) of the latent function at x (m, d).

    Rounding of the prior variance is added to each variance, as in `predict`: close to data it may be all there is.
    """
    return _sample(key, posterior, _points(posterior, x), k)


@partial(jax.jit, static_argnums=3)
def _sample(key: Array, posterior: Posterior, x: Array, k: int) -> Array:
    mean, cov = _all_pairs(posterior, x)
    rounding = _ROUNDING * jnp.finfo(cov.dtype).eps * variances(posterior.kernel, posterior.params, x)
    lower, _ = factorise(cov + jnp.diag(rounding), jnp.ones(len(x), bool))
    return mean[None, :] + jax.random.normal(key, (k, len(x)), cov.dtype) @ lower.T


def _points(posterior: Posterior, x: ArrayLike) -> Array:
    """The points (m, d), or a ValueError where there is none to predict at."""
    points, d = jnp.asarray(x), posterior.data.x.shape[-1]
    if points.ndim != 2 or points.shape[1] != d:
        raise ValueError(f"expected points of shape (m, {d}); got {points.shape}")
    check_points(posterior.kernel, points)
    return points


def _project(posterior: Posterior, x: Array):
    """Posterior mean (m,) and whitened cross-covariance L⁻¹ k(X, x) (n, m)."""
    kernel, mean, params, mean_params, data, lower, alpha, _ = posterior
    if alpha.ndim > 1:
        raise ValueError("these are several posteriors: use jax.vmap(gp.predict, (0, None))(posterior, x)")
    cross = jnp.where(data.mask[:, :1], gram(kernel, params, data.x, x), 0.0)
    level = jax.vmap(lambda point: mean.value(mean_params, data, point))(x)
    return level + alpha @ cross, solve_lower(lower, cross)
