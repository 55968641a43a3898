"""Searches that a search on learning curves has to beat: whole networks, successive halving, Hyperband, one-epoch top-k.

Each ask names networks, and each of these is to be advanced by one checkpoint: `bonas.run_curves` does that.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from bonas.search.baselines import random
from bonas.search.networks import Networks, asked, begun, checked_steps, none_begun, reached, row_of, told, unfinished
from bonas.search.types import AskInfo, Search, Trial, ask_info, of_batch
from bonas.spaces import Space


class WholeState(NamedTuple):
    """What the next ask needs."""

    search: Any  # the state of the search that is adapted
    x: Array  # (q, d) networks in training
    step: Array  # (q,) int: the next checkpoint of each; past the last where a place is free


def whole(search: Search, steps: ArrayLike | Sequence[int], *, batch: int = 1) -> Search:
    """Any search, as one that trains every network to the end, `batch` of them side by side.

    The search is asked for one network whenever one is done, and told the final value alone, or that the network failed.
    """
    return _whole(search, checked_steps(steps), batch)


@cache
def _whole(search: Search, steps: tuple[int, ...], batch: int) -> Search:
    c = len(steps)
    if batch < 1 or batch > search.space.size:
        raise ValueError(f"batch lies between 1 and the size of the space, {search.space.size}; got {batch}")

    def init(key: Array, capacity: int) -> WholeState:
        return WholeState(search.init(key, capacity), jnp.zeros((batch, search.space.dim)), jnp.full(batch, c))

    def fresh(key: Array, state: Any, x: Array) -> tuple[Array, Any, AskInfo]:
        points, state, info = search.ask(key, state)
        if len(points) != 1:
            raise ValueError(f"the search adapted asks for one network at a time; this one asks for {len(points)}")
        return points[0], state, info

    def ask(key: Array, state: WholeState) -> tuple[Array, WholeState, AskInfo]:
        def place(inner, turn):
            i, x, step = turn
            x, inner, info = jax.lax.cond(
                step >= c, fresh, lambda key, inner, x: (x, inner, ask_info(x)), jax.random.fold_in(key, i), inner, x
            )
            return inner, (x, jnp.where(step >= c, 0, step), info)

        inner, (x, step, infos) = jax.lax.scan(place, state.search, (jnp.arange(batch), state.x, state.step))
        return x, WholeState(inner, x, step), of_batch(infos)

    def tell(state: WholeState, trial: Trial) -> WholeState:
        here = jnp.argmin(jnp.where(state.step < c, jnp.abs(state.x - trial.x[None, :]).max(axis=1), jnp.inf))
        fine = trial.ok & jnp.isfinite(trial.y)
        last = ~fine | (state.step[here] >= c - 1)
        inner = jax.lax.cond(last, lambda: search.tell(state.search, trial._replace(ok=fine)), lambda: state.search)
        return WholeState(inner, state.x, state.step.at[here].set(jnp.where(last, c, state.step[here] + 1)))

    return Search(search.space, init, ask, tell, steps)


class RungState(NamedTuple):
    """What the next ask needs."""

    networks: Networks
    plan: Any  # of the random search that gives new networks
    bracket: Array  # (n,) int: which bracket each network is of
    now: Array  # () int: the bracket in progress


def successive_halving(space: Space, steps: ArrayLike | Sequence[int], *, eta: int = 3, width: int | None = None) -> Search:
    """Successive halving (Jamieson & Talwalkar 2016): random networks, of which the best 1/eta reach the next checkpoint.

    width: networks a bracket, by default as many as leave one at the last checkpoint. After a bracket comes the next.
    """
    steps = checked_steps(steps)
    c = len(steps)
    _check_eta(eta)
    width = eta ** (c - 1) if width is None else width
    if width < 1:
        raise ValueError(f"width must be at least 1; got {width}")
    return _rungs(space, (tuple(max(1, width // eta**rung) for rung in range(c)),), steps)


def hyperband(space: Space, steps: ArrayLike | Sequence[int], *, eta: int = 3) -> Search:
    """Hyperband (Li et al. 2018, Algorithm 1), with the checkpoints for its resources.

    Its brackets of successive halving start to halve at the first checkpoint, at the second, and so on, the later the fewer
    the networks; after the last comes the first kind again.
    """
    steps = checked_steps(steps)
    c = len(steps)
    _check_eta(eta)
    brackets = []
    for first in range(c):
        n = math.ceil(c / (c - first) * eta ** (c - 1 - first))
        brackets.append(tuple(max(1, n // eta ** max(rung - first, 0)) for rung in range(c)))
    return _rungs(space, tuple(brackets), steps)


def top_k(space: Space, steps: ArrayLike | Sequence[int], *, width: int = 16, k: int = 4) -> Search:
    """`width` random networks trained to the first checkpoint, the best k of them to the end; then the next `width`."""
    steps = checked_steps(steps)
    if not 1 <= k <= width:
        raise ValueError(f"k lies between 1 and width, {width}; got {k}")
    return _rungs(space, ((width, *[k] * (len(steps) - 1)),), steps)


def _check_eta(eta: int) -> None:
    if eta < 2:
        raise ValueError(f"eta, of which one goes on, is a whole number of at least 2; got {eta}")


@cache
def _rungs(space: Space, quotas: tuple[tuple[int, ...], ...], steps: tuple[int, ...]) -> Search:
    """Brackets in turn: quotas[i][r] networks of the i-th kind reach checkpoint r, the best at checkpoint r − 1.

    When a finite space has no new networks, those that were left behind go on, the furthest and best first.
    """
    c, table, source = len(steps), jnp.asarray(quotas), random(space)

    def init(key: Array, capacity: int) -> RungState:
        return RungState(
            none_begun(capacity, space.dim, c), source.init(key, capacity), jnp.zeros(capacity, int), jnp.asarray(0)
        )

    def due(state: RungState) -> tuple[Array, Array]:
        """(n,) bool: whom the bracket in progress still has to advance, and () bool: whether it takes another network."""
        networks, quota = state.networks, table[state.now % len(quotas)]
        inside = begun(networks) & (state.bracket == state.now)
        y = jnp.where(networks.data.mask & inside[:, None], networks.data.y, jnp.inf)
        rank = jnp.argsort(jnp.argsort(y, axis=0), axis=0)  # (n, c) at each checkpoint; stable, so the first begun wins
        wanted = (rank[:, :-1] < quota[None, 1:]) & networks.data.mask[:, :-1]
        wanted = jnp.concatenate([inside[:, None], wanted], axis=1)  # (n, c): who is to reach each checkpoint
        open_ = wanted & (unfinished(networks) & inside)[:, None] & (reached(networks)[:, None] == jnp.arange(c)[None, :])
        rung = jnp.argmax(open_.any(axis=0))  # the lowest that is not done
        return open_[:, rung], inside.sum() < quota[0]

    def behind(state: RungState) -> Array:
        """The row of the network left behind that goes on where no new one is left."""
        networks = state.networks
        last = jnp.maximum(reached(networks) - 1, 0)
        y = jnp.take_along_axis(networks.data.y, last[:, None], axis=1)[:, 0]
        return jnp.lexsort((y, -reached(networks), ~unfinished(networks)))[0]

    def new(key: Array, state: RungState) -> tuple[Array, RungState, AskInfo]:
        (x,), plan, info = source.ask(key, state.plan)
        full = info.exhausted | (state.networks.data.size >= len(state.bracket))
        x = jnp.where(full, state.networks.data.x[behind(state)], x)
        return x, state._replace(plan=plan), info._replace(exhausted=full & ~unfinished(state.networks).any())

    def ask(key: Array, state: RungState) -> tuple[Array, RungState, AskInfo]:
        waiting, room = due(state)
        # networks that are begun and not at the first checkpoint yet come first, then new ones, then the next checkpoint
        going = jnp.where(room, waiting & (reached(state.networks) == 0), waiting)
        state = state._replace(now=jnp.where(room | waiting.any(), state.now, state.now + 1))
        row = jnp.argmax(going)
        x, state, info = jax.lax.cond(
            going.any(),
            lambda key, state: (state.networks.data.x[row], state, ask_info(state.networks.data.x)),
            new,
            key,
            state,
        )
        at = row_of(state.networks, x)
        bracket = jnp.where(at < state.networks.data.size, state.bracket, state.bracket.at[at].set(state.now, mode="drop"))
        return x[None, :], state._replace(networks=asked(state.networks, x), bracket=bracket), info

    def tell(state: RungState, trial: Trial) -> RungState:
        return state._replace(networks=told(state.networks, trial))

    return Search(space, init, ask, tell, steps)
