"""Adapt searches to learning curves by training every network to the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.curves.training_record import check_steps
from bonas.search import AskInfo, Observation, Search, ask_info, merge_infos
from bonas.spaces import Space


class FullTrainingState(NamedTuple):
    """State of a search that trains every network to the end."""

    search: Any  # state of the underlying search
    x: Array  # (q, d) networks in training
    step: Array  # (q,) int: next checkpoint of each; the number of checkpoints if it is done


@dataclass(frozen=True, kw_only=True)
class FullTraining(Search):
    """Search that trains every network to the end; see `curves.full_training`."""

    space: Space
    steps: tuple[int, ...]
    search: Search
    batch: int

    def init(self, key: PRNGKeyArray, capacity: int) -> FullTrainingState:
        """Return a state without networks."""
        search = self.search.init(key, capacity)
        x = jnp.zeros((self.batch, self.space.dim))
        return FullTrainingState(search, x, jnp.full(self.batch, len(self.steps)))

    def ask(
        self, key: PRNGKeyArray, state: FullTrainingState
    ) -> tuple[Float[Array, "q d"], FullTrainingState, AskInfo]:
        """Return the networks in training, with a new one in place of each complete one."""
        c = len(self.steps)

        def keep(
            key: PRNGKeyArray,
            search: Any,
            x: Array,
        ) -> tuple[Array, Any, AskInfo]:
            return x, search, ask_info(x, random=True)  # no model is asked

        def next_network(
            search: Any, slot: tuple[Array, Array, Array]
        ) -> tuple[Any, Any]:
            i, x, step = slot
            slot_key = jax.random.fold_in(key, i)
            done = step >= c
            x, search, info = jax.lax.cond(
                done,
                self._ask_one,
                keep,
                slot_key,
                search,
                x,
            )
            return search, (x, jnp.where(done, 0, step), info)

        slots = (jnp.arange(self.batch), state.x, state.step)
        search, (x, step, infos) = jax.lax.scan(next_network, state.search, slots)
        return x, FullTrainingState(search, x, step), merge_infos(infos)

    def tell(
        self, state: FullTrainingState, observation: Observation
    ) -> FullTrainingState:
        """Record a checkpoint of a network.

        The underlying search receives only the value of the last checkpoint, or a failure.
        """
        c = len(self.steps)
        gap = jnp.abs(state.x - observation.x[None, :]).max(axis=1)
        slot = jnp.argmin(jnp.where(state.step < c, gap, jnp.inf))
        ok = observation.ok & jnp.isfinite(observation.y)
        step = state.step[slot]
        last = ~ok | (step >= c - 1)
        search = jax.lax.cond(
            last,
            lambda: self.search.tell(state.search, observation._replace(ok=ok)),
            lambda: state.search,
        )
        steps = state.step.at[slot].set(jnp.where(last, c, step + 1))
        return FullTrainingState(search, state.x, steps)

    def grow(
        self, state: FullTrainingState, fresh: FullTrainingState
    ) -> FullTrainingState:
        """Grow the state of the underlying search."""
        return state._replace(search=self.search.grow(state.search, fresh.search))

    def _ask_one(
        self,
        key: PRNGKeyArray,
        state: Any,
        x: Array,
    ) -> tuple[Array, Any, AskInfo]:
        points, state, info = self.search.ask(key, state)
        if len(points) != 1:
            raise ValueError(
                "full_training needs a search that asks for one network at a time; "
                f"got one that asks for {len(points)}: set its batch to 1"
            )
        return points[0], state, info


def full_training(
    search: Search,
    steps: ArrayLike | Sequence[int],
    *,
    batch: int = 1,
) -> FullTraining:
    """Adapt any search to learning curves by training every network to the end.

    The search proposes a new network whenever one is complete. It receives the final value of a
    complete network, or a failed observation if training diverged.

    Args:
        search: A search that asks for one network at a time.
        steps: The number of training steps up to each checkpoint, increasing.
        batch: The number of networks in training at the same time.
    """
    if batch < 1 or batch > search.space.size:
        raise ValueError(
            f"batch must lie between 1 and the size of the space, {search.space.size}; got {batch}"
        )
    return FullTraining(
        space=search.space,
        steps=check_steps(steps),
        search=search,
        batch=batch,
    )
