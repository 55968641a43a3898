"""Build the initial state of a run: empty, from an earlier run, or from known observations."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.search.batches import tell_all
from bonas.search.capacities import match_state, paths_of
from bonas.search.search import Search
from bonas.spaces import Space
from bonas.static_settings import check_counts

# Points (m, d) or configurations, their values (m,), and possibly their costs (m,) and noise
# variances (m,).
Known = Sequence[Any]


def start_state(
    search: Search,
    key: PRNGKeyArray,
    steps: int,
    *,
    state: Any,
    data: Known | None,
    sign: float,
) -> tuple[Any, Array]:
    """Return a state with room for `steps` evaluations, and the number of points in it.

    Args:
        search: The search.
        key: The key of the initial state.
        steps: The number of evaluations.
        state: The state of an earlier run, or None.
        data: Known observations, or None; see `read_known`.
        sign: −1 if values are maximized.
    """
    check_counts(steps=steps)
    known = None if data is None else read_known(search.space, data)
    room = steps + (0 if known is None else len(known[0]))
    if state is None:
        state = search.init(key, room)
    else:
        leaves = jax.tree.leaves(state)
        state, capacity = match_state(search, paths_of(state), leaves)
        if capacity is not None:
            state = search.grow(state, search.init(key, capacity + room))
    if known is not None and len(known[0]):
        points, values, *rest = known
        state = tell_all(
            search, state, points, values if sign > 0.0 else -values, *rest
        )
    observations = getattr(state, "observations", None)
    return state, jnp.asarray(0 if observations is None else observations.data.size)


def read_known(
    space: Space, data: Known
) -> tuple[
    Float[Array, "m d"],
    Float[Array, " m"],
    Float[Array, " m"],
    Float[Array, " m"] | None,
]:
    """Return the points, values, costs and noise variances of known observations.

    Args:
        space: The space.
        data: Points (m, d) or a list of configurations, their values (m,), NaN for a failed
            evaluation, and possibly their costs (m,), which are 1 by default or if None, and the
            variances (m,) of the noise of the values, for a search with known noise.
    """
    if not isinstance(data, (tuple, list)) or len(data) not in (2, 3, 4):
        raise ValueError(
            "data must be (x, y), points or configurations and their values, or (x, y, "
            f"cost) or (x, y, cost, noise); got {type(data).__name__}"
        )
    x, y, cost, noise = (*data, None, None)[:4]
    if isinstance(x, Sequence) and x and isinstance(x[0], Mapping):
        x = jnp.stack([space.encode(config) for config in x])
    points = jnp.asarray(x, float)
    values = jnp.asarray(y, points.dtype)
    costs = jnp.ones_like(values) if cost is None else jnp.asarray(cost, points.dtype)
    variances = None if noise is None else jnp.asarray(noise, points.dtype)
    if points.ndim != 2 or points.shape[1] != space.dim:
        raise ValueError(
            f"expected known points of shape (m, {space.dim}); got {points.shape}"
        )
    if values.shape != points.shape[:1] or costs.shape != values.shape:
        raise ValueError(
            f"expected one value and one cost for each of {len(points)} known points; got shapes "
            f"{values.shape} and {costs.shape}"
        )
    if variances is not None and variances.shape != values.shape:
        raise ValueError(
            f"expected one noise variance for each of {len(points)} known points; got shape "
            f"{variances.shape}"
        )
    space.check(points, "known point", exists=True)
    return points, values, costs, variances
