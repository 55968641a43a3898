"""Parallel coordinates: one line per trial across all parameters and the value."""

from collections.abc import Callable, Iterator, Sequence

from bonas.report.drawing import (
    LETTER_WIDTH,
    WIDE,
    Point,
    Scale,
    faint_group,
    label_text,
    path,
    picture,
    responsive,
    shorten,
)
from bonas.report.figures import parameter_scale, trial_title, value_of
from bonas.spaces import Space
from bonas.study import TrialRecord

# Largest number of axes side by side; more axes are stacked.
_MAX_AXES_ACROSS = 9
# Number of lines after the best that are highlighted, but at most one in four.
_MAX_GOOD = 10
_GOOD_PER = 4
# Total opacity of all other lines, so that many lines are fainter.
_INK = 25.0
# Position on an axis of trials that do not use the parameter.
_INACTIVE = -0.12


def coordinates(
    trials: Sequence[TrialRecord],
    space: Space,
    scale: Scale,
    sign: float,
    label: str = "value",
) -> str:
    """Draw one line per trial across all parameters and the value; the best are highlighted."""
    axes = [(name, parameter_scale(each)) for name, each in space.parameters.items()]
    axes.append((label, scale))
    ranked = sorted(trials, key=lambda trial: sign * value_of(trial), reverse=True)
    places = [_axis_places(trial, axes) for trial in ranked]
    n_good = count_highlighted(len(ranked))
    kinds = ["other"] * (len(ranked) - 1 - n_good) + ["good"] * n_good + ["best-line"]
    inactive = {
        name
        for name, _ in axes[:-1]
        if any(name not in trial.config for trial in trials)
    }

    def draw(width: int) -> str:
        across = width == WIDE and len(axes) <= _MAX_AXES_ACROSS
        at, height = _axis_layout(width, len(axes), across=across)
        lines = [
            path(
                [at(i, place) for i, place in enumerate(line)],
                kind,
                title=trial_title(trial),
            )
            for kind, trial, line in zip(kinds, ranked, places, strict=True)
        ]
        faint = lines[: -n_good - 1]
        strong = lines[-n_good - 1 :]
        opacity = min(max(_INK / max(len(faint), 1), 0.05), 0.4)
        marks = [
            mark
            for i, (name, axis) in enumerate(axes)
            for mark in _draw_axis(at, i, name, axis, name in inactive)
        ]
        parts = [faint_group(faint, opacity), *strong, *marks]
        return picture(width, height, "All trials in parallel coordinates", parts)

    return responsive(draw)


def count_highlighted(n_trials: int) -> int:
    """Return the number of highlighted lines after the best."""
    return min(_MAX_GOOD, n_trials // _GOOD_PER)


def _axis_places(trial: TrialRecord, axes: Sequence[tuple[str, Scale]]) -> list[float]:
    """Return the positions of a trial on the axes, as fractions."""
    *parameters, (_, value_axis) = axes
    places = [
        axis.place(trial.config[name]) if name in trial.config else _INACTIVE
        for name, axis in parameters
    ]
    return [*places, value_axis.place(value_of(trial))]


def _axis_layout(
    width: int, n_axes: int, *, across: bool
) -> tuple[Callable[[int, float], Point], float]:
    """Return the function from axis and fraction to pixels, and the height of the figure."""
    if across:
        step = (width - 120.0) / max(n_axes - 1, 1)
        return lambda i, t: (60.0 + i * step, 280.0 - t * 240.0), 340.0
    return lambda i, t: (
        60.0 + t * (width - 80.0),
        26.0 + i * 50.0,
    ), 50.0 * n_axes + 2.0


def _draw_axis(
    at: Callable[[int, float], Point],
    i: int,
    name: str,
    axis: Scale,
    has_inactive: bool,
) -> Iterator[str]:
    """Draw an axis: its line, name, ticks, and the place of inactive parameters."""
    x, y = at(i, 0.0)
    end_x, end_y = at(i, 1.0)
    is_vertical = x == end_x
    yield path([(x, y), (end_x, end_y)], "axis")
    ticks = axis.ticks(8 if axis.options else 4)
    if is_vertical:
        yield label_text(x, 20, shorten(name, 14), "name halo", "middle", title=name)
        for t, label in ticks:
            text = shorten(label, 10)
            yield label_text(x + 5, at(i, t)[1] + 4, text, "tick halo", title=label)
    else:
        yield label_text(x, y - 8, shorten(name, 40), "name halo", title=name)
        limit = max(3, int((end_x - x) / max(len(ticks), 1) / LETTER_WIDTH))
        for t, label in ticks:
            text = shorten(label, limit)
            yield label_text(
                at(i, t)[0], y + 13, text, "tick halo", "middle", title=label
            )
    if has_inactive:
        off_x, off_y = at(i, _INACTIVE)
        dx, dy = (4, 0) if is_vertical else (0, 4)
        yield path([(off_x - dx, off_y - dy), (off_x + dx, off_y + dy)], "axis")
        yield label_text(off_x, off_y + 14, "inactive", "tick halo", "middle")
