"""Spaces restricted to the rows of a table, such as networks that were trained before."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping as jt
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from scipy.spatial import KDTree

from bonas.spaces.space import Space

# Rows that differ by at most this in every column are the same point, as in a search.
_TOLERANCE = 1e-6


@jax.tree_util.register_static
class TableSpace(Space):
    """A space restricted to given rows, in their order.

    It has the parameters and conditions of `space`. A search chooses among all rows; an
    objective looks up its value, as in `lambda key, u: values[table_space.row(u)]`.

    `snap` returns the nearest row by `distances`. `spread` selects a row by the first column of the
    uniform draws alone. A Sobol sequence is evenly spaced in that column: k of its points, shifted
    or not, give k distinct rows if k, rounded up to a power of two, is at most m.

    Args:
        space: The space that contains the rows.
        rows: The distinct points (m, d).
    """

    def __init__(self, space: Space, rows: jt.Float[ArrayLike, "m d"]):
        self.space = space
        self.rows = _validate_rows(space, np.array(rows, float))
        self._bytes = self.rows.tobytes()
        super().__init__(**space.parameters)

    def _identity(self) -> tuple[Any, ...]:
        return *super()._identity(), self._bytes

    def __repr__(self) -> str:
        return f"TableSpace({len(self.rows)} rows of {super().__repr__()})"

    @property
    def size(self) -> int | float:
        """Number of rows."""
        return len(self.rows)

    def points(self) -> jt.Float[Array, "m d"]:
        """Return the rows in their order."""
        return jnp.asarray(self.rows)

    def row(self, u: jt.Float[ArrayLike, "*n d"]) -> jt.Int[Array, "*n"]:
        """Return the position in the table of the row nearest to u, by `distances`."""
        return jnp.argmin(self.distances(u), axis=-1)

    def distances(self, u: jt.Float[ArrayLike, "*n d"]) -> jt.Float[Array, "*n m"]:
        """Return the squared distances from u to all rows of the table.

        A column that is active in both points adds the squared difference, which is 1 for two
        different options. A column that is active in only one of them adds 1.
        """
        squares: Array = self._distances(super()._place(jnp.asarray(u), "snap"))
        return squares

    @jax.jit
    def _distances(self, u: Array) -> Array:
        if u.ndim == 2:
            squares: Array = jax.vmap(self._distances)(u)
            return squares
        rows = self.points()
        unordered = np.asarray(self.categories)[None, :] > 0
        here = self.active(u)[None, :]
        there = self.active(rows)
        gap = jnp.abs(rows - u[None, :])
        both = jnp.where(unordered, gap > _TOLERANCE, gap**2)
        return jnp.where(here & there, both, here ^ there).sum(axis=1)

    @partial(jax.jit, static_argnums=2)
    def _place(self, u: Array, method: str) -> Array:
        placed = super()._place(u, method)
        m = len(self.rows)
        fair = jnp.clip(jnp.floor(u[..., 0] * m), 0, m - 1).astype(int)
        if method == "spread":
            return self.points()[fair]
        return self.points()[jnp.argmin(self._distances(placed), axis=-1)]

    def encode(self, config: Mapping[str, Any]) -> jt.Float[Array, " d"]:
        """Return the row of a configuration.

        Raises:
            ValueError: If the configuration is invalid or not in the table.
        """
        u = self.space.encode(config)
        row = self.snap(u)
        if np.abs(row - u).max() > _TOLERANCE:
            raise ValueError(
                f"{dict(config)} is not in the table; the nearest row is {self.decode(row)}"
            )
        return row

    def neighbors(self, u: jt.Float[ArrayLike, " d"]) -> jt.Float[Array, "0 d"]:
        """Return an empty array, because rows of a table differ in their number of neighbors."""
        u = jnp.asarray(u)
        self._check_row(u)
        return jnp.zeros((0, self.dim), u.dtype)

    def without_conditions(self, key: jt.PRNGKeyArray) -> "TableSpace":
        """Return the table as a space without conditions, with random values in inactive columns.

        Use it for models that do not support conditional parameters.

        Args:
            key: Random key of these values.
        """
        plain = Space(
            **{name: p.with_condition(None) for name, p in self.parameters.items()}
        )
        filling = plain.spread(jax.random.uniform(key, self.rows.shape))
        return TableSpace(
            plain, jnp.where(self.active(self.rows), self.points(), filling)
        )


def _validate_rows(space: Space, rows: np.ndarray) -> np.ndarray:
    """Return the rows without rounding errors; raise a ValueError unless they are distinct."""
    if rows.ndim != 2 or rows.shape[1] != space.dim or not len(rows):
        raise ValueError(
            f"expected rows (m, {space.dim}), at least one; got shape {rows.shape}"
        )
    with jax.ensure_compile_time_eval():
        placed = np.array(space.snap(jnp.asarray(rows)))
    wrong = ~(np.abs(placed - rows) <= _TOLERANCE).all(axis=1)  # also True for NaN
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"row {row} is not a point of the space: {rows[row]}; the nearest is {placed[row]}"
        )
    pairs = KDTree(placed).query_pairs(_TOLERANCE, p=np.inf)
    if pairs:
        first, second = min(pairs)
        raise ValueError(
            f"rows {first} and {second} are the same point; remove one of them: {placed[first]}"
        )
    placed.setflags(write=False)
    return placed
