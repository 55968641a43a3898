"""The figures of a report, each from trials and their space alone. User text is escaped where it is drawn."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from bonas.spaces import Choice, Space
from bonas.study.drawing import Panel, Point, Scale, dots, number, path, picture, scale_of, short, words
from bonas.study.model import Quantiles, Slice
from bonas.study.store import Record

WIDE, NARROW = 940, 350  # pixels: a figure across the page, on a desk and on a phone
_ACROSS = 9  # axes of parallel coordinates that fit beside one another; more are always above one another
_DECADES = 100.0  # a range of positive values so wide is shown on a logarithmic scale
_FAR = 5.0  # values that are so many times farther from the best than four in five others are at the edge of the figure
_CURVES, _STEPS = 100, 60  # learning curves, and points of each, that a figure shows
_JITTER = 7.0  # pixels to either side at which the marks of one option lie
_OFF = -0.12  # place on an axis of trials that do not have the parameter
_GOOD, _PART = 10, 4  # the lines of so many trials after the best stand out; of few trials, one in so many
_INK = 25.0  # lines at full strength that the others may be worth together: many of them are fainter


def value_of(record: Record) -> float:
    """The value of a trial that was told."""
    return cast(float, record.value)


def both(draw: Callable[[int], str]) -> str:
    """A figure drawn for a desk and for a phone; the style sheet shows one of them."""
    return f'<div class="wide">{draw(WIDE)}</div><div class="narrow">{draw(NARROW)}</div>'


def value_scale(values: Sequence[float], sign: float) -> Scale:
    """The axis of values: logarithmic where they span decades, and without the far end where few are far worse."""
    low, high = min(values), max(values)
    if low > 0.0 and high / low > _DECADES:
        room = (high / low) ** 0.04
        return Scale(low / room, high * room, log=True)
    costs = np.sort(sign * np.asarray(values))
    most = costs[0] + 2.0 * (costs[int(0.8 * (len(costs) - 1))] - costs[0])
    if costs[-1] - costs[0] > _FAR / 2.0 * (most - costs[0]) > 0.0:
        low, high = sorted((sign * costs[0], sign * most))
    room = 0.05 * (high - low) or 0.05 * abs(low) or 1.0
    return Scale(low - room, high + room)


def progress(records: Sequence[Record], found: Record, scale: Scale, sign: float, label: str = "value") -> str:
    """Values by number of trial, the best so far as a line, and failed trials at the bottom."""
    told = [record for record in records if record.state == "told"]
    best = sign * np.minimum.accumulate([sign * value_of(record) for record in told])
    first, last = records[0].number, records[-1].number
    steps = [(record.number, value) for record, value in zip(told, best, strict=True)]

    def draw(width: int) -> str:
        panel = Panel(Scale(first, max(last, first + 1), whole=True), scale, width, 300, "trial", label)
        panel.dots([(r.number, value_of(r)) for r in told], "dot", [_said(r) for r in told])
        panel.line([*steps, (last, best[-1])], "line", stepped=True)
        failed = [record for record in records if record.state == "failed"]
        panel.dots([(r.number, scale.low) for r in failed], "failed", [f"trial {r.number} failed: {r.error}" for r in failed])
        panel.dots([(found.number, value_of(found))], "best", [_said(found)])
        return panel.svg("Value of every trial, and the best so far")

    return both(draw)


def _said(record: Record) -> str:
    return f"trial {record.number}: {number(value_of(record))}"


def coordinates(told: Sequence[Record], space: Space, scale: Scale, sign: float, label: str = "value") -> str:
    """One line a trial across all parameters and its value; the best ones stand out, and are drawn last."""
    axes = [(name, scale_of(parameter)) for name, parameter in space.parameters.items()] + [(label, scale)]
    ranked = sorted(told, key=lambda record: sign * value_of(record), reverse=True)
    absent = {name for name, _ in axes[:-1] if any(name not in record.config for record in told)}
    good = standing_out(len(ranked))
    kinds = ["other"] * (len(ranked) - 1 - good) + ["good"] * good + ["best-line"]

    def draw(width: int) -> str:
        place, height = _layout(width, len(axes), beside=width == WIDE and len(axes) <= _ACROSS)
        lines = []
        for kind, record in zip(kinds, ranked, strict=True):
            spots = [axis.place(record.config[name]) if name in record.config else _OFF for name, axis in axes[:-1]]
            spots.append(scale.place(value_of(record)))
            lines.append(path([place(j, t) for j, t in enumerate(spots)], kind, title=_said(record)))
        faint, strong = lines[: -good - 1], lines[-good - 1 :]
        ink = min(max(_INK / max(len(faint), 1), 0.05), 0.4)
        marks = [part for j, axis in enumerate(axes) for part in _upright(place, j, *axis, axis[0] in absent)]
        parts = [f'<g stroke-opacity="{ink:.3f}">', *faint, "</g>", *strong, *marks]
        return picture(width, height, "All trials in parallel coordinates", parts)

    return both(draw)


def standing_out(trials: int) -> int:
    """How many lines after the best stand out."""
    return min(_GOOD, trials // _PART)


def _layout(width: int, axes: int, *, beside: bool) -> tuple[Callable[[int, float], Point], float]:
    """Pixels of a fraction of an axis, and the height: axes beside one another, or above one another."""
    if beside:
        left, step = 60.0, (width - 120.0) / max(axes - 1, 1)
        return lambda i, t: (left + i * step, 280.0 - t * 240.0), 340.0
    return lambda i, t: (60.0 + t * (width - 80.0), 26.0 + i * 50.0), 50.0 * axes + 2.0


def _upright(place, i: int, name: str, axis: Scale, absent: bool):
    """One axis: its line, its name, its ends or options, and the place of trials that do not have it."""
    (x, y), (end_x, end_y) = place(i, 0.0), place(i, 1.0)
    beside = x == end_x
    yield path([(x, y), (end_x, end_y)], "axis")
    ticks = axis.ticks(8 if axis.options else 4)
    if beside:
        yield words(x, 20, short(name, 14), "name halo", "middle", title=name)
        yield from (words(x + 5, place(i, t)[1] + 4, short(label, 10), "tick halo", title=label) for t, label in ticks)
    else:
        yield words(x, y - 8, short(name, 40), "name halo", title=name)
        most = max(3, int((end_x - x) / max(len(ticks), 1) / 6.2))
        yield from (words(place(i, t)[0], y + 13, short(label, most), "tick halo", "middle", title=label) for t, label in ticks)
    if absent:
        off_x, off_y = place(i, _OFF)
        yield path([(off_x - 4, off_y), (off_x + 4, off_y)] if beside else [(off_x, off_y - 4), (off_x, off_y + 4)], "axis")
        yield words(off_x, off_y + 14, "inactive", "tick halo", "middle")


def slices(told: Sequence[Record], best: Record, space: Space, scale: Scale) -> list[str]:
    """The value against each parameter, without the trials that do not have it."""
    drawn = []
    for name, parameter in space.parameters.items():
        here = [record for record in told if name in record.config]
        panel = Panel(scale_of(parameter), scale, x_label=name)
        panel.dots(
            [(r.config[name], value_of(r)) for r in here],
            "dot",
            [f"{_said(r)}, {name} {number(r.config[name])}" for r in here],
            shift=[_shift(r.number) for r in here] if isinstance(parameter, Choice) else (),
        )
        if name in best.config:
            aside = [_shift(best.number)] if isinstance(parameter, Choice) else ()
            panel.dots([(best.config[name], value_of(best))], "best", [f"the best, {_said(best)}"], shift=aside)
        drawn.append(panel.svg(f"Value against {name}"))
    return drawn


def _shift(seed: int) -> float:
    """A place beside the middle that looks random, and is the same in every report."""
    return _JITTER * (2.0 * (seed * 0.6180339887 % 1.0) - 1.0)


def importance(shares: Mapping[str, float]) -> str:
    """A bar for each parameter, as long as its share."""

    def draw(width: int) -> str:
        most = max(shares.values()) or 1.0
        left = min(6.5 * max(len(name) for name in shares), 0.4 * width) + 12
        parts = []
        for i, (name, share) in enumerate(shares.items()):
            y, reach = 26.0 * i + 4, (width - left - 60) * share / most
            parts.append(words(left - 8, y + 13, short(name, int(left / 6.5)), "name", "end", title=name))
            parts.append(
                f'<rect class="bar" x="{left:.1f}" y="{y:.1f}" width="{max(reach, 1.0):.1f}" height="17" rx="2"></rect>'
            )
            parts.append(words(left + max(reach, 1.0) + 7, y + 13, f"{share:.0%}" if share >= 0.005 else "<1%", "tick"))
        return picture(width, 26.0 * len(shares) + 4, "Importance of parameters", parts)

    return both(draw)


def curves(told: Sequence[Record], best: Record, sign: float, label: str = "reported value") -> tuple[str, int, int]:
    """Intermediate values by step; how many trials are shown, the best of those that reported at least twice; and how many
    values lie beyond the axis, and are drawn at its end.
    """
    finite = {r.number: [(step, value) for step, value in r.reports if np.isfinite(value)] for r in told}
    ranked = sorted((r for r in told if len(finite[r.number]) > 1), key=lambda r: sign * value_of(r))[:_CURVES]
    if not ranked:
        return "", 0, 0
    lines = {r.number: _thinned(finite[r.number]) for r in ranked}
    steps = [step for line in lines.values() for step, _ in line]
    y = value_scale([value for line in lines.values() for _, value in line], sign)

    def draw(width: int) -> str:
        panel = Panel(Scale(min(steps), max(steps), whole=True), y, width, 300, "step", label)
        for record in reversed(ranked):
            kind = "best-line" if record.number == best.number else "curve"
            panel.line(lines[record.number], kind, title=_said(record))
        return panel.svg("Learning curves")

    return both(draw), len(ranked), sum(not y.within(value) for line in lines.values() for _, value in line)


def _thinned(line: list[tuple[int, float]]) -> list[tuple[int, float]]:
    keep = np.unique(np.linspace(0, len(line) - 1, min(len(line), _STEPS)).astype(int))
    return [line[i] for i in keep]


def posterior(found: Mapping[str, Slice], best: Record, space: Space, scale: Scale) -> list[str]:
    """What the model believes along each parameter: its median, its central 95 %, and the best trial."""
    ends = [each for part in found.values() for each in (part.values.low, part.values.high)]
    inside = np.clip(np.concatenate(ends), scale.low, scale.high)  # no wider than the trials themselves
    low, high = min(float(inside.min()), value_of(best)), max(float(inside.max()), value_of(best))
    room = 0.0 if scale.log else 0.06 * (high - low)
    y = Scale(low - room, high + room, scale.log)
    drawn = []
    for name, part in found.items():
        panel = Panel(scale_of(space.parameters[name]), y, x_label=name)
        rows = list(zip(part.at, *(each.tolist() for each in part.values), strict=True))
        if isinstance(space.parameters[name], Choice):
            for at, low, _, high in rows:
                panel.bar(at, low, high, "whisker")
            panel.dots([(at, middle) for at, _, middle, _ in rows], "accent", [number(middle) for _, _, middle, _ in rows])
        else:
            panel.band([(at, low, high) for at, low, _, high in rows], "band")
            panel.line([(at, middle) for at, _, middle, _ in rows], "line")
        panel.dots([(best.config[name], value_of(best))], "best", [f"the best, {_said(best)}"])
        drawn.append(panel.svg(f"The model along {name}"))
    return drawn


def calibration(
    seen: Sequence[Record], residuals: np.ndarray, predicted: Quantiles, scale: Scale, thing: str = "trial"
) -> list[str]:
    """What the others say of each trial against what it was; and how often intervals held what they should have."""
    panel = Panel(scale, scale, x_label="observed", y_label=f"predicted without the {thing}")
    panel.line([(scale.low, scale.low), (scale.high, scale.high)], "rule")
    for record, low, high in zip(seen, predicted.low, predicted.high, strict=True):
        panel.bar(value_of(record), low, high, "whisker faint")
    panel.dots([(value_of(r), p) for r, p in zip(seen, predicted.middle, strict=True)], "dot", [_said(r) for r in seen])
    return [panel.svg("Predicted against observed values"), _coverage(np.abs(residuals), thing)]


def _coverage(sizes: np.ndarray, thing: str) -> str:
    from scipy.stats import norm

    wanted = np.arange(0.0, 100.0, 2.0)
    shares = [(w, 100.0 * float((sizes <= norm.ppf(0.5 + w / 200.0)).mean())) for w in wanted]
    return held([*shares, (100.0, 100.0)], f"{thing}s within, %")


def held(shares: Sequence[tuple[float, float]], label: str) -> str:
    """What intervals hold against what they should, both in per cent."""
    percent = Scale(0.0, 100.0)
    panel = Panel(percent, percent, x_label="interval, %", y_label=label)
    panel.line([(0.0, 0.0), (100.0, 100.0)], "rule")
    panel.line(shares, "line")
    return panel.svg("How many lie within intervals of each size")


def grid(panels: Sequence[str]) -> str:
    """Pictures beside one another, as many as there is room for."""
    return '<div class="grid">' + "".join(f"<div>{panel}</div>" for panel in panels) + "</div>"


def legend(*entries: tuple[str, str]) -> str:
    """What the marks of a figure are: pairs of a class and a text of ours."""
    shapes = {"line": path([(1, 7), (17, 7)], "line"), "band": path([(1, 2), (17, 2), (17, 12), (1, 12)], "band", closed=True)}
    shapes |= {kind: path([(1, 7), (17, 7)], kind) for kind in ("best-line", "curve", "good", "other")}
    keys = [f'<svg class="key" viewBox="0 0 18 14" width="18">{shapes.get(k) or dots([(9, 7)], k)}</svg>' for k, _ in entries]
    texts = [f"<span>{key}{text}</span>" for key, (_, text) in zip(keys, entries, strict=True)]
    return f'<figcaption class="legend">{"".join(texts)}</figcaption>'


def beyond(records: Sequence[Record], scale: Scale) -> int:
    """How many trials lie beyond the end of the axis, and are drawn at it."""
    return sum(not scale.within(value_of(record)) for record in records)
