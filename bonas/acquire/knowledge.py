"""The knowledge gradient: how much the lowest posterior mean is expected to fall."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.acquire.acquisition import Acquisition, Context
from bonas.acquire.log_improvement import log_h, log_mean
from bonas.acquire.maximize import Score
from bonas.static_settings import check_counts

# Breakpoints beyond this many standard deviations do not count.
_FAR = 1e8


@dataclass(frozen=True)
class KnowledgeGradient(Acquisition):
    """The expected fall of the lowest posterior mean; see `knowledge_gradient`."""

    points: int

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        support = self._support(key, context)
        means = context.predict(support).mean
        noise = (context.noise + _known_noise(context))[:, None]

        def score(x: Array) -> Array:
            mean, std = context.predict(x)
            cov = context.model.covariance(context.fantasy_state, support, x)
            observed = jnp.sqrt(std**2 + noise)  # std of a noisy evaluation
            heights = jnp.concatenate(
                [
                    jnp.broadcast_to(means[:, :, None], cov.shape),
                    mean[:, None, :],
                ],
                axis=1,
            )
            slopes = jnp.concatenate([cov, (std**2)[:, None, :]], axis=1)
            slopes = slopes / observed[:, None, :]
            gains = jax.vmap(jax.vmap(log_expected_fall, 1), 0)(heights, slopes)
            return log_mean(gains)

        return score, memory

    def _support(self, key: PRNGKeyArray, context: Context) -> Float[Array, "k d"]:
        """Return the points whose posterior means compete for the lowest.

        They are the point with the lowest mean, and those with the lowest mean minus std.
        """
        candidates = context.candidates(key)
        pool = jnp.concatenate([context.data.x, candidates])
        proposed = context.data.mask[:, 0] & ~context.failed | context.pending
        valid = jnp.concatenate([proposed, jnp.ones(len(candidates), bool)])
        mean, std = context.predict(pool)
        average = jnp.where(valid, mean.mean(axis=0), jnp.inf)
        bound = jnp.where(valid, (mean - std).mean(axis=0), jnp.inf)
        k = min(self.points, len(candidates))  # so that all of them are valid
        rows = jax.lax.top_k(-bound, k)[1]
        return pool[jnp.concatenate([jnp.argmin(average)[None], rows])]


def _known_noise(context: Context) -> Float[Array, ""]:
    """Return the average of the known noise variances, as an estimate of the next one."""
    data = context.data
    if data.noise is None:
        return jnp.zeros((), data.y.dtype)
    evaluated = data.mask[:, 0] & ~context.failed
    total = jnp.sum(jnp.where(evaluated, data.noise, 0.0))
    return total / jnp.maximum(evaluated.sum(), 1)


def log_expected_fall(
    heights: Float[Array, " k"], slopes: Float[Array, " k"]
) -> Float[Array, ""]:
    """Return log(min heights − E min(heights + slopes Z)) for a standard normal Z.

    The result is exact: minus the minimum of the lines is convex and piecewise linear (Frazier,
    Powell & Dayanik 2009, Algorithm 1). Here it is a sum of positive terms, one for each line that
    is the lowest somewhere, so that nothing cancels. Relative to the lowest line at 0, a line of
    slope −b that is the lowest on [l, u], 0 ≤ l, contributes b (h(−l) − h(−u)), where h(z) = φ(z) +
    zΦ(z); lines that are the lowest below 0 contribute likewise. All pairs of lines are compared,
    which takes k² operations of a fixed shape.
    """
    lowest = jnp.argmin(heights)
    rise = heights - heights[lowest]
    tilt = slopes - slopes[lowest]
    terms, present = jax.vmap(_one_side, (None, 0))(rise, jnp.stack([tilt, -tilt]))
    found = present.any()
    total = logsumexp(jnp.where(found, jnp.where(present, terms, -jnp.inf), 0.0))
    return jnp.where(found, total, -jnp.inf)


def _one_side(rise: Array, fall: Array) -> tuple[Array, Array]:
    """Return the logarithms (k,) of the lines' terms for Z > 0, and which lines have one.

    The lines are rise − fall Z with rise ≥ 0, and the lowest line at 0 is 0.
    """
    steeper = fall[None, :] - fall[:, None]  # fall of the column − fall of the row
    higher = rise[None, :] - rise[:, None]
    parallel = steeper == 0.0
    crossing = higher / jnp.where(parallel, 1.0, steeper)
    end = jnp.min(jnp.where(steeper > 0.0, crossing, _FAR), axis=1)
    flatter = (steeper < 0.0) & (fall > 0.0)[None, :]
    falls = fall > 0.0
    start = rise / jnp.where(falls, fall, 1.0)  # where it crosses 0
    start = jnp.maximum(start, jnp.max(jnp.where(flatter, crossing, 0.0), axis=1))
    # count only the first of equal lines
    first = jnp.tril(jnp.ones(parallel.shape, bool), -1)
    covered = parallel & ((higher < 0.0) | ((higher == 0.0) & first))
    present = falls & ~covered.any(axis=1) & (start < end)
    start = jnp.where(present, start, 0.0)
    above = log_h(-start)
    drop = above - log_h(-jnp.where(present, end, 1.0))
    present = present & (drop > 0.0)
    drop = jnp.where(present, drop, 1.0)
    size = jnp.log(jnp.where(falls, fall, 1.0))
    return size + above + _log1mexp(drop), present


def _log1mexp(drop: Array) -> Array:
    """Return log(1 − exp(−drop)) for drop > 0, accurate for small and large values."""
    is_small = drop < math.log(2.0)
    small = jnp.log(-jnp.expm1(-jnp.where(is_small, drop, 1.0)))
    return jnp.where(is_small, small, jnp.log1p(-jnp.exp(-drop)))


def knowledge_gradient(points: int = 32) -> Acquisition:
    """Create the knowledge gradient, the expected decrease of the lowest posterior mean.

    Frazier, Powell & Dayanik 2009 and Scott, Frazier & Powell 2011, for minimization. The score of
    a point values what its evaluation says about other points. It accounts for the noise of the
    evaluation: the noise variance of the model plus, in a search with known noise, the average of
    the known variances. The score is the logarithm of the average over hyperparameter samples. At
    pending points, the values of the search's pending strategy are assumed.

    The minimum is over the point itself, the point with the lowest mean, and `points` others with
    the lowest mean − std among evaluated, pending and random points. The expectation is exact.

    Args:
        points: Number of other points over which the minimum is taken. The cost of an ask grows
            with its square.
    """
    check_counts(points=points)
    return KnowledgeGradient(points)
