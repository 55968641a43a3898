"""The log density of a Gaussian vector, with a derivative that consists of matrix products."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bonas.linalg import factorize, solve_lower, solve_upper

# Triangular matrices up to this size are inverted by one solve, larger ones by halves.
_MAX_DIRECT_INVERSE = 64


@jax.custom_jvp
def log_gaussian(
    cov: Float[Array, "n n"], residual: Float[Array, " n"], mask: Bool[Array, " n"]
) -> Float[Array, ""]:
    """Return the log density of a residual under N(0, cov), over the rows where `mask` is True.

    The other rows of `cov` must be rows of the identity matrix, and the other entries of `residual`
    zero. The derivative is explicit, ∂/∂K = (ααᵀ − K⁻¹)/2 with α = K⁻¹r (Rasmussen & Williams 2006,
    eq. 5.9): differentiating the factorization costs twice as much.
    """
    return _log_gaussian(factorize(cov, mask).lower, residual, mask)[0]


def _log_gaussian(lower: Array, residual: Array, mask: Array) -> tuple[Array, Array]:
    """Return the log density and L⁻¹ r."""
    white = solve_lower(lower, residual)
    constant = jnp.sum(mask) * jnp.log(2 * jnp.pi).astype(lower.dtype)
    exponent = -0.5 * (white @ white + constant)
    half_log_determinant = jnp.sum(jnp.log(jnp.diagonal(lower)))
    return exponent - half_log_determinant, white


@log_gaussian.defjvp
def _log_gaussian_jvp(
    primals: tuple[Array, Array, Array], tangents: tuple[Array, Array, Array]
) -> tuple[Array, Array]:
    cov, residual, mask = primals
    lower = factorize(cov, mask).lower
    value, white = _log_gaussian(lower, residual, mask)
    alpha = solve_upper(lower, white)
    weight = 0.5 * (alpha[:, None] * alpha[None, :] - inverse_of(lower))
    return value, jnp.sum(weight * tangents[0]) - alpha @ tangents[1]


def inverse_of(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Return (L Lᵀ)⁻¹ for a lower triangular matrix L.

    It is meant for derivatives only; use triangular solves for everything else.

    The recursion by halves consists mostly of matrix products: with P = L₂₁ L₁₁⁻¹ and
    S = (L₂₂ L₂₂ᵀ)⁻¹ the blocks are (L₁₁ L₁₁ᵀ)⁻¹ + PᵀSP, −SP and S. It is two to three times
    faster than a solve for the identity, and as accurate.
    """
    n = len(lower)
    if n <= _MAX_DIRECT_INVERSE:
        root = solve_lower(lower, jnp.eye(n, dtype=lower.dtype))
        return root.T @ root
    half = n // 2
    first = inverse_of(lower[:half, :half])
    second = inverse_of(lower[half:, half:])
    slope = solve_upper(lower[:half, :half], lower[half:, :half].T).T
    corner = second @ slope
    return jnp.block([[first + slope.T @ corner, -corner.T], [-corner, second]])
