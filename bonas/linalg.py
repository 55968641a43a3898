"""Linear algebra of Gaussian processes: masked Cholesky factors, solves, safe roots."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

# A pivot below this many units of rounding, relative to the largest variance, has no correct digit.
_PIVOT_UNITS = 64.0
# Jitter starts at this power of that level (4e-11 of the largest variance in float64, 1e-4 in
# float32), where half of the digits survive a solve, and grows tenfold until it suffices.
_JITTER_POWER = 0.75
_MAX_ATTEMPTS = 5


class Factor(NamedTuple):
    """A Cholesky factor, and the jitter that was added to the diagonal to get it."""

    lower: Float[Array, "n n"]  # NaN if no jitter sufficed
    jitter: Float[Array, ""]  # 0 if none was needed


def mask_covariance(
    cov: Float[Array, "n n"], mask: Bool[Array, " n"], noise: Float[Array, "*#n"]
) -> Float[Array, "n n"]:
    """Return K + noise I, with masked rows and columns replaced by those of the identity matrix.

    The masked rows then change neither solves nor the determinant, so no correction is needed.
    """
    pair = mask[:, None] & mask[None, :]
    return jnp.where(pair, cov, 0.0) + jnp.diag(jnp.where(mask, noise, 1.0))


@jax.custom_jvp
def factorize(cov: Float[Array, "n n"], mask: Bool[Array, " n"]) -> Factor:
    """Return the Cholesky factor of a covariance matrix, with jitter if it is needed.

    If rounding errors have made the matrix indefinite, the smallest jitter of a geometric sequence
    for which the factorization succeeds is added to the diagonal. The jitter is a constant under
    differentiation. If no jitter is needed, the matrix is factorized once, under `vmap` too.

    Args:
        cov: The covariance matrix, of which only the upper triangle is read.
        mask: The rows that are used; the others must be rows of the identity matrix, as returned
            by `mask_covariance`, and get no jitter.
    """
    largest = jnp.max(jnp.where(mask, jnp.diagonal(cov), 0.0), initial=0.0)
    level = float(jnp.finfo(cov.dtype).eps) * _PIVOT_UNITS
    least_pivot = level * largest

    def failed(state: tuple[Array, Array, Array]) -> Array:
        attempts, lower, _ = state
        pivots = jnp.where(mask, jnp.diagonal(lower) ** 2, least_pivot)
        # not jnp.min, which drops NaN in large arrays
        return ~jnp.all(pivots >= least_pivot) & (attempts < _MAX_ATTEMPTS)

    def retry(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        attempts, _, _ = state
        jitter = (largest * level**_JITTER_POWER * 10.0**attempts).astype(cov.dtype)
        lower = _cholesky(cov + jnp.diag(jnp.where(mask, jitter, 0.0)))
        return attempts + 1, lower, jitter

    no_jitter = jnp.zeros((), cov.dtype)
    first: tuple[Any, Array, Array] = (0, _cholesky(cov), no_jitter)
    _, lower, jitter = jax.lax.while_loop(failed, retry, first)
    return Factor(lower, jitter)


def _cholesky(cov: Array) -> Array:
    # The transpose, of a symmetric matrix, is in the order of LAPACK: it needs no strided copy.
    return jax.lax.linalg.cholesky(cov.T, symmetrize_input=False)


@factorize.defjvp
def _factorize_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Factor, Factor]:
    """dL = L Φ(L⁻¹ dA L⁻ᵀ), where Φ takes the lower triangle and half of the diagonal."""
    factor = factorize(*primals)
    half = solve_lower(factor.lower, tangents[0])
    inner = solve_lower(factor.lower, half.T).T
    lower_half = jnp.tril(inner) - 0.5 * jnp.diag(jnp.diagonal(inner))
    return factor, Factor(factor.lower @ lower_half, jnp.zeros_like(factor.jitter))


def solve_lower(
    lower: Float[Array, "n n"], b: Float[Array, "n ..."]
) -> Float[Array, "n ..."]:
    """Return L⁻¹ b for a lower triangular matrix L."""
    return jax.scipy.linalg.solve_triangular(lower, b, lower=True)


def solve_upper(
    lower: Float[Array, "n n"], b: Float[Array, "n ..."]
) -> Float[Array, "n ..."]:
    """Return L⁻ᵀ b for a lower triangular matrix L."""
    return jax.scipy.linalg.solve_triangular(lower, b, lower=True, trans=1)


def safe_sqrt(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return √x with derivative 0 at and below 0, where that of `jnp.sqrt` is infinite or NaN.

    It uses `maximum` instead of the usual pair of `where`: XLA may compute x twice, once with fused
    multiply-adds. Two tests x > 0 may then disagree, and the result would be the placeholder of the
    inner `where`.
    """
    return jnp.sqrt(jnp.maximum(x, jnp.finfo(x.dtype).tiny))
