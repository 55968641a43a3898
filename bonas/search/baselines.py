"""Searches that any other has to beat: random, Sobol, grid, regularised evolution.

The first three follow a plan made by `init` from its key, so that an ask does not depend on its own key; a point that
was told without being asked is not asked again. Like every search they can be asked again before they are told, in
batches or not, and be told in any order; what happens past the capacity is said in `bonas.search.record.asked`.
"""

import itertools
import math
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.acquire.maximise import shifted
from bonas.acquire.maximise import sobol as sobol_points
from bonas.data import Dataset
from bonas.search.record import SAME, Record, apart, asked, blank, check_room, known, told
from bonas.search.types import AskInfo, Search, Trial, ask_info, of_batch
from bonas.spaces import Choice, Float, Listed, Space
from bonas.spaces.parameters import Parameter

_MOST = 20_000  # points of a grid, or of a finite space that is kept account of point by point
_TRIES = 16  # children made for one ask, of which the first that is new is asked

Draw = Callable[[Array, int], Array]  # (key, capacity) -> points (k, d)
Suggest = Callable[[Array, "PlanState"], tuple[Array, AskInfo]]  # (key, state) -> x (d,) and what there is to say about it


class PlanState(NamedTuple):
    """What the next ask needs."""

    record: Record  # everything asked and told
    plan: Array  # (k, d) points to ask, in this order
    times: Array  # (k,) int: how often each of them was asked, or told without being asked


@cache
def random(space: Space, *, batch: int = 1) -> Search:
    """Random points, distributed as `space.sample` draws them.

    In a space of up to 20,000 points none is asked again before all have been tried; then AskInfo.exhausted says so, and
    the same points come again. In a larger one repeats are passed over as long as draws of twice the capacity last.
    """
    return _planned(space, batch, partial(_draws, space), _everything(space))


@cache
def sobol(space: Space, *, batch: int = 1) -> Search:
    """A Sobol sequence moved by one random vector (Cranley & Patterson 1976), more even than random points.

    Points of a finite space are not repeated: as for `random`.
    """

    def draw(key: Array, capacity: int) -> Array:
        return space.spread(shifted(key, sobol_points(2 * capacity, space.dim)))

    return _planned(space, batch, draw, _everything(space))


@cache
def grid(space: Space, *, levels: int = 5, batch: int = 1) -> Search:
    """Every combination of `levels` values of each real number and of each integer that takes more, and of every option.

    Values are spread evenly over the range, on its own scale, ends included; the middle where there is one level. Of a
    conditional space each point that exists is there once. The order is a random permutation, so that the points of a
    search that stops early are a fair sample of the grid; after the last it starts again and reports exhausted.
    """
    if levels < 1:
        raise ValueError(f"levels must be at least 1; got {levels}")
    return _planned(space, batch, lambda key, capacity: jnp.zeros((0, space.dim)), _grid_points(space, levels))


