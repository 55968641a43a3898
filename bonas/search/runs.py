"""Run complete searches as pure functions of a random key."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from bonas.search.argument_types import Direction
from bonas.search.batches import Record, points_per_ask, take_step
from bonas.search.checks import check_key, check_search
from bonas.search.history import History, make_history
from bonas.search.model_warnings import warn_about_model
from bonas.search.objectives import (
    Objective,
    as_point_objective,
    bind_direction,
    direction_sign,
    warn_about_constants,
)
from bonas.search.search import Search
from bonas.search.start_states import Known, start_state


def run(
    search: Search,
    objective: Objective,
    key: PRNGKeyArray,
    steps: int,
    *args: Any,
    direction: Direction = "minimize",
    state: Any = None,
    data: Known | None = None,
    record: Record | None = None,
) -> History:
    """Run a complete search of a traceable objective.

    This is a pure, jittable function of its key. A search that asks for q points at a time is asked
    `steps / q` times.

    Args:
        search: The search.
        objective: A traceable function of a key and a point (d,), or of a key and all parameters
            by name; see `bonas.search.named_objective`. It returns a value, or a value and its cost
            for acquisitions that use it, or a value, its cost and the variance of its noise for a
            search with `known_noise=True`. A value that is not finite is a failed evaluation.
        key: A random key.
        steps: The number of evaluations, including the initial ones; a multiple of the points per
            ask.
        *args: Arrays, or pytrees of arrays, that the objective receives after the point:
            objective(key, u, *args), or objective(key, *args, rate, width) by name. They are
            traced, so problems that differ only in them share a compiled program.
        direction: "minimize" or "maximize". The history has the objective's own values; internally,
            searches minimize.
        state: The state of an earlier run, to continue it. The history has the new evaluations
            only; see `History.followed_by`. With the key of the earlier run, the points are those
            of one longer run, up to rounding. If its state has no field `observations`, use
            another key: this one would repeat the keys of its steps.
        data: Known observations (x, y) to start from: points (m, d) or a list of configurations,
            and their values (m,), NaN where the evaluation failed; possibly also their costs (m,)
            and noise variances (m,). They count as initial points, and are not in the history.
        record: A function of the state and the `AskInfo` of every ask, such as
            `bonas.search.model_record(search)`. What it returns is stacked in `history.record`. If
            it has a method `with_direction(direction)`, the run uses what that returns.

    Returns:
        All evaluations in order, with the final state of the search.
    """
    check_search(search)
    check_key(key)
    objective = as_point_objective(objective, search.space, args)
    sign = direction_sign(direction)
    record = bind_direction(record, direction)
    init_key, run_key = jax.random.split(key)
    start, known = start_state(
        search, init_key, steps, state=state, data=data, sign=sign
    )
    q = points_per_ask(search, start, steps)

    # JAX frees the program of a jitted function with the function. Outside of jit, the program of a
    # scan would stay in memory.
    @jax.jit
    def take_steps(
        key: PRNGKeyArray, state: Any, known: Array, args: tuple[Any, ...]
    ) -> tuple[Any, Any]:
        def value(key: PRNGKeyArray, x: Array) -> Any:
            return objective(key, x, *args)

        def step(state: Any, i: Array) -> tuple[Any, Any]:
            step_key = jax.random.fold_in(key, i)
            return take_step(
                search, value, step_key, state, batch=q, sign=sign, record=record
            )

        return jax.lax.scan(step, state, jnp.arange(steps // q) + known // q)

    inputs = run_key, start, known, args
    warn_about_constants(take_steps.trace(*inputs))
    state, rows = take_steps(*inputs)
    history = make_history(rows, state, sign)
    warn_about_model(history.info)
    return history
