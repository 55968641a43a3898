"""Acquisitions in closed form: expected improvement, its logarithm, probability of improvement, confidence bounds, greedy.

Everything minimises, and a score is to be maximised: z = (best − xi − mean) / std. Each acquisition takes mean and std
(s, m), one row a sample of the hyperparameters, and the best value () or (s,), the least of those observed and not of the
whole domain (W-X3), and returns the scores (m,) averaged over the samples: Wilton 2020, eqs 10 and 11.

std is a standard deviation, in z and in front of h alike; the variance printed by Twist, Section 4 (T-X3), and by Wilton
(W-X2) gives other numbers. Where std is exactly 0 the value is known and EI is 0: Hutchinson 2019, eq. 2.40 (H-D4); PI,
for which no rule is printed, follows. The limit of EI as std → 0 is another number, max(best − xi − mean, 0).
"""

import math

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp, ndtr
from jax.typing import ArrayLike

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
# v Φ(−t)/h(−t) as a ratio of polynomials in v = 1/(1 + t) for every t ≥ 0, lowest power first: all that a normal tail needs.
# Fitted to equal ripples in seventy-digit arithmetic; the relative error is below 8e-17 with the coefficients as written.
# All are positive, so nothing cancels, and v = 0 is exact.
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


def ei(mean: Array, std: Array, best: ArrayLike, *, xi: float = 0.0) -> Array:
    """Expected improvement E max(best − xi − f, 0) = std h(z), h(z) = φ(z) + zΦ(z), averaged over samples: scores (m,).

    Wilton 2020 (W-D8) and, for maximisation, Hutchinson 2019, eqs 2.37 to 2.41. Twist, eq. 27 and Lemma 3.1, print it with
    the maximum for best, which is an expected worsening (T-X1), and in places with −std φ(z), where + is right (T-X2).
    It underflows, gradient and all, near z = −38 (float32: −13): searches should use `log_ei`.
    """
    z, std, known = _standardise(mean, std, best, xi)
    return jnp.where(known, 0.0, std * _h(z)).mean(axis=0)


def log_ei(mean: Array, std: Array, best: ArrayLike, *, xi: float = 0.0) -> Array:
    """log of the averaged expected improvement: log (1/s) Σ std h(z), scores (m,). The best points are those of `ei`.

    In float64 right to rounding, with finite gradients, for z from −1000 (and far below) to 40 (and far above). In
    float32 it and its gradients are finite over the same range, that in the mean to six digits; but a number near −z²/2
    keeps seven digits, so scores are wrong by up to 1e-7 z²: by 0.1 at z = −1000. −inf, with gradient 0, where every std
    is 0.
    """
    z, std, known = _standardise(mean, std, best, xi)
    return _log_mean(jnp.where(known, -jnp.inf, jnp.log(std) + log_h(z)))


def pi(mean: Array, std: Array, best: ArrayLike, *, xi: float = 0.0) -> Array:
    """Probability of improvement Φ(z), averaged over samples: scores (m,). Wilton 2020 (W-D8); Hutchinson 2019, eq. 2.36."""
    z, _, known = _standardise(mean, std, best, xi)
    return jnp.where(known, 0.0, ndtr(z)).mean(axis=0)


def log_pi(mean: Array, std: Array, best: ArrayLike, *, xi: float = 0.0) -> Array:
    """log of the averaged probability of improvement, scores (m,); as exact as `log_ei`, also where `pi` is 0 or 1."""
    z, _, known = _standardise(mean, std, best, xi)
    return _log_mean(jnp.where(known, -jnp.inf, log_ndtr(z)))


def lcb(mean: Array, std: Array, best: ArrayLike, *, kappa: ArrayLike = 2.0) -> Array:
    """Lower confidence bound with its sign turned, −(mean − kappa std), averaged over samples: scores (m,).

    Agrawal, eq. 5.5; for maximisation, Hutchinson 2019, eq. 2.42, who sets kappa = 1 (H-D4). `best` is not used.
    """
    _check(mean, std, best)
    return (kappa * std - mean).mean(axis=0)


def greedy(mean: Array, std: Array, best: ArrayLike) -> Array:
    """−mean, averaged over samples: scores (m,). No exploration at all (Twist, T-D13). `std` and `best` are not used."""
    _check(mean, std, best)
    return -mean.mean(axis=0)


