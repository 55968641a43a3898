"""The axes of figures: positions of values, ticks, and formatted numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bonas.spaces import Parameter

# Values that span at least this ratio are shown on a logarithmic scale.
_LOG_RATIO = 100.0
# Values that are this many times farther from the best than 80% of the values are at the edge.
_OUTLIER_RATIO = 5.0
_LARGEST = 1e280  # values beyond are drawn at the edge: the length of an axis is finite


def format_value(value: Any) -> str:
    """Format a number with four significant digits or all digits before the point up to 1e6."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return str(value).replace("-", "−")
    text = f"{value:.0f}" if 1e4 <= abs(value) < 1e6 else f"{value:.4g}"
    mantissa, _, exponent = text.partition("e")
    if exponent:
        mantissa += f"e{int(exponent)}"
    return mantissa.replace("-", "−")


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`, or with a position for each option."""

    low: float
    high: float
    log: bool = False
    whole: bool = False  # tick labels are integers
    options: tuple[Any, ...] = ()

    def place(self, value: Any) -> float:
        """Return the position of a value, from 0 to 1; values outside are at the end."""
        if self.options:
            return (self.options.index(value) + 0.5) / len(self.options)
        low = self.low
        high = self.high
        if self.log:
            value = math.log(max(value, low))
            low = math.log(low)
            high = math.log(high)
        return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5

    def contains(self, value: float) -> bool:
        """Return whether a value lies on the axis."""
        return bool(self.options) or self.low <= value <= self.high

    def ticks(self, limit: int) -> list[tuple[float, str]]:
        """Return about `limit` positions and labels; every option has one."""
        if self.options:
            return [(self.place(option), str(option)) for option in self.options]
        if self.high <= self.low:
            return [(0.5, format_value(self.low))]
        values = _log_ticks(self.low, self.high, limit) if self.log else []
        if len(values) < 2:
            values = _linear_ticks(self.low, self.high, limit, whole=self.whole)
        return [(self.place(value), format_value(value)) for value in values]


def _linear_ticks(low: float, high: float, limit: int, *, whole: bool) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / max(limit, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(
        step * power for step in (1, 2, 5, 10) if step * power >= rough * (1 - 1e-9)
    )
    step = max(step, 1.0) if whole else step
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _log_ticks(low: float, high: float, limit: int) -> list[float]:
    """Return powers of ten, and numbers between them if there is room."""
    first = math.floor(math.log10(low))
    last = math.floor(math.log10(high) + 1e-9)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        values = [
            digit * 10.0**power for power in range(first, last + 1) for digit in digits
        ]
        values = [
            value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
        ]
        if len(values) <= limit + 1:
            return values
    return values[:: math.ceil(len(values) / max(limit, 1))]


def parameter_scale(parameter: Parameter) -> Scale:
    """Return the axis of a parameter."""
    if parameter.choices:
        return Scale(0.0, 1.0, options=parameter.choices)
    whole = parameter.size < math.inf
    return Scale(float(parameter.low), float(parameter.high), parameter.log, whole)


def value_scale(values: Sequence[float], sign: float) -> Scale:
    """Return the axis of trial values.

    It is logarithmic if the values span decades, and does not extend to a few very bad values.

    Args:
        values: The values.
        sign: 1 if low values are good, -1 if high values are.
    """
    values = np.clip(values, -_LARGEST, _LARGEST).tolist()
    low = min(values)
    high = max(values)
    if low > 0.0 and high / low > _LOG_RATIO:
        room = math.exp(0.04 * (math.log(high) - math.log(low)))
        return Scale(low / room or low, high * room, log=True)
    costs = np.sort(sign * np.asarray(values))
    end = costs[0] + 2.0 * (costs[int(0.8 * (len(costs) - 1))] - costs[0])
    if costs[-1] - costs[0] > _OUTLIER_RATIO / 2.0 * (end - costs[0]) > 0.0:
        low, high = sorted((sign * costs[0], sign * end))
    room = 0.05 * (high - low) or 0.05 * abs(low) or 1.0
    return Scale(low - room, high + room)
