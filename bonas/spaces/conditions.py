"""Conditions under which a parameter exists, and the order in which they are decided."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

When = Mapping[str, Any] | Callable[[dict], Any] | None

_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


# Units of rounding between a number and itself after the way to the unit cube and back, logarithms included.
_ROUNDING = 256


@dataclass(frozen=True)
class Terms:
    """A condition written as a dict: every (name, comparison, number) must hold. Hashable, and can be stored."""

    terms: tuple[tuple[str, str, Any], ...]

    def __call__(self, values: Mapping[str, Any]):
        holds = jnp.asarray(True)
        for name, comparison, number in self.terms:
            holds = holds & _COMPARE[comparison](_rounded(values[name], number), number)
        return holds


def _rounded(value, number):
    """A real value that is the number but for rounding is the number, so that a condition holds at its own threshold."""
    if not jnp.issubdtype(jnp.result_type(value), jnp.floating):
        return value
    near = jnp.abs(value - number) <= _ROUNDING * jnp.finfo(jnp.result_type(value)).eps * abs(number)
    return jnp.where(near, number, value)


Condition = Callable[[Mapping[str, Any]], Any]


def read_condition(name: str, when: When, parameters: Mapping[str, Any]) -> Condition:
    """The condition of parameter `name` as a traceable function of values; a ValueError that names it where it is bad."""
    if callable(when):
        return when  # type: ignore[return-value]
    if not isinstance(when, Mapping) or not when:
        raise ValueError(f"parameter {name!r}: when= is a dict or a function of the values; got {when!r}")
    return Terms(tuple(_read_term(name, other, wanted, parameters) for other, wanted in when.items()))


def _read_term(name: str, other: str, wanted, parameters) -> tuple[str, str, Any]:
    if other not in parameters:
        raise ValueError(f"parameter {name!r} has a condition on {other!r}, which is not a parameter of this space")
    compares = isinstance(wanted, tuple) and len(wanted) == 2 and wanted[0] in _COMPARE
    comparison, value = wanted if compares else ("==", wanted)
    options = getattr(parameters[other], "names", None)
    if options is None:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ValueError(
                f"parameter {name!r}: its condition compares {other!r}, a number, with {value!r}; "
                f'write a number, or (">=", 2) with one of {", ".join(_COMPARE)}'
            )
        return other, comparison, float(value)
    if comparison not in ("==", "!="):
        raise ValueError(f"parameter {name!r}: {other!r} is a Choice, which has no order; use '==' or '!='")
    if value not in options:
        raise ValueError(f"parameter {name!r}: {value!r} is not an option of {other!r}; those are {list(options)}")
    return other, comparison, options.index(value)


def parents(conditions: Mapping[str, Condition], parameters: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """For every parameter, parents first, the parameters that its condition rests on. A cycle is a ValueError."""
    above = {name: _names_read(name, conditions.get(name), parameters) for name in parameters}
    ordered: dict[str, tuple[str, ...]] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            circle = " -> ".join([*trail[trail.index(name) :], name])
            raise ValueError(f"parameter {name!r} depends on itself: {circle}")
        for parent in above[name]:
            if parent not in ordered:
                visit(parent, (*trail, name))
        ordered[name] = above[name]

    for name in parameters:
        if name not in ordered:
            visit(name, ())
    return ordered


class _Recorder(Mapping):
    """Values that note which of them were read."""

    def __init__(self, values: Mapping[str, Any]):
        self.known = values
        self.read: dict[str, None] = {}  # in order

    def __getitem__(self, name):
        value = self.known[name]
        self.read[name] = None
        return value

    def __iter__(self):
        return iter(self.known)

    def __len__(self):
        return len(self.known)


def _names_read(name: str, condition: Condition | None, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """What a condition looks at; a function is traced once, as it will be later, so no branch of it stays hidden."""
    if condition is None:
        return ()
    if isinstance(condition, Terms):
        return tuple(dict.fromkeys(other for other, _, _ in condition.terms))
    try:
        holds, read, ignored = _trace(condition, parameters)
    except KeyError as problem:
        raise ValueError(f"parameter {name!r} has a condition on {problem}, which is not a parameter of this space") from None
    except jax.errors.JAXTypeError:
        raise ValueError(f"parameter {name!r}: its condition must be traceable: & and | for `and` and `or`, no `if`") from None
    # values["activation"] == "relu" is plain False, whatever the activation: no answer at all
    if ignored or getattr(holds, "shape", None) != ():
        what = f"; {ignored[0]!r} makes no difference to it" if ignored else ""
        raise ValueError(
            f"parameter {name!r}: its condition must give one truth value of numbers{what}; a Choice is its position there, "
            "or write the condition as a dict"
        )
    return read


def _trace(condition: Condition, parameters: Mapping[str, Any]) -> tuple[Any, tuple[str, ...], list[str]]:
    """The shape of what a condition gives, the names that it reads, and those of them that make no difference."""
    read: dict[str, None] = {}

    def trace(values):
        recorder = _Recorder(values)
        holds = condition(recorder)
        read.update(recorder.read)
        return None if isinstance(holds, bool) and read else holds

    column = jax.ShapeDtypeStruct((), jnp.result_type(float))
    inputs = {name: jax.eval_shape(p.value, column) for name, p in parameters.items()}
    program, holds = jax.make_jaxpr(trace, return_shape=True)(inputs)
    used = [var for equation in program.jaxpr.eqns for var in equation.invars] + program.jaxpr.outvars
    variables = zip(sorted(inputs), program.jaxpr.invars, strict=True)  # a dict is flattened by its sorted names
    return holds, tuple(read), [name for name, var in variables if name in read and not any(var is other for other in used)]
