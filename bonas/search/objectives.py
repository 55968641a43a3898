"""Objectives: functions of a key and a point, or of a key and named parameters."""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.spaces import Space
from bonas.static_settings import check_static
from bonas.traced_settings import weak

# Maps a key and a point (d,), or a key and named parameters, to a value (), to a value and a cost,
# or to a value, a cost and the variance of the value's noise.
Objective = Callable[..., Any]
# Values, costs and noise variances of one or several evaluations; None if the noise is not known.
Outcome = tuple[Array, Array, Array | None]
# Factors that convert values to values to minimize.
DIRECTIONS = {"minimize": 1.0, "maximize": -1.0}
# Errors of objectives that JAX cannot trace.
_UNTRACEABLE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
_USE_MINIMIZE = "use jax.numpy, or bonas.minimize for any Python function"
# A program has two more copies of a constant of this many bytes, and compiles half as fast.
_LARGE_CONSTANT = 100_000_000
# Name of the argument that receives the active parameters.
_ACTIVE = "active"


@dataclass(frozen=True)
class NamedObjective:
    """An objective of points, made from one of named parameters; see `named_objective`."""

    function: Objective
    space: Space
    arguments: tuple[str, ...]  # names of the parameters that it receives

    def __call__(self, key: PRNGKeyArray, u: Float[Array, " d"], *args: Any) -> Any:
        values: dict[str, Any] = jax.tree.map(weak, self.space.values(u))
        if _ACTIVE not in values:
            values[_ACTIVE] = dict(
                zip(self.space.names, self.space.active(u), strict=True)
            )
        named = {name: values[name] for name in self.arguments}
        return self.function(key, *args, **named)


def named_objective(
    objective: Objective, space: Space, extra: int = 0
) -> NamedObjective:
    """Convert an objective of named parameters, such as f(key, rate, width), to one of points.

    `run` and `run_many` do so automatically unless the names are ambiguous.

    The objective receives the numbers that `Space.values` returns; for an option, its position, so
    compare it with a number: in `Choice("relu", "tanh")`, `kind == 1` is true for "tanh", whereas
    `kind == "tanh"` is false for every option. `jnp.array((16, 32))[kind]` is the option of
    `Choice(16, 32)`, and `jax.lax.switch(kind, functions, ...)` calls one function per option.
    Numbers are weakly typed, like Python numbers, so that float32 arrays times a parameter remain
    float32. An inactive parameter has its lowest value or first option, which the objective must
    ignore. An objective with an argument `active` receives a dict of booleans, one per parameter;
    in a space with a parameter of this name the argument is the parameter.

    Args:
        objective: A traceable function of a key and all parameters of the space, by name. Other
            arguments need defaults. With `**rest` it need not name all parameters.
        space: The space.
        extra: The number of other arguments that `run` passes on. They follow the key, as `table`
            does in f(key, table, rate, width).
    """
    found = _arguments(objective, extra)
    if found is None:
        raise ValueError(
            "expected an objective with named arguments, such as f(key, rate, width); "
            f"got {objective!r}; wrap it in a function that has them"
        )
    if found.first in space.names:
        raise ValueError(
            f"the first argument of the objective must be a random key; got {found.first!r}, "
            "which is a parameter"
        )
    taken = [name for name in found.extra if name in space.names]
    if taken:
        raise ValueError(
            f"the argument {taken[0]!r} of the objective is a parameter, but arguments that are "
            "passed to the run come between the key and the parameters; got it in their place"
        )
    known = {*space.names, _ACTIVE}
    required = [name for name in found.required if name not in found.extra]
    unknown = [name for name in required if name not in known]
    if unknown:
        raise ValueError(
            f"the objective has an argument {unknown[0]!r}, but the space has the parameters "
            f"{', '.join(space.names)}"
        )
    passed = {name for name in (*required, *found.optional) if name in known}
    missing = [name for name in space.names if name not in passed]
    if missing and not found.takes_rest:
        raise ValueError(
            f"the objective has no argument for the parameter {missing[0]!r}; "
            "add the argument, or accept the others with **rest"
        )
    names = passed | set(missing)
    return NamedObjective(objective, space, tuple(sorted(names)))


