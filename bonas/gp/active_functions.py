"""Functions passed as `active=`: they return which columns of a point are active."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from bonas.spaces import Space

ActiveFunction: TypeAlias = Callable[[Array], Array]

_ROUNDING = 1e-6  # tolerance outside [0, 1], as for the points of a space


def resolve_function(active: Any) -> Space | ActiveFunction:
    """Return a function of active columns, or the space if the function is `space.active`.

    Equal spaces are compiled once, but their methods are not equal and would be compiled again.
    """
    if getattr(active, "__func__", None) is Space.active:
        space: Space = active.__self__
        return space
    if not callable(active):
        raise ValueError(
            "expected a Space, or a function that returns which columns of a point are active; "
            f"got {active!r}"
        )
    function: ActiveFunction = active
    return function


def evaluate_active(active: ActiveFunction, x: Array) -> Array:
    """Return which columns (d,) of a point x (d,) are active.

    Raises:
        ValueError: If the function cannot be traced or does not return a boolean per column.
    """
    mask = _evaluate(active, x)
    is_array = isinstance(mask, (jax.Array, np.ndarray))
    if not is_array or (mask.shape, mask.dtype) != (x.shape, bool):
        found = f"{mask.dtype} {mask.shape}" if is_array else repr(mask)
        raise ValueError(
            f"active must return a bool array of shape {x.shape}, one entry per column; got {found}"
        )
    return jnp.asarray(mask)


def _evaluate(function: Callable[[Array], Any], x: Array) -> Any:
    try:
        return function(x)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise ValueError(
            "active must be traceable: use & and | for `and` and `or`, jnp for np, and no `if`"
        ) from error
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"active raised an error at a point of shape {x.shape}: {error}"
        ) from error


def check_inside(active: ActiveFunction, x: np.ndarray) -> None:
    """Raise a ValueError if an active column of points (n, d) is outside [0, 1]."""
    outside = ~((x >= -_ROUNDING) & (x <= 1.0 + _ROUNDING))
    if not outside.any():
        return
    with jax.ensure_compile_time_eval():
        outside &= np.asarray(
            jax.vmap(partial(evaluate_active, active))(jnp.asarray(x))
        )
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ValueError(
            f"point {row}: column {column} is active and must be in [0, 1] for this kernel; "
            f"got {x[row, column]}"
        )
