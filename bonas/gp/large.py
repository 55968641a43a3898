"""Gaussian-process regression with thousands of rows, by inducing points.

The values at m inducing rows of the data stand for the function: given them, all values are
independent (FITC: Snelson & Ghahramani 2006; Quiñonero-Candela & Rasmussen 2005, Section 6). A row
that the inducing rows do not determine has the rest of its variance as additional noise, so that it
counts less, but every row is used. The cost is linear in the number of rows. With all rows as
inducing rows, the regression is exact.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray

from bonas.data import Dataset, clean
from bonas.gp.exact import (
    Mean,
    Posterior,
    Prediction,
    as_points,
    check_data,
    predict,
    rounding_error,
    zero,
)
from bonas.gp.joint_predictions import covariance, sample
from bonas.gp.kernel import Kernel, Params, check_params, gram
from bonas.linalg import (
    factorize,
    mask_covariance,
    safe_sqrt,
    solve_lower,
    solve_upper,
)

# Rows whose covariances with the inducing rows are in memory at the same time.
_BLOCK = 1024
# A product with a lower triangle is computed in this many parts, which omit most of the zeros.
_PARTS = 4
# The inducing values have this share of the noise, which keeps their covariance regular.
_NOISE_SHARE = 1e-5


class LargePosterior(NamedTuple):
    """An approximate posterior of a Gaussian process given n rows, through m inducing rows.

    An exact posterior has the same fields, with m = n and no inner factor.
    """

    kernel: Kernel  # the kernel
    mean: Mean  # the prior mean
    params: Params  # parameters of the kernel
    mean_params: Params  # parameters of the prior mean
    data: Dataset  # the observations, with 0 in masked entries
    rows: Array  # (m,) int: the inducing rows
    lower: Array  # (m, m) Cholesky factor L of K, the covariance of the inducing values
    # (m, m) Cholesky factor of I + L⁻¹ K(Z, X) Λ⁻¹ K(X, Z) L⁻ᵀ; (0, 0) if exact
    inner: Array
    alpha: Array  # (m,) K⁻¹ times the posterior mean of the inducing values, without their level
    log_evidence: Array  # () log p(y | x, params) over the observed rows; NaN if exact
    jitter: Array  # () variance added to the diagonal for the factorization; 0 if none was needed

    @property
    def is_exact(self) -> bool:
        """Whether the inducing rows are all rows."""
        return self.inner.shape[-1] == 0

    @property
    def exact(self) -> Posterior:
        """This posterior as a `Posterior`, which is valid only if `is_exact`."""
        return Posterior(*self[:5], self.lower, self.alpha, self.jitter)


class _Sums(NamedTuple):
    """Sums over rows, weighted by their precisions 1/λ."""

    outer: Array  # (m, m) of v vᵀ, the upper triangle
    product: Array  # (m,) of v times the residual
    squares: Array  # () of squared residuals
    log_noise: Array  # () of log λ, not weighted


class _Columns(NamedTuple):
    """Points, mask, noise variances and residuals of the rows."""

    x: Array  # (n, d)
    mask: Array  # (n,) bool
    noise: Array  # (n,)
    residual: Array  # (n,)


def as_large(posterior: Posterior) -> LargePosterior:
    """Return an exact posterior as a LargePosterior."""
    n, dtype = len(posterior.alpha), posterior.alpha.dtype
    return LargePosterior(
        *posterior[:5],
        rows=jnp.arange(n),
        lower=posterior.lower,
        inner=jnp.zeros((0, 0), dtype),
        alpha=posterior.alpha,
        log_evidence=jnp.full((), jnp.nan, dtype),
        jitter=posterior.jitter,
    )


def condition_large(
    kernel: Kernel,
    params: Params,
    data: Dataset,
    rows: Int[Array, " m"],
    *,
    noise: ArrayLike,
    mean: Mean = zero,
    mean_params: Params | None = None,
) -> LargePosterior:
    """Return the approximate posterior given the data through m inducing rows.

    Other arguments as in `gp.condition`.

    Args:
        rows: Positions of the inducing rows, all different. Those of masked rows have no effect.
    """
    check_params(kernel, params, data.x.shape[1])
    check_data(kernel, data)
    n = len(data.x)
    if not 1 <= len(rows) <= n:
        raise ValueError(
            f"expected between 1 and {n} inducing rows, since the data have {n} rows of capacity; "
            f"got {len(rows)}"
        )
    arguments = (kernel, mean, params, mean_params or {}, data, jnp.asarray(rows))
    result: LargePosterior = _condition(*arguments, noise)
    return result


@jax.jit
def _condition(
    kernel: Kernel,
    mean: Mean,
    params: Params,
    mean_params: Params,
    data: Dataset,
    rows: Array,
    noise: Array,
) -> LargePosterior:
    data, columns = _prepare(mean, mean_params, data, noise)
    observed = columns.mask[rows]
    cov = gram(kernel, params, data.x[rows], data.x[rows])
    cov = mask_covariance(cov, observed, _NOISE_SHARE * columns.noise[rows])
    lower, jitter = factorize(cov, observed)

    # a product with the inverse takes half the time of a solve
    root = solve_lower(lower, jnp.eye(len(rows), dtype=lower.dtype))

    def whiten(x: Array) -> tuple[Array, Array]:
        cross = gram(kernel, params, data.x[rows], x)
        cross = jnp.where(observed[:, None], cross, 0.0)
        return _lower_times(root, cross), kernel.diagonal(params, x)

    sums = _sum_blocks(whiten, columns, len(rows))
    inner, _ = factorize(
        jnp.eye(len(rows), dtype=lower.dtype) + sums.outer, jnp.ones(len(rows), bool)
    )
    half = solve_lower(inner, sums.product)
    log_det = sums.log_noise + 2.0 * jnp.log(jnp.diagonal(inner)).sum()
    exponent = sums.squares - half @ half + columns.mask.sum() * math.log(2.0 * math.pi)
    return LargePosterior(
        *(kernel, mean, params, mean_params, data, rows, lower, inner),
        alpha=solve_upper(lower, solve_upper(inner, half)),
        log_evidence=-0.5 * (exponent + log_det),
        jitter=jitter,
    )


def _prepare(
    mean: Mean, mean_params: Params, data: Dataset, noise: ArrayLike
) -> tuple[Dataset, _Columns]:
    """Return cleaned data, and what the sums need of each row."""
    data = clean(data)
    if data.noise is not None:
        noise = noise + data.noise
        data = data._replace(noise=None)  # states of models are the same without it
    mask = data.mask[:, 0]
    noise = jnp.broadcast_to(jnp.asarray(noise, data.x.dtype), mask.shape)
    level = jax.vmap(lambda x: mean.value(mean_params, data, x))(data.x)
    residual = jnp.where(mask, data.y[:, 0] - level, 0.0)
    return data, _Columns(data.x, mask, noise, residual)


def _sum_blocks(
    whiten: Callable[[Array], tuple[Array, Array]], columns: _Columns, m: int
) -> _Sums:
    """Sum over blocks of rows, up to the last observed row.

    Args:
        whiten: Function from points (k, d) to v = L⁻¹ K(Z, x) (m, k) and prior variances (k,).
    """
    n, dtype = len(columns.mask), columns.residual.dtype
    size = min(_BLOCK, n)
    missing = -n % size
    padded = jax.tree.map(
        lambda leaf: jnp.pad(leaf, ((0, missing), *[(0, 0)] * (leaf.ndim - 1))), columns
    )

    def add(i: Array, sums: _Sums) -> _Sums:
        block = jax.tree.map(
            lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, i * size, size), padded
        )
        return _Sums(*map(jnp.add, sums, _sums_of(whiten, block)))

    zero = jnp.zeros((), dtype)
    nothing = _Sums(jnp.zeros((m, m), dtype), jnp.zeros(m, dtype), zero, zero)
    used = jnp.max(jnp.where(columns.mask, jnp.arange(1, n + 1), 0))
    sums: _Sums = jax.lax.fori_loop(0, (used + size - 1) // size, add, nothing)
    return sums


def _sums_of(whiten: Callable[[Array], tuple[Array, Array]], block: _Columns) -> _Sums:
    """Return the sums over one block, where λ is the noise and the variance not determined."""
    v, prior = whiten(block.x)
    rest = jnp.maximum(prior - jnp.sum(v * v, axis=0), 0.0)
    spread = jnp.where(block.mask, block.noise + rest, 1.0)
    weight = jnp.where(block.mask, 1.0 / spread, 0.0)
    return _Sums(
        _upper_square(v * jnp.sqrt(weight)[None, :]),
        v @ (weight * block.residual),
        jnp.sum(weight * block.residual**2),
        jnp.log(spread).sum(),
    )


def _lower_times(lower: Array, b: Array) -> Array:
    """Return the product of a lower triangular matrix (m, m) and b (m, k)."""
    return jnp.concatenate([lower[i:j, :j] @ b[:j] for i, j in _parts(len(lower))])


def _upper_square(v: Array) -> Array:
    """Return v vᵀ (m, m) for v (m, k), correct in the upper triangle, which `factorize` reads."""
    m = len(v)
    parts = [v[i:j] @ v[i:].T for i, j in _parts(m)]
    return jnp.concatenate(
        [jnp.pad(part, ((0, 0), (m - part.shape[1], 0))) for part in parts]
    )


def _parts(m: int) -> list[tuple[int, int]]:
    """Return the first and the last row of each part."""
    ends = [m * i // _PARTS for i in range(_PARTS + 1)]
    return list(pairwise(ends))


def predict_large(posterior: LargePosterior, x: ArrayLike) -> Prediction:
    """Predict the mean and standard deviation (k,) of the latent function at x (k, d)."""
    if posterior.is_exact:
        return predict(posterior.exact, x)
    result: Prediction = _predict(posterior, as_points(posterior, x))
    return result


@jax.jit
def _predict(posterior: LargePosterior, x: Array) -> Prediction:
    mean, before, after = _project(posterior, x)
    prior = posterior.kernel.diagonal(posterior.params, x)
    rest = jnp.maximum(prior - jnp.sum(before * before, axis=0), rounding_error(prior))
    return Prediction(mean, safe_sqrt(rest + jnp.sum(after * after, axis=0)))


def covariance_large(
    posterior: LargePosterior, a: ArrayLike, b: ArrayLike
) -> Float[Array, "k l"]:
    """Return the posterior covariances of the latent function between a (k, d) and b (l, d)."""
    if posterior.is_exact:
        return covariance(posterior.exact, a, b)
    result: Array = _between(
        posterior, as_points(posterior, a), as_points(posterior, b)
    )
    return result


@jax.jit
def _between(posterior: LargePosterior, a: Array, b: Array) -> Array:
    _, before_a, after_a = _project(posterior, a)
    _, before_b, after_b = _project(posterior, b)
    prior = gram(posterior.kernel, posterior.params, a, b)
    return prior - before_a.T @ before_b + after_a.T @ after_b


def sample_large(
    key: PRNGKeyArray, posterior: LargePosterior, x: ArrayLike, k: int
) -> Float[Array, "k l"]:
    """Draw k joint samples of the latent function at x (l, d); see `gp.sample`."""
    if posterior.is_exact:
        return sample(key, posterior.exact, x, k)
    result: Array = _sample(key, posterior, as_points(posterior, x), k)
    return result


@partial(jax.jit, static_argnums=3)
def _sample(key: PRNGKeyArray, posterior: LargePosterior, x: Array, k: int) -> Array:
    mean, _, _ = _project(posterior, x)
    floor = rounding_error(posterior.kernel.diagonal(posterior.params, x))
    cov = _between(posterior, x, x) + jnp.diag(floor)
    lower, _ = factorize(cov, jnp.ones(len(x), bool))
    return mean[None, :] + jax.random.normal(key, (k, len(x)), cov.dtype) @ lower.T


def _project(posterior: LargePosterior, x: Array) -> tuple[Array, Array, Array]:
    """Return the mean (k,), and covariances (m, k) whitened by the prior and the posterior.

    The variance is the prior's minus the squares of the former plus the squares of the latter.
    """
    kernel, mean, params, mean_params, data, rows, lower, inner, alpha, _, _ = posterior
    cross = gram(kernel, params, data.x[rows], x)
    cross = jnp.where(data.mask[rows, :1], cross, 0.0)
    level = jax.vmap(lambda point: mean.value(mean_params, data, point))(x)
    before = solve_lower(lower, cross)
    return level + alpha @ cross, before, solve_lower(inner, before)


def condition_large_all(
    kernel: Kernel,
    params: Params,
    data: Dataset,
    rows: Int[Array, " m"],
    *,
    noise: Any,
    mean: Mean = zero,
) -> LargePosterior:
    """Return approximate posteriors of s hyperparameter samples; see `gp.condition_all`."""

    def one(sample: Params) -> LargePosterior:
        return condition_large(
            kernel,
            sample["kernel"],
            data,
            rows,
            noise=sample.get("noise", noise),
            mean=mean,
            mean_params=sample["mean"],
        )

    return jax.vmap(one)(params)
