"""Complete searches on learning curves as pure functions of a key, with a budget of steps."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, PRNGKeyArray

from bonas.curves.training_record import (
    TrainingRecord,
    add_checkpoint,
    check_steps,
    checkpoints_reached,
    empty_record,
    find_row,
)
from bonas.search import (
    AskInfo,
    Direction,
    Observation,
    ProgramCache,
    Search,
    ask_info,
    check_search,
    direction_sign,
    warn_about_model,
)
from bonas.static_settings import check_static

# (key, x (d,), step ()) -> the value at that checkpoint
CurveObjective = Callable[[Array, Array, Array], Array]

# Default capacity in networks; it is larger if the budget trains more than half of them to the end.
# The cost of the models grows with its cube.
_NETWORKS = 128


class CurveHistory(NamedTuple):
    """History of `run_curves`, with a row for every time a network reached its next checkpoint.

    Rows after the end repeat `spent` and `best`, with step −1 and y NaN, and have an empty report.
    """

    x: Array  # (k, d) the network
    step: Array  # (k,) int: position of the checkpoint it was trained to
    y: Array  # (k,) its value there
    cost: Array  # (k,) int: training steps to get there
    spent: Array  # (k,) int: training steps so far
    # (k,) lowest final value of complete networks, or highest if values were maximized; infinite
    # before the first
    best: Array
    state: Any  # final state of the search
    started: Array  # () int: networks started
    # () bool: the capacity, not the space or the budget, limited the number of networks
    capacity_reached: Array
    info: AskInfo  # (k, ...) report of the ask that chose the network


class _Run(NamedTuple):
    """The carry of a run."""

    state: Any
    record: TrainingRecord  # record of the run; the row number of a network determines its key
    x: Array  # (k, d)
    step: Array  # (k,) int
    y: Array  # (k,)
    cost: Array  # (k,) int
    info: AskInfo  # (k, ...)
    asks: Array  # () int: number of asks
    advances: Array  # () int: number of advances
    over: Array  # () bool


@dataclass(frozen=True)
class _RunSettings:
    """The static arguments of a run."""

    search: Search
    objective: CurveObjective
    steps: tuple[int, ...]
    budget: int
    capacity: int
    sign: float  # −1 to maximize

    @property
    def rows(self) -> int:
        """Largest number of advances within the budget, if the cheapest ones come first."""
        total = 0
        left = self.budget
        for cost in sorted(np.diff(self.steps, prepend=0).tolist()):
            affordable = min(self.capacity, left // cost)
            total += affordable
            left -= affordable * cost
        return total


def run_curves(
    search: Search,
    objective: CurveObjective,
    steps: ArrayLike | Sequence[int],
    key: PRNGKeyArray,
    budget: int | float,
    *,
    networks: int | None = None,
    direction: Direction = "minimize",
) -> CurveHistory:
    """Run a search on learning curves within a budget of training steps.

    Pure and jittable. The run ends before it exceeds the budget, or when no network is left.

    Args:
        search: Made by `curve_search`, `full_training`, `successive_halving`, `hyperband` or
            `top_k`, with the same steps.
        objective: Traceable function (key, x (d,), step ()) -> value at checkpoint `step`, counted
            from 0; NaN if training has diverged. A network has one key for all its checkpoints.
        steps: The number of training steps up to each checkpoint, increasing.
        key: A random key.
        budget: The total number of training steps.
        networks: The largest number of networks to start. Default: 128, or twice the number that
            the budget trains to the end if that is more; at most the size of the space. If it
            limits the run, `CurveHistory.capacity_reached` is true.
        direction: "minimize" or "maximize". The history has the objective's own values; internally,
            searches minimize.
    """
    steps, budget = _check_run(search, steps, budget)
    capacity = _capacity(search, steps, budget, networks)
    settings = _RunSettings(
        search,
        objective,
        steps,
        budget,
        capacity,
        direction_sign(direction),
    )
    init_key, ask_key, network_key = jax.random.split(key, 3)
    start = _start(settings, init_key)

    def ask(run: _Run) -> _Run:
        points, state, info = search.ask(
            jax.random.fold_in(ask_key, run.asks), run.state
        )
        run = run._replace(
            state=state,
            asks=run.asks + 1,
            over=info.exhausted,
        )
        advance = partial(_advance, settings, network_key, info)
        return jax.lax.scan(advance, run, points)[0]

    def unfinished(run: _Run) -> Array:
        return ~run.over & (run.advances < settings.rows)

    # JAX frees the program of a jitted function with the function. Outside of jit, the program of a
    # loop would stay in memory.
    @jax.jit
    def finish(start: _Run) -> _Run:
        return jax.lax.while_loop(unfinished, ask, start)

    history = _history(settings, finish(start))
    warn_about_model(history.info)
    return history


def _start(settings: _RunSettings, key: PRNGKeyArray) -> _Run:
    """Return the carry before the first ask."""
    rows = settings.rows
    d = settings.search.space.dim
    zeros = jnp.zeros(rows, int)
    empty = ask_info(jnp.zeros(()), random=True)
    return _Run(
        state=settings.search.init(key, settings.capacity),
        record=empty_record(settings.capacity, d, len(settings.steps)),
        x=jnp.zeros((rows, d)),
        step=zeros - 1,
        y=jnp.full(rows, jnp.nan),
        cost=zeros.astype(_costs(settings).dtype),
        info=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (rows,)), empty),
        asks=jnp.asarray(0),
        advances=jnp.asarray(0),
        over=jnp.asarray(False),
    )


def _advance(
    settings: _RunSettings,
    network_key: PRNGKeyArray,
    info: AskInfo,
    run: _Run,
    x: Array,
) -> tuple[_Run, None]:
    """Train the network at x to its next checkpoint, unless the run has ended."""
    row = find_row(run.record, x)
    step = checkpoints_reached(run.record)[row]
    cost = _costs(settings)[step]
    too_many = row >= settings.capacity
    over = run.over | too_many | (run.cost.sum() + cost > settings.budget)

    def train(run: _Run) -> _Run:
        key = jax.random.fold_in(network_key, row)
        y = jnp.asarray(settings.objective(key, x, step), x.dtype)
        cost_value = cost.astype(x.dtype)
        observation = Observation(
            x=x,
            y=y if settings.sign > 0.0 else -y,
            step=step,
            cost=cost_value,
            ok=jnp.isfinite(y),
        )
        return run._replace(
            state=settings.search.tell(run.state, observation),
            record=add_checkpoint(run.record, observation),
            x=run.x.at[run.advances].set(x),
            step=run.step.at[run.advances].set(step),
            y=run.y.at[run.advances].set(y),
            cost=run.cost.at[run.advances].set(cost),
            info=jax.tree.map(
                lambda column, value: column.at[run.advances].set(value), run.info, info
            ),
            advances=run.advances + 1,
        )

    return jax.lax.cond(over, lambda run: run, train, run)._replace(over=over), None


def _history(settings: _RunSettings, run: _Run) -> CurveHistory:
    """Return the history of a finished run."""
    final = (run.step == len(settings.steps) - 1) & jnp.isfinite(run.y)
    started = run.record.data.size
    losses = run.y if settings.sign > 0.0 else -run.y
    best = jax.lax.cummin(jnp.where(final, losses, jnp.inf))
    possible = min(settings.search.space.size, settings.budget // settings.steps[0])
    return CurveHistory(
        x=run.x,
        step=run.step,
        y=run.y,
        cost=run.cost,
        spent=jnp.cumsum(run.cost),
        best=best if settings.sign > 0.0 else -best,
        state=run.state,
        started=started,
        capacity_reached=(started >= settings.capacity)
        & (settings.capacity < possible),
        info=run.info,
    )


def _costs(settings: _RunSettings) -> Array:
    """Return the training steps (c,) from each checkpoint to the next."""
    return jnp.asarray(np.diff(settings.steps, prepend=0))


def run_curves_many(
    search: Search,
    objective: CurveObjective,
    steps: ArrayLike | Sequence[int],
    keys: PRNGKeyArray,
    budget: int | float,
    *,
    networks: int | None = None,
    direction: Direction = "minimize",
) -> CurveHistory:
    """Run a search on learning curves once for each of k keys, in one compiled program.

    Leaves of the result are (k, ...). See `run_curves` for the other arguments.
    """
    if keys.ndim != 1 or not keys.size:
        raise ValueError(
            f"expected keys of shape (k,), as jax.random.split(key, k) returns; got {keys.shape}"
        )
    checked = _check_run(search, steps, budget)
    program = _programs(search, objective, *checked, networks, direction)
    histories: CurveHistory = program(keys)
    warn_about_model(histories.info)
    return histories


def _run_each(
    search: Search,
    objective: CurveObjective,
    steps: tuple[int, ...],
    budget: int,
    networks: int | None,
    direction: Direction,
    keys: Array,
) -> CurveHistory:
    def run(key: Array) -> CurveHistory:
        return run_curves(
            search,
            objective,
            steps,
            key,
            budget,
            networks=networks,
            direction=direction,
        )

    return jax.lax.map(run, keys)


_programs = ProgramCache(_run_each)


def _check_run(
    search: Search,
    steps: ArrayLike | Sequence[int],
    budget: int | float,
) -> tuple[tuple[int, ...], int]:
    """Return steps and budget as integers.

    Raises:
        ValueError: If the argument is no search, the steps differ from the search's, or the budget
            is not an integer.
    """
    check_search(search)
    check_static("budget", budget)
    found = check_steps(steps)
    if search.steps is not None and search.steps != found:
        raise ValueError(
            f"steps must equal the checkpoints of the search, {search.steps}; got {found}"
        )
    if not float(budget).is_integer():
        raise ValueError(
            f"budget must be an integer number of training steps; got {budget}"
        )
    return found, int(budget)


def _capacity(
    search: Search,
    steps: tuple[int, ...],
    budget: int,
    networks: int | None,
) -> int:
    """Return the largest number of networks to start."""
    if budget < steps[-1]:
        raise ValueError(
            f"budget must train at least one network, {steps[-1]} training steps; got {budget}"
        )
    check_static("networks", networks)
    if networks is not None and networks < 1:
        raise ValueError(f"networks must be at least 1; got {networks}")
    most = networks or max(_NETWORKS, 2 * (budget // steps[-1]))
    size = search.space.size
    return min(most, budget // steps[0], most if math.isinf(size) else int(size))
