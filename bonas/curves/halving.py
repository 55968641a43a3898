"""Searches that stop the worst networks early: successive halving, Hyperband and top-k.

Each ask returns one network to advance by one checkpoint, as `bonas.run_curves` does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from bonas.curves.training_record import (
    TrainingRecord,
    add_checkpoint,
    check_steps,
    checkpoints_reached,
    empty_record,
    find_row,
    is_started,
    is_unfinished,
    mark_pending,
)
from bonas.search import AskInfo, Observation, Search, ask_info, random
from bonas.spaces import Space


class HalvingState(NamedTuple):
    """State of `SuccessiveHalving`."""

    record: TrainingRecord
    source: Any  # state of the random search that proposes new networks
    bracket: Array  # (n,) int: bracket of each network
    current: Array  # () int: bracket in progress


@dataclass(frozen=True, kw_only=True)
class SuccessiveHalving(Search):
    """Search that trains brackets of random networks and continues the best at each checkpoint.

    It is made by `successive_halving`, `hyperband` or `top_k`. Bracket b starts quotas[i][0]
    networks, where i is b modulo the number of quotas, and the quotas[i][r] best of them at
    checkpoint r − 1 continue to checkpoint r. If a finite space has no new networks, stopped ones
    continue, the furthest trained and best first.
    """

    space: Space
    steps: tuple[int, ...]
    quotas: tuple[tuple[int, ...], ...]
    source: Search  # proposes new networks, one per ask

    def init(self, key: PRNGKeyArray, capacity: int) -> HalvingState:
        """Return a state without networks."""
        record = empty_record(capacity, self.space.dim, len(self.steps))
        source = self.source.init(key, capacity)
        return HalvingState(record, source, jnp.zeros(capacity, int), jnp.asarray(0))

    def ask(
        self, key: PRNGKeyArray, state: HalvingState
    ) -> tuple[Float[Array, "1 d"], HalvingState, AskInfo]:
        """Return one network to train to its next checkpoint.

        Started networks that have not reached the first checkpoint come first, then new networks,
        then the networks that continue to later checkpoints.
        """
        waiting, incomplete = self._to_advance(state)
        untrained = waiting & (checkpoints_reached(state.record) == 0)
        ready = jnp.where(incomplete, untrained, waiting)
        same_bracket = incomplete | waiting.any()
        current = jnp.where(same_bracket, state.current, state.current + 1)
        state = state._replace(current=current)
        row = jnp.argmax(ready)

        def advance(
            key: PRNGKeyArray, state: HalvingState
        ) -> tuple[Array, HalvingState, AskInfo]:
            rows = state.record.data.x
            return rows[row], state, ask_info(rows)

        x, state, info = jax.lax.cond(
            ready.any(),
            advance,
            self._start_network,
            key,
            state,
        )
        at = find_row(state.record, x)
        bracket = jnp.where(
            at < state.record.data.size,
            state.bracket,
            state.bracket.at[at].set(state.current, mode="drop"),
        )
        record = mark_pending(state.record, x)
        return x[None, :], state._replace(record=record, bracket=bracket), info

    def tell(self, state: HalvingState, observation: Observation) -> HalvingState:
        """Add the value of the next checkpoint of a network."""
        return state._replace(record=add_checkpoint(state.record, observation))

    def grow(self, state: HalvingState, fresh: HalvingState) -> HalvingState:
        """Grow the record and the state of the random search."""
        grown = super().grow(state._replace(source=None), fresh._replace(source=None))
        return grown._replace(source=self.source.grow(state.source, fresh.source))

    def _to_advance(
        self, state: HalvingState
    ) -> tuple[Bool[Array, " n"], Bool[Array, ""]]:
        """Return the networks that the bracket must advance, and whether it needs new ones."""
        record = state.record
        quota = jnp.asarray(self.quotas)[state.current % len(self.quotas)]
        inside = is_started(record) & (state.bracket == state.current)
        y = jnp.where(record.data.mask & inside[:, None], record.data.y, jnp.inf)
        # (n, c) rank at each checkpoint; the sort is stable, so the first started wins a tie.
        rank = jnp.argsort(jnp.argsort(y, axis=0), axis=0)
        promoted = (rank[:, :-1] < quota[None, 1:]) & record.data.mask[:, :-1]
        wanted = jnp.concatenate([inside[:, None], promoted], axis=1)  # (n, c)
        unfinished = (is_unfinished(record) & inside)[:, None]
        checkpoint = jnp.arange(len(self.steps))[None, :]
        ready = (
            wanted & unfinished & (checkpoints_reached(record)[:, None] == checkpoint)
        )
        lowest = jnp.argmax(ready.any(axis=0))
        return ready[:, lowest], inside.sum() < quota[0]

    def _start_network(
        self, key: PRNGKeyArray, state: HalvingState
    ) -> tuple[Array, HalvingState, AskInfo]:
        """Return a new network, or a stopped one if the space has no new network."""
        record = state.record
        (x,), source, info = self.source.ask(key, state.source)
        full = info.exhausted | (record.data.size >= len(state.bracket))
        x = jnp.where(full, record.data.x[self._best_stopped(record)], x)
        info = info._replace(exhausted=full & ~is_unfinished(record).any())
        return x, state._replace(source=source), info

    def _best_stopped(self, record: TrainingRecord) -> Int[Array, ""]:
        """Return the row of the furthest trained, then best, unfinished network."""
        reached = checkpoints_reached(record)
        last = jnp.maximum(reached - 1, 0)
        y = jnp.take_along_axis(record.data.y, last[:, None], axis=1)[:, 0]
        return jnp.lexsort((y, -reached, ~is_unfinished(record)))[0]


def successive_halving(
    space: Space,
    steps: ArrayLike | Sequence[int],
    *,
    eta: int = 3,
    width: int | None = None,
) -> SuccessiveHalving:
    """Search random networks by successive halving (Jamieson & Talwalkar 2016).

    A bracket of networks is trained to the first checkpoint, and at each checkpoint the best of
    them continue. After the last checkpoint, a new bracket starts.

    Args:
        space: The space from which networks are drawn at random.
        steps: The number of training steps up to each checkpoint, increasing.
        eta: The reduction factor: the best 1/eta of the networks reach the next checkpoint.
        width: The number of networks per bracket. Default: eta^(c − 1), which leaves one at the
            last of c checkpoints.
    """
    steps = check_steps(steps)
    c = len(steps)
    _check_eta(eta)
    width = eta ** (c - 1) if width is None else width
    if width < 1:
        raise ValueError(f"width must be at least 1; got {width}")
    quota = tuple(max(1, width // eta**rung) for rung in range(c))
    return _make_halving(space, steps, (quota,))


def hyperband(
    space: Space,
    steps: ArrayLike | Sequence[int],
    *,
    eta: int = 3,
) -> SuccessiveHalving:
    """Search random networks by Hyperband (Li et al. 2018, Algorithm 1), over checkpoints.

    The brackets are runs of successive halving that run in turn. The first bracket stops networks
    from the first checkpoint on, the second from the second, and so on, with fewer networks each.
    After the last bracket the first one follows again.

    Args:
        space: The space from which networks are drawn at random.
        steps: The number of training steps up to each checkpoint, increasing.
        eta: The reduction factor: the best 1/eta of the networks reach the next checkpoint.
    """
    steps = check_steps(steps)
    c = len(steps)
    _check_eta(eta)
    quotas = []
    for first in range(c):
        n = math.ceil(c / (c - first) * eta ** (c - 1 - first))
        quotas.append(
            tuple(max(1, n // eta ** max(rung - first, 0)) for rung in range(c))
        )
    return _make_halving(space, steps, tuple(quotas))


def top_k(
    space: Space,
    steps: ArrayLike | Sequence[int],
    *,
    width: int = 16,
    k: int = 4,
) -> SuccessiveHalving:
    """Search random networks by training the best k of `width` to the end.

    The networks are compared at the first checkpoint.

    Args:
        space: The space from which networks are drawn at random.
        steps: The number of training steps up to each checkpoint, increasing.
        width: The number of networks that are trained to the first checkpoint.
        k: The number of these that are trained to the end, before the next `width` networks start.
    """
    steps = check_steps(steps)
    if not 1 <= k <= width:
        raise ValueError(f"k must be between 1 and width ({width}); got {k}")
    quota = (width, *[k] * (len(steps) - 1))
    return _make_halving(space, steps, (quota,))


def _make_halving(
    space: Space,
    steps: tuple[int, ...],
    quotas: tuple[tuple[int, ...], ...],
) -> SuccessiveHalving:
    return SuccessiveHalving(
        space=space,
        steps=steps,
        quotas=quotas,
        source=random(space),
    )


def _check_eta(eta: int) -> None:
    if eta < 2:
        raise ValueError(f"eta must be an integer of at least 2; got {eta}")
