"""Regularised evolution of the rows of a table."""

from functools import cache, partial

import jax
import jax.numpy as jnp
from jax import Array

from bonas.search.baselines import PlanState, _draws, _next, _search, _whole, _youngest, mutated
from bonas.search.record import known
from bonas.search.types import AskInfo, Search, ask_info
from bonas.spaces import Listed


@cache
def listed_evolution(space: Listed, *, population: int = 20, tournament: int = 5, step: float = 0.1, batch: int = 1) -> Search:
    """Regularised evolution (`bonas.search.evolution`; Real et al. 2019, Algorithm 1) where only listed rows exist.

    A mutation of one parameter is hardly ever listed itself, and nearer to its parent than to any other row. So the child is
    the nearest row that was not tried; `evolution` of a Listed would give up half of its children for random points.
    """
    if population < 1 or tournament < 1 or not 0.0 < step < jnp.inf:
        raise ValueError(f"population, tournament and step must be positive; got {population}, {tournament} and {step}")

    def suggest(key: Array, state: PlanState) -> tuple[Array, AskInfo]:
        data, rows = state.record.data, space.points()
        plan_key, chance_key, change_key = jax.random.split(key, 3)
        chances = jax.random.uniform(chance_key, (tournament + 2 * space.dim,))
        youngest, members = _youngest(data.mask[:, 0], population)
        drawn = youngest[_whole(chances[:tournament], members)]
        parent = data.x[drawn[jnp.argmin(data.y[drawn, 0])]]
        changes = step * jax.random.normal(change_key, (space.dim,))
        child = mutated(space.space, parent, chances[tournament:], changes)
        tried = jax.vmap(known, (None, 0))(state.record, rows)
        nearest = rows[jnp.argmin(jnp.where(tried, jnp.inf, space.distances(child)))]
        planned, exhausted = _next(plan_key, state, space, True)
        young, barren = data.size < population, members == 0
        plain = young | barren | exhausted
        info = ask_info(planned, exhausted=exhausted, random=plain, fallback=jnp.where(barren & ~young, 1, 0))
        return jnp.where(plain, planned, nearest), info

    return _search(space, batch, partial(_draws, space), space.rows, suggest)
