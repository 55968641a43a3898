"""Baselines without a model of the values: random search, Sobol sequence and grid.

Each search follows a plan, a sequence of points that `init` draws from its key. An ask depends on
its own key only once the plan is used up. Points that were observed without an ask are not proposed
again.
"""

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from scipy.spatial import KDTree

from bonas.acquire import random_shift
from bonas.acquire import sobol as sobol_points
from bonas.search.checks import check_space
from bonas.search.observations import (
    SAME_POINT,
    Observations,
    add_observation,
    add_pending,
    empty_observations,
    max_difference,
    sequential_ask,
)
from bonas.search.search import AskInfo, AskResult, Observation, Search, ask_info
from bonas.spaces import Parameter, Space
from bonas.static_settings import check_counts, check_static

# The largest grid, and the largest finite space whose points are all part of the plan.
_MAX_POINTS = 20_000


class PlanState(NamedTuple):
    """The state of a search that follows a plan."""

    observations: Observations
    plan: Array  # (k, d) points to ask, in this order
    times: Array  # (k,) int: how often each was asked, or observed without an ask


@dataclass(frozen=True)
class RandomSearch(Search):
    """Random search; see `random`.

    Subclasses override `draw` to follow another plan, or `suggest`.
    """

    space: Space
    batch: int = 1

    @property
    def is_exhaustive(self) -> bool:
        """Whether the plan contains all points, because the space is finite and small."""
        return self.space.size <= _MAX_POINTS

    def all_points(self) -> np.ndarray:
        """Return all points (g, d) of the space, which `init` appends if `is_exhaustive`."""
        with jax.ensure_compile_time_eval():  # `init` may be traced
            return np.asarray(self.space.points())

    def draw(self, key: PRNGKeyArray, capacity: int) -> Float[Array, "k d"]:
        """Return the first points of the plan.

        Their number is twice the capacity, because repeated points are skipped. A larger capacity
        does not change the first points.
        """
        n = 2 * capacity
        d = self.space.dim
        # Drawing a flat array compiles twice as fast.
        return self.space.spread(jax.random.uniform(key, (n * d,)).reshape(n, d))

    def suggest(
        self, key: PRNGKeyArray, state: PlanState
    ) -> tuple[Float[Array, " d"], AskInfo]:
        """Return the next point and a report."""
        x, exhausted = self.next_planned(key, state)
        return x, ask_info(x, random=True, exhausted=exhausted)

    def next_planned(
        self, key: PRNGKeyArray, state: PlanState
    ) -> tuple[Float[Array, " d"], Bool[Array, ""]]:
        """Return the next point of the plan, and whether all points have been proposed before.

        It is the first of the points that were proposed least often. If the plan does not contain
        the whole space, new random points follow it, and the second result is always False.
        """
        row = jnp.argmin(state.times)
        repeated = state.times[row] > 0
        if self.is_exhaustive:
            return state.plan[row], repeated
        random = self.space.spread(jax.random.uniform(key, (self.space.dim,)))
        return jnp.where(repeated, random, state.plan[row]), jnp.asarray(False)

    def init(self, key: PRNGKeyArray, capacity: int) -> PlanState:
        check_static("capacity", capacity)
        draw_key, order_key = jax.random.split(key)
        plan = self.draw(draw_key, capacity)
        if self.is_exhaustive:
            points = self.all_points()
            order = jnp.argsort(jax.random.uniform(order_key, (len(points),)))
            plan = jnp.concatenate([plan, jnp.asarray(points)[order]])
        observations = empty_observations(capacity, self.space.dim)
        return PlanState(observations, plan, jnp.zeros(len(plan), int))

    def ask(self, key: PRNGKeyArray, state: PlanState) -> AskResult:
        return sequential_ask(self._ask_one, key, state, batch=self.batch)

    def _ask_one(self, key: PRNGKeyArray, state: PlanState) -> AskResult:
        x, info = self.suggest(key, state)
        return x, _mark(state, add_pending(state.observations, x), x), info

    def tell(self, state: PlanState, observation: Observation) -> PlanState:
        self.space.check(observation.x, "an observation's x", exists=True)
        x = jnp.asarray(observation.x, state.plan.dtype)
        observation = observation._replace(noise=None)
        return _mark(state, add_observation(state.observations, observation), x)

    def grow(self, state: PlanState, fresh: PlanState) -> PlanState:
        """Return the observations at the capacity of `fresh`, with its plan."""
        grown = super().grow(state, fresh)
        times = _count_observed(fresh.plan, grown.observations)
        return PlanState(grown.observations, fresh.plan, times)