@cache
def evolution(space: Space, *, population: int = 20, tournament: int = 5, step: float = 0.1, batch: int = 1) -> Search:
    """Regularised evolution, in which the oldest die and not the worst: Real et al. 2019, Algorithm 1.

    The first `population` points are those of `random`. Then the best of `tournament` members, drawn with replacement
    from the youngest `population` that did not fail, is changed in one active parameter. Age counts from the ask, so the
    order in which a batch is told does not matter. A number moves by a Gaussian step of `step` of its range, on its own
    scale, reflected at the bounds, an integer by at least one; a Choice becomes any other option. Parameters that become
    active are drawn at random. A child that was tried before is made again, up to 16 times; then a random point is asked.

    Of a Listed space the child is the listed row nearest to what the change gives that was not tried: hardly any change of one
    parameter is listed itself, and nearly all are nearer to the parent than to any other row.
    """
    if population < 1 or tournament < 1 or not 0.0 < step < math.inf:
        raise ValueError(f"population, tournament and step must be positive; got {population}, {tournament} and {step}")
    everything = _everything(space)
    whole = space.space if isinstance(space, Listed) else space

    def child(chance: Array, change: Array, data: Dataset, rows: Array, members: Array) -> Array:
        drawn = rows[_whole(chance[:tournament], members)]
        parent = data.x[drawn[jnp.argmin(data.y[drawn, 0])]]
        return mutated(whole, parent, chance[tournament:], step * change)

    def suggest(key: Array, state: PlanState) -> tuple[Array, AskInfo]:
        data = state.record.data
        plan_key, chance_key, change_key = jax.random.split(key, 3)
        # children are columns: this way round the draws compile several times faster
        chances = jax.random.uniform(chance_key, (tournament + 2 * space.dim, _TRIES))
        changes = jax.random.normal(change_key, (space.dim, _TRIES))
        rows, members = _youngest(data.mask[:, 0], population)
        children = jax.vmap(child, (1, 1, None, None, None))(chances, changes, data, rows, members)
        tried = jax.vmap(known, (None, 0))(state.record, children)
        planned, exhausted = _next(plan_key, state, space, len(everything) > 0)
        young, barren, first = data.size < population, members == 0, jnp.argmin(tried)
        plain = young | barren | (tried.all() & ~exhausted)
        info = ask_info(
            planned,
            duplicates=jnp.where(young | barren, 0, jnp.where(tried.all(), _TRIES, first)),
            exhausted=exhausted,
            random=plain,
            fallback=jnp.where(barren & ~young, 1, 0),
        )
        return jnp.where(plain, planned, children[first]), info

    if isinstance(space, Listed):
        table = space

        def suggest_listed(key: Array, state: PlanState) -> tuple[Array, AskInfo]:
            data, listed = state.record.data, table.points()
            plan_key, chance_key, change_key = jax.random.split(key, 3)
            chances = jax.random.uniform(chance_key, (tournament + 2 * space.dim,))
            rows, members = _youngest(data.mask[:, 0], population)
            made = child(chances, jax.random.normal(change_key, (space.dim,)), data, rows, members)
            tried = jax.vmap(known, (None, 0))(state.record, listed)
            nearest = listed[jnp.argmin(jnp.where(tried, jnp.inf, table.distances(made)))]
            planned, exhausted = _next(plan_key, state, space, True)
            young, barren = data.size < population, members == 0
            plain = young | barren | exhausted
            info = ask_info(planned, exhausted=exhausted, random=plain, fallback=jnp.where(barren & ~young, 1, 0))
            return jnp.where(plain, planned, nearest), info

        return _search(space, batch, partial(_draws, space), table.rows, suggest_listed)
    return _search(space, batch, partial(_draws, space), everything, suggest)


def _planned(space: Space, batch: int, draw: Draw, table: np.ndarray) -> Search:
    """The search that asks for the points of draw(key, capacity), then for those of table (g, d) in random order."""

    def suggest(key: Array, state: PlanState) -> tuple[Array, AskInfo]:
        x, exhausted = _next(key, state, space, len(table) > 0)
        return x, ask_info(x, random=True, exhausted=exhausted)

    return _search(space, batch, draw, table, suggest)


def _search(space: Space, batch: int, draw: Draw, table: np.ndarray, suggest: Suggest) -> Search:
    if batch < 1:
        raise ValueError(f"batch must be at least 1; got {batch}")

    def init(key: Array, capacity: int) -> PlanState:
        draw_key, order_key = jax.random.split(key)
        rest = jnp.asarray(table)[jnp.argsort(jax.random.uniform(order_key, (len(table),)))]
        plan = jnp.concatenate([draw(draw_key, capacity), rest])
        return PlanState(blank(capacity, space.dim), plan, jnp.zeros(len(plan), int))

    def ask_one(state: PlanState, key: Array) -> tuple[PlanState, tuple[Array, AskInfo]]:
        x, info = suggest(key, state)
        return _noted(state, asked(state.record, x), x), (x, info)

    def ask(key: Array, state: PlanState) -> tuple[Array, PlanState, AskInfo]:
        check_room(state.record, batch)
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(batch))
        state, (x, info) = jax.lax.scan(ask_one, state, keys)
        return x, state, of_batch(info)

    def tell(state: PlanState, trial: Trial) -> PlanState:
        space.check(trial.x, "a trial's x", exists=True)
        return _noted(state, told(state.record, trial), jnp.asarray(trial.x, state.plan.dtype))

    return Search(space, init, ask, tell)


def _noted(state: PlanState, record: Record, x: Array) -> PlanState:
    """The state with a new record; where that has a new row, x (d,) is ticked off the plan."""
    new = record.data.size > state.record.data.size
    return PlanState(record, state.plan, state.times + (new & (apart(state.plan, x) < SAME)))


