"""The interface of parameter types, and the numeric types Float and Int.

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
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.spaces.conditions import When, is_number

# Largest high / low of a logarithmic scale; a larger ratio overflows in float32.
_MAX_LOG_RATIO = 1e38


class Parameter(ABC):
    """The interface of a parameter type.

    The numbers of a parameter with finitely many values are the integers from `low` to `high`.
    """

    when: When
    low: int | float  # the smallest number
    high: int | float  # the largest number
    log: bool = False  # whether numbers are spaced evenly by their logarithm
    # the values where they are listed; empty for a range
    choices: tuple[Hashable, ...] = ()
    # False: no value is nearer to one value than to another
    ordered: ClassVar[bool] = True
    numeric: bool = True  # whether values are numbers

    @property
    @abstractmethod
    def size(self) -> int | float:
        """Number of distinct values; math.inf for real numbers."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[Any, ...]:
        """Hashable settings, without the condition; equal for equal parameters of one type."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Short description of the values."""

    @abstractmethod
    def check(self, name: str) -> None:
        """Raise a ValueError that names the parameter if its settings are invalid."""

    @abstractmethod
    def value(self, u: Array) -> Array:
        """Return the number at a column value in [0, 1]; traceable, any shape."""

    @abstractmethod
    def unit(self, number: ArrayLike) -> Array:
        """Return the column value of a number; the inverse of `value`."""

    @abstractmethod
    def spread(self, u: Array) -> Array:
        """Map uniform draws to column values, with equal probability for each value."""

    @abstractmethod
    def snap(self, u: Array) -> Array:
        """Return the nearest column value that encodes a value of the parameter."""

    @abstractmethod
    def decode(self, number: Any) -> Any:
        """Return the Python value of a number."""

    @abstractmethod
    def number(self, name: str, value: Any) -> int | float:
        """Return the number of a Python value; raise a ValueError that names the parameter."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Convert the parameter without its condition to JSON; see `from_json`."""

    @classmethod
    @abstractmethod
    def from_json(cls, written: Mapping[str, Any], when: When = None) -> "Parameter":
        """Create a parameter from the output of `to_json` and a condition."""

    def encode(self, name: str, value: Any) -> int | float:
        """Return the column value of a Python value; raise a ValueError if it is not allowed."""
        return float(self.unit(jnp.asarray(float(self.number(name, value)))))

    @property
    def continuous(self) -> bool:
        """Whether the parameter is a real number, whose column has a gradient."""
        return self.size == math.inf and self.low < self.high

    @property
    def categories(self) -> int:
        """Number of columns of the one-hot encoding; 0 for an ordered parameter."""
        return 0 if self.ordered else int(self.size)

    def grid(self) -> Array:
        """Return the column values (k,) of all values; of a real number, only the first."""
        k = 1 if self.size == math.inf else int(self.size)
        return self.unit(jnp.arange(self.low, self.low + k).astype(float))

    def neighbors(self, u: Array) -> list[Array]:
        """Return the column values of the neighboring values, a list of fixed length.

        An ordered value has a neighbor on either side, itself at the ends; an option has every
        other option. Real numbers have no neighbors.
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
        """Return axis ticks as (number, label); an empty list if the axis chooses them."""
        return [(self.low + i, str(choice)) for i, choice in enumerate(self.choices)]

    def with_condition(self, when: When) -> "Parameter":
        """Return a copy of the parameter with another condition."""
        other = copy.copy(self)
        # dataclasses.replace cannot call Choice(*choices)
        object.__setattr__(other, "when", when)
        return other


class _Range(Parameter):
    """A parameter with numbers from low to high."""

    @property
    def bounds(self) -> tuple[Any, ...]:
        return self.low, self.high, self.log

    @property
    def description(self) -> str:
        return f"{self.low:g} to {self.high:g}{', log scale' * self.log}"

    def check(self, name: str) -> None:
        low = self.low
        high = self.high
        problem = None
        if not (is_number(low) and is_number(high)):
            problem = f"bounds must be numbers; got {low!r} and {high!r}"
        elif not (math.isfinite(low) and math.isfinite(high)):
            problem = f"bounds must be finite; got {low} and {high}"
        elif low > high:
            problem = f"low must not exceed high; got low={low} and high={high}"
        elif self.log and low <= 0:
            problem = f"a log scale needs low > 0; got low={low}"
        elif self.log and high / low > _MAX_LOG_RATIO:
            problem = f"a log scale needs high / low <= {_MAX_LOG_RATIO:g}; got {low} to {high}"
        if problem:
            raise ValueError(f"parameter {name!r}: {problem}")

    def number(self, name: str, value: Any) -> int | float:
        if not is_number(value):
            raise ValueError(f"parameter {name!r} must be a number; got {value!r}")
        if not self.low <= value <= self.high:
            raise ValueError(
                f"parameter {name!r} must be in [{self.low}, {self.high}]; got {value!r}"
            )
        return float(value)

    def unit(self, number: ArrayLike) -> Array:
        """Return the column value, exactly 0 for `low` and never outside [0, 1] by rounding."""
        low = float(self.low)
        high = float(self.high)
        if low == high:
            return jnp.zeros_like(number)
        number = jnp.asarray(number)
        if self.log:
            # In float32 the difference of logarithms need not be 0 at `low`.
            fraction = jnp.log(number / low) / math.log(high / low)
        else:
            fraction = (number - low) / (high - low)
        return jnp.clip(fraction, 0.0, 1.0)

    def _real(self, u: Array) -> Array:
        """Return low + u (high − low), or low (high / low)^u on a log scale."""
        low = float(self.low)
        high = float(self.high)
        if self.log:
            return low * jnp.exp(u * math.log(high / low))
        return low + u * (high - low)

    def to_json(self) -> dict[str, Any]:
        low, high = (np.asarray(end).item() for end in (self.low, self.high))
        return {
            "kind": type(self).__name__,
            "low": low,
            "high": high,
            "log": bool(self.log),
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any], when: When = None) -> "Parameter":
        return cls(written["low"], written["high"], log=written["log"], when=when)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Float(_Range):
    """A real parameter in [low, high]; log=True for a logarithmic scale."""

    low: int | float
    high: int | float
    log: bool = False
    when: When = None

    size: ClassVar[int | float] = math.inf

    def value(self, u: Array) -> Array:
        return self._real(u)

    def spread(self, u: Array) -> Array:
        return self.snap(u)

    def snap(self, u: Array) -> Array:
        return jnp.clip(u, 0.0, 1.0) if self.low < self.high else jnp.zeros_like(u)

    def decode(self, number: Any) -> int | float:
        # rounding may leave the range
        return min(max(float(number), self.low), self.high)


@dataclass(frozen=True)
class Int(_Range):
    """An integer parameter in [low, high], both included; log=True for a logarithmic scale."""

    low: int
    high: int
    log: bool = False
    when: When = None

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    def check(self, name: str) -> None:
        super().check(name)
        if self.low != int(self.low) or self.high != int(self.high):
            raise ValueError(
                f"parameter {name!r}: an Int needs integer bounds; got {self.low}, {self.high}"
            )

    def number(self, name: str, value: Any) -> int | float:
        number = super().number(name, value)
        if number != int(number):
            raise ValueError(f"parameter {name!r} must be an integer; got {value!r}")
        return number

    def value(self, u: Array) -> Array:
        return jnp.clip(jnp.round(self._real(u)), self.low, self.high).astype(int)

    def spread(self, u: Array) -> Array:
        """Map uniform draws to integers; each has the interval within half a step of it."""
        low = self.low - 0.5
        high = self.high + 0.5
        if self.log:
            low = math.log(low)
            high = math.log(high)
        number = low + u * (high - low)
        number = jnp.round(jnp.exp(number) if self.log else number)
        return self.unit(jnp.clip(number, self.low, self.high).astype(u.dtype))

    def snap(self, u: Array) -> Array:
        return self.unit(self.value(jnp.clip(u, 0.0, 1.0)).astype(u.dtype))

    def decode(self, number: Any) -> int:
        return int(number)
