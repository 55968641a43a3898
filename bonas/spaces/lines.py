"""Lines of points along one parameter, for figures of models."""

import jax.numpy as jnp
import jaxtyping as jt
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.spaces.parameter import Parameter
from bonas.spaces.space import Space


def column_values(parameter: Parameter, n: int) -> jt.Float[np.ndarray, " m"]:
    """Return column values from 0 to 1: all options, or up to n ordered values."""
    n = n if parameter.ordered else parameter.categories
    return np.unique(np.asarray(parameter.snap(jnp.linspace(0.0, 1.0, n))))


def rows_along(
    space: Space,
    base: jt.Float[Array, " d"],
    name: str,
    values: jt.Float[ArrayLike, " m"],
) -> jt.Float[Array, "m d"]:
    """Return copies of a point with other column values of one parameter; `snap` makes them points.

    A parameter that is inactive at the base is in its middle, where another value activates it.
    """
    start = jnp.where(space.active(base), base, 0.5)
    column = space.names.index(name)
    rows = jnp.tile(start[None, :], (len(jnp.asarray(values)), 1))
    return rows.at[:, column].set(jnp.asarray(values))
