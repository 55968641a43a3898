"""Draw figures as SVG: scales, panels with axes, marks and legends.

Colors and strokes are classes of the style sheet, the argument `kind`, so that a figure follows the
light or dark mode of the browser. Text has a fixed size in pixels, so a figure is drawn once for
every width.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

Point = tuple[float, float]
# Width in pixels of a figure across the page, on a desktop and on a phone.
WIDE = 940
NARROW = 350
# More marks than this are drawn as one path, without titles.
_MAX_TITLED_MARKS = 250
# Approximate width in pixels of a letter in a label.
LETTER_WIDTH = 6.2


# Axes


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
    """The scale of an axis: from `low` to `high`, or with a position for each option."""

    low: float
    high: float
    log: bool = False
    whole: bool = False  # tick labels are integers
    options: tuple[Any, ...] = ()

    def place(self, value: Any) -> float:
        """Return the position of a value from 0 to 1; values outside are clipped to the ends."""
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
        """Return the positions and labels of about `limit` ticks; every option has a tick."""
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


# Panels


@dataclass
class Panel:
    """A figure with two axes, whose marks are drawn in their order."""

    x: Scale
    y: Scale
    width: int = 340
    height: int = 200
    x_label: str = ""
    y_label: str = ""
    parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        longest = max(
            [len(label) for _, label in self.y.ticks(self._n_rows)], default=1
        )
        self.left = min(longest, 14) * LETTER_WIDTH + 12
        self.right = 10.0
        self.top = 12.0 + 14.0 * bool(self.y_label)
        self.bottom = 22.0 + 16.0 * bool(self.x_label)

    @property
    def _n_rows(self) -> int:
        return max(2, self.height // 36)

    def at(self, x: Any, y: Any) -> Point:
        """Convert values to pixels."""
        across = self.width - self.left - self.right
        down = self.height - self.top - self.bottom
        return self.left + self.x.place(x) * across, self.top + (
            1.0 - self.y.place(y)
        ) * down

    def line(
        self,
        points: Iterable[tuple[Any, Any]],
        kind: str,
        *,
        stepped: bool = False,
        title: str = "",
    ) -> None:
        """Draw a line; a stepped one keeps its value until the next point."""
        pixels = [self.at(*point) for point in points]
        self.parts.append(path(pixels, kind, stepped=stepped, title=title))

    def band(self, edges: Sequence[tuple[Any, float, float]], kind: str) -> None:
        """Draw the area between a lower and an upper value at each x."""
        upper = [self.at(x, high) for x, _, high in edges]
        lower = [self.at(x, low) for x, low, _ in reversed(edges)]
        self.parts.append(path(upper + lower, kind, closed=True))

    def bar(self, x: Any, low: float, high: float, kind: str) -> None:
        """Draw a vertical stroke from one value to another."""
        self.parts.append(path([self.at(x, low), self.at(x, high)], kind))

    def dots(
        self,
        points: Sequence[tuple[Any, Any]],
        kind: str,
        titles: Sequence[str] = (),
        *,
        shift: Sequence[float] = (),
    ) -> None:
        """Draw marks; `shift` moves each horizontally by some pixels, to avoid overlaps."""
        places = [self.at(*point) for point in points]
        if shift:
            places = [(x + by, y) for (x, y), by in zip(places, shift, strict=True)]
        self.parts.append(dots(places, kind, titles))

    def svg(self, title: str) -> str:
        """Return the figure as SVG, with the axes first."""
        return picture(self.width, self.height, title, [*self._axes(), *self.parts])

    def _axes(self) -> Iterable[str]:
        right = self.width - self.right
        floor = self.height - self.bottom
        for place, label in self.y.ticks(self._n_rows):
            y = floor - place * (floor - self.top)
            yield path([(self.left, y), (right, y)], "grid")
            yield label_text(self.left - 6, y + 4, shorten(label, 14), "tick", "end")
        yield path([(self.left, floor), (right, floor)], "axis")
        yield from self._x_ticks(floor, right)
        if self.y_label:
            text = shorten(self.y_label, int(self.width / LETTER_WIDTH))
            yield label_text(2, 10, text, "label", title=self.y_label)
        if self.x_label:
            middle = (self.left + right) / 2
            yield label_text(middle, self.height - 4, self.x_label, "label", "middle")

    def _x_ticks(self, floor: float, right: float) -> Iterable[str]:
        length = right - self.left
        ticks = self.x.ticks(max(2, int(length / 70)))
        room = length / max(len(ticks), 1)
        every = max(1, math.ceil(len(ticks) * 22 / length)) if self.x.options else 1
        for place, label in ticks[::every]:
            x = self.left + place * length
            yield path([(x, floor), (x, floor + 4)], "axis")
            text = label
            if self.x.options:
                text = shorten(label, max(3, int(every * room / LETTER_WIDTH)))
            half = len(text) * LETTER_WIDTH / 2
            center = min(max(x, half), self.width - half)
            yield label_text(center, floor + 16, text, "tick", "middle", title=label)


# SVG elements


def picture(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Return a complete SVG document."""
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
    head = f'<svg {size} role="img"><title>{escape(title)}</title>'
    return head + "".join(parts) + "</svg>"


