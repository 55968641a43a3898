"""Which columns of a point matter: what `active=` may be for kernels of spaces whose parameters come and go.

A Space, or a function of a point, active(x (d,)) -> (d,) bool. Whatever else is refused: by its shape and kind as soon as it
is traced, which is when the number of columns is known, and points by their values outside `jit` alone.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.spaces import Space

Active = Any  # a Space, or a function of a point, active(x (d,)) -> (d,) bool

_ROUNDING = 1e-6  # as for the rows of a space


def columns_of(active: Active, categories: tuple[int, ...]) -> tuple[Active, tuple[int, ...]]:
    """What tells which columns matter, and how many options each has.

    `space.active` stands for its space: methods of equal spaces are not equal, and every new one would be compiled anew.
    """
    if isinstance(active, Space):
        return active, active.categories
    if getattr(active, "__func__", None) is Space.active:
        return active.__self__, tuple(categories)
    if not callable(active):
        raise ValueError(f"expected a Space, or a function that tells which columns of a point are active; got {active!r}")
    return active, tuple(categories)


def relevance(columns: Active) -> Callable[[Array], Array]:
    """active(x (d,)) -> (d,) bool, or a ValueError that says what came instead."""
    function = columns.active if isinstance(columns, Space) else columns

    def active(x: Array) -> Array:
        if isinstance(columns, Space) and x.shape != (columns.dim,):
            raise ValueError(f"this kernel is for a space of {columns.dim} columns; a point has shape {x.shape}")
        try:
            on = function(x)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as problem:
            raise ValueError("active must be traceable: & and | for `and` and `or`, jnp for np, no `if`") from problem
        except (TypeError, ValueError, IndexError) as problem:
            raise ValueError(f"active fails at a point of shape {x.shape}: {problem}") from problem
        if not isinstance(on, (jax.Array, np.ndarray)) or (on.shape, on.dtype) != (x.shape, bool):
            found = f"{on.dtype} {on.shape}" if isinstance(on, (jax.Array, np.ndarray)) else repr(on)
            raise ValueError(f"active says of each column whether it matters: expected bool {x.shape}; got {found}")
        return jnp.asarray(on)

    return active


@cache
def check_relevance(columns: Active, d: int) -> None:
    """A ValueError where active is none for points of d columns. It is traced, and nothing is computed."""
    jax.eval_shape(relevance(columns), jax.ShapeDtypeStruct((d,), jnp.result_type(float)))


def check_cube(columns: Active, x: np.ndarray) -> None:
    """A ValueError where points (n, d) lie outside the unit cube; a function may call what lies there inactive."""
    if isinstance(columns, Space):
        return columns.check(x, "point")
    outside = ~((x >= -_ROUNDING) & (x <= 1.0 + _ROUNDING))
    if not outside.any():
        return None
    with jax.ensure_compile_time_eval():
        outside &= np.asarray(jax.vmap(relevance(columns))(jnp.asarray(x)))
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ValueError(f"point {row}: column {column} is active and lies in [0, 1] for this kernel; got {x[row, column]}")
    return None
