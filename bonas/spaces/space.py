"""Search spaces: parameters that may come and go, and the unit cube in which searches work.

A point is a row u (d,) of the unit cube, one column a parameter. Rows that exist (`snap`) have integers and options on
their grid and 0 in inactive columns. `values` and `active` are traceable; `encode` and `decode` are for people.

Whatever reads a row takes any of the cube, as kernels and samplers make them, for the point that it snaps to. What is stored
as a point, by a search, has to be one: `check(u, exists=True)`. Outside `jit` a row beyond the cube is refused by all but
`snap` and `spread`.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.spaces.conditions import Condition, parents, read_condition
from bonas.spaces.parameters import Choice, Float, Int, Parameter, moves

_MOST_POINTS = 1_000_000  # enumerating more than this helps nobody
_ROUNDING = 1e-6  # a column value this far beyond 0 or 1 is meant to be there: more than float32 loses on the way


@jax.tree_util.register_static
class Space:
    """Named parameters, some of which exist only under a condition.

    `when=` is a dict, {"depth": (">=", 2)} or {"activation": "relu"}, all of whose entries must hold; or a traceable
    function of `space.values`. A parameter whose condition rests on an inactive parameter is inactive too.

    A space is static: it may be passed to any jitted function, and equal spaces share what is compiled.
    """

    def __init__(self, **parameters: Parameter):
        if not parameters:
            raise ValueError("a space needs at least one parameter")
        for name, parameter in parameters.items():
            if not isinstance(parameter, (Float, Int, Choice)):
                raise ValueError(f"parameter {name!r} must be a Float, an Int or a Choice; got {parameter!r}")
            parameter.check(name)
        self.parameters = parameters
        self.names = tuple(parameters)
        self.dim = len(parameters)
        self.categories = tuple(p.options if isinstance(p, Choice) else 0 for p in parameters.values())
        self._conditions: dict[str, Condition] = {
            name: read_condition(name, p.when, parameters) for name, p in parameters.items() if p.when is not None
        }
        self._parents = parents(self._conditions, parameters)
        self._hash = hash(self._identity())

    def __eq__(self, other) -> bool:
        return isinstance(other, Space) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return self._hash

    def _identity(self):
        plain = tuple((name, type(p), p.bounds) for name, p in self.parameters.items())
        return plain, tuple(self._conditions.items())

    def __repr__(self) -> str:
        return "Space(" + ", ".join(f"{name}={parameter}" for name, parameter in self.parameters.items()) + ")"

    def values(self, u: ArrayLike) -> dict[str, Array]:
        """Every name to its number at one row u (d,), a Choice to its position: what `when` receives."""
        u = jnp.asarray(u)
        self.check(u)
        return self._values(u)

    def active(self, u: ArrayLike) -> Array:
        """Which columns matter: (d,) bool for one row, (n, d) for many."""
        u = jnp.asarray(u)
        self.check(u)
        return self._active(u)

    @jax.jit
    def _values(self, u: Array) -> dict[str, Array]:
        self._check_row(u)
        return {name: p.value(u[i]) for i, (name, p) in enumerate(self.parameters.items())}

    @jax.jit
    def _active(self, u: Array) -> Array:
        if u.ndim == 2:
            return jax.vmap(self.active)(u)
        values = self.values(u)
        on: dict[str, Any] = {}
        for name in self._parents:  # parents come before their children
            condition = self._conditions.get(name)
            holds = jnp.asarray(True) if condition is None else jnp.asarray(condition(values), bool)
            for parent in self._parents[name]:
                holds = holds & on[parent]
            on[name] = holds
        return jnp.stack([on[name] for name in self.names])

    def snap(self, u: ArrayLike) -> Array:
        """The nearest point that exists to a row (d,) or rows (n, d): values on their grid, inactive columns 0.

        What lies beyond the unit cube goes to its surface.
        """
        return self._settle(jnp.asarray(u), "snap")

    def spread(self, u: ArrayLike) -> Array:
        """Points that exist, (n, d) or (d,), for uniform draws u: every integer and every option gets its fair share."""
        return self._settle(jnp.asarray(u), "spread")

    @partial(jax.jit, static_argnums=2)
    def sample(self, key: Array, n: int) -> Array:
        """n random points (n, d) that exist."""
        return self.spread(jax.random.uniform(key, (n, self.dim)))

    @partial(jax.jit, static_argnums=2)
    def _settle(self, u: Array, how: str) -> Array:
        if u.ndim not in (1, 2) or u.shape[-1] != self.dim:  # an index past the end would repeat the last column
            raise ValueError(f"expected a row ({self.dim},) or rows (n, {self.dim}); got shape {u.shape}")
        placed = jnp.stack([getattr(p, how)(u[..., i]) for i, p in enumerate(self.parameters.values())], axis=-1)
        return jnp.where(self.active(placed), placed, 0.0)

    def decode(self, u) -> dict[str, Any]:
        """The configuration at one row: Python numbers and options; inactive names are absent, whatever their columns hold."""
        u = jnp.asarray(u)
        self._check_row(u)
        if not np.isfinite(u).all():
            raise ValueError(f"a row holds a NaN or an infinite value: {u}")
        on, values = np.asarray(self.active(u)), self.values(u)
        return {name: p.decode(values[name]) for i, (name, p) in enumerate(self.parameters.items()) if on[i]}

    def encode(self, config: Mapping[str, Any]) -> Array:
        """The row (d,) of a configuration: the inverse of decode. Missing, unknown and inactive names are refused."""
        unknown = [name for name in config if name not in self.parameters]
        if unknown:
            raise ValueError(f"unknown parameter {unknown[0]!r}; this space has {', '.join(self.names)}")
        u = jnp.asarray([p.encode(name, config[name]) if name in config else 0.0 for name, p in self.parameters.items()])
        on = np.asarray(self.active(u))
        for name, needed in zip(self.names, on, strict=True):
            if needed and name not in config:
                raise ValueError(f"parameter {name!r} is missing")
            if not needed and name in config:
                raise ValueError(self._no_meaning(name, u))
        return self.snap(u)

    def check(self, u: ArrayLike, what: str = "row", *, exists: bool = False) -> None:
        """A ValueError that names the parameter where a row (d,), or one of many (n, d), lies outside the unit cube.

        exists: also where an inactive column holds something else than 0. A row that is traced is not looked at.
        """
        if isinstance(u, jax.core.Tracer) or jnp.shape(u)[-1:] != (self.dim,):
            return
        rows = np.asarray(u).reshape(-1, self.dim)
        outside = ~((rows >= -_ROUNDING) & (rows <= 1.0 + _ROUNDING))
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise ValueError(
                f"{_numbered(what, row, rows)}: the column of parameter {self.names[column]!r} lies in [0, 1]; "
                f"got {rows[row, column]}. space.encode makes such a row of a configuration"
            )
        if not exists or not self._conditions:
            return
        with jax.ensure_compile_time_eval():
            given = ~np.asarray(self.active(u)).reshape(rows.shape) & (np.abs(rows) > _ROUNDING)
            if given.any():
                row, column = np.argwhere(given)[0]
                raise ValueError(
                    f"{_numbered(what, row, rows)}: {self._no_meaning(self.names[column], rows[row])}, and its column holds "
                    f"{rows[row, column]}. space.snap puts a 0 there"
                )

    def _no_meaning(self, name: str, u: ArrayLike) -> str:
        """That a parameter is inactive at a row, and what its condition rests on there."""
        config = self.decode(u)
        state = [
            f"{other} is {config[other]!r}" if other in config else f"{other} is inactive" for other in self._parents[name]
        ]
        since = f" where {' and '.join(state)}" if state else ""
        return f"parameter {name!r} has no meaning here: its condition does not hold{since}"

    def neighbours(self, u: ArrayLike) -> Array:
        """The points (k, d) one step away from a row in one integer or Choice; k is fixed, so it is traceable.

        An integer moves by one, a Choice to every other option. A parameter that becomes active starts in its middle. At
        the end of a range, and for inactive parameters, a row is u itself. Real numbers have no neighbours.
        """
        u = jnp.asarray(u)
        self._check_row(u)
        on = self.active(u)
        start = jnp.where(on, u, 0.5)
        rows = [start.at[i].set(moved) for i, p in enumerate(self.parameters.values()) for moved in moves(p, u[i])]
        if not rows:
            return jnp.zeros((0, self.dim), u.dtype)
        moved = self.snap(jnp.stack(rows))
        source = [i for i, p in enumerate(self.parameters.values()) for _ in moves(p, u[i])]
        return jnp.where(on[jnp.asarray(source)][:, None], moved, self.snap(u)[None, :])

    @property
    def size(self) -> float:
        """How many different points exist: a whole number, or math.inf where a real number is among the parameters."""
        if any(p.options == math.inf and p.low < p.high for p in self.parameters.values()):  # type: ignore[union-attr]
            return math.inf
        deciding = sorted({parent for above in self._parents.values() for parent in above}, key=self.names.index)
        with jax.ensure_compile_time_eval():  # a number, also where it is asked for inside `jit`
            rows = self._grid(deciding)
            on = np.asarray(self.active(jnp.asarray(rows)))
        index = [self.names.index(name) for name in deciding]
        distinct = ((rows[:, index] == 0) | on[:, index]).all(axis=1)
        free = [i for i, name in enumerate(self.names) if name not in deciding]
        counts = np.array([self._options(name) for name in self.names])
        return sum(math.prod(int(counts[i]) for i in free if row[i]) for row in on[distinct])

    def points(self) -> Array:
        """All points (size, d) of a finite space."""
        if self.size > _MOST_POINTS:
            raise ValueError(f"a space of {self.size} points is not enumerated; the most is {_MOST_POINTS}")
        with jax.ensure_compile_time_eval():
            return jnp.asarray(np.unique(np.asarray(self.snap(jnp.asarray(self._grid(self.names)))), axis=0))

    def _options(self, name: str) -> int:
        options = self.parameters[name].options
        return 1 if options == math.inf else int(options)

    def _grid(self, names: Iterable[str]) -> np.ndarray:
        """Every combination of the named columns, the others 0: (k, d)."""
        total = math.prod(self._options(name) for name in names)
        if total > 10 * _MOST_POINTS:
            raise ValueError(f"{total} combinations of {list(names)} are too many to go through")
        columns = [
            np.asarray(p.unit(jnp.arange(p.low, p.low + self._options(name)).astype(float))) if name in names else np.zeros(1)
            for name, p in self.parameters.items()
        ]
        return np.array(list(itertools.product(*columns)))

    def _check_row(self, u) -> None:
        if jnp.shape(u) != (self.dim,):
            raise ValueError(f"expected one row of {self.dim} columns; got shape {jnp.shape(u)}")


def _numbered(what: str, row: int, rows: np.ndarray) -> str:
    return f"{what} {row}" if len(rows) > 1 else what