def path(
    points: Sequence[Point],
    kind: str,
    *,
    stepped: bool = False,
    closed: bool = False,
    title: str = "",
) -> str:
    """Return a line through points in pixels; a stepped one is constant up to the next point."""
    if not points:
        return ""
    way = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for x, y in points[1:]:
        way += f"H{x:.1f}V{y:.1f}" if stepped else f"L{x:.1f} {y:.1f}"
    way += "Z" if closed else ""
    return f'<path class="{kind}" d="{way}">{_title(title)}</path>'


def dots(places: Sequence[Point], kind: str, titles: Sequence[str] = ()) -> str:
    """Return marks at pixels with titles; many marks are one path without titles."""
    if len(places) > _MAX_TITLED_MARKS:
        way = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
        return f'<path class="dots {kind}" d="{way}"></path>'
    marks = [
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3">{_title(title)}</circle>'
        for (x, y), title in zip(places, titles or [""] * len(places), strict=True)
    ]
    return "".join(marks)


def rectangle(x: float, y: float, width: float, height: float, kind: str) -> str:
    """Return a rectangle with rounded corners, in pixels."""
    size = f'width="{width:.1f}" height="{height:g}" rx="2"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}></rect>'


def faint_group(parts: Iterable[str], opacity: float) -> str:
    """Return elements whose strokes are partly transparent."""
    return f'<g stroke-opacity="{opacity:.3f}">{"".join(parts)}</g>'


def label_text(
    x: float,
    y: float,
    text: str,
    kind: str = "label",
    anchor: str = "start",
    title: str = "",
) -> str:
    """Return a text element; the text is escaped."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    inside = _title(title if title != text else "")
    return f'<text class="{kind}" {place}>{escape(text)}{inside}</text>'


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def shorten(text: str, limit: int) -> str:
    """Truncate text that is too long."""
    return text if len(text) <= limit else text[: max(limit - 1, 1)] + "…"


# Layout


def responsive(draw: Callable[[int], str]) -> str:
    """Draw a figure for a desktop and for a phone; the style sheet shows one of them."""
    return (
        f'<div class="wide">{draw(WIDE)}</div><div class="narrow">{draw(NARROW)}</div>'
    )


def grid(panels: Sequence[str]) -> str:
    """Lay out figures side by side."""
    return (
        '<div class="grid">'
        + "".join(f"<div>{panel}</div>" for panel in panels)
        + "</div>"
    )


def legend(*entries: tuple[str, str]) -> str:
    """Return a legend from pairs of the class of a mark and its text, which is not escaped."""
    line = [(1, 7), (17, 7)]
    area = [(1, 2), (17, 2), (17, 12), (1, 12)]
    symbols = {
        kind: path(line, kind)
        for kind in ("line", "best-line", "curve", "good", "other")
    }
    symbols["band"] = path(area, "band", closed=True)
    items = []
    for kind, text in entries:
        symbol = symbols.get(kind) or dots([(9, 7)], kind)
        key = f'<svg class="key" viewBox="0 0 18 14" width="18">{symbol}</svg>'
        items.append(f"<span>{key}{text}</span>")
    return f'<figcaption class="legend">{"".join(items)}</figcaption>'
