"""Parameters with a list of values, and Choice, whose values are unordered."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from bonas.spaces.conditions import When
from bonas.spaces.parameter import Parameter
from bonas.spaces.parameter_json import option_from_json, option_to_json


class ListedParameter(Parameter):
    """Base class of parameters with a list of values.

    The number of a value is its position in the list.
    """

    low: int = 0

    @property
    def high(self) -> int:  # type: ignore[override]
        return len(self.choices) - 1

    @property
    def size(self) -> int:
        return len(self.choices)

    @property
    def bounds(self) -> tuple[Any, ...]:
        return self.choices

    @property
    def description(self) -> str:
        return ", ".join(map(str, self.choices))

    def check(self, name: str) -> None:
        if not self.choices:
            raise ValueError(f"parameter {name!r} needs at least one option")
        try:
            hash(self.choices)
        except TypeError as problem:
            raise ValueError(
                f"parameter {name!r}: options must be hashable (tuples, not lists): {problem}"
            ) from None
        for i, option in enumerate(self.choices):
            if option in self.choices[:i]:
                raise ValueError(
                    f"parameter {name!r}: the option {option!r} is repeated"
                )

    def value(self, u: Array) -> Array:
        return jnp.round(jnp.clip(u, 0.0, 1.0) * self.high).astype(int)

    def unit(self, number: ArrayLike) -> Array:
        return jnp.asarray(number) / max(self.high, 1)

    def spread(self, u: Array) -> Array:
        return self.unit(jnp.clip(jnp.floor(u * self.size), 0, self.high))

    def snap(self, u: Array) -> Array:
        return self.unit(self.value(u).astype(u.dtype))

    def decode(self, number: Any) -> Hashable:
        return self.choices[int(number)]

    def number(self, name: str, value: Any) -> int | float:
        if value not in self.choices:
            raise ValueError(
                f"parameter {name!r} must be one of {list(self.choices)}; got {value!r}"
            )
        return self.choices.index(value)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": type(self).__name__,
            "options": [option_to_json(option) for option in self.choices],
        }


@dataclass(frozen=True, init=False)
class Choice(ListedParameter):
    """A categorical parameter, such as `Choice("relu", "tanh")`.

    Args:
        *choices: The options, of any hashable type and in no order.
        when: Condition under which the parameter is active (see `Space`); None if it always is.
    """

    choices: tuple[Hashable, ...]
    when: When = None

    ordered = False
    numeric = False

    def __init__(self, *choices: Hashable, when: When = None):
        object.__setattr__(self, "choices", choices)
        object.__setattr__(self, "when", when)

    def check(self, name: str) -> None:
        if len(self.choices) == 1 and isinstance(self.choices[0], (list, tuple, set)):
            raise ValueError(
                f"parameter {name!r}: Choice takes its options as separate arguments, as in "
                "Choice('relu', 'tanh') or Choice(*options)"
            )
        super().check(name)

    @classmethod
    def from_json(cls, written: Mapping[str, Any], when: When = None) -> "Parameter":
        return cls(*map(option_from_json, written["options"]), when=when)
