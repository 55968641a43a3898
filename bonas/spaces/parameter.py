"""The interface of parameter types.

A parameter has one column of the unit cube. It has three representations: the Python value that an
objective receives ("tanh", 64, 1e-3), the number that conditions compare (a float, an integer, or
the position of an option), and the column value in [0, 1] that searches use.

To add a parameter type, subclass `Parameter` as a frozen dataclass. The rest of the library, from
the kernels to the study file and the report, uses only the attributes and methods below.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from bonas.spaces.conditions import When


class Parameter(ABC):
    """Base class of parameter types.

    The numbers of a parameter with finitely many values are the integers from `low` to `high`.
    """

    when: When
    low: int | float  # the smallest number
    high: int | float  # the largest number
    log: bool = False  # whether numbers are spaced evenly by their logarithm
    # the values where they are listed; empty for a range
    choices: tuple[Hashable, ...] = ()
    # whether the values have an order; if not, all are equally far apart
    ordered: ClassVar[bool] = True
    numeric: bool = True  # whether values are numbers

    @property
    @abstractmethod
    def size(self) -> int | float:
        """Number of distinct values, `math.inf` for a real parameter."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[Any, ...]:
        """The settings except the condition, as a hashable tuple by which spaces are compared."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Short description of the values."""

    @abstractmethod
    def check(self, name: str) -> None:
        """Raise a ValueError that names the parameter if its settings are invalid."""

    @abstractmethod
    def value(self, u: Array) -> Array:
        """Return the numbers at column values in [0, 1] of any shape; traceable."""

    @abstractmethod
    def unit(self, number: ArrayLike) -> Array:
        """Return the column value of a number; the inverse of `value`."""

    @abstractmethod
    def spread(self, u: Array) -> Array:
        """Map uniform draws in [0, 1] to column values.

        Without a log scale, each value has equal probability.
        """

    @abstractmethod
    def snap(self, u: Array) -> Array:
        """Return the nearest column value that encodes a value of the parameter."""

    @abstractmethod
    def decode(self, number: Any) -> Any:
        """Return the Python value of a number."""

    @abstractmethod
    def number(self, name: str, value: Any) -> int | float:
        """Return the number of a Python value; the inverse of `decode`.

        Raises:
            ValueError: If the value is not allowed; the message names the parameter.
        """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Convert the parameter, without its condition, to a dict for JSON; see `from_json`."""

    @classmethod
    @abstractmethod
    def from_json(cls, written: Mapping[str, Any], when: When = None) -> "Parameter":
        """Create a parameter from the output of `to_json` and a condition."""

    def encode(self, name: str, value: Any) -> int | float:
        """Return the column value of a Python value; raise a ValueError if it is not allowed."""
        return float(self.unit(jnp.asarray(float(self.number(name, value)))))

    @property
    def continuous(self) -> bool:
        """Whether the parameter is a real number that can vary, so that gradients are useful."""
        return self.size == math.inf and self.low < self.high

    @property
    def categories(self) -> int:
        """Number of columns of the one-hot encoding; 0 for an ordered parameter."""
        return 0 if self.ordered else int(self.size)

    def grid(self) -> Array:
        """Return the column values (k,) of all values; for a real parameter, that of `low` only."""
        k = 1 if self.size == math.inf else int(self.size)
        return self.unit(jnp.arange(self.low, self.low + k).astype(float))

    def neighbors(self, u: Array) -> list[Array]:
        """Return the column values of the neighbors of a value, as a list of fixed length.

        An ordered value has a neighbor on either side; at an end of the range, one of them is the
        value itself. All other options are neighbors of an option. Real numbers have none.
        """
        if self.size == math.inf:
            return []
        number = self.value(u)
        if self.ordered:
            moved = [jnp.clip(number + step, self.low, self.high) for step in (-1, 1)]
        else:
            moved = [
                (number + shift) % self.categories
                for shift in range(1, self.categories)
            ]
        return [self.unit(other.astype(u.dtype)) for other in moved]

    def ticks(self) -> list[tuple[int | float, str]]:
        """Return axis ticks as (number, label) pairs; an empty list for the plot's default."""
        return [(self.low + i, str(choice)) for i, choice in enumerate(self.choices)]

    def with_condition(self, when: When) -> "Parameter":
        """Return a copy of the parameter with another condition."""
        other = copy.copy(self)
        # dataclasses.replace cannot call Choice(*choices)
        object.__setattr__(other, "when", when)
        return other
