"""Acquisitions in closed form: expected improvement, probability of improvement, confidence bound.

The objective is minimized, and scores are maximized. With z = (best − xi − mean) / std, each
acquisition takes mean and std (s, m), one row per hyperparameter sample, and the incumbent `best`,
() or (s,). It returns scores (m,) averaged over the samples (Wilton 2020, eqs 10 and 11).

std is a standard deviation, both in z and as the factor of h; Twist (Section 4) and Wilton print a
variance, which gives other numbers. A std of exactly 0 means that the value is known: EI is then 0
(Hutchinson 2019, eq. 2.40), and so is PI. The limit of EI as std → 0 is max(best − xi − mean, 0).
"""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, ArrayLike, PRNGKeyArray

from bonas.acquire.acquisition import Acquisition, Context
from bonas.acquire.log_improvement import (
    Samples,
    Scores,
    check_predictions,
    log_mean,
    log_normal_density,
    normal_density,
    standardize,
    tail,
)
from bonas.acquire.maximize import Score
from bonas.traced_settings import Setting, as_setting, setting_value


def ei(mean: Samples, std: Samples, best: ArrayLike, *, xi: ArrayLike = 0.0) -> Scores:
    """Return the expected improvement E max(best − xi − f, 0) = std h(z), h(z) = φ(z) + zΦ(z).

    Here z = (best − xi − mean) / std. Value and gradient underflow near z = −38 (float32: −13), so
    searches should use `log_ei`.

    Wilton 2020; for maximization, Hutchinson 2019, eqs 2.37 to 2.41. Twist, eq. 27 and Lemma 3.1,
    has the maximum in place of best, and the sign of std φ(z) reversed in places.

    Args:
        mean: Predicted means (s, m), one row per hyperparameter sample.
        std: Predicted standard deviations (s, m).
        best: The incumbent, () or (s,).
        xi: Improvement over the incumbent that is required.
    """
    z, std, known = standardize(mean, std, best, xi)
    return jnp.where(known, 0.0, std * _h(z)).mean(axis=0)


def pi(mean: Samples, std: Samples, best: ArrayLike, *, xi: ArrayLike = 0.0) -> Scores:
    """Return the probability of improvement Φ(z) (Wilton 2020; Hutchinson 2019, eq. 2.36).

    Here z = (best − xi − mean) / std. Arguments as in `ei`.
    """
    z, _, known = standardize(mean, std, best, xi)
    return jnp.where(known, 0.0, ndtr(z)).mean(axis=0)


def log_pi(
    mean: Samples, std: Samples, best: ArrayLike, *, xi: ArrayLike = 0.0
) -> Scores:
    """Return the logarithm of the averaged probability of improvement, log (1/s) Σ Φ(z).

    It does not underflow, and is as accurate as `log_ei`. Arguments as in `ei`.
    """
    z, _, known = standardize(mean, std, best, xi)
    return log_mean(jnp.where(known, -jnp.inf, log_ndtr(z)))


def lcb(
    mean: Samples, std: Samples, best: ArrayLike, *, kappa: ArrayLike = 2.0
) -> Scores:
    """Return the negative lower confidence bound −(mean − kappa std) (Agrawal, eq. 5.5).

    Hutchinson 2019, eq. 2.42, maximizes and sets kappa = 1.

    Args:
        mean: Predicted means (s, m), one row per hyperparameter sample.
        std: Predicted standard deviations (s, m).
        best: Not used.
        kappa: Weight of the standard deviation; larger values explore more.
    """
    check_predictions(mean, std, best)
    return (kappa * std - mean).mean(axis=0)


def greedy(mean: Samples, std: Samples, best: ArrayLike) -> Scores:
    """Return the negative predicted mean, which does not explore (Twist).

    Arguments as in `ei`; `std` and `best` are not used.
    """
    check_predictions(mean, std, best)
    return -mean.mean(axis=0)


# Elementwise functions of z, written like `log_h`.


@jax.custom_jvp
def log_ndtr(z: Array) -> Array:
    """Return log Φ(z) for z of any shape, with an accurate derivative φ/Φ.

    The derivative of `jax.scipy.special.log_ndtr` has only nine correct digits near z = −20.
    """
    return _log_ndtr(z)[0]


def _log_ndtr(z: Array) -> tuple[Array, Array]:
    """Return the value and its derivative."""
    _, _, mills = tail(z)
    below = z < 0.0
    density = normal_density(z)
    rest = density * mills  # Φ(−|z|)
    # XLA's log1p loses two digits near −0.414, where the plain logarithm loses none
    above = jnp.where(rest > 0.25, jnp.log(1.0 - rest), jnp.log1p(-rest))
    value = jnp.where(below, jnp.log(mills) + log_normal_density(z), above)
    return value, jnp.where(below, 1.0 / mills, density / (1.0 - rest))


@log_ndtr.defjvp
def _log_ndtr_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value, slope = _log_ndtr(*primals)
    return value, slope * tangents[0]


@jax.custom_jvp
def _h(z: Array) -> Array:
    """Return φ(z) + zΦ(z), the expected improvement of a standard normal. The derivative is Φ."""
    _, gap, _ = tail(z)
    return jnp.maximum(z, 0.0) + normal_density(z) * gap


@_h.defjvp
def _h_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _h(*primals), ndtr(*primals) * tangents[0]


def kappa_schedule(step: ArrayLike, d: int, delta: ArrayLike = 0.1) -> Array:
    """Return the weight kappa of `lcb` for which the regret of GP-UCB is bounded.

    It is √(2 log(step^(d/2 + 2) π² / 3 delta)): Brochu, Cora & de Freitas 2010, after Srinivas et
    al. 2010.

    Args:
        step: The number of the evaluation, from 1.
        d: Number of columns of a point.
        delta: The probability that the regret bound does not hold.
    """
    constant: ArrayLike
    if isinstance(delta, int | float):
        if not 0.0 < delta < 1.0:
            raise ValueError(
                f"delta must be a probability between 0 and 1; got {delta}"
            )
        constant = math.log(math.pi**2 / (3.0 * delta))
    else:
        constant = jnp.log(math.pi**2 / (3.0 * jnp.asarray(delta)))
    # a 32-bit integer step would give a 32-bit logarithm
    log_step = jnp.log(jnp.asarray(step, float))
    return jnp.sqrt((d + 4.0) * log_step + 2.0 * constant)


@dataclass(frozen=True)
class ScheduledLCB(Acquisition):
    """The lower confidence bound with a growing kappa."""

    delta: Setting

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        step = jnp.maximum(context.data.size, 1)
        kappa = kappa_schedule(step, context.data.x.shape[1], setting_value(self.delta))
        return lambda x: lcb(*context.predict(x), context.best, kappa=kappa), memory


def scheduled_lcb(delta: ArrayLike = 0.1) -> Acquisition:
    """Create a lower confidence bound with kappa from `kappa_schedule` (Brochu et al. 2010).

    Args:
        delta: The probability that the regret bound does not hold.
    """
    return ScheduledLCB(as_setting("delta", delta))
