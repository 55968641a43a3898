"""Exact Gaussian-process regression with fixed parameters.

Arrays have a fixed capacity, and rows outside the mask have no effect, so data may arrive without
recompiling. Noise is a variance. Predictions are of the latent function, without noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from bonas.data import Dataset, clean
from bonas.gaussian_density import log_gaussian
from bonas.gp.kernel import (
    Kernel,
    Params,
    as_prior,
    check_kernel,
    check_params,
    check_points,
    gram,
)
from bonas.linalg import (
    factorize,
    mask_covariance,
    safe_sqrt,
    solve_lower,
    solve_upper,
)

# A posterior variance is a difference of numbers as large as the prior variance. Its rounding error
# is at most this many units of rounding of the prior variance.
_ROUNDING = 16.0


def _no_parameters(d: int) -> Params:
    return {}


@jax.tree_util.register_static
@dataclass(frozen=True)
class Mean:
    """A prior mean function. It is static, so it may be passed to any jitted function.

    Attributes:
        value: Function (params, data, x (d,)) -> (), for cleaned data and one point x.
        prior: Function from d to {name: NumPyro distribution}, or a dict; empty by default.
    """

    value: Callable[[Params, Dataset, Array], Array]
    prior: Any = _no_parameters

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", as_prior(self.prior))


def check_mean(mean: Any) -> None:
    """Raise a ValueError unless the argument is a mean."""
    if not isinstance(mean, Mean):
        raise ValueError(
            f"expected a mean, such as gp.zero or gp.constant(0.5); got {mean!r}"
        )


def _zero(params: Params, data: Dataset, x: Array) -> Array:
    return jnp.zeros((), x.dtype)


# The prior mean 0, for standardized values (Twist, Section 3.5).
zero = Mean(_zero)


class Posterior(NamedTuple):
    """The posterior of a Gaussian process given data; its kernel and mean are static fields."""

    kernel: Kernel  # the kernel
    mean: Mean  # the prior mean
    params: Params  # parameters of the kernel
    mean_params: Params  # parameters of the prior mean
    data: Dataset  # the observations, with 0 in masked entries
    lower: Array  # (n, n) Cholesky factor of K + noise I; masked rows are unit rows
    alpha: Array  # (n,) (K + noise I)⁻¹ (y − mean)
    jitter: Array  # () variance added to the diagonal for the factorization; 0 if none was needed


class _Inputs(NamedTuple):
    """The arguments of `condition` and `log_evidence`, after they were checked."""

    kernel: Kernel
    params: Params
    data: Dataset
    noise: ArrayLike
    mean: Mean
    mean_params: Params


class Prediction(NamedTuple):
    """The predicted mean and standard deviation of the latent function at m points."""

    mean: Array  # (m,), or (s, m) for s posteriors
    std: Array  # same shape as mean


def condition(
    kernel: Kernel,
    params: Params,
    data: Dataset,
    *,
    noise: ArrayLike,
    mean: Mean = zero,
    mean_params: Params | None = None,
) -> Posterior:
    """Return the posterior of f ~ GP(mean, kernel) given y = f(x) + N(0, noise).

    Twist, Theorem 3.1.

    Args:
        kernel: The kernel.
        params: The parameters of the kernel.
        data: Observations of one output.
        noise: Noise variance, or one variance per row (n,). Known variances of the data are added.
        mean: The prior mean.
        mean_params: The parameters of the mean, if it has any.
    """
    inputs = _checked(kernel, params, data, noise, mean, mean_params)
    result: Posterior = _condition(inputs)
    return result


@jax.jit
def _condition(inputs: _Inputs) -> Posterior:
    data, cov, residual = _joint(inputs)
    lower, jitter = factorize(cov, data.mask[:, 0])
    alpha = solve_upper(lower, solve_lower(lower, residual))
    kernel, params, _, _, mean, mean_params = inputs
    return Posterior(kernel, mean, params, mean_params, data, lower, alpha, jitter)


def log_evidence(
    kernel: Kernel,
    params: Params,
    data: Dataset,
    *,
    noise: ArrayLike,
    mean: Mean = zero,
    mean_params: Params | None = None,
) -> Float[Array, ""]:
    """Return the log marginal likelihood log N(y; mean, K + noise I) of the observed rows.

    Arguments as in `condition`.
    """
    inputs = _checked(kernel, params, data, noise, mean, mean_params)
    result: Array = _log_evidence(inputs)
    return result


@jax.jit
def _log_evidence(inputs: _Inputs) -> Array:
    data, cov, residual = _joint(inputs)
    return log_gaussian(cov, residual, data.mask[:, 0])


def _joint(inputs: _Inputs) -> tuple[Dataset, Array, Array]:
    """Return cleaned data, masked covariance (n, n) and residual (n,)."""
    kernel, params, data, noise, mean, mean_params = inputs
    data = clean(data)
    if data.noise is not None:
        noise = noise + data.noise
        data = data._replace(noise=None)  # states of models are the same without it
    mask = data.mask[:, 0]
    cov = gram(kernel, params, data.x, data.x)
    cov = mask_covariance(cov, mask, jnp.asarray(noise, data.x.dtype))
    level = jax.vmap(lambda x: mean.value(mean_params, data, x))(data.x)
    return data, cov, jnp.where(mask, data.y[:, 0] - level, 0.0)


def _checked(
    kernel: Any,
    params: Params,
    data: Any,
    noise: ArrayLike,
    mean: Any,
    mean_params: Params | None,
) -> _Inputs:
    check_kernel(kernel)
    if not isinstance(data, Dataset):
        raise ValueError(
            f"expected a Dataset, as made by bonas.dataset(x, y); got {type(data).__name__}"
        )
    check_mean(mean)
    n, p = data.y.shape
    if p != 1:
        raise ValueError(
            f"expected a dataset with one output; got {p}; fit one GP per output"
        )
    if jnp.shape(noise) not in ((), (n,)):
        raise ValueError(
            f"noise must be one variance, or one for each of the {n} rows of capacity; "
            f"got shape {jnp.shape(noise)}"
        )
    check_params(kernel, params, data.x.shape[1])
    check_data(kernel, data)
    return _Inputs(kernel, params, data, noise, mean, mean_params or {})


def check_data(kernel: Kernel, data: Dataset) -> None:
    """Raise a ValueError if an observed point is outside the kernel's domain.

    Nothing is checked inside `jit`.
    """
    if not isinstance(data.x, jax.core.Tracer) and not isinstance(
        data.mask, jax.core.Tracer
    ):
        check_points(kernel, np.asarray(data.x)[np.asarray(data.mask).any(axis=1)])


def predict(posterior: Posterior, x: ArrayLike) -> Prediction:
    """Predict the mean and standard deviation (m,) of the latent function at x (m, d).

    The variance is at least the rounding error of the prior variance, so the standard deviation is
    never 0. In float64 it is at least 6e-8 times that of the prior.
    """
    result: Prediction = _predict(posterior, as_points(posterior, x))
    return result


@jax.jit
def _predict(posterior: Posterior, x: Array) -> Prediction:
    mean, white = project(posterior, x)
    prior = posterior.kernel.diagonal(posterior.params, x)
    return Prediction(mean, safe_sqrt(nonnegative_variance(prior, white)))


def nonnegative_variance(prior: Array, white: Array) -> Array:
    """Return prior − Σ white² over the first axis, but at least the rounding error of the prior."""
    variance = prior - jnp.sum(white * white, axis=0)
    return jnp.maximum(variance, rounding_error(prior))


def rounding_error(prior: Array) -> Array:
    """Return a bound on the rounding error of posterior variances, given the prior variances."""
    return _ROUNDING * jnp.finfo(prior.dtype).eps * prior


def as_points(posterior: Any, x: ArrayLike) -> Array:
    """Return the points (m, d), or raise a ValueError if their shape or values are wrong."""
    points = jnp.asarray(x)
    d = posterior.data.x.shape[-1]
    if points.ndim != 2 or points.shape[1] != d:
        raise ValueError(f"expected points of shape (m, {d}); got {points.shape}")
    check_points(posterior.kernel, points)
    return points


def project(posterior: Posterior, x: Array) -> tuple[Array, Array]:
    """Return the posterior mean (m,) and the whitened cross-covariance L⁻¹ k(X, x) (n, m)."""
    kernel, mean, params, mean_params, data, lower, alpha, _ = posterior
    if alpha.ndim > 1:
        raise ValueError(
            "expected one posterior; got several: use jax.vmap(gp.predict, (0, None))(posterior, x)"
        )
    cross = jnp.where(data.mask[:, :1], gram(kernel, params, data.x, x), 0.0)
    level = jax.vmap(lambda point: mean.value(mean_params, data, point))(x)
    return level + alpha @ cross, solve_lower(lower, cross)