def as_point_objective(
    objective: Objective, space: Space, args: tuple[Any, ...] = ()
) -> Objective:
    """Convert an objective of points or named parameters to an objective of points.

    Args:
        objective: A function of a key, a point and other arguments, or of a key, other arguments
            and the parameters by name.
        space: The space.
        args: The other arguments.
    """
    check_extra(args)
    extra = len(args)
    if not callable(objective):
        raise ValueError(
            "the objective must be a function of a key and a point, or of a key and the "
            f"parameters by name; got {objective!r}"
        )
    if isinstance(objective, NamedObjective):
        return objective
    found = _arguments(objective, extra)
    if found is None:
        return objective
    decisive = found.required or found.optional[:1]
    by_name = any(name in space.names for name in decisive) or (
        found.takes_rest and not found.required
    )
    if found.takes_point and not by_name:
        return objective
    if not by_name and found.first not in space.names:
        raise ValueError(
            f"the objective must accept a key, a point and {extra} other arguments, those after "
            f"the steps of the run, or a key, {extra} others and the parameters "
            f"{', '.join(space.names)} by name; got arguments "
            f"{', '.join((found.first, *found.required, *found.optional)) or 'without names'}"
        )
    has_key = found.first not in space.names
    if found.takes_point and found.required and not found.takes_rest and has_key:
        raise ValueError(
            f"the argument {found.required[0]!r} of the objective could be a point or the "
            "parameter of this name. For the parameter, write objective(key, *, "
            f"{found.required[0]}) or pass bonas.search.named_objective(objective, space); "
            "for a point, rename the argument"
        )
    return named_objective(objective, space, extra)


def check_extra(args: tuple[Any, ...]) -> None:
    """Raise a TypeError unless the other arguments of an objective are arrays."""
    for leaf in jax.tree.leaves(args):
        if not isinstance(leaf, (jax.Array, np.ndarray, np.generic, Number)):
            raise TypeError(
                "arguments of the objective must be arrays or pytrees of arrays, because they are "
                f"traced; got {leaf!r}: define it in the objective"
            )


def warn_about_constants(program: Any) -> None:
    """Warn if a traced program, as from `jax.jit(f).trace(...)`, has large constants."""
    large = [
        leaf for leaf in _constants_of(program.jaxpr) if leaf.nbytes > _LARGE_CONSTANT
    ]
    if large:
        largest = max(large, key=lambda leaf: leaf.nbytes)
        warnings.warn(
            f"an array of shape {largest.shape} and {largest.nbytes / 1e6:,.0f} MB is a constant "
            "of the program, which is copied and slow to compile. If the objective uses it, pass "
            "it as an argument: run(search, objective, key, steps, array) calls "
            "objective(key, u, array)",
            stacklevel=3,
        )


def _constants_of(closed: Any) -> list[Any]:
    """Return the concrete arrays among the constants of a jaxpr and of those that it calls."""
    arrays = jax.Array, np.ndarray
    found = [
        leaf
        for leaf in closed.consts
        if isinstance(leaf, arrays) and not isinstance(leaf, jax.core.Tracer)
    ]
    inner = [value for each in closed.jaxpr.eqns for value in each.params.values()]
    for value in inner:
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, ClosedJaxpr):
                found += _constants_of(one)
    return found


def direction_sign(direction: str) -> float:
    """Return the factor that converts values to losses: 1 for "minimize", −1 for "maximize"."""
    check_static("direction", direction)
    if direction not in DIRECTIONS:
        raise ValueError(
            f'direction must be "minimize" or "maximize"; got {direction!r}'
        )
    return DIRECTIONS[direction]


def bind_direction(record: Any, direction: str) -> Any:
    """Return the recorder of a run for its direction.

    A recorder whose values depend on the direction has a method `with_direction`.
    """
    bind = getattr(record, "with_direction", None)
    return record if bind is None else bind(direction)


