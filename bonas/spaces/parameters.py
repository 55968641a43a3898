"""Parameters: the column of the unit cube that each fills, and the way between its values and numbers in [0, 1]."""

import math
from collections.abc import Hashable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.spaces.conditions import When

# A logarithmic scale is wide enough at this ratio of its ends; much beyond, their ratio overflows in float32.
_WIDEST = 1e38


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
        """What it ranges over, as messages and files say it: low, high and whether logarithmic."""
        return self.low, self.high, self.log

    def check(self, name: str) -> None:
        """Refuses, by the name of the parameter, a range that cannot be searched."""
        _check_range(name, self)

    def value(self, u: Array) -> Array:
        """The number at column value u in [0, 1]."""
        return _number(self, u)

    def unit(self, value):
        """The column value of a number."""
        return _fraction(self, value)

    def spread(self, u: Array) -> Array:
        """The column value for a uniform draw u."""
        return self.snap(u)

    def snap(self, u: Array) -> Array:
        """The nearest column value that exists: 0 alone where low equals high."""
        return jnp.clip(u, 0.0, 1.0) if self.low < self.high else jnp.zeros_like(u)

    def decode(self, number) -> float:
        """The Python value of a number that `value` gave."""
        return min(max(float(number), self.low), self.high)

    def encode(self, name: str, value) -> float:
        """The column value of a Python value, which is refused outside the range."""
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
        """What it ranges over: low, high and whether logarithmic."""
        return self.low, self.high, self.log

    @property
    def options(self) -> int:
        """How many numbers there are."""
        return self.high - self.low + 1

    def check(self, name: str) -> None:
        """Refuses, by the name of the parameter, a range that cannot be searched, and bounds that are not whole."""
        _check_range(name, self)
        if self.low != int(self.low) or self.high != int(self.high):
            raise ValueError(f"parameter {name!r}: an Int has whole bounds; got {self.low} and {self.high}")

    def value(self, u: Array) -> Array:
        """The whole number at column value u in [0, 1]."""
        return jnp.clip(jnp.round(_number(self, u)), self.low, self.high).astype(int)

    def unit(self, value):
        """The column value of a number."""
        return _fraction(self, value)

    def spread(self, u: Array) -> Array:
        """Each number its fair share of the draws: half a step beyond either end counts to the end."""
        low, high = (math.log(self.low - 0.5), math.log(self.high + 0.5)) if self.log else (self.low - 0.5, self.high + 0.5)
        number = low + u * (high - low)
        number = jnp.round(jnp.exp(number) if self.log else number)
        return self.unit(jnp.clip(number, self.low, self.high).astype(u.dtype))

    def snap(self, u: Array) -> Array:
        """The nearest column value that belongs to a whole number."""
        return self.unit(self.value(jnp.clip(u, 0.0, 1.0)).astype(u.dtype))

    def decode(self, number) -> int:
        """The Python value of a number that `value` gave."""
        return int(number)

    def encode(self, name: str, value) -> float:
        """The column value of a Python value, which is refused outside the range or where it is not whole."""
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
        """What it ranges over: the options."""
        return self.names

    @property
    def options(self) -> int:
        """How many there are."""
        return len(self.names)

    def check(self, name: str) -> None:
        """Refuses, by the name of the parameter, options that are none, no single values, or there twice."""
        if not self.names:
            raise ValueError(f"parameter {name!r}: a Choice needs at least one option")
        if len(self.names) == 1 and isinstance(self.names[0], (list, tuple, set)):
            raise ValueError(
                f"parameter {name!r}: write its options one by one, as in Choice('relu', 'tanh') or Choice(*options)"
            )
        try:
            hash(self.names)
        except TypeError as problem:
            raise ValueError(f"parameter {name!r}: options must be hashable, such as a tuple for a list; {problem}") from None
        repeated = [option for i, option in enumerate(self.names) if option in self.names[:i]]
        if repeated:
            raise ValueError(f"parameter {name!r}: the option {repeated[0]!r} is there twice")

    def value(self, u: Array) -> Array:
        """The position of the option at column value u in [0, 1]."""
        return jnp.round(jnp.clip(u, 0.0, 1.0) * (len(self.names) - 1)).astype(int)

    def unit(self, value):
        """The column value of a position."""
        return value / max(len(self.names) - 1, 1)

    def spread(self, u: Array) -> Array:
        """The column value for a uniform draw u, with as many draws for each option."""
        position = jnp.floor(u * len(self.names))
        return self.unit(jnp.clip(position, 0, len(self.names) - 1))

    def snap(self, u: Array) -> Array:
        """The nearest column value that belongs to an option."""
        return self.unit(self.value(u).astype(u.dtype))

    def decode(self, number) -> Hashable:
        """The option at a position that `value` gave."""
        return self.names[int(number)]

    def encode(self, name: str, value) -> float:
        """The column value of an option; anything else is refused."""
        if value not in self.names:
            raise ValueError(f"parameter {name!r} is one of {list(self.names)}; got {value!r}")
        return float(self.unit(self.names.index(value)))


Parameter = Float | Int | Choice


def _number(parameter: Float | Int, u):
    """low + u (high − low), or low (high / low)^u on a logarithmic scale."""
    low, high = float(parameter.low), float(parameter.high)
    return low * jnp.exp(u * math.log(high / low)) if parameter.log else low + u * (high - low)


def _fraction(parameter: Float | Int, value):
    """The inverse of `_number`: exactly 0 at the low end, and never outside [0, 1] by rounding."""
    low, high = float(parameter.low), float(parameter.high)
    if low == high:
        return jnp.zeros_like(value)
    # The logarithm of a ratio, not a difference of logarithms, which need not be 0 at the low end in float32.
    fraction = jnp.log(value / low) / math.log(high / low) if parameter.log else (value - low) / (high - low)
    return jnp.clip(fraction, 0.0, 1.0)


def _is_number(value) -> bool:
    if isinstance(value, (jax.Array, np.ndarray)) and value.shape == ():
        value = value.item()
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _check_range(name: str, parameter: Float | Int) -> None:
    low, high = parameter.low, parameter.high
    if not (_is_number(low) and _is_number(high)):
        raise ValueError(f"parameter {name!r}: bounds must be numbers; got {low!r} and {high!r}")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"parameter {name!r}: bounds must be finite; got {low} and {high}")
    if low > high:
        raise ValueError(f"parameter {name!r}: the range is empty, since its low end {low} is above its high end {high}")
    if parameter.log and low <= 0:
        raise ValueError(f"parameter {name!r}: a logarithmic scale needs a low end above 0; got {low}")
    if parameter.log and high / low > _WIDEST:
        raise ValueError(
            f"parameter {name!r}: a logarithmic scale from {low} to {high} is too wide; the most is {_WIDEST:g} times"
        )


def _check_number(name: str, parameter: Float | Int, value) -> None:
    if not _is_number(value):
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
