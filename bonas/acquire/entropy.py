"""Max-value entropy search: how much an evaluation tells about the least value there is."""

import math
from functools import cache

import jax
import jax.numpy as jnp
from jax import Array

from bonas.acquire.acquisition import Acquisition, Outlook
from bonas.acquire.analytic import log_ndtr
from bonas.gp import Prediction

_HALVINGS = 40  # of an interval of some tens of standard deviations: to 1e-11


@cache
def entropy(minima: int = 16) -> Acquisition:
    """Information (nats) that a noise-free evaluation gives about the minimum, averaged over `minima` draws of it a sample.

    Wang & Jegelka 2017, eq. 6, for minimisation; the draws are from a Gumbel distribution fitted to the minimum over
    candidates taken as independent (their Section 3.1). A cheap relative of the entropy search of H-F3.
    """

    def score(key, outlook: Outlook, memory):
        candidate_key, draw_key = jax.random.split(key)
        least = draw_minima(draw_key, outlook.predict(outlook.candidates(candidate_key)), minima)
        least = jnp.minimum(least, outlook.best[:, None])
        return lambda x: information(outlook.predict(x), least), memory

    return Acquisition(score)


def information(prediction: Prediction, least: Array) -> Array:
    """Scores (m,): the fall in entropy of N(mean, std²) when cut off below at each of least (s, k), averaged over s and k."""
    mean, std = prediction
    z = (mean[:, None, :] - least[:, :, None]) / std[:, None, :]
    log_mass = log_ndtr(z)
    ratio = jnp.exp(-0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - log_mass)  # φ/Φ
    return (0.5 * z * ratio - log_mass).mean(axis=(0, 1))


def draw_minima(key: Array, prediction: Prediction, k: int) -> Array:
    """k draws a sample (s, k) of the minimum over candidates with mean and std (s, m), by a Gumbel with its quartiles."""
    mean, std = prediction
    low, high = (mean - 10.0 * std).min(axis=1), (mean + 10.0 * std).min(axis=1)

    def quantile(survival: float) -> Array:
        """t (s,) with Π Φ((mean − t)/std) = survival."""

        def halve(_, ends):
            low, high = ends
            middle = 0.5 * (low + high)
            above = log_ndtr((mean - middle[:, None]) / std).sum(axis=1) > math.log(survival)
            return jnp.where(above, middle, low), jnp.where(above, high, middle)

        return jax.lax.fori_loop(0, _HALVINGS, halve, (low, high))[0]

    # P(minimum > t) = exp(−exp((t − place)/width)): log(−log P) is linear in t
    lower, middle, upper = quantile(0.75), quantile(0.5), quantile(0.25)
    width = (upper - lower) / (math.log(-math.log(0.25)) - math.log(-math.log(0.75)))
    place = middle - width * math.log(math.log(2.0))
    u = jax.random.uniform(key, (len(mean), k), mean.dtype, minval=jnp.finfo(mean.dtype).tiny)
    return place[:, None] + width[:, None] * jnp.log(-jnp.log(u))
