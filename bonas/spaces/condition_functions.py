"""Find the parameters that a condition function depends on, by tracing it."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from bonas.spaces.parameter import Parameter


class _Recorder(Mapping[str, Any]):
    """A mapping that records which of its keys are read."""

    def __init__(self, values: Mapping[str, Any]):
        self.values_by_name = values
        self.names_read: dict[str, None] = {}  # a dict keeps the order

    def __getitem__(self, name: str) -> Any:
        value = self.values_by_name[name]
        self.names_read[name] = None
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)


def find_dependencies(
    name: str, condition: Callable[..., Any], parameters: Mapping[str, "Parameter"]
) -> tuple[str, ...]:
    """Return the names of the parameters that a condition function reads, found by tracing it.

    Args:
        name: The name of the parameter to which the condition belongs.
        condition: Function of a mapping from names to numbers.
        parameters: All parameters of the space by name.

    Raises:
        ValueError: If the function cannot be traced, reads an unknown name, or does not return a
            single boolean; the message names the parameter.
    """
    try:
        holds, read, unused = _trace(condition, parameters)
    except KeyError as problem:
        raise ValueError(
            f"parameter {name!r}: its condition refers to {problem}, which is not a parameter; "
            f"the space has {', '.join(parameters)}"
        ) from None
    except jax.errors.JAXTypeError:
        raise ValueError(
            f"parameter {name!r}: its condition must be traceable by JAX; use & and | instead of "
            "`and` and `or`, and jnp.where instead of `if`"
        ) from None
    # values["activation"] == "relu" is always False, because values are numbers: reject it
    if unused or getattr(holds, "shape", None) != ():
        detail = f"; it does not depend on the value of {unused[0]!r}" if unused else ""
        raise ValueError(
            f"parameter {name!r}: its condition must return a single boolean{detail}. It receives "
            "numbers, so compare an option by its position, or write the condition as a dict"
        )
    return read


def _trace(
    condition: Callable[..., Any], parameters: Mapping[str, "Parameter"]
) -> tuple[Any, tuple[str, ...], list[str]]:
    """Return the shape of the result, the names read, and those that do not affect the result."""
    read: dict[str, None] = {}

    def trace(values: Mapping[str, Any]) -> Any:
        recorder = _Recorder(values)
        holds = condition(recorder)
        read.update(recorder.names_read)
        return None if isinstance(holds, bool) and read else holds

    column = jnp.zeros(())
    inputs = {name: jax.eval_shape(p.value, column) for name, p in parameters.items()}
    program, holds = jax.make_jaxpr(trace, return_shape=True)(inputs)
    used = {id(var) for equation in program.jaxpr.eqns for var in equation.invars}
    used |= {id(var) for var in program.jaxpr.outvars}
    # JAX sorts dicts by key
    variables = zip(sorted(inputs), program.jaxpr.invars, strict=True)
    unused = [name for name, var in variables if name in read and id(var) not in used]
    return holds, tuple(read), unused
