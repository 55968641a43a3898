"""The `active=` argument of conditional kernels: which columns of a point are active.

It is a Space, or a function of a point, active(x (d,)) -> (d,) bool. Shapes and types are checked
when the function is traced, since the number of columns is known then; values of points are
checked only outside `jit`.
"""

from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from bonas.gp.active_functions import (
    ActiveFunction,
    check_inside,
    evaluate_active,
    resolve_function,
)
from bonas.spaces import Space

Active: TypeAlias = Space | ActiveFunction


def resolve_active(
    active: Any, categories: tuple[int, ...] = ()
) -> tuple[Active, tuple[int, ...]]:
    """Return the rule for active columns, and the number of options of each column."""
    if isinstance(active, Space):
        return active, active.categories
    return resolve_function(active), tuple(categories)


def active_mask(active: Active, x: Array) -> Array:
    """Return which columns (d,) of a point x (d,) are active."""
    if not isinstance(active, Space):
        return evaluate_active(active, x)
    if x.shape != (active.dim,):
        raise ValueError(
            f"this kernel is for a space of {active.dim} columns; a point has shape {x.shape}"
        )
    return active.active(x)


def check_active(active: Active, d: int) -> None:
    """Raise a ValueError if `active` is invalid for points of d columns; nothing is computed."""
    point = jax.ShapeDtypeStruct((d,), jnp.result_type(float))
    jax.eval_shape(partial(active_mask, active), point)


def check_unit_cube(active: Active, x: np.ndarray) -> None:
    """Raise a ValueError if an active column of points (n, d) is outside [0, 1]."""
    if isinstance(active, Space):
        active.check(x, "point")
    else:
        check_inside(active, x)
