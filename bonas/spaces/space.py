"""Search spaces: named parameters as the columns of a unit cube.

A point is a row u (d,) of the unit cube, with one column per parameter. `snap` and `spread` return
rows that encode a configuration: integers and options on their grid, 0 in inactive columns.
`values` and `active` are traceable; `encode` and `decode` convert from and to Python dicts.

Every method accepts any row of the cube and treats it as the point that `snap` returns. A search
stores only rows that pass `check(u, exists=True)`. Outside `jit`, all methods except `snap` and
`spread` raise a ValueError for a row outside the cube.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping as jt
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.spaces.conditions import Condition, read_condition, sort_by_dependency
from bonas.spaces.enumeration import all_points, count_points
from bonas.spaces.parameter import Parameter

# Tolerance outside [0, 1]: above the rounding error of float32 in encoding a configuration.
_ROUNDING = 1e-6


@jax.tree_util.register_static
class Space:
    """A search space: named parameters, each with an optional condition.

    A condition, `when=`, is a dict such as {"depth": (">=", 2)} or {"activation": "relu"}, all of
    whose entries must hold, or a traceable function of `space.values(u)`. A parameter whose
    condition depends on an inactive parameter is inactive too.

    A space is static: jitted functions accept it as an argument, and equal spaces compile once.

    Args:
        **parameters: The parameters by name, as in `Space(rate=Float(0, 1), depth=Int(1, 3))`.
    """

    def __init__(self, *unnamed: object, **parameters: Parameter):
        if unnamed or not parameters:
            raise ValueError(
                "expected parameters by name, such as Space(rate=Float(0, 1)); got "
                f"{unnamed or 'none'}"
            )
        for name, parameter in parameters.items():
            if not isinstance(parameter, Parameter):
                raise ValueError(
                    f"parameter {name!r} must be a spaces.Parameter, such as Float(0, 1); "
                    f"got {parameter!r}"
                )
            parameter.check(name)
        self.parameters = parameters
        self.names = tuple(parameters)
        self.dim = len(parameters)
        self.categories = tuple(p.categories for p in parameters.values())
        self.conditions: dict[str, Condition] = {
            name: read_condition(name, p.when, parameters)
            for name, p in parameters.items()
            if p.when is not None
        }
        self.parents = sort_by_dependency(self.conditions, parameters)
        self._hash = hash(self._identity())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return self._hash

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A pickled hash is wrong in another process, where strings have other hashes.
        self.__dict__ |= state
        self._hash = hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        plain = tuple((name, type(p), p.bounds) for name, p in self.parameters.items())
        return plain, tuple(self.conditions.items())

    def __repr__(self) -> str:
        return (
            f"Space({', '.join(f'{name}={p}' for name, p in self.parameters.items())})"
        )

    def values(self, u: jt.Float[ArrayLike, " d"]) -> dict[str, jt.Num[Array, ""]]:
        """Return the numbers of all parameters at one row (d,), by name.

        The number of an option is its position in the list of options. A condition that is a
        function receives this dict.
        """
        u = jnp.asarray(u)
        self.check(u)
        values: dict[str, Array] = self._values(u)
        return values

    @jax.jit
    def _values(self, u: Array) -> dict[str, Array]:
        self._check_row(u)
        return {
            name: p.value(u[i]) for i, (name, p) in enumerate(self.parameters.items())
        }

    def active(self, u: jt.Float[ArrayLike, "*n d"]) -> jt.Bool[Array, "*n d"]:
        """Return which parameters are active at one row (d,) or many (n, d)."""
        u = jnp.asarray(u)
        self.check(u)
        active: Array = self._active(u)
        return active

    @jax.jit
    def _active(self, u: Array) -> Array:
        if u.ndim == 2:
            return jax.vmap(self.active)(u)
        self._check_row(u)
        read = {name for parents in self.parents.values() for name in parents}
        values = {
            name: p.value(u[i])
            for i, (name, p) in enumerate(self.parameters.items())
            if name in read  # the others would enlarge every program
        }
        active: dict[str, Any] = {}
        for name, parents in self.parents.items():  # parents come before their children
            condition = self.conditions.get(name)
            holds = (
                jnp.asarray(True)
                if condition is None
                else jnp.asarray(condition(values), bool)
            )
            for parent in parents:
                holds = holds & active[parent]
            active[name] = holds
        return jnp.stack([active[name] for name in self.names])

    def snap(self, u: jt.Float[ArrayLike, "*n d"]) -> jt.Float[Array, "*n d"]:
        """Return the nearest points of the space.

        Integers and options are rounded to their grid, and inactive columns are set to 0. Rows
        outside the unit cube are clipped to it.
        """
        placed: Array = self._place(jnp.asarray(u), "snap")
        return placed

    def spread(self, u: jt.Float[ArrayLike, "*n d"]) -> jt.Float[Array, "*n d"]:
        """Map uniform draws in the unit cube to points of the space.

        Every option of a parameter, and every integer on a linear scale, has equal probability.
        """
        placed: Array = self._place(jnp.asarray(u), "spread")
        return placed

    @partial(jax.jit, static_argnums=2)
    def sample(self, key: jt.PRNGKeyArray, n: int) -> jt.Float[Array, "n d"]:
        """Draw n independent random points (n, d), distributed as by `spread`."""
        return self.spread(jax.random.uniform(key, (n, self.dim)))

    @partial(jax.jit, static_argnums=2)
    def _place(self, u: Array, method: str) -> Array:
        # JAX would clamp an index past the end to the last column
        if u.ndim not in (1, 2) or u.shape[-1] != self.dim:
            raise ValueError(
                f"expected a point of shape ({self.dim},) or points of shape (n, {self.dim}); "
                f"got shape {u.shape}"
            )
        columns = [
            getattr(p, method)(u[..., i])
            for i, p in enumerate(self.parameters.values())
        ]
        placed = jnp.stack(columns, axis=-1)
        return jnp.where(self.active(placed), placed, 0.0)

    def decode(self, u: jt.Float[ArrayLike, " d"]) -> dict[str, Any]:
        """Return the configuration at one row (d,), the values of the active parameters by name."""
        u = jnp.asarray(u)
        self._check_row(u)
        if not np.isfinite(u).all():
            raise ValueError(f"u must not contain NaN or infinity; got {u}")
        active = np.asarray(self.active(u))
        values = self.values(u)
        return {
            name: self.parameters[name].decode(values[name])
            for name, is_active in zip(self.names, active, strict=True)
            if is_active
        }

    def encode(self, config: Mapping[str, Any]) -> jt.Float[Array, " d"]:
        """Return the point (d,) of a configuration; the inverse of `decode`.

        Raises:
            ValueError: If a name is unknown, missing or inactive, or a value is not allowed.
        """
        for name in config:
            if name not in self.parameters:
                raise ValueError(
                    f"unknown parameter {name!r}; this space has {', '.join(self.names)}"
                )
        columns = [
            p.encode(name, config[name]) if name in config else 0.0
            for name, p in self.parameters.items()
        ]
        u = jnp.asarray(columns)
        for name, is_active in zip(self.names, np.asarray(self.active(u)), strict=True):
            if is_active and name not in config:
                raise ValueError(
                    f"parameter {name!r} is missing; expected "
                    f"{', '.join(np.array(self.names)[np.asarray(self.active(u))])}"
                )
            if not is_active and name in config:
                raise ValueError(_why_inactive(self, name, u))
        return self.snap(u)

    def check(self, u: ArrayLike, what: str = "row", *, exists: bool = False) -> None:
        """Raise a ValueError that names the parameter if a row lies outside the unit cube.

        Args:
            u: One row (d,) or many (n, d). Traced rows are not checked.
            what: The name of a row in the message.
            exists: Also raise an error if an inactive column is not 0.
        """
        if isinstance(u, jax.core.Tracer) or jnp.shape(u)[-1:] != (self.dim,):
            return
        rows = np.asarray(u).reshape(-1, self.dim)
        outside = ~((rows >= -_ROUNDING) & (rows <= 1.0 + _ROUNDING))
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise ValueError(
                f"{_row_label(what, row, rows)}: the column of parameter {self.names[column]!r} "
                f"must be in [0, 1]; got {rows[row, column]}. "
                "Use space.encode(config) to make a row"
            )
        if exists and self.conditions:
            _check_inactive(self, u, what)

    def neighbors(self, u: jt.Float[ArrayLike, " d"]) -> jt.Float[Array, "k d"]:
        """Return the points that differ from u by one step in one parameter.

        An integer changes by one, a Choice to every other option; real numbers do not change. A
        parameter that becomes active takes its middle value. The number k of rows is fixed, so that
        the method is traceable: a step beyond the end of a range, or of an inactive parameter,
        returns u itself.
        """
        u = jnp.asarray(u)
        self._check_row(u)
        active = self.active(u)
        start = jnp.where(active, u, 0.5)
        steps = [
            (i, column)
            for i, parameter in enumerate(self.parameters.values())
            for column in parameter.neighbors(u[i])
        ]
        if not steps:
            return jnp.zeros((0, self.dim), u.dtype)
        moved = self.snap(jnp.stack([start.at[i].set(column) for i, column in steps]))
        may_move = active[jnp.asarray([i for i, _ in steps])]
        return jnp.where(may_move[:, None], moved, self.snap(u)[None, :])

    @property
    def size(self) -> int | float:
        """Number of distinct points; math.inf if a parameter is continuous."""
        if any(p.continuous for p in self.parameters.values()):
            return math.inf
        return count_points(self)

    def points(self) -> jt.Float[Array, "n d"]:
        """Return all distinct points of a finite space, in lexicographic order."""
        return all_points(self)

    def _check_row(self, u: ArrayLike) -> None:
        if jnp.shape(u) != (self.dim,):
            raise ValueError(
                f"expected one row of {self.dim} columns; got shape {jnp.shape(u)}"
            )


def _check_inactive(space: Space, u: ArrayLike, what: str) -> None:
    rows = np.asarray(u).reshape(-1, space.dim)
    with jax.ensure_compile_time_eval():
        active = np.asarray(space.active(u)).reshape(rows.shape)
        wrong = ~active & (np.abs(rows) > _ROUNDING)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise ValueError(
                f"{_row_label(what, row, rows)}: "
                f"{_why_inactive(space, space.names[column], rows[row])}, but its column is "
                f"{rows[row, column]}; expected 0, as from space.snap(u)"
            )


def _why_inactive(space: Space, name: str, u: ArrayLike) -> str:
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
