"""Monte Carlo acquisitions: q-EI, Thompson sampling and scores estimated from a few draws."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, PRNGKeyArray

from bonas.acquire.acquisition import Acquisition, ClosedForm, Context
from bonas.acquire.argument_checks import check_closed_form
from bonas.acquire.closed_form import ei
from bonas.acquire.log_improvement import log_ei
from bonas.acquire.maximize import Score, Selection, random_shift, sobol
from bonas.linalg import factorize, safe_sqrt, solve_lower
from bonas.static_settings import check_all_static, check_counts


def q_ei(
    mean: Float[Array, " q"],
    cov: Float[Array, "q q"],
    best: ArrayLike,
    normals: Float[Array, "k q"],
) -> Float[Array, ""]:
    """Estimate q-EI, the expected improvement by evaluating q points at once.

    It is E max(best − min f, 0) for f ~ N(mean, cov): Ginsbourger et al. 2008.

    Args:
        mean: Means (q,) of the values at the points.
        cov: Covariance matrix (q, q) of the values at the points.
        best: The incumbent.
        normals: Standard normal draws (k, q). Use the same draws for every set of points, so that
            estimates are comparable and differentiable.
    """
    lower, _ = factorize(cov, jnp.ones(len(mean), bool))
    values = mean[None, :] + normals @ lower.T
    return jnp.maximum(best - values.min(axis=1), 0.0).mean()


@dataclass(frozen=True)
class BatchEI(Acquisition):
    """The logarithm of the increase of q-EI by one more point."""

    draws: int

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        at = context.data.x
        normals = jax.random.normal(key, (self.draws, len(at)), at.dtype)
        return draw_pending(context, at, context.pending, normals).log_gain, memory


@dataclass(frozen=True)
class PendingDraws:
    """Draws of the values at pending points, and the model conditioned on each draw."""

    context: Context
    at: Float[Array, "n d"]  # points, the pending ones among them
    waiting: Bool[Array, " n"]  # which of these points are pending
    normals: Float[Array, "k n"]  # standard normals from which values are drawn
    # Cholesky factors of the covariance of the pending points
    factors: Float[Array, "s n n"]
    best: Float[Array, "s k"]  # the incumbent, or the lowest of the drawn values

    def log_gain(self, x: Float[Array, "m d"]) -> Float[Array, " m"]:
        """Return the logarithm of each point's increase of the q-EI of the pending points."""
        means, std, white = self.condition(x)
        left = safe_sqrt(std**2 - jnp.sum(white**2, axis=1))
        stds = jnp.repeat(left, len(self.normals), axis=0)
        return log_ei(means.reshape(-1, len(x)), stds, self.best.reshape(-1))

    def condition(
        self, x: Float[Array, "m d"]
    ) -> tuple[Float[Array, "s k m"], Float[Array, "s m"], Float[Array, "s n m"]]:
        """Return the means given each draw, the unconditional std and whitened covariances at x."""
        model, state = self.context.model, self.context.model_state
        mean, std = model.predict(state, x)
        cross = jnp.where(
            self.waiting[None, :, None], model.covariance(state, self.at, x), 0.0
        )
        white = jax.vmap(solve_lower)(self.factors, cross)
        means = mean[:, None, :] + jnp.einsum("kn,snm->skm", self.normals, white)
        return means, std, white


def draw_pending(
    context: Context,
    at: Float[Array, "n d"],
    waiting: Bool[Array, " n"],
    normals: Float[Array, "k n"],
) -> PendingDraws:
    """Draw the values at the rows `waiting` of `at`; bound the incumbent by `context.best`."""
    drawn = draw_latent(context, at, waiting, normals)
    return replace(drawn, best=jnp.minimum(context.best[:, None], drawn.best))


