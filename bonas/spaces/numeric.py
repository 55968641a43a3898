"""Numeric parameters: Float and Int."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.extreme_values import fraction_between, interpolate
from bonas.spaces.conditions import When, is_number
from bonas.spaces.parameter import Parameter
from bonas.static_settings import check_static

# Largest high / low of a logarithmic scale; a larger ratio overflows in float32.
_MAX_LOG_RATIO = 1e38


class _Range(Parameter):
    """A numeric parameter with bounds `low` and `high`."""

    @property
    def bounds(self) -> tuple[Any, ...]:
        return self.low, self.high, self.log

    @property
    def description(self) -> str:
        return f"{self.low:g} to {self.high:g}{', log scale' * self.log}"

    def check(self, name: str) -> None:
        low = self.low
        high = self.high
        check_static(f"the range of parameter {name!r}", (low, high))
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
        """Return the column value of a number, exactly 0 for `low` and always within [0, 1]."""
        low = float(self.low)
        high = float(self.high)
        if low == high:
            return jnp.zeros_like(number)
        number = jnp.asarray(number)
        if self.log:
            # In float32 the difference of logarithms need not be 0 at `low`.
            fraction = jnp.log(number / low) / math.log(high / low)
        else:
            fraction = fraction_between(low, high, number)
        return jnp.clip(fraction, 0.0, 1.0)

    def _real(self, u: Array) -> Array:
        """Return low + u (high − low), or low (high / low)^u on a log scale."""
        low = float(self.low)
        high = float(self.high)
        if self.log:
            return low * jnp.exp(u * math.log(high / low))
        return interpolate(low, high, u)

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
    """A real parameter in [low, high].

    Args:
        low: The lower bound.
        high: The upper bound, included.
        log: Whether to use a logarithmic scale, which requires low > 0.
        when: Condition under which the parameter is active (see `Space`); None if it always is.
    """

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
    """An integer parameter in [low, high].

    Args:
        low: The lower bound.
        high: The upper bound, included.
        log: Whether to use a logarithmic scale, which requires low > 0.
        when: Condition under which the parameter is active (see `Space`); None if it always is.
    """

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
        """Map uniform draws in [0, 1] to column values of integers.

        Draws are first scaled to [low − ½, high + ½], so that the bounds are as likely as other
        integers, and then rounded. On a log scale the logarithm is uniform.
        """
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
