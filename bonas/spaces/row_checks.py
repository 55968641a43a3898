"""Check rows of the unit cube, with messages that name the row and the parameter."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

if TYPE_CHECKING:
    from bonas.spaces.space import Space

# Tolerance outside [0, 1]: above the rounding error of float32 in encoding a configuration.
_ROUNDING = 1e-6


def check_rows(space: "Space", u: ArrayLike, what: str, *, exists: bool) -> None:
    """Raise a ValueError for a row outside the unit cube; see `Space.check`."""
    if isinstance(u, jax.core.Tracer) or jnp.shape(u)[-1:] != (space.dim,):
        return
    rows = np.asarray(u).reshape(-1, space.dim)
    outside = ~((rows >= -_ROUNDING) & (rows <= 1.0 + _ROUNDING))
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ValueError(
            f"{_row_label(what, row, rows)}: the column of parameter {space.names[column]!r} "
            f"must be in [0, 1]; got {rows[row, column]}. Use space.encode(config) to make a row"
        )
    if exists and space.conditions:
        _check_inactive(space, u, what)


def _check_inactive(space: "Space", u: ArrayLike, what: str) -> None:
    rows = np.asarray(u).reshape(-1, space.dim)
    with jax.ensure_compile_time_eval():
        active = np.asarray(space.active(u)).reshape(rows.shape)
        wrong = ~active & (np.abs(rows) > _ROUNDING)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise ValueError(
                f"{_row_label(what, row, rows)}: "
                f"{why_inactive(space, space.names[column], rows[row])}, but its column is "
                f"{rows[row, column]}; expected 0, as from space.snap(u)"
            )


def why_inactive(space: "Space", name: str, u: ArrayLike) -> str:
    """Explain in words why a parameter is inactive at a row."""
    config = space.decode(u)
    state = [
        f"{parent} is {config[parent]!r}"
        if parent in config
        else f"{parent} is inactive"
        for parent in space.parents[name]
    ]
    where = f" where {' and '.join(state)}" if state else ""
    return f"parameter {name!r} is inactive: its condition does not hold{where}"


def _row_label(what: str, row: int, rows: np.ndarray) -> str:
    return f"{what} {row}" if len(rows) > 1 else what