def draw_latent(
    context: Context,
    at: Float[Array, "n d"],
    waiting: Bool[Array, " n"],
    normals: Float[Array, "k n"],
    *,
    jitter: float = 0.0,
) -> PendingDraws:
    """Draw the latent values at some rows of `at` from their joint posterior.

    Args:
        context: The context.
        at: Points.
        waiting: The rows to draw. The incumbent is the lowest of them.
        normals: Standard normal draws.
        jitter: A variance to add to each value, for points whose values are almost known.
    """
    model = context.model
    state = context.model_state
    level, _ = model.predict(state, at)
    cov = model.covariance(state, at, at)
    if jitter:
        cov = cov + jitter * jnp.eye(len(at))[None]
    pairs = waiting[:, None] & waiting[None, :]
    factors, _ = jax.vmap(
        lambda cov: factorize(jnp.where(pairs, cov, jnp.eye(len(at))), waiting)
    )(cov)
    values = level[:, None, :] + jnp.einsum("sij,kj->ski", factors, normals)
    lowest = jnp.min(jnp.where(waiting[None, None, :], values, jnp.inf), axis=2)
    return PendingDraws(context, at, waiting, normals, factors, lowest)


def even_normals(key: PRNGKeyArray, k: int, q: int) -> Float[Array, "k q"]:
    """Draw standard normals (k, q) by a shifted Sobol sequence, so that averages vary less."""
    u = random_shift(key, sobol(k, q))
    least = jnp.finfo(u.dtype).eps
    normals: Array = jax.scipy.special.ndtri(jnp.clip(u, least, 1.0 - least))
    return normals


def batch_ei(draws: int = 64) -> Acquisition:
    """Create an acquisition that selects the points of a batch one at a time by q-EI.

    The score of a point x is the logarithm of the increase of q-EI if x is added to the pending
    points. The increase is E EI(x | f(pending), min(best, f(pending))), where the inner expectation
    has a closed form, and the outer one is estimated from draws of f(pending) that all candidates
    share. Without pending points the score is `log_ei`.

    Args:
        draws: Number of normal draws.
    """
    check_counts(draws=draws)
    return BatchEI(draws)


@dataclass(frozen=True)
class Thompson(Acquisition):
    """Thompson sampling."""

    def select(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Selection, Any]:
        candidate_key, draw_key = jax.random.split(key)
        points = context.candidates(candidate_key)
        draw = context.model.sample(draw_key, context.fantasy_state, points, 1)[0]
        return context.choose(points, -draw), memory


def thompson() -> Acquisition:
    """Create Thompson sampling, which selects the minimum of a posterior draw over candidates.

    Each point of a batch is the minimum of another joint draw.
    """
    return Thompson()


@dataclass(frozen=True)
class UnderSampled(Acquisition):
    """A closed form of mean and std estimated from few draws."""

    base: ClosedForm
    draws: int
    corrected: bool

    def select(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Selection, Any]:
        candidate_key, draw_key = jax.random.split(key)
        points = context.candidates(candidate_key)
        state = context.fantasy_state if self.corrected else context.model_state
        values = context.model.sample(draw_key, state, points, self.draws)
        mean = values.mean(axis=0)
        std = values.std(axis=0, ddof=1 if self.corrected else 0)
        scores = self.base(mean[None], std[None], context.best.mean())
        return context.choose(points, scores), memory


def under_sampled(
    base: ClosedForm = ei, *, draws: int = 10, corrected: bool = False
) -> Acquisition:
    """Create an acquisition whose mean and std are estimated from a few joint posterior draws.

    The noise of the estimates makes the points of a batch differ: Hutchinson 2019, Algorithm 2,
    with 50, 10 or 3 draws. As in his code, the variance is the sum of squares divided by the number
    of draws, which underestimates it by a third for three draws, and no values are assumed at
    pending points.

    Args:
        base: The closed form that scores points by the estimated mean and std.
        draws: Number of posterior draws, at least 2.
        corrected: Whether to divide by the number of draws minus one instead, and to draw from the
            model given the values assumed at pending points.
    """
    check_all_static(draws=draws, corrected=corrected)
    if draws < 2:
        raise ValueError(
            f"draws must be at least 2 to estimate a standard deviation; got {draws}"
        )
    check_closed_form(base, {})
    return UnderSampled(base, draws, corrected)
