"""Spaces of which only some points exist, such as the networks of a table that somebody trained."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from scipy.spatial import KDTree

from bonas.spaces.parameters import Choice, Parameter
from bonas.spaces.space import Space

# As for a search's record: rows that differ by no more in any column are one point.
_SAME = 1e-6


@jax.tree_util.register_static
class Listed(Space):
    """A space of which only the listed rows (m, d) exist, in their order.

    It has the parameters, the conditions and the configurations of `space`. Searches go through all rows; an objective
    looks its value up, as in `lambda key, u: values[listed.row(u)]`. Rows that are no points of the space are refused, and
    so are repeated ones, of which a search could tell no two apart.

    snap gives the nearest row in the sense of `row`. spread gives each row its fair share of uniform draws, by their
    first column alone: there Sobol sequences are evenly spaced, so that k of their points, shifted or not, are k different
    rows as long as k, rounded up to a power of two, is at most m.
    """

    def __init__(self, space: Space, rows: ArrayLike):
        self.space, self.rows = space, _checked(space, np.array(rows, float))
        self._bytes = self.rows.tobytes()
        super().__init__(**space.parameters)

    def _identity(self):
        return *super()._identity(), self._bytes

    def __repr__(self) -> str:
        return f"Listed({len(self.rows)} rows of {super().__repr__()})"

    @property
    def size(self) -> float:
        """How many points exist: as many as there are rows."""
        return len(self.rows)

    def points(self) -> Array:
        """The rows (m, d) in their order."""
        return jnp.asarray(self.rows)

    def row(self, u: ArrayLike) -> Array:
        """The position () or positions (n,) of the rows nearest to u (d,) or (n, d), by `distances`: a listed row's own."""
        return jnp.argmin(self.distances(u), axis=-1)

    def distances(self, u: ArrayLike) -> Array:
        """The squared distances (m,) or (n, m) of all rows from u (d,) or (n, d).

        They sum up squared differences in columns that are active in both, where two options are 1 apart. A column that is
        active in one of them alone counts like the two ends of its range.
        """
        return self._distances(super()._settle(jnp.asarray(u), "snap"))

    @jax.jit
    def _distances(self, u: Array) -> Array:
        if u.ndim == 2:
            return jax.vmap(self._distances)(u)
        rows, options = self.points(), np.asarray(self.categories)[None, :] > 0
        here, there = self.active(u)[None, :], self.active(rows)
        gap = jnp.abs(rows - u[None, :])
        squares = jnp.where(options, gap > _SAME, gap**2)
        return jnp.where(here & there, squares, here ^ there).sum(axis=1)

    @partial(jax.jit, static_argnums=2)
    def _settle(self, u: Array, how: str) -> Array:
        placed, m = super()._settle(u, how), len(self.rows)
        fair = jnp.clip(jnp.floor(u[..., 0] * m), 0, m - 1).astype(int)
        return self.points()[fair if how == "spread" else jnp.argmin(self._distances(placed), axis=-1)]

    def encode(self, config: Mapping[str, Any]) -> Array:
        """The row (d,) of a configuration, which must be a listed one."""
        u = self.space.encode(config)
        row = self.snap(u)
        if np.abs(row - u).max() > _SAME:
            raise ValueError(f"no listed row is {dict(config)}; the nearest is {self.decode(row)}")
        return row

    def neighbours(self, u: ArrayLike) -> Array:
        """(0, d): rows that are listed are one step in one parameter apart by chance alone."""
        u = jnp.asarray(u)
        self._check_row(u)
        return jnp.zeros((0, self.dim), u.dtype)

    def without_conditions(self, key: Array) -> "Listed":
        """The same rows for a model that knows nothing of relevance: no column has a condition, and random values stand in
        those that had no meaning, each drawn once."""
        parameters = {name: _always(parameter) for name, parameter in self.parameters.items()}
        plain = Space(**parameters)
        filling = plain.spread(jax.random.uniform(key, self.rows.shape))
        return Listed(plain, jnp.where(self.active(self.rows), self.points(), filling))


def _always(parameter: Parameter) -> Parameter:
    return Choice(*parameter.names) if isinstance(parameter, Choice) else replace(parameter, when=None)


def _checked(space: Space, rows: np.ndarray) -> np.ndarray:
    """The rows, where each is a point of the space and none is there twice; values are moved onto their grid by rounding."""
    if rows.ndim != 2 or rows.shape[1] != space.dim or not len(rows):
        raise ValueError(f"expected rows (m, {space.dim}), at least one; got shape {rows.shape}")
    with jax.ensure_compile_time_eval():
        placed = np.array(space.snap(jnp.asarray(rows)))
    wrong = ~(np.abs(placed - rows) <= _SAME).all(axis=1)  # NaN is wrong too
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"row {row} is no point of the space: {rows[row]}; the nearest is {placed[row]}")
    pairs = KDTree(placed).query_pairs(_SAME, p=np.inf)
    if pairs:
        first, second = min(pairs)
        raise ValueError(f"rows {first} and {second} are the same point; keep one of them: {placed[first]}")
    placed.setflags(write=False)
    return placed