def evaluate_point(objective: Objective, key: PRNGKeyArray, x: Array) -> Outcome:
    """Return the value, the cost and the known noise variance at a point."""
    value, cost, noise = split_outcome(_call(objective, key, x))
    value = jnp.asarray(value, x.dtype)
    cost = jnp.asarray(1.0 if cost is None else cost, x.dtype)
    noise = None if noise is None else jnp.asarray(noise, x.dtype)
    found = value, cost, noise
    shapes = [leaf.shape for leaf in jax.tree.leaves(found)]
    if any(shapes):
        raise ValueError(
            "the objective must return one number, or a value, its cost and possibly the "
            f"variance of its noise; got shapes {', '.join(map(str, shapes))}"
        )
    return found


def _call(objective: Objective, key: PRNGKeyArray, x: Array) -> Any:
    """Call an objective, and explain why it cannot be traced or what it should have returned."""
    try:
        outcome = objective(key, x)
    except _UNTRACEABLE as error:
        raise TypeError(
            "the objective must be traceable: it must not convert traced values by float, int, if "
            f"or NumPy; {_USE_MINIMIZE}; got {type(error).__name__}"
        ) from error
    value, *rest = split_outcome(outcome)
    for part in (value, *(part for part in rest if part is not None)):
        is_array = hasattr(part, "__array__") or hasattr(part, "__jax_array__")
        if not (is_array or isinstance(part, (int, float))):
            raise ValueError(
                "the objective must return one number, or a value, its cost and possibly the "
                f"variance of its noise; {_USE_MINIMIZE}; got {type(part).__name__}"
            )
    return outcome


def split_outcome(outcome: Any) -> tuple[Any, Any, Any]:
    """Split what an objective returned into the value, the cost and the noise variance.

    Cost and noise variance are None if they were not returned.
    """
    if not isinstance(outcome, tuple):
        return outcome, None, None
    if len(outcome) not in (2, 3):
        raise ValueError(
            "the objective must return a value, (value, cost) or (value, cost, noise "
            f"variance); got a tuple of {len(outcome)}"
        )
    value, cost, noise = (*outcome, None)[:3]
    return value, cost, noise


def evaluate_points(
    objective: Objective, key: PRNGKeyArray, points: Float[Array, "q d"]
) -> Outcome:
    """Evaluate an objective at points, in sequence on a CPU and in parallel elsewhere."""

    def evaluate(pair: tuple[Array, Array]) -> Outcome:
        return evaluate_point(objective, *pair)

    pairs = jax.random.split(key, len(points)), points
    on_cpu = jax.default_backend() == "cpu"
    values: Outcome = (
        jax.lax.map(evaluate, pairs) if on_cpu else jax.vmap(evaluate)(pairs)
    )
    return values


class _Arguments(NamedTuple):
    """The arguments of an objective."""

    first: str  # the key
    extra: tuple[str, ...]  # after the key, if it receives parameters by name
    required: tuple[str, ...]  # after the key
    optional: tuple[str, ...]
    takes_rest: bool  # whether there is **rest
    takes_point: bool  # whether it can be called with a key and a point


def _arguments(objective: Objective, extra: int) -> _Arguments | None:
    """Return the arguments of an objective, or None if they have no names."""
    try:
        signature = inspect.signature(objective)
    except (TypeError, ValueError):
        return None
    arguments = list(signature.parameters.values())
    after = [each for each in arguments if each.kind is not each.VAR_KEYWORD][1:]
    kinds = {each.kind for each in after}
    unnamed = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY}
    if kinds & unnamed or not arguments or arguments[0].kind in unnamed:
        return None
    try:
        signature.bind(None, None, *[None] * extra)
    except TypeError:
        takes_point = False
    else:
        takes_point = True
    return _Arguments(
        first=arguments[0].name,
        extra=tuple(each.name for each in after[:extra]),
        required=tuple(each.name for each in after if each.default is each.empty),
        optional=tuple(each.name for each in after if each.default is not each.empty),
        takes_rest=len(after) + 1 < len(arguments),
        takes_point=takes_point,
    )
