"""Max-value entropy search: the information that an evaluation gives about the minimum."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.acquire.acquisition import Acquisition, Context
from bonas.acquire.closed_form import log_ndtr
from bonas.acquire.maximize import Score
from bonas.gp import Prediction
from bonas.static_settings import check_static

# Number of bisections: of an interval of tens of standard deviations, 1e-11 of one remain.
_BISECTIONS = 40


@dataclass(frozen=True)
class MaxValueEntropy(Acquisition):
    """Max-value entropy search."""

    minima: int

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        candidate_key, draw_key = jax.random.split(key)
        prediction = context.predict(context.candidates(candidate_key))
        minima = draw_minima(draw_key, prediction, self.minima)
        minima = jnp.minimum(minima, context.best[:, None])
        return lambda x: information(context.predict(x), minima), memory


def max_value_entropy(minima: int = 16) -> Acquisition:
    """Create max-value entropy search (Wang & Jegelka 2017, eq. 6, for minimization).

    The score of a point is the information, in nats, that its noise-free value gives about the
    minimum of the objective. The minimum is drawn from a Gumbel distribution fitted to the minimum
    over candidates whose values are taken as independent (their Section 3.1).

    Args:
        minima: Number of draws of the minimum per hyperparameter sample, over which the score is
            averaged.
    """
    check_static("minima", minima)
    return MaxValueEntropy(minima)


def information(
    prediction: Prediction, minima: Float[Array, "s k"]
) -> Float[Array, " m"]:
    """Return the entropy (nats) that N(mean, std²) loses when it is truncated below at a minimum.

    Args:
        prediction: Mean and std (s, m) for s hyperparameter samples at m points.
        minima: Draws of the minimum, k per sample; the scores are averaged over all s · k draws.
    """
    mean, std = prediction
    z = (mean[:, None, :] - minima[:, :, None]) / std[:, None, :]
    log_mass = log_ndtr(z)
    ratio = jnp.exp(-0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - log_mass)  # φ/Φ
    return (0.5 * z * ratio - log_mass).mean(axis=(0, 1))


def draw_minima(
    key: PRNGKeyArray, prediction: Prediction, k: int
) -> Float[Array, "s k"]:
    """Draw the minimum over candidates from a Gumbel distribution with the same quartiles.

    Args:
        key: Random key.
        prediction: Mean and std (s, m) at the candidates, for s hyperparameter samples.
        k: Number of draws per sample.
    """
    mean, std = prediction
    # P(minimum > t) = exp(−exp((t − location)/scale)): log(−log P) is linear in t
    ends = (mean - 10.0 * std).min(axis=1), (mean + 10.0 * std).min(axis=1)
    lower = _quantile(prediction, 0.75, ends)
    middle = _quantile(prediction, 0.5, ends)
    upper = _quantile(prediction, 0.25, ends)
    scale = (upper - lower) / (math.log(-math.log(0.25)) - math.log(-math.log(0.75)))
    location = middle - scale * math.log(math.log(2.0))
    tiny = jnp.finfo(mean.dtype).tiny
    u = jax.random.uniform(key, (len(mean), k), mean.dtype, minval=tiny)
    return location[:, None] + scale[:, None] * jnp.log(-jnp.log(u))


def _quantile(
    prediction: Prediction, survival: float, ends: tuple[Array, Array]
) -> Array:
    """Return t (s,) between the ends with Π Φ((mean − t)/std) = survival, by bisection."""
    mean, std = prediction

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        above = log_ndtr((mean - middle[:, None]) / std).sum(axis=1) > math.log(
            survival
        )
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    quantile: Array = jax.lax.fori_loop(0, _BISECTIONS, halve, ends)[0]
    return quantile
