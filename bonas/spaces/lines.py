"""Points that differ in one parameter, for plots of models."""

import jax.numpy as jnp
import jaxtyping as jt
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.spaces.parameter import Parameter
from bonas.spaces.space import Space


def column_values(parameter: Parameter, n: int) -> jt.Float[np.ndarray, " m"]:
    """Return increasing column values that cover the range of a parameter.

    Args:
        parameter: The parameter.
        n: Number of evenly spaced values before they are rounded to the grid of the parameter,
            where some may coincide. A Choice gets all its options instead.

    Returns:
        The distinct values (m,), between 0 and 1.
    """
    n = n if parameter.ordered else parameter.categories
    return np.unique(np.asarray(parameter.snap(jnp.linspace(0.0, 1.0, n))))


def rows_along(
    space: Space,
    base: jt.Float[Array, " d"],
    name: str,
    values: jt.Float[ArrayLike, " m"],
) -> jt.Float[Array, "m d"]:
    """Return copies of a point with other values of one parameter.

    Columns that are inactive at the base point are set to 0.5, the middle of the range, which
    matters where another value activates them. Apply `space.snap` to the rows before use.

    Args:
        space: The space.
        base: The point (d,) to copy.
        name: The name of the parameter.
        values: Column values (m,) of the parameter, such as `column_values` returns.
    """
    start = jnp.where(space.active(base), base, 0.5)
    column = space.names.index(name)
    rows = jnp.tile(start[None, :], (len(jnp.asarray(values)), 1))
    return rows.at[:, column].set(jnp.asarray(values))