def kappa_schedule(step: ArrayLike, d: int, delta: float = 0.1) -> Array:
    """kappa = √(2 log(step^(d/2 + 2) π² / 3 delta)) for `lcb` at evaluation step = 1, 2, … of a search in d columns.

    Brochu, Cora & de Freitas 2010, after Srinivas et al. 2010 (H-F1); delta is the probability that the regret bound fails.
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is a probability between 0 and 1; got {delta}")
    # a 32-bit integer alone would have a 32-bit logarithm
    return jnp.sqrt((d + 4.0) * jnp.log(jnp.asarray(step, float)) + 2.0 * math.log(math.pi**2 / (3.0 * delta)))


def _standardise(mean, std, best, xi):
    """z and std (s, m), 1 in place of a std of 0, and where that happened: a NaN stays a NaN."""
    gap = _check(mean, std, best) - xi - mean
    known = std == 0.0
    std = jnp.where(known, 1.0, std)
    return gap / std, std, known


def _check(mean, std, best) -> Array:
    """best as () or (s, 1), in the precision of the mean."""
    if jnp.ndim(mean) != 2 or jnp.shape(mean) != jnp.shape(std):
        raise ValueError(f"expected mean and std of one shape (s, m); got {jnp.shape(mean)} and {jnp.shape(std)}")
    best = jnp.asarray(best, mean.dtype)
    if best.shape not in ((), mean.shape[:1], (*mean.shape[:1], 1)):
        raise ValueError(f"expected best of shape () or ({mean.shape[0]},), one a sample; got {best.shape}")
    return best.reshape(-1, 1) if best.ndim else best


def _log_mean(scores: Array) -> Array:
    """log (1/s) Σ exp scores over the rows of (s, m)."""
    return logsumexp(scores, axis=0) - math.log(len(scores))


# Elementwise functions of z. Below 0 everything is a ratio to φ, so nothing underflows; above 0, h(z) = z + h(−z), so
# nothing cancels. Derivatives are written out: through the branches they would be inf · 0 at large |z|.


@jax.custom_jvp
def log_h(z: Array) -> Array:
    """log(φ(z) + zΦ(z)), of any shape. The derivative is Φ/h."""
    return _log_h(z)[0]


def _log_h(z):
    """The value and its slope."""
    slope, gap, mills = _tail(z)
    below, density = z < 0.0, _density(z)
    h = jnp.where(below, 1.0, z + density * gap)
    value = jnp.where(below, jnp.log(gap) + _log_density(z), jnp.log(h))
    return value, jnp.where(below, slope, (1.0 - density * mills) / h)


@log_h.defjvp
def _log_h_jvp(primals, tangents):
    value, slope = _log_h(*primals)
    return value, slope * tangents[0]


@jax.custom_jvp
def log_ndtr(z: Array) -> Array:
    """log Φ(z), of any shape. The derivative is φ/Φ. JAX's own keeps nine digits of it near z = −20, this one all."""
    return _log_ndtr(z)[0]


def _log_ndtr(z):
    """The value and its slope."""
    _, _, mills = _tail(z)
    below, density = z < 0.0, _density(z)
    rest = density * mills  # Φ(−|z|)
    # XLA's log1p loses two digits near −0.414, where the plain logarithm loses none.
    above = jnp.where(rest > 0.25, jnp.log(1.0 - rest), jnp.log1p(-rest))
    value = jnp.where(below, jnp.log(mills) + _log_density(z), above)
    return value, jnp.where(below, 1.0 / mills, density / (1.0 - rest))


@log_ndtr.defjvp
def _log_ndtr_jvp(primals, tangents):
    value, slope = _log_ndtr(*primals)
    return value, slope * tangents[0]


@jax.custom_jvp
def _h(z):
    """h(z) = φ(z) + zΦ(z), the expected improvement of a standard normal: never negative. The derivative is Φ."""
    _, gap, _ = _tail(z)
    return jnp.maximum(z, 0.0) + _density(z) * gap


@_h.defjvp
def _h_jvp(primals, tangents):
    return _h(*primals), ndtr(*primals) * tangents[0]


def _tail(z):
    """Φ(−t)/h(−t), h(−t)/φ(t) = 1 − t M(t) and the Mills ratio M(t) = Φ(−t)/φ(t) at t = |z|.

    The first, S, gives the others: S = M / (1 − t M), so 1 − t M = 1 / (1 + t S) and M = 1 / (t + 1/S).
    """
    t = jnp.abs(z)
    v = 1.0 / (1.0 + t)
    slope = (1.0 + t) * (_polynomial(_NUMERATOR, v) / _polynomial(_DENOMINATOR, v))
    return slope, 1.0 / (1.0 + t * slope), 1.0 / (t + 1.0 / slope)


def _polynomial(coefficients, v):
    total = jnp.full_like(v, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * v + coefficient
    return total


def _log_density(z):
    return -0.5 * z * z - _LOG_ROOT_2PI


def _density(z):
    return jnp.exp(_log_density(z))