@dataclass(frozen=True)
class SobolSearch(RandomSearch):
    """Search along a Sobol sequence; see `sobol`."""

    def draw(self, key: PRNGKeyArray, capacity: int) -> Float[Array, "k d"]:
        return self.space.spread(
            random_shift(key, sobol_points(2 * capacity, self.space.dim))
        )


@dataclass(frozen=True)
class GridSearch(RandomSearch):
    """Grid search; see `grid`."""

    levels: int = 5

    is_exhaustive = True

    def all_points(self) -> np.ndarray:
        """Return all points (g, d) of the grid."""
        return _grid_points(self.space, self.levels)

    def draw(self, key: PRNGKeyArray, capacity: int) -> Float[Array, "k d"]:
        return jnp.zeros((0, self.space.dim))


def random(space: Space, *, batch: int = 1) -> RandomSearch:
    """Search a space at random, with points distributed as by `space.sample`.

    In a space of up to 20,000 points, no point is repeated before all have been proposed; then
    `AskInfo.exhausted` is set. In a larger space, repeated points are skipped until twice the
    capacity has been drawn.

    Args:
        space: The space to search.
        batch: The number of points per ask.
    """
    check_plan(space, batch=batch)
    return RandomSearch(space, batch)


def sobol(space: Space, *, batch: int = 1) -> SobolSearch:
    """Search a space along a Sobol sequence with one random shift (Cranley & Patterson 1976).

    The sequence covers the space more evenly than random points. In finite spaces, repeated points
    are skipped as by `random`.

    Args:
        space: The space to search.
        batch: The number of points per ask.
    """
    check_plan(space, batch=batch)
    return SobolSearch(space, batch)


def grid(space: Space, *, levels: int = 5, batch: int = 1) -> GridSearch:
    """Search a grid of all combinations of parameter values, in random order.

    Points that differ only in inactive parameters appear once. Because the order is random, a
    search that stops early has evaluated a random sample of the grid. After the last point the grid
    starts again and `AskInfo.exhausted` is set.

    Args:
        space: The space to search.
        levels: The number of values of each numeric parameter, evenly spaced on its linear or
            logarithmic scale and including both ends; with one level, the middle. Integers with
            fewer values take all of them, and a Choice takes all its options.
        batch: The number of points per ask.

    Raises:
        ValueError: If the grid has more than 20,000 combinations.
    """
    check_plan(space, levels=levels, batch=batch)
    search = GridSearch(space, batch, levels)
    search.all_points()  # raises a ValueError if the grid is too large
    return search


def check_plan(space: Space, **counts: int) -> None:
    """Raise an error unless the space is a space and all counts are positive integers."""
    check_space(space)
    check_counts(**counts)


def _mark(state: PlanState, observations: Observations, x: Array) -> PlanState:
    """Return the state with new observations; if a row was added, count x as asked."""
    new = observations.data.size > state.observations.data.size
    same = max_difference(state.plan, x) < SAME_POINT
    return PlanState(observations, state.plan, state.times + (new & same))


def _count_observed(plan: Array, observations: Observations) -> Array:
    """Return how often each point of a plan (k, d) occurs in the observations."""
    points = observations.data.x
    size = observations.data.size
    if isinstance(size, jax.core.Tracer) or isinstance(plan, jax.core.Tracer):

        def count(times: Array, row: Array) -> tuple[Array, None]:
            same = max_difference(plan, points[row]) < SAME_POINT
            return times + (same & (row < size)), None

        none = jnp.zeros(len(plan), int)
        return jax.lax.scan(count, none, jnp.arange(len(points)))[0]
    times = np.zeros(len(plan), int)
    rows_of = KDTree(plan).query_ball_point(points[:size], SAME_POINT, p=np.inf)
    for rows in rows_of:
        times[rows] += 1
    return jnp.asarray(times)


def _grid_points(space: Space, levels: int) -> np.ndarray:
    """Return the distinct points (g, d) of a grid."""
    columns = [_levels(parameter, levels) for parameter in space.parameters.values()]
    total = math.prod(len(column) for column in columns)
    if total > _MAX_POINTS:
        raise ValueError(
            f"a grid of {total} combinations exceeds the maximum of {_MAX_POINTS}; use fewer "
            "levels, or sobol"
        )
    with jax.ensure_compile_time_eval():
        points = space.snap(jnp.asarray(list(itertools.product(*columns))))
        return np.unique(np.asarray(points), axis=0)


def _levels(parameter: Parameter, levels: int) -> np.ndarray:
    """Return the column values of one parameter on a grid."""
    with jax.ensure_compile_time_eval():
        if not parameter.ordered or parameter.size <= levels:
            values = parameter.grid()
        else:
            values = (
                jnp.linspace(0.0, 1.0, levels) if levels > 1 else jnp.asarray([0.5])
            )
        return np.unique(np.asarray(parameter.snap(values)))
