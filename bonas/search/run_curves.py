"""Whole searches on learning curves as pure functions of a key, with a budget of training steps."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.search.networks import Networks, checked_steps, none_begun, reached, row_of
from bonas.search.networks import told as noted
from bonas.search.types import Search, Trial

CurveObjective = Callable[[Array, Array, Array], Array]
_NETWORKS = 128  # that are begun at most, unless the budget trains half as many to the end: models grow with their cube


class CurveHistory(NamedTuple):
    """A whole run, one row an advance by one checkpoint. Rows after the end repeat spent and best, with step −1 and y NaN."""

    x: Array  # (k, d) the network
    step: Array  # (k,) int: position of the checkpoint it was advanced to
    y: Array  # (k,) its value there
    cost: Array  # (k,) int: training steps of the advance
    spent: Array  # (k,) int: training steps up to here
    best: Array  # (k,) least final value of networks trained to the end; infinite before the first
    state: Any  # the search's, at the end
    begun: Array  # () int: networks begun
    full: Array  # () bool: no more of them had room, though the space and the budget had: see `networks` of `run_curves`


class _Run(NamedTuple):
    state: Any
    networks: Networks  # the run's own account, by which each network has one key
    x: Array
    step: Array
    y: Array
    cost: Array
    turn: Array  # () asks so far
    row: Array  # () advances so far
    over: Array  # () bool


def run_curves(
    search: Search,
    objective: CurveObjective,
    steps: ArrayLike | Sequence[int],
    key: Array,
    budget: int,
    *,
    networks: int | None = None,
) -> CurveHistory:
    """A whole search that spends at most `budget` training steps: a pure, jittable function of its key.

    search: made by `curves`, `whole`, `successive_halving`, `hyperband` or `top_k`, with the same steps.
    objective: (key, x (d,), step ()) -> value at that checkpoint, traceable; NaN where training has diverged. The key is
        the network's: it is the same at all its checkpoints.
    steps: training steps up to each checkpoint (c,), increasing.
    networks: how many are begun at most (default: 128 or twice as many as the budget trains to the end, whichever is
        more, within the size of the space). When as many are begun, they are trained on and no other is looked at, and the
        history's `full` says so: give more room where that is not meant, for models that grow with its cube.

    The run ends with the first advance that the budget has no room for, with the networks, or when nothing is left.
    """
    steps, budget = _checked(search, steps, budget)
    capacity = _capacity(search, steps, budget, networks)
    costs = jnp.asarray(np.diff(steps, prepend=0))
    init_key, ask_key, network_key = jax.random.split(key, 3)
    state = search.init(init_key, capacity)
    k = _advances(capacity, steps, budget)

    def advance(run: _Run, x: Array) -> tuple[_Run, None]:
        row = row_of(run.networks, x)
        step = reached(run.networks)[row]
        cost = costs[step]
        over = run.over | (row >= capacity) | (run.cost.sum() + cost > budget)

        def go(run: _Run) -> _Run:
            y = jnp.asarray(objective(jax.random.fold_in(network_key, row), x, step), x.dtype)
            trial = Trial(x=x, y=y, step=step, cost=cost.astype(x.dtype), ok=jnp.isfinite(y))
            return run._replace(
                state=search.tell(run.state, trial),
                networks=noted(run.networks, trial),
                x=run.x.at[run.row].set(x),
                step=run.step.at[run.row].set(step),
                y=run.y.at[run.row].set(y),
                cost=run.cost.at[run.row].set(cost),
                row=run.row + 1,
            )

        return jax.lax.cond(over, lambda run: run, go, run)._replace(over=over), None

    def turn(run: _Run) -> _Run:
        points, state, info = search.ask(jax.random.fold_in(ask_key, run.turn), run.state)
        run = run._replace(state=state, turn=run.turn + 1, over=info.exhausted)
        return jax.lax.scan(advance, run, points)[0]

    nothing = jnp.zeros(k, int)
    start = _Run(
        state=state,
        networks=none_begun(capacity, search.space.dim, len(steps)),
        x=jnp.zeros((k, search.space.dim)),
        step=nothing - 1,
        y=jnp.full(k, jnp.nan),
        cost=nothing.astype(costs.dtype),
        turn=jnp.asarray(0),
        row=jnp.asarray(0),
        over=jnp.asarray(False),
    )
    end = jax.lax.while_loop(lambda run: ~run.over & (run.row < k), turn, start)
    final = (end.step == len(steps) - 1) & jnp.isfinite(end.y)
    best = jax.lax.cummin(jnp.where(final, end.y, jnp.inf))
    begun = end.networks.data.size
    full = (begun >= capacity) & (capacity < min(search.space.size, budget // steps[0]))
    return CurveHistory(end.x, end.step, end.y, end.cost, jnp.cumsum(end.cost), best, end.state, begun, full)


def run_curves_many(
    search: Search,
    objective: CurveObjective,
    steps: ArrayLike | Sequence[int],
    keys: Array,
    budget: int,
    *,
    networks: int | None = None,
) -> CurveHistory:
    """One run a key, leaves (len(keys), ...), one after the other, compiled once."""
    if keys.ndim != 1 or not keys.size:
        raise ValueError(f"expected keys of shape (k,), as jax.random.split(key, k) gives them; got {keys.shape}")
    return _each(search, objective, *_checked(search, steps, budget), keys, networks)


@partial(jax.jit, static_argnames=("objective", "steps", "budget", "networks"))
def _each(search, objective, steps, budget, keys, networks) -> CurveHistory:
    return jax.lax.map(lambda key: run_curves(search, objective, steps, key, budget, networks=networks), keys)


def _checked(search: Search, steps: ArrayLike | Sequence[int], budget: float) -> tuple[tuple[int, ...], int]:
    """Steps and budget as whole numbers, or a ValueError where they are none, or the steps are not the search's."""
    found = checked_steps(steps)
    if search.steps is not None and search.steps != found:
        raise ValueError(f"the search is for checkpoints at {search.steps} training steps; got a run with {found}")
    if not float(budget).is_integer():
        raise ValueError(f"a budget is a whole number of training steps; got {budget}")
    return found, int(budget)


def _capacity(search: Search, steps: tuple[int, ...], budget: int, networks: int | None) -> int:
    """How many networks may be begun."""
    if budget < steps[-1]:
        raise ValueError(f"a budget of {budget} training steps does not train one network, which takes {steps[-1]}")
    if networks is not None and networks < 1:
        raise ValueError(f"networks must be at least 1; got {networks}")
    most = networks or max(_NETWORKS, 2 * (budget // steps[-1]))
    size = search.space.size
    return min(most, budget // steps[0], most if math.isinf(size) else int(size))


def _advances(networks: int, steps: tuple[int, ...], budget: int) -> int:
    """The most advances that a budget has room for: the cheapest first, one of each checkpoint a network."""
    total, left = 0, budget
    for cost in sorted(np.diff(steps, prepend=0).tolist()):
        some = min(networks, left // cost)
        total, left = total + some, left - some * cost
    return total
