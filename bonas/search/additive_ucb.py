"""Add-GP-UCB: Bayesian optimization with an additive model, optimized group by group.

Kandasamy, Schneider & Póczos 2015.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bonas.acquire import Acquisition, Context, PendingStrategy, Selection, believer
from bonas.gp import Kernel, Noise, predict_parts, priors
from bonas.gp.additive_kernels import ORDER, even_sizes, owners
from bonas.search.argument_types import Output
from bonas.search.bayesian import Bayes, bayes
from bonas.search.checks import check_space
from bonas.spaces import Space
from bonas.static_settings import check_counts
from bonas.surrogates import additive, check_groupable
from bonas.traced_settings import Setting, as_setting, setting_value

# Candidates per group from which the ascent starts.
_STARTS = 4
# Steps of Adam, each a hundredth of the range. With two columns per group, a candidate is within
# ten steps of an optimum.
_STEPS = 10
_LEARNING_RATE = 0.01
# The factor of the schedule of kappa in the paper's experiments.
_SCHEDULE = 0.2


def add_gp_ucb(
    space: Space,
    *,
    groups: str | Iterable[Iterable[int]] = "learned",
    size: int = 2,
    base: Kernel | None = None,
    noise: Noise = priors.log_normal_noise,
    kappa: ArrayLike | None = None,
    every: int = 5,
    initial: int | ArrayLike = 5,
    batch: int = 1,
    pending: PendingStrategy = believer,
    output: Output | None = None,
) -> Bayes:
    """Search by Bayesian optimization with an additive model (Add-GP-UCB).

    Kandasamy, Schneider & Póczos 2015. The objective is modeled as a sum of functions of few
    columns each. Its lower confidence bound Σ_j (mean_j − kappa std_j) is a sum over the groups of
    columns, so each group is minimized on its own. Because Σ_j std_j exceeds the standard deviation
    of the sum, the search explores more than it would with the bound of the sum.

    Conditional parameters, Choices of more than two options and TableSpaces are not supported.

    Args:
        space: The space to search.
        groups: Disjoint groups that contain every column once, such as [(0, 3), (1, 2)], or
            "learned" to find groups of `size` columns by their evidence (`surrogates.additive`).
        size: The number of columns in a learned group.
        base: The kernel of each group. Default: Matérn 5/2.
        noise: The noise variance, as in `surrogates.gp`.
        kappa: The weight of the standard deviation. Default: √(0.2 size log 2t) at evaluation t, as
            in the paper's experiments.
        every: The number of asks with a model from one search for better groups to the next.
        initial: The number of initial points, or the points themselves, as in `bonas.bayes`.
        batch: The number of points per ask.
        pending: The strategy that assumes values at pending points, as in `bonas.bayes`.
        output: The scale on which values are modeled, as in `bonas.bayes`.

    Returns:
        A search for `bonas.run`, `bonas.run_many`, `bonas.minimize` or `bonas.Study`.
    """
    check_space(space)
    check_groupable(space)
    weight = None if kappa is None else as_setting("kappa", kappa)
    if isinstance(weight, float) and not weight >= 0.0:
        raise ValueError(f"kappa must be at least 0; got {kappa}")
    check_counts(size=size, every=every)
    size = min(size, space.dim)
    if isinstance(groups, str):
        sizes = even_sizes(space.dim, size)
    else:
        groups = tuple(tuple(group) for group in groups)
        sizes = tuple(sorted(map(len, groups), reverse=True))
    model = additive(groups, size=size, base=base, noise=noise, every=every)
    return bayes(
        space,
        surrogate=model,
        acquisition=GroupByGroup(space, sizes, weight),
        initial=initial,
        batch=batch,
        pending=pending,
        output=output,
    )


@dataclass(frozen=True)
class GroupByGroup(Acquisition):
    """Acquisition that minimizes the sum of the groups' lower confidence bounds, each by itself."""

    space: Space
    sizes: tuple[int, ...]
    kappa: Setting | None

    def select(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Selection, Any]:
        posterior = jax.tree.map(lambda leaf: leaf[0], context.fantasy_state.posterior)
        owner = owners(posterior.params[ORDER], self.sizes)
        step = jnp.maximum(context.data.size, 1).astype(posterior.alpha.dtype)
        schedule = jnp.sqrt(_SCHEDULE * self.sizes[0] * jnp.log(2.0 * step))
        weight = schedule if self.kappa is None else setting_value(self.kappa)

        def score(x: Array) -> Array:
            """Score each group (g, m) at its own columns of points (m, d)."""
            mean, std = predict_parts(posterior, x)
            return weight * std - mean

        points = context.candidates(key)
        scores = score(points)
        continuous = np.array([p.continuous for p in self.space.parameters.values()])
        starts = _combine_best(points, scores, owner, _STARTS)
        best, found = _ascend(score, *starts, continuous=continuous, owner=owner)
        best, found = _combine_best(best, found, owner, len(best))
        totals = jnp.concatenate([found.sum(axis=0), scores.sum(axis=0)])
        return context.choose(jnp.concatenate([best, points]), totals), memory


def _combine_best(
    points: Float[Array, "m d"],
    scores: Float[Array, "g m"],
    owner: Int[Array, " d"],
    k: int,
) -> tuple[Float[Array, "k d"], Float[Array, "g k"]]:
    """Combine the i-th best columns of all groups into the i-th of k points.

    Returns:
        The points and the scores of their groups.
    """
    top, rows = jax.lax.top_k(jnp.where(jnp.isnan(scores), -jnp.inf, scores), k)
    return jnp.take_along_axis(points, rows[owner].T, axis=0), top


class _Ascent(NamedTuple):
    """The state of a gradient ascent."""

    points: Array  # (k, d)
    optimizer: Any  # the state of Adam
    best: Array  # (k, d) the best columns of each group
    top: Array  # (g, k) the scores of the groups at `best`


def _ascend(
    score: Callable[[Array], Array],
    points: Float[Array, "k d"],
    scores: Float[Array, "g k"],
    *,
    continuous: np.ndarray,
    owner: Int[Array, " d"],
) -> tuple[Float[Array, "k d"], Float[Array, "g k"]]:
    """Improve all groups at once by projected Adam; return the best columns and scores visited.

    The gradient of the sum of all scores has the gradient of each group in its own columns.
    """
    adam = optax.adam(_LEARNING_RATE)

    def loss(z: Array) -> tuple[Array, Array]:
        each = score(z)
        return -each.sum(), each

    gradient_of = jax.value_and_grad(loss, has_aux=True)

    def step(ascent: _Ascent, _: None) -> tuple[_Ascent, None]:
        (_, scores), gradient = gradient_of(ascent.points)
        better = scores > ascent.top
        best = jnp.where(better[owner].T, ascent.points, ascent.best)
        top = jnp.where(better, scores, ascent.top)
        gradient = jnp.where(continuous[None, :], jnp.nan_to_num(gradient), 0.0)
        move, optimizer = adam.update(gradient, ascent.optimizer)
        moved = ascent.points + jnp.where(continuous[None, :], move, 0.0)
        return _Ascent(jnp.clip(moved, 0.0, 1.0), optimizer, best, top), None

    start = _Ascent(points, adam.init(points), points, scores)
    end, _ = jax.lax.scan(step, start, None, length=_STEPS + 1)
    return end.best, end.top
