"""Find points that a search has proposed before."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bonas.search.observations import SAME_POINT, Observations, max_difference


def is_observed(observations: Observations, x: Float[Array, " d"]) -> Bool[Array, ""]:
    """Return whether a point was added before, including pending and failed ones."""
    data = observations.data
    in_use = jnp.arange(len(observations.pending)) < data.size
    return ((max_difference(data.x, x) < SAME_POINT) & in_use).any()


def are_observed(
    observations: Observations, points: Float[Array, "m d"]
) -> Bool[Array, " m"]:
    """Return which points were added before."""
    return jax.vmap(is_observed, (None, 0))(observations, points)
