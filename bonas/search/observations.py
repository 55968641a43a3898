"""The pending and evaluated points of a search, in arrays of fixed capacity."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset, append, empty
from bonas.search.checks import check_precision
from bonas.search.garbage_collection import only_new_objects
from bonas.search.search import AskInfo, AskResult, Observation, merge_infos
from bonas.static_settings import check_static

# Two rows are the same point if no column differs by more. This is above the rounding error of
# float32 in decoding and encoding a point, and below the step of an integer with 100,000 values.
SAME_POINT = 1e-6


class Observations(NamedTuple):
    """All points that a search has proposed or observed, in the order they were added."""

    data: Dataset  # (n, d) points; rows are masked while pending and if failed
    pending: Array  # (n,) bool: proposed, not evaluated yet
    failed: Array  # (n,) bool
    cost: Array  # (n,) cost of the evaluation; 0 if unknown


def empty_observations(capacity: int, d: int) -> Observations:
    """Return observations without points, with space for `capacity` points of d columns."""
    check_static("capacity", capacity)
    check_precision()
    false = jnp.zeros(capacity, bool)
    return Observations(empty(capacity, d), false, false, jnp.zeros(capacity))


def max_difference(
    rows: Float[Array, "n d"], x: Float[Array, " d"]
) -> Float[Array, " n"]:
    """Return the largest difference in any column between each row and a point."""
    return jnp.max(jnp.abs(rows - x[None, :]), axis=1)


def add_pending(observations: Observations, x: ArrayLike) -> Observations:
    """Add a point (d,) that has not been evaluated yet.

    Beyond the capacity this raises a ValueError on the host. Under `jit` the point is dropped
    instead, but `data.size` still grows, so that `data.size > capacity` reveals it.
    """
    row = observations.data.size
    return observations._replace(
        data=append(observations.data, x, 0.0, False),
        pending=observations.pending.at[row].set(True, mode="drop"),
    )


def add_observation(
    observations: Observations, observation: Observation
) -> Observations:
    """Add an observation to the first pending row of its point, or to a new row.

    An observation has failed if it is not ok or its value is not finite; its row stays masked. Each
    pending row takes one observation. For a new point beyond the capacity see `add_pending`.
    """
    if observation.noise is not None:
        raise ValueError(
            "this search does not use the noise of observations: use bayes(known_noise=True), or "
            "do not pass a noise variance"
        )
    data = observations.data
    x, y = point_and_value(observation, data)
    gap = jnp.where(observations.pending, max_difference(data.x, x), jnp.inf)
    nearest = jnp.argmin(gap)
    was_pending = gap[nearest] < SAME_POINT
    check_capacity(observations, ~was_pending)
    row = jnp.where(was_pending, nearest, data.size)
    ok = observation.ok & jnp.isfinite(y) & jnp.isfinite(x).all()

    def write(column: Array, value: ArrayLike) -> Array:
        return column.at[row].set(value, mode="drop")

    return Observations(
        data=data._replace(
            x=write(data.x, x),
            y=write(data.y, jnp.where(ok, y, 0.0)),
            mask=write(data.mask, ok),
            size=data.size + ~was_pending,
        ),
        pending=write(observations.pending, False),
        failed=write(observations.failed, ~ok),
        cost=write(observations.cost, observation.cost),
    )


def point_and_value(
    observation: Observation, data: Dataset
) -> tuple[Float[Array, " d"], Float[Array, ""]]:
    """Return x (d,) and y () of an observation in the precision of the data.

    Raises:
        ValueError: If the shape of x or y does not match the data.
    """
    x = jnp.asarray(observation.x, data.x.dtype)
    y = jnp.asarray(observation.y, data.y.dtype)
    if x.shape != data.x.shape[1:] or y.shape != ():
        raise ValueError(
            f"expected an observation with x of shape {data.x.shape[1:]} and y of shape (); "
            f"got {x.shape} and {y.shape}"
        )
    return x, y


def check_capacity(observations: Observations, new: ArrayLike) -> None:
    """Raise a ValueError if `new` more points exceed the capacity; not under `jit`."""
    capacity = len(observations.pending)
    size = observations.data.size + new
    if not isinstance(size, jax.core.Tracer) and int(size) > capacity:
        raise ValueError(
            f"the search is full: its capacity is {capacity} points; use a larger capacity, as in "
            "`search.init(key, capacity)`, or `search.grow`"
        )


@only_new_objects()
def sequential_ask(
    ask_one: Callable[[PRNGKeyArray, Any], AskResult],
    key: PRNGKeyArray,
    state: Any,
    *,
    batch: int,
) -> AskResult:
    """Ask for a batch one point at a time, with the previous points pending."""
    check_capacity(state.observations, batch)

    def step(state: Any, i: Array) -> tuple[Any, tuple[Array, AskInfo]]:
        x, state, info = ask_one(jax.random.fold_in(key, i), state)
        return state, (x, info)

    state, (points, infos) = jax.lax.scan(step, state, jnp.arange(batch))
    return points, state, merge_infos(infos)
