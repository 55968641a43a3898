"""Small pictures as SVG: scales from values to pixels, panels with axes, and marks in them.

Colours and strokes are classes of the page's style sheet, so that a picture follows the reader's light or dark mode; text has
one size in pixels, so a picture is drawn for the width at which it is shown.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from bonas.spaces import Choice, Int
from bonas.spaces.parameters import Parameter

Point = tuple[float, float]
_MANY = 250  # marks beyond which they are one path, and no longer have titles of their own
_LETTER = 6.2  # pixels of width, about, of a letter in a label


def number(value: Any) -> str:
    """A number as people write it: four significant digits, or all before the point up to a million; else as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return str(value).replace("-", "−")
    mantissa, _, exponent = (f"{value:.0f}" if 1e4 <= abs(value) < 1e6 else f"{value:.4g}").partition("e")
    return (mantissa + (f"e{int(exponent)}" if exponent else "")).replace("-", "−")


@dataclass(frozen=True)
class Scale:
    """An axis: values low..high to fractions 0..1; options, where there are any, have places instead."""

    low: float
    high: float
    log: bool = False
    whole: bool = False
    options: tuple[Any, ...] = ()

    def place(self, value: Any) -> float:
        """The fraction of the axis; a value beyond its ends is at the end."""
        if self.options:
            return (self.options.index(value) + 0.5) / len(self.options)
        low, high = self.low, self.high
        if self.log:
            low, high, value = (math.log(each) for each in (low, high, max(value, low)))
        return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5

    def within(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return bool(self.options) or self.low <= value <= self.high

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Up to about so many places and labels."""
        if self.options:
            return [(self.place(option), str(option)) for option in self.options]
        if self.high <= self.low:
            return [(0.5, number(self.low))]
        values = _decades(self.low, self.high, most) if self.log else []
        if len(values) < 2:
            values = _round_values(self.low, self.high, most, whole=self.whole)
        return [(self.place(value), number(value)) for value in values]


def _round_values(low: float, high: float, most: int, *, whole: bool) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough * (1 - 1e-9))
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _decades(low: float, high: float, most: int) -> list[float]:
    """Powers of ten, with numbers between them where there is room, or leaving some out where there are many."""
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high) + 1e-9)
    for within in ((1, 2, 5), (1, 3), (1,)):
        values = [m * 10.0**power for power in range(first, last + 1) for m in within]
        values = [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(values) <= most + 1:
            return values
    return values[:: math.ceil(len(values) / max(most, 1))]


def scale_of(parameter: Parameter) -> Scale:
    """The whole range of a parameter."""
    if isinstance(parameter, Choice):
        return Scale(0.0, 1.0, options=tuple(parameter.names))
    return Scale(float(parameter.low), float(parameter.high), parameter.log, isinstance(parameter, Int))


@dataclass
class Panel:
    """A picture with two axes; marks are given in values, and drawn in the order given."""

    x: Scale
    y: Scale
    width: int = 340
    height: int = 200
    x_label: str = ""
    y_label: str = ""
    parts: list[str] = field(default_factory=list)

    def __post_init__(self):
        labels = [label for _, label in self.y.ticks(self._rows)]
        self.left = min(max([len(label) for label in labels], default=1), 14) * _LETTER + 12
        self.right, self.top, self.bottom = 10.0, 12.0 + 14.0 * bool(self.y_label), 22.0 + 16.0 * bool(self.x_label)

    @property
    def _rows(self) -> int:
        return max(2, self.height // 36)

    def at(self, x: Any, y: Any) -> Point:
        """Pixels of a point given in values."""
        across, down = self.width - self.left - self.right, self.height - self.top - self.bottom
        return self.left + self.x.place(x) * across, self.top + (1.0 - self.y.place(y)) * down

    def line(self, points: Iterable[tuple[Any, Any]], kind: str, *, stepped: bool = False, title: str = "") -> None:
        """A line through points; `stepped`, one that stays at a value until the next."""
        self.parts.append(path([self.at(*point) for point in points], kind, stepped=stepped, title=title))

    def band(self, edges: Sequence[tuple[Any, float, float]], kind: str) -> None:
        """The area between a lower and an upper value at each x."""
        outline = [self.at(x, high) for x, _, high in edges] + [self.at(x, low) for x, low, _ in reversed(edges)]
        self.parts.append(path(outline, kind, closed=True))

    def bar(self, x: Any, low: float, high: float, kind: str) -> None:
        """An upright stroke from one value to another."""
        self.parts.append(path([self.at(x, low), self.at(x, high)], kind))

    def dots(
        self, points: Sequence[tuple[Any, Any]], kind: str, titles: Sequence[str] = (), *, shift: Sequence[float] = ()
    ) -> None:
        """Marks; `shift` moves each to the side by so many pixels, where many would be at one place."""
        places = [self.at(*point) for point in points]
        if shift:
            places = [(x + by, y) for (x, y), by in zip(places, shift, strict=True)]
        self.parts.append(dots(places, kind, titles))

    def svg(self, title: str) -> str:
        """The picture, axes first, as SVG."""
        return picture(self.width, self.height, title, [*self._axes(), *self.parts])

    def _axes(self) -> Iterable[str]:
        right, floor = self.width - self.right, self.height - self.bottom
        for place, label in self.y.ticks(self._rows):
            y = floor - place * (floor - self.top)
            yield path([(self.left, y), (right, y)], "grid")
            yield words(self.left - 6, y + 4, short(label, 14), "tick", "end")
        yield path([(self.left, floor), (right, floor)], "axis")
        yield from self._x_ticks(floor, right)
        if self.y_label:
            yield words(2, 10, short(self.y_label, int(self.width / _LETTER)), "label", title=self.y_label)
        if self.x_label:
            yield words((self.left + right) / 2, self.height - 4, self.x_label, "label", "middle")

    def _x_ticks(self, floor: float, right: float) -> Iterable[str]:
        ticks = self.x.ticks(max(2, int((right - self.left) / 70)))
        room = (right - self.left) / max(len(ticks), 1)
        every = 1 if not self.x.options else max(1, math.ceil(len(ticks) * 22 / (right - self.left)))
        for place, label in ticks[::every]:
            x = self.left + place * (right - self.left)
            yield path([(x, floor), (x, floor + 4)], "axis")
            text = short(label, max(3, int(every * room / _LETTER))) if self.x.options else label
            half = len(text) * _LETTER / 2
            yield words(min(max(x, half), self.width - half), floor + 16, text, "tick", "middle", title=label)


def picture(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """The whole of a picture."""
    opening = f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img"><title>{escape(title)}</title>'
    return opening + "".join(parts) + "</svg>"


def path(points: Sequence[Point], kind: str, *, stepped: bool = False, closed: bool = False, title: str = "") -> str:
    """A line through points in pixels; stepped: level up to the next point, and then to its height."""
    if not points:
        return ""
    way = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for x, y in points[1:]:
        way += f"H{x:.1f}V{y:.1f}" if stepped else f"L{x:.1f} {y:.1f}"
    inside = f"<title>{escape(title)}</title>" if title else ""
    return f'<path class="{kind}" d="{way}{"Z" if closed else ""}">{inside}</path>'


def dots(places: Sequence[Point], kind: str, titles: Sequence[str] = ()) -> str:
    """Marks at pixels, each with its title; one path without titles where there are very many."""
    if len(places) > _MANY:
        way = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
        return f'<path class="dots {kind}" d="{way}"></path>'
    texts = titles or [""] * len(places)
    inside = [f"<title>{escape(text)}</title>" if text else "" for text in texts]
    marks = zip(places, inside, strict=True)
    return "".join(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3">{each}</circle>' for (x, y), each in marks)


def words(x: float, y: float, text: str, kind: str = "label", anchor: str = "start", title: str = "") -> str:
    """Text, which is never taken for markup."""
    inside = f"<title>{escape(title)}</title>" if title and title != text else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}{inside}</text>'


def short(text: str, most: int) -> str:
    """The text, or its beginning."""
    return text if len(text) <= most else text[: max(most - 1, 1)] + "…"
