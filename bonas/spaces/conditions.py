"""Conditions of parameters, and the order of their evaluation."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.spaces.condition_functions import find_dependencies

if TYPE_CHECKING:
    from bonas.spaces.parameter import Parameter

# What `when=` accepts: a dict, a traceable function of the other values, or None.
When = Mapping[str, Any] | Callable[[Mapping[str, Any]], Any] | None
# A traceable function of the values of the other parameters.
Condition = Callable[[Mapping[str, Any]], Any]

# The comparison operators of conditions, by their symbols.
COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Largest rounding error, in units of eps, of a number mapped to the unit cube and back.
_ROUNDING = 256


@dataclass(frozen=True)
class Terms:
    """A conjunction of comparisons, the form of a condition that was written as a dict.

    Unlike a function, it can be compared, hashed and stored.
    """

    # (name, comparison, number), such as ("depth", ">=", 2.0); all must hold
    terms: tuple[tuple[str, str, Any], ...]

    def __call__(self, values: Mapping[str, Any]) -> Array:
        """Return whether the condition holds, for the numbers of all parameters."""
        holds = jnp.asarray(True)
        for name, comparison, number in self.terms:
            holds = holds & COMPARISONS[comparison](
                _snap_to_threshold(values[name], number), number
            )
        return holds


def _snap_to_threshold(value: Array, number: int | float) -> Array:
    """Replace a value by the threshold if they differ only by rounding errors.

    A condition such as (">=", 0.1) then holds at 0.1.
    """
    dtype = jnp.result_type(value)
    if not jnp.issubdtype(dtype, jnp.floating):
        return value
    near = jnp.abs(value - number) <= _ROUNDING * jnp.finfo(dtype).eps * abs(number)
    return jnp.where(near, number, value)


def read_condition(
    name: str, when: When, parameters: Mapping[str, "Parameter"]
) -> Condition:
    """Convert the argument `when` of a parameter to a traceable function.

    Args:
        name: The name of the parameter.
        when: Its condition, a dict or a function (see `Space`).
        parameters: All parameters of the space by name.

    Returns:
        A function from the numbers of all parameters by name to a boolean.

    Raises:
        ValueError: If the condition is malformed; the message names the parameter.
    """
    if callable(when):
        return when
    if not isinstance(when, Mapping) or not when:
        raise ValueError(
            f"parameter {name!r}: when= must be a dict or a function of the values; got {when!r}"
        )
    terms = (
        _read_term(name, other, wanted, parameters) for other, wanted in when.items()
    )
    return Terms(tuple(terms))


def _read_term(
    name: str, other: str, wanted: Any, parameters: Mapping[str, "Parameter"]
) -> tuple[str, str, Any]:
    if other not in parameters:
        raise ValueError(
            f"parameter {name!r}: its condition refers to {other!r}, which is not a parameter; "
            f"the space has {', '.join(parameters)}"
        )
    compares = (
        isinstance(wanted, tuple) and len(wanted) == 2 and wanted[0] in COMPARISONS
    )
    comparison, value = wanted if compares else ("==", wanted)
    parent = parameters[other]
    if not parent.choices:
        if not is_number(value):
            raise ValueError(
                f"parameter {name!r}: its condition compares {other!r}, a number, with {value!r}; "
                'expected a number, or a pair such as (">=", 2) with one of '
                f"{', '.join(COMPARISONS)}"
            )
        return other, comparison, float(value)
    if not parent.ordered and comparison not in ("==", "!="):
        raise ValueError(
            f"parameter {name!r}: the options of {other!r} have no order; use '==' or '!='"
        )
    if value not in parent.choices:
        raise ValueError(
            f"parameter {name!r}: {value!r} is not an option of {other!r}; "
            f"the options are {list(parent.choices)}"
        )
    return other, comparison, parent.choices.index(value)


def sort_by_dependency(
    conditions: Mapping[str, Condition], parameters: Mapping[str, "Parameter"]
) -> dict[str, tuple[str, ...]]:
    """Map each parameter to the parameters that its condition reads, its parents.

    Parents come before their children in the order of the dict.

    Args:
        conditions: The conditions by name of the parameter.
        parameters: All parameters of the space by name.

    Raises:
        ValueError: If a parameter depends on itself.
    """
    parents = {
        name: _parents(name, conditions.get(name), parameters) for name in parameters
    }
    ordered: dict[str, tuple[str, ...]] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            cycle = " -> ".join([*path[path.index(name) :], name])
            raise ValueError(f"parameter {name!r} depends on itself: {cycle}")
        for parent in parents[name]:
            if parent not in ordered:
                visit(parent, (*path, name))
        ordered[name] = parents[name]

    for name in parameters:
        if name not in ordered:
            visit(name, ())
    return ordered


def _parents(
    name: str, condition: Condition | None, parameters: Mapping[str, "Parameter"]
) -> tuple[str, ...]:
    if condition is None:
        return ()
    if isinstance(condition, Terms):
        return tuple(dict.fromkeys(other for other, _, _ in condition.terms))
    return find_dependencies(name, condition, parameters)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number, not a boolean."""
    if isinstance(value, (Array, np.ndarray)) and value.shape == ():
        value = value.item()
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, bool
    )
