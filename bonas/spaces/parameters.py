"""Parameters: the column of the unit cube that each fills, and the way between its values and numbers in [0, 1]."""

import math
from collections.abc import Hashable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.spaces.conditions import When


@dataclass(frozen=True)
class Float:
    """A real number in [low, high], on a logarithmic scale where log."""

    low: float
    high: float
    log: bool = False
    when: When = None

    options = math.inf

    @property
    def bounds(self) -> tuple:
        return self.low, self.high, self.log

    def check(self, name: str) -> None:
        _check_range(name, self)

    def value(self, u: Array) -> Array:
        """The number at column value u in [0, 1]."""
        low, high = _scale(self)
        spread = low + u * (high - low)
        return jnp.exp(spread) if self.log else spread

    def unit(self, value):
        """The column value of a number."""
        low, high = _scale(self)
        return (jnp.log(value) - low if self.log else value - low) / (high - low) if high > low else jnp.zeros_like(value)

    def spread(self, u: Array) -> Array:
        """The column value for a uniform draw u."""
        return u

    def snap(self, u: Array) -> Array:
        return jnp.clip(u, 0.0, 1.0)

    def decode(self, u) -> float:
        return min(max(float(self.value(u)), self.low), self.high)

    def encode(self, name: str, value) -> float:
        _check_number(name, self, value)
        return float(self.unit(jnp.asarray(float(value))))


@dataclass(frozen=True)
class Int:
    """A whole number in low..high, ends included; where log, its logarithm is what is spread evenly."""

    low: int
    high: int
    log: bool = False
    when: When = None

    @property
    def bounds(self) -> tuple:
        return self.low, self.high, self.log

    @property
    def options(self) -> int:
        return self.high - self.low + 1

    def check(self, name: str) -> None:
        _check_range(name, self)
        if self.low != int(self.low) or self.high != int(self.high):
            raise ValueError(f"parameter {name!r}: an Int has whole bounds; got {self.low} and {self.high}")

    def value(self, u: Array) -> Array:
        low, high = _scale(self)
        spread = low + u * (high - low)
        number = jnp.round(jnp.exp(spread) if self.log else spread)
        return jnp.clip(number, self.low, self.high).astype(int)

    def unit(self, value):
        low, high = _scale(self)
        number = jnp.log(value) if self.log else value
        return (number - low) / (high - low) if high > low else jnp.zeros_like(number)

    def spread(self, u: Array) -> Array:
        """Each number its fair share of the draws: half a step beyond either end counts to the end."""
        low, high = (math.log(self.low - 0.5), math.log(self.high + 0.5)) if self.log else (self.low - 0.5, self.high + 0.5)
        number = low + u * (high - low)
        number = jnp.round(jnp.exp(number) if self.log else number)
        return self.unit(jnp.clip(number, self.low, self.high).astype(u.dtype))

    def snap(self, u: Array) -> Array:
        return self.unit(self.value(jnp.clip(u, 0.0, 1.0)).astype(u.dtype))

    def decode(self, u) -> int:
        return int(self.value(u))

    def encode(self, name: str, value) -> float:
        _check_number(name, self, value)
        if int(value) != value:
            raise ValueError(f"parameter {name!r} is a whole number; got {value!r}")
        return float(self.unit(jnp.asarray(float(value))))


@dataclass(frozen=True, init=False)
class Choice:
    """One of several options of any hashable kind, in no order; as a number, its position."""

    names: tuple[Hashable, ...]
    when: When = None

    low = 0

    def __init__(self, *names: Hashable, when: When = None):
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "when", when)

    @property
    def bounds(self) -> tuple:
        return self.names

    @property
    def options(self) -> int:
        return len(self.names)

    def check(self, name: str) -> None:
        if not self.names:
            raise ValueError(f"parameter {name!r}: a Choice needs at least one option")
        repeated = [option for i, option in enumerate(self.names) if option in self.names[:i]]
        if repeated:
            raise ValueError(f"parameter {name!r}: the option {repeated[0]!r} is there twice")

    def value(self, u: Array) -> Array:
        return jnp.round(jnp.clip(u, 0.0, 1.0) * (len(self.names) - 1)).astype(int)

    def unit(self, value):
        return value / max(len(self.names) - 1, 1)

    def spread(self, u: Array) -> Array:
        position = jnp.floor(u * len(self.names))
        return self.unit(jnp.clip(position, 0, len(self.names) - 1))

    def snap(self, u: Array) -> Array:
        return self.unit(self.value(u).astype(u.dtype))

    def decode(self, u) -> Hashable:
        return self.names[int(self.value(u))]

    def encode(self, name: str, value) -> float:
        if value not in self.names:
            raise ValueError(f"parameter {name!r} is one of {list(self.names)}; got {value!r}")
        return float(self.unit(self.names.index(value)))


Parameter = Float | Int | Choice


def _scale(parameter: Float | Int) -> tuple[float, float]:
    if parameter.log:
        return math.log(parameter.low), math.log(parameter.high)
    return float(parameter.low), float(parameter.high)


def _check_range(name: str, parameter: Float | Int) -> None:
    low, high = parameter.low, parameter.high
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"parameter {name!r}: bounds must be finite; got {low} and {high}")
    if low > high:
        raise ValueError(f"parameter {name!r}: the range is empty, since its low end {low} is above its high end {high}")
    if parameter.log and low <= 0:
        raise ValueError(f"parameter {name!r}: a logarithmic scale needs a low end above 0; got {low}")


def _check_number(name: str, parameter: Float | Int, value) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ValueError(f"parameter {name!r} is a number; got {value!r}")
    if not parameter.low <= value <= parameter.high:
        raise ValueError(f"parameter {name!r} lies in [{parameter.low}, {parameter.high}]; got {value!r}")


def moves(parameter: Parameter, u: Array) -> list[Array]:
    """The column values one step away, a list of fixed length."""
    if isinstance(parameter, Float):
        return []
    position = parameter.value(u)
    if isinstance(parameter, Choice):
        m = parameter.options
        return [parameter.unit(((position + shift) % m).astype(u.dtype)) for shift in range(1, m)]
    steps = (jnp.clip(position + step, parameter.low, parameter.high) for step in (-1, 1))
    return [parameter.unit(step.astype(u.dtype)) for step in steps]
