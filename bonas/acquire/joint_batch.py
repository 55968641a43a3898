"""Joint expected improvement, which selects all points of a batch together."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.scipy.special import logsumexp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from bonas.acquire.acquisition import Acquisition, Context
from bonas.acquire.log_improvement import log_ei
from bonas.acquire.maximize import Selection
from bonas.acquire.monte_carlo import PendingDraws, draw_pending, even_normals
from bonas.linalg import factorize
from bonas.spaces import Space
from bonas.static_settings import check_all_static

# Two points of a batch are the same if no column differs by more.
_SAME_POINT = 1e-6


def log_q_ei(
    mean: Float[Array, "k q"],
    cov: Float[Array, "q q"],
    best: ArrayLike,
    normals: Float[Array, "k q"],
) -> Float[Array, ""]:
    """Estimate the logarithm of q-EI, with a useful gradient where q-EI underflows.

    q-EI is the sum over j of E EI(x_j | f(x_1), …, f(x_{j−1})), where the improvement is over the
    best of the incumbent and these values. The inner expectation has a closed form, and the outer
    one is over the draws. For one point it is exact: `log_ei`.

    Args:
        mean: Means at the points (q,), or for each draw (k, q).
        cov: Covariance matrix (q, q) of the values at the points.
        best: The incumbent, one number or one for each draw (k,).
        normals: Standard normal draws (k, q). Use the same draws for every set of points, so that
            estimates are comparable and differentiable.
    """
    lower, _ = factorize(cov, jnp.ones(len(cov), bool))
    std = jnp.diagonal(lower)
    values = jnp.atleast_2d(mean) + normals @ lower.T
    conditional = values - normals * std[None, :]
    start = jnp.broadcast_to(jnp.asarray(best, values.dtype), len(values))[:, None]
    before = jax.lax.cummin(jnp.concatenate([start, values[:, :-1]], axis=1), axis=1)
    stds = jnp.broadcast_to(std, values.shape)
    return logsumexp(log_ei(conditional - before, stds, 0.0))


class Plan(NamedTuple):
    """The last planned batch."""

    points: Array  # (q, d)
    score: Array  # () logarithm of its expected improvement
    used: Array  # () int: number of points already selected
    evaluated: Array  # () int: number of evaluations when it was planned


@dataclass(frozen=True)
class JointEI(Acquisition):
    """Batches with the highest joint expected improvement; see `joint_ei`."""

    batch: int
    draws: int
    steps: int
    space: Space | None = None

    def adapt(self, space: Space) -> "JointEI":
        return replace(self, space=space)

    def init(self, capacity: int, d: int) -> Plan:
        nothing = jnp.asarray(0, jnp.int32)
        return Plan(
            jnp.zeros((self.batch, d)),
            jnp.asarray(-jnp.inf, jnp.result_type(float)),
            nothing + self.batch,
            nothing,
        )

    def select(
        self, key: PRNGKeyArray, context: Context, memory: Plan
    ) -> tuple[Selection, Plan]:
        evaluated = (context.data.size - context.pending.sum()).astype(jnp.int32)
        stale = (memory.used >= self.batch) | (evaluated != memory.evaluated)

        def plan() -> Plan:
            start = self._greedy(key, context)
            draws = self._draw(key, context, context.data.x, context.pending)
            points, score = self._climb(draws, key, start)
            return Plan(points, score, jnp.zeros_like(evaluated), evaluated)

        memory = jax.lax.cond(stale, plan, lambda: memory)
        x = memory.points[memory.used]
        lost = ~(memory.score > -jnp.inf)  # or NaN
        chosen = Selection(x, memory.score, lost, jnp.asarray(0))
        return chosen, memory._replace(used=memory.used + 1)

    def _draw(
        self, key: PRNGKeyArray, context: Context, at: Array, waiting: Array
    ) -> PendingDraws:
        normals = jax.random.normal(key, (self.draws, len(at)), at.dtype)
        return draw_pending(context, at, waiting, normals)

    def _greedy(self, key: PRNGKeyArray, context: Context) -> Float[Array, "q d"]:
        """Return points that are added one at a time, each with the largest increase of q-EI."""
        data = context.data
        q = self.batch

        def add(points: Array, j: Array) -> tuple[Array, None]:
            chosen = jnp.arange(q) < j
            at = jnp.concatenate([data.x, points])
            waiting = jnp.concatenate([context.pending, chosen])
            draw_key, maximize_key = jax.random.split(jax.random.fold_in(key, j))
            draws = self._draw(draw_key, context, at, waiting)

            def score(x: Array) -> Array:
                gap = jnp.max(jnp.abs(x[:, None, :] - points[None, :, :]), axis=-1)
                repeated = ((gap < _SAME_POINT) & chosen[None, :]).any(axis=1)
                return jnp.where(repeated, -jnp.inf, draws.log_gain(x))

            x = context.maximize(maximize_key, score).x
            return points.at[j].set(x), None

        start = jnp.zeros((q, data.x.shape[1]), data.x.dtype)
        return jax.lax.scan(add, start, jnp.arange(q))[0]

    def _climb(
        self, draws: PendingDraws, key: PRNGKeyArray, start: Array
    ) -> tuple[Float[Array, "q d"], Float[Array, ""]]:
        """Improve the continuous columns of all points by projected Adam; return the best batch."""
        parameters = [] if self.space is None else self.space.parameters.values()
        continuous = np.array([p.continuous for p in parameters], bool)
        normals = even_normals(
            jax.random.fold_in(key, self.batch), self.draws, self.batch
        )

        def score(points: Array) -> Array:
            return _joint_score(draws, points, normals)

        if self.space is None or not continuous.any():
            return start, score(start)
        free = continuous[None, :] & self.space.active(start)
        adam = optax.adam(0.01)

        def step(carry: tuple[Array, Any, Array, Array], _: None) -> tuple[Any, None]:
            points, state, best, top = carry
            value, slope = jax.value_and_grad(score)(points)
            better = (value > top) | jnp.isnan(top)
            best = jnp.where(better, points, best)
            top = jnp.where(better, value, top)
            descent = jnp.where(free, -jnp.nan_to_num(slope), 0.0)
            move, state = adam.update(descent, state)
            points = jnp.clip(points + jnp.where(free, move, 0.0), 0.0, 1.0)
            return (points, state, best, top), None

        nothing: Any = np.asarray(np.nan, start.dtype)
        first = (start, adam.init(start), start, nothing)
        (_, _, best, top), _ = jax.lax.scan(step, first, None, length=self.steps + 1)
        return best, top


def _joint_score(
    draws: PendingDraws, points: Float[Array, "q d"], normals: Float[Array, "k q"]
) -> Float[Array, ""]:
    """Return the logarithm of the joint increase of the q-EI of the pending points."""
    model, state = draws.context.model, draws.context.model_state
    means, _, white = draws.condition(points)
    prior = model.covariance(state, points, points)
    cov = prior - jnp.einsum("snp,snq->spq", white, white)
    scores = jax.vmap(log_q_ei, (0, 0, 0, None))(means, cov, draws.best, normals)
    return logsumexp(scores) - jnp.log(len(scores))


def joint_ei(batch: int, *, draws: int = 256, steps: int = 20) -> Acquisition:
    """Create an acquisition that maximizes the joint expected improvement of a batch.

    The points are first chosen one at a time, as by `batch_ei`. Then gradient ascent increases q-EI
    in the active continuous columns of all points, with the same draws for all sets of points
    (Wilson et al. 2018). Integers and options are not changed. Points that are pending from earlier
    batches are taken into account.

    Args:
        batch: Points per batch: the batch size of the search, or the number of workers if the
            search asks for one point at a time.
        draws: Number of normal draws by which q-EI is estimated.
        steps: Number of steps of Adam; with 0, the points are those chosen one at a time.
    """
    check_all_static(batch=batch, draws=draws, steps=steps)
    if min(batch, draws) < 1 or steps < 0:
        raise ValueError(
            "batch and draws must be at least 1, and steps must be at least 0; "
            f"got {batch}, {draws} and {steps}"
        )
    return JointEI(batch, draws, steps)
