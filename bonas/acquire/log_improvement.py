"""The logarithm of expected improvement, accurate where the improvement itself underflows.

Scores are to be maximized, and z = (best − xi − mean) / std with a standard deviation: see
`bonas.acquire.closed_form`.
"""

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, ArrayLike, Float

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
# v Φ(−t)/h(−t) as a ratio of polynomials in v = 1/(1 + t) for t ≥ 0, lowest power first. The fit
# has equal ripples and was computed with seventy digits; its relative error is below 8e-17. All
# coefficients are positive, so nothing cancels, and v = 0 is exact.
_NUMERATOR = (
    1.0,
    19.82354653618917,
    225.77829703991165,
    1767.699077791442,
    10330.79444156563,
    46585.45319531758,
    164243.66113926994,
    451642.0544805479,
    951275.5604978068,
    1471778.5359109687,
    1525588.6928868813,
    822039.5502706422,
)
_DENOMINATOR = (
    1.0,
    20.823546536189067,
    244.60184357615836,
    1968.653828282319,
    11772.597491133483,
    54030.833421699695,
    192095.58108729916,
    523600.26289234834,
    1055965.920058519,
    1446720.8816237897,
    1058458.1060080072,
)

Samples = Float[Array, "s m"]
Scores = Float[Array, " m"]


def log_ei(
    mean: Samples, std: Samples, best: ArrayLike, *, xi: ArrayLike = 0.0
) -> Scores:
    """Return the logarithm of the averaged expected improvement, log (1/s) Σ std h(z).

    Here z = (best − xi − mean) / std and h(z) = φ(z) + zΦ(z). If every std is 0, the score is −inf,
    with gradient 0.

    In float64 it is accurate to rounding, with finite gradients, for z from below −1000 to above
    40. In float32 value and gradient are finite over the same range, and the gradient in the mean
    has six correct digits. The score, near −z²/2, has seven digits, so that its absolute error is
    up to 1e-7 z², 0.1 at z = −1000.

    Args:
        mean: Predicted means (s, m), one row per hyperparameter sample.
        std: Predicted standard deviations (s, m).
        best: The incumbent, () or (s,).
        xi: Improvement over the incumbent that is required.

    Returns:
        The scores (m,).
    """
    z, std, known = standardize(mean, std, best, xi)
    return log_mean(jnp.where(known, -jnp.inf, jnp.log(std) + log_h(z)))


def standardize(
    mean: Array, std: Array, best: ArrayLike, xi: ArrayLike
) -> tuple[Array, Array, Array]:
    """Return z, std with 1 in place of 0, and where std is 0, all (s, m). NaN stays NaN."""
    gap = check_predictions(mean, std, best) - xi - mean
    known = std == 0.0
    std = jnp.where(known, 1.0, std)
    return gap / std, std, known


def check_predictions(mean: Array, std: Array, best: ArrayLike) -> Array:
    """Check the shapes of predictions; return best, () or (s, 1), in the precision of mean."""
    if jnp.ndim(mean) != 2 or jnp.shape(mean) != jnp.shape(std):
        raise ValueError(
            f"mean and std must have one shape (s, m); got {jnp.shape(mean)} and {jnp.shape(std)}"
        )
    best = jnp.asarray(best, mean.dtype)
    if best.shape not in ((), mean.shape[:1], (*mean.shape[:1], 1)):
        raise ValueError(
            f"expected best of shape () or ({mean.shape[0]},), one value per sample; "
            f"got {best.shape}"
        )
    return best.reshape(-1, 1) if best.ndim else best


def log_mean(scores: Array) -> Array:
    """Return the logarithm (m,) of the average of exp(scores) over the rows of scores (s, m)."""
    total: Array = logsumexp(scores, axis=0)
    return total - math.log(len(scores))


# Elementwise functions of z. Below 0 they are ratios to φ, so that nothing underflows; above 0,
# h(z) = z + h(−z), so that nothing cancels. Derivatives are written out: derived through the
# branches they would be inf · 0 at large |z|.


@jax.custom_jvp
def log_h(z: Array) -> Array:
    """Return log h(z) = log(φ(z) + zΦ(z)) for z of any shape, with derivative Φ/h."""
    return _log_h(z)[0]


def _log_h(z: Array) -> tuple[Array, Array]:
    """Return the value and its derivative."""
    slope, gap, mills = tail(z)
    below = z < 0.0
    density = normal_density(z)
    h = jnp.where(below, 1.0, z + density * gap)
    value = jnp.where(below, jnp.log(gap) + log_normal_density(z), jnp.log(h))
    return value, jnp.where(below, slope, (1.0 - density * mills) / h)


@log_h.defjvp
def _log_h_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value, slope = _log_h(*primals)
    return value, slope * tangents[0]


def tail(z: Array) -> tuple[Array, Array, Array]:
    """Return Φ(−t)/h(−t), h(−t)/φ(t) = 1 − t M(t) and the Mills ratio M(t) = Φ(−t)/φ(t) at t = |z|.

    The first, S, gives the others: S = M/(1 − t M), so 1 − t M = 1/(1 + t S) and M = 1/(t + 1/S).
    """
    t = jnp.abs(z)
    v = 1.0 / (1.0 + t)
    slope = (1.0 + t) * (_polynomial(_NUMERATOR, v) / _polynomial(_DENOMINATOR, v))
    return slope, 1.0 / (1.0 + t * slope), 1.0 / (t + 1.0 / slope)


def _polynomial(coefficients: tuple[float, ...], v: Array) -> Array:
    total = jnp.full_like(v, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * v + coefficient
    return total


def log_normal_density(z: Array) -> Array:
    """Return log φ(z)."""
    return -0.5 * z * z - _LOG_ROOT_2PI


def normal_density(z: Array) -> Array:
    """Return φ(z)."""
    return jnp.exp(log_normal_density(z))
