"""The linear algebra of Gaussian processes: masked Cholesky with reported jitter, distances, guarded square roots."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

# A pivot below this many units of rounding, relative to the largest variance, carries no correct digit.
_PIVOT_UNITS = 64.0
# Jitter starts at this power of that level, 4e-11 of the largest variance in float64 and 1e-4 in float32, where half of the
# digits survive a solve, and grows tenfold until the factorisation holds.
_JITTER_POWER = 0.75
_ATTEMPTS = 5
# Up to this many columns squared distances are summed from exact differences; beyond, one matrix product is faster.
_NARROW = 16
# Triangles of up to this size are inverted by one solve, larger ones by halves.
_SMALL = 64


class Factor(NamedTuple):
    """A Cholesky factor and what had to be added to the diagonal to get it."""

    lower: Array  # (n, n)
    jitter: Array  # () 0 where none was needed; NaN entries in `lower` mean that no level sufficed


def mask_covariance(cov: Array, mask: Array, noise: Array) -> Array:
    """K + noise I with masked rows turned into independent unit rows: exact, no correction needed anywhere."""
    pair = mask[:, None] & mask[None, :]
    return jnp.where(pair, cov, 0.0) + jnp.diag(jnp.where(mask, noise, 1.0))


@jax.custom_jvp
def factorise(cov: Array, mask: Array) -> Factor:
    """The Cholesky factor of a covariance (n, n) whose rows outside `mask` (n,) are unit rows.

    Where rounding has left the matrix indefinite, the least jitter of a ladder is added to the masked-in diagonal. It
    is constant under differentiation, and the loop ends at once when none is needed, under `vmap` too.
    """
    largest = jnp.max(jnp.where(mask, jnp.diagonal(cov), 0.0))
    level = float(jnp.finfo(cov.dtype).eps) * _PIVOT_UNITS
    unit = level * largest

    def attempt(jitter):
        return jax.lax.linalg.cholesky(cov + jnp.diag(jnp.where(mask, jitter, 0.0)), symmetrize_input=False)

    def failed(state):
        tries, lower, _ = state
        pivots = jnp.where(mask, jnp.diagonal(lower) ** 2, unit)
        return ~(jnp.min(pivots) >= unit) & (tries < _ATTEMPTS)

    def again(state):
        tries, _, _ = state
        jitter = (largest * level**_JITTER_POWER * 10.0**tries).astype(cov.dtype)
        return tries + 1, attempt(jitter), jitter

    zero = jnp.zeros((), cov.dtype)
    _, lower, jitter = jax.lax.while_loop(failed, again, (0, jax.lax.linalg.cholesky(cov, symmetrize_input=False), zero))
    return Factor(lower, jitter)


@factorise.defjvp
def _factorise_jvp(primals, tangents):
    """dL = L Φ(L⁻¹ dA L⁻ᵀ), Φ taking the lower triangle and half the diagonal."""
    factor = factorise(*primals)
    half = solve_lower(factor.lower, tangents[0])
    inner = solve_lower(factor.lower, half.T).T
    lower_half = jnp.tril(inner) - 0.5 * jnp.diag(jnp.diagonal(inner))
    return factor, Factor(factor.lower @ lower_half, jnp.zeros_like(factor.jitter))


def solve_lower(lower: Array, b: Array) -> Array:
    """L⁻¹ b for a lower triangle and b of shape (n,) or (n, m)."""
    return jax.scipy.linalg.solve_triangular(lower, b, lower=True)


def solve_upper(lower: Array, b: Array) -> Array:
    """L⁻ᵀ b for a lower triangle and b of shape (n,) or (n, m)."""
    return jax.scipy.linalg.solve_triangular(lower, b, lower=True, trans=1)


@jax.custom_jvp
def log_gaussian(cov: Array, residual: Array, mask: Array) -> Array:
    """log N(residual; 0, cov) over the rows in `mask`; masked rows of `cov` are unit rows, of `residual` zero.

    The derivative is written out, ∂/∂K = (ααᵀ − K⁻¹)/2 with α = K⁻¹r, because differentiating through the factorisation
    costs twice as much (Rasmussen & Williams 2006, eq. 5.9).
    """
    return _log_gaussian(factorise(cov, mask).lower, residual, mask)[0]


def _log_gaussian(lower, residual, mask):
    white = solve_lower(lower, residual)
    constant = jnp.sum(mask) * jnp.log(2 * jnp.pi).astype(lower.dtype)
    return -0.5 * (white @ white + constant) - jnp.sum(jnp.log(jnp.diagonal(lower))), white


@log_gaussian.defjvp
def _log_gaussian_jvp(primals, tangents):
    cov, residual, mask = primals
    lower = factorise(cov, mask).lower
    value, white = _log_gaussian(lower, residual, mask)
    alpha = solve_upper(lower, white)
    weight = 0.5 * (alpha[:, None] * alpha[None, :] - inverse_of(lower))
    return value, jnp.sum(weight * tangents[0]) - alpha @ tangents[1]


def inverse_of(lower: Array) -> Array:
    """(L Lᵀ)⁻¹ (n, n), for derivatives only: everything else is a solve.

    By halves, so that most of the work is matrix products: with P = L₂₁ L₁₁⁻¹ and S = (L₂₂ L₂₂ᵀ)⁻¹ the blocks are
    (L₁₁ L₁₁ᵀ)⁻¹ + PᵀSP, −SP and S. Two to three times faster than solving for the identity, and as accurate.
    """
    n = len(lower)
    if n <= _SMALL:
        root = solve_lower(lower, jnp.eye(n, dtype=lower.dtype))
        return root.T @ root
    half = n // 2
    first, second = inverse_of(lower[:half, :half]), inverse_of(lower[half:, half:])
    slope = solve_upper(lower[:half, :half], lower[half:, :half].T).T
    corner = second @ slope
    return jnp.block([[first + slope.T @ corner, -corner.T], [-corner, second]])


@jax.custom_jvp
def squared_distances(a: Array, b: Array) -> Array:
    """‖a_i − b_j‖² (n, m) between rows, exactly zero between equal rows of up to sixteen columns.

    Beyond sixteen, the expanded form about a common centre: one matrix product, correct to rounding of ‖a‖². The
    derivative is matrix products in either case.
    """
    if a.shape[1] <= _NARROW:
        return sum(jnp.square(a[:, i][:, None] - b[:, i][None, :]) for i in range(a.shape[1]))  # type: ignore[return-value]
    a, b = _centred(a, b)
    return jnp.maximum((a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2.0 * (a @ b.T), 0.0)


def _centred(a, b):
    centre = a.mean(axis=0)[None, :]
    return a - centre, b - centre


@squared_distances.defjvp
def _squared_distances_jvp(primals, tangents):
    """2 (a_i − b_j)·(da_i − db_j), multiplied out into two matrix products, of which the transpose is two more."""
    a, b = _centred(*primals)
    da, db = tangents

    def widen(first, rest):
        return jnp.concatenate([first[:, None], rest], axis=1)

    one_a, one_b = jnp.ones(len(a), a.dtype), jnp.ones(len(b), b.dtype)
    from_a = widen((a * da).sum(1), -da) @ widen(one_b, b).T
    from_b = widen(one_a, a) @ widen((b * db).sum(1), -db).T
    return squared_distances(*primals), 2.0 * (from_a + from_b)


def safe_sqrt(x: Array) -> Array:
    """√x with derivative 0 at and below 0, where the naive one is infinite or NaN.

    By `maximum`, not by a pair of `where`s: XLA may compute x twice, once with fused multiply-adds, so that two tests x > 0
    disagree in the last bit and the stand-in value of the inner `where` comes out of the outer one.
    """
    return jnp.sqrt(jnp.maximum(x, jnp.finfo(x.dtype).tiny))


@jax.custom_jvp
def sine_and_cosine(angle: Array) -> tuple[Array, Array]:
    """sin and cos of angles between −2π and 2π, to a few units of rounding, several times faster than by jnp on a CPU.

    There the two are calls, one number after the other; these are polynomials for a quarter of the angle, which is doubled
    twice, and a loop over them is vectorised.
    """
    quarter = 0.25 * angle
    square = quarter * quarter
    sine, cosine = quarter * _series(square, 1), _series(square, 0)
    for _ in range(2):
        sine, cosine = 2.0 * sine * cosine, (cosine - sine) * (cosine + sine)
    return sine, cosine


@sine_and_cosine.defjvp
def _sine_and_cosine_jvp(primals, tangents):
    sine, cosine = sine_and_cosine(*primals)
    (change,) = tangents
    return (sine, cosine), (cosine * change, -sine * change)


def _series(square: Array, first: int) -> Array:
    """Σ (−1)^k square^k / (2k + first)!, beyond what rounding leaves for angles up to π/2."""
    total = jnp.zeros_like(square)
    for k in reversed(range(12)):
        total = total * square + (-1.0) ** k / math.factorial(2 * k + first)
    return total
