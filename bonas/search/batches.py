"""Evaluate the points of searches that ask for several points at a time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.search.objectives import (
    Objective,
    Outcome,
    evaluate_point,
    evaluate_points,
)
from bonas.search.search import AskInfo, Observation, Search

Points = Float[Array, "q d"]
Values = Float[Array, " q"]
# Maps a state of the search and the report of its last ask to what a history records of them.
Record = Callable[[Any, AskInfo], Any]


def points_per_ask(search: Search, state: Any, evaluations: int) -> int:
    """Return the number of points per ask.

    It is the `batch` of the search, or the number of points that `ask` returns.

    Raises:
        ValueError: If the number of evaluations is not a positive multiple of it.
    """
    q = getattr(search, "batch", None)
    if not isinstance(q, int):
        points, _, _ = jax.eval_shape(search.ask, jax.random.key(0), state)
        q = len(points)
    if evaluations < 1 or evaluations % q:
        raise ValueError(
            f"the number of evaluations must be a positive multiple of {q}, the batch size of this "
            f"search; got {evaluations}"
        )
    return q


def take_step(
    search: Search,
    objective: Objective,
    key: PRNGKeyArray,
    state: Any,
    *,
    batch: int,
    sign: float,
    record: Record | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Ask a search for points, evaluate them and tell the search their values.

    Args:
        search: The search.
        objective: A function of a key and a point.
        key: A random key.
        state: The state of the search.
        batch: The number of points per ask.
        sign: 1 to minimize, −1 to maximize.
        record: A function of the new state and the report of the ask, whose result is recorded.

    Returns:
        The new state, and fields of a `History` with one row per point.
    """
    ask_key, eval_key = jax.random.split(key)
    points, state, info = search.ask(ask_key, state)
    check_points(points, batch)
    y, cost, noise = evaluate(objective, eval_key, points)
    state = tell_all(search, state, points, y if sign > 0.0 else -y, cost, noise)
    each = {"info": info, "record": None if record is None else record(state, info)}
    repeated = jax.tree.map(lambda a: jnp.broadcast_to(a, (batch, *jnp.shape(a))), each)
    return state, {"x": points, "y": y, "cost": cost, **repeated}


def check_points(points: Points, q: int) -> None:
    """Raise a ValueError unless `ask` returned q points."""
    if len(points) != q:
        raise ValueError(
            f"the search has batch={q}, but its ask returned {len(points)} points"
        )


def evaluate(objective: Objective, key: PRNGKeyArray, points: Points) -> Outcome:
    """Return the values, costs and known noise variances of points."""
    if len(points) > 1:
        return evaluate_points(objective, key, points)
    outcome = evaluate_point(objective, key, points[0])
    alone: Outcome = jax.tree.map(lambda leaf: leaf[None], outcome)
    return alone


def tell_all(
    search: Search, state: Any, points: Points, *outcomes: Values | None
) -> Any:
    """Tell a search the outcomes of points in their order; return its new state.

    Args:
        search: The search.
        state: Its state.
        points: The points.
        *outcomes: Values, costs and noise variances of the points; these are None if not known.
    """

    def tell(state: Any, row: Any) -> tuple[Any, None]:
        x, y, cost, noise = row
        ok = jnp.isfinite(y)
        observation = Observation(x, y, jnp.asarray(0), cost, ok, noise)
        return search.tell(state, observation), None

    rows = points, *outcomes
    if len(points) == 1:
        return tell(state, jax.tree.map(lambda leaf: leaf[0], rows))[0]
    return jax.lax.scan(tell, state, rows)[0]