def _next(key: Array, state: PlanState, space: Space, whole: bool) -> tuple[Array, Array]:
    """The first point of the plan that was asked least often, and whether every point was tried before.

    A plan that is not the whole of what there is ends in fresh random points instead of starting again.
    """
    row = jnp.argmin(state.times)
    over = state.times[row] > 0
    if whole:
        return state.plan[row], over
    return jnp.where(over, space.spread(jax.random.uniform(key, (space.dim,))), state.plan[row]), jnp.asarray(False)


def _draws(space: Space, key: Array, capacity: int) -> Array:
    """Random points, twice as many as fit; a larger capacity does not change the first ones."""
    n, d = 2 * capacity, space.dim
    return space.spread(jax.random.uniform(key, (n * d,)).reshape(n, d))  # drawn flat: this compiles twice as fast


def _everything(space: Space) -> np.ndarray:
    """All points (size, d) of a space that has few, (0, d) otherwise."""
    return np.asarray(space.points()) if space.size <= _MOST else np.zeros((0, space.dim))


def _grid_points(space: Space, levels: int) -> np.ndarray:
    """The points (g, d) of the grid that exist, each once."""
    columns = [_levels(parameter, levels) for parameter in space.parameters.values()]
    total = math.prod(len(column) for column in columns)
    if total > _MOST:
        raise ValueError(f"a grid of {total} combinations is too large, the most is {_MOST}; use fewer levels, or sobol")
    with jax.ensure_compile_time_eval():
        return np.unique(np.asarray(space.snap(jnp.asarray(list(itertools.product(*columns))))), axis=0)


def _levels(parameter: Parameter, levels: int) -> np.ndarray:
    """The column values of one parameter on the grid."""
    if isinstance(parameter, Choice) or parameter.options <= levels:
        values = parameter.unit(jnp.arange(parameter.low, parameter.low + int(parameter.options)).astype(float))
    else:
        values = jnp.linspace(0.0, 1.0, levels) if levels > 1 else jnp.asarray([0.5])
    return np.unique(np.asarray(parameter.snap(values)))


def _youngest(mask: Array, most: int) -> tuple[Array, Array]:
    """The last `most` rows where the mask (n,) holds, newest first, and how many of them there are."""
    _, rows = jax.lax.top_k(jnp.where(mask, jnp.arange(len(mask)), -1), min(most, len(mask)))
    return rows, jnp.minimum(mask.sum(), most)


def mutated(space: Space, parent: Array, chances: Array, changes: Array) -> Array:
    """The parent (d,) with one active parameter changed, chosen evenly among those that have more than one value.

    chances (2 d,) are uniform draws: which parameter it is, and the values of options and of parameters that become active;
    changes (d,) are the steps of numbers.
    """
    parameters = list(space.parameters.values())
    loose = np.array([p.options > 1 and (isinstance(p, Choice) or p.low < p.high) for p in parameters])
    on, lots, draws = space.active(parent), chances[: space.dim], chances[space.dim :]
    column = jnp.argmax(jnp.where(on & loose, lots, -1.0))
    moved = jnp.stack([_moved(p, parent[i], changes[i], draws[i]) for i, p in enumerate(parameters)])
    fresh = jnp.stack([p.spread(draws[i]) for i, p in enumerate(parameters)])
    return space.snap(jnp.where(jnp.arange(space.dim) == column, moved, jnp.where(on, parent, fresh)))


def _moved(parameter: Parameter, u: Array, change: Array, draw: Array) -> Array:
    """Another column value: any other option for a uniform draw; a number moved by `change`, reflected at 0 and 1."""
    if isinstance(parameter, Choice):
        other = parameter.value(u) + 1 + _whole(draw, parameter.options - 1)
        return parameter.unit((other % parameter.options).astype(u.dtype))
    there = 1.0 - jnp.abs(1.0 - (u + change) % 2.0)
    if isinstance(parameter, Float):
        return there
    value, other = parameter.value(u), parameter.value(there)
    up = (value < parameter.high) & ((change > 0) | (value == parameter.low))
    beside = value + jnp.where(up, 1, -1)  # a step that rounds to nothing is a step of one
    return parameter.unit(jnp.where(other == value, beside, other).astype(u.dtype))


def _whole(draw: Array, n: ArrayLike) -> Array:
    """The number in 0..n − 1 that a uniform draw stands for; 0 where n is 0."""
    return jnp.clip(jnp.floor(draw * n), 0, jnp.maximum(jnp.asarray(n) - 1, 0)).astype(int)
