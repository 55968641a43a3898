"""Figures of searches: best values over time, and the configurations that one run chose."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jax.typing import ArrayLike
from matplotlib.axes import Axes

from bonas.plots.runs import best_so_far, is_maximized, points_and_values, true_values
from bonas.plots.style import (
    BLACK,
    BLUE,
    COLORS,
    ORANGE,
    draw_band,
    hide_frame,
    integer_ticks,
    scale_axis,
    stacked_panels,
)
from bonas.spaces import Space

# Line styles of the methods after the first eight, when the colors repeat.
_LINE_STYLES = ("-", "--", ":", "-.")
# Line style of the best observed values beside the values of recommended points.
_OBSERVED_STYLE = (0, (1, 1.2))
_SPREADS = {"quartiles": "median and quartiles", "error": "mean ± standard error"}


def efficiency(
    curves: Mapping[str, Any],
    *,
    ax: Axes | None = None,
    optimum: float | None = None,
    truth: Callable[[Any], Any] | None = None,
    observed: bool = False,
    seconds: Mapping[str, ArrayLike] | None = None,
    spread: str = "quartiles",
    logarithmic: bool | None = None,
) -> Axes:
    """Plot the best value so far of several methods over evaluations or seconds.

    Each method has a line, and a band that shows the spread of its runs.

    Args:
        curves: The runs of each method: best values (seeds, steps), a History, a Study, a result of
            `minimize`, or a list of studies or results. Steps without a finite value in every run
            are omitted.
        ax: Axes to draw into (default: a new figure).
        optimum: If given, plot the regret, value − optimum. Values at or below the optimum cannot
            be shown on the logarithmic scale.
        truth: The objective without noise, a traceable function of a point (d,). If given, plot its
            value at `History.recommended` instead of the best observed value, which noise improves;
            with `optimum` this is the inference regret. Every run must be a History made with
            `record=bonas.search.model_record(search)`.
        observed: With `truth`, whether to plot also the best observed value, as a dotted line
            without a band. The distance of the two lines is the effect of the noise.
        seconds: For every method, the end time of each evaluation in seconds from the start of its
            run, in the shape of its curve. If given, values are plotted over time: a line holds its
            value until the next evaluation ends, and starts when every run has a value.
        spread: "quartiles" for the median and quartiles over seeds, "error" for the mean ± one
            standard error.
        logarithmic: Whether the y axis is logarithmic (default: if the optimum is given).

    Returns:
        The axes.
    """
    if not curves:
        raise ValueError("expected curves of at least one method; got an empty mapping")
    if spread not in _SPREADS:
        raise ValueError(f"spread must be one of {', '.join(_SPREADS)}; got {spread!r}")
    if observed and truth is None:
        raise ValueError(
            "observed=True plots best values beside true values; pass truth= too"
        )
    lines = {
        name: _line_of(name, runs, truth, optimum, seconds)
        for name, runs in curves.items()
    }
    ax = ax or plt.subplots(layout="constrained")[1]
    stepped = seconds is not None
    for i, (name, (times, values)) in enumerate(lines.items()):
        linestyle = _LINE_STYLES[i // len(COLORS) % len(_LINE_STYLES)]
        color = COLORS[i % len(COLORS)]
        label = f"{name} (recommended)" if observed else name
        style = {"label": label, "color": color, "linestyle": linestyle}
        draw_band(ax, times, _summarize(values, spread), style, stepped=stepped)
        if observed:
            times, values = _line_of(name, curves[name], None, optimum, seconds)
            ax.plot(
                times,
                _summarize(values, spread)[1],
                label=f"{name} (best observed)",
                color=color,
                linestyle=_OBSERVED_STYLE,
                drawstyle="steps-post" if stepped else "default",
            )
    if logarithmic or (logarithmic is None and optimum is not None):
        ax.set_yscale("log")
    if seconds is None:
        integer_ticks(ax)
    ax.set_xlabel("evaluations" if seconds is None else "seconds")
    value = "best value so far" if truth is None else "true value of recommended point"
    value = "value" if observed else value
    maximized = any(map(is_maximized, curves.values()))
    ax.set_ylabel(_value_label(value, optimum, maximized))
    runs_text = _count_runs([len(values) for _, values in lines.values()])
    ax.legend(title=f"{_SPREADS[spread]} of {runs_text}", frameon=False)
    return hide_frame(ax)


def choices(
    history: Any,
    space: Space,
    *,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, ...]:
    """Plot the configurations of one run over evaluations, one panel per parameter.

    New best values are orange, and failed evaluations are crosses. No point is drawn for an
    inactive parameter.

    Args:
        history: A History, a Study, or a result of `minimize`.
        space: The space that was searched.
        axes: Axes to draw into, one per parameter (default: a new figure).

    Returns:
        The axes, one per parameter.
    """
    rows, y = points_and_values(history, space)
    if rows.ndim != 2 or rows.shape[1] != space.dim:
        raise ValueError(
            f"expected the history of one run, with x of shape (steps, {space.dim}); "
            f"got x of shape {rows.shape}"
        )
    panels = stacked_panels(axes, (1,) * space.dim)
    active = np.asarray(space.active(rows))
    steps = np.arange(1, len(y) + 1)
    groups = _group_evaluations(y)
    for i, (name, parameter) in enumerate(space.parameters.items()):
        values = np.asarray(parameter.value(rows[:, i]))
        for members, marker, color, label in groups:
            shown = members & active[:, i]
            style: dict[str, Any] = {"color": color, "markersize": 4, "label": label}
            panels[i].plot(steps[shown], values[shown], marker, **style)
        panels[i].set_ylabel(name)
        scale_axis(panels[i], "y", parameter)
    panels[-1].set_xlabel("evaluations")
    integer_ticks(panels[-1])
    panels[0].legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=3,
        frameon=False,
    )
    return panels


def _value_label(value: str, optimum: float | None, maximized: bool) -> str:
    if optimum is None:
        return value
    return f"regret: optimum − {value}" if maximized else f"regret: {value} − optimum"


def _line_of(
    name: str,
    runs: Any,
    truth: Callable[[Any], Any] | None,
    optimum: float | None,
    seconds: Mapping[str, ArrayLike] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return evaluations or seconds (k,), and the values or regrets (seeds, k) of one method."""
    values = _values_of(name, runs, truth)
    if optimum is not None:
        values = optimum - values if is_maximized(runs) else values - optimum
    if seconds is None:
        return np.arange(1, values.shape[1] + 1), values
    return _hold_values(values, _end_times(name, seconds, values.shape))


def _values_of(name: str, runs: Any, truth: Callable[[Any], Any] | None) -> np.ndarray:
    """Return the best or true values (seeds, steps) after each step of one method."""
    if truth is None:
        values = best_so_far(runs)
    else:
        try:
            values = true_values(runs, truth)
        except ValueError as problem:
            raise ValueError(f"curves[{name!r}]: {problem}") from problem
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"curves[{name!r}] must have shape (seeds, steps), one row per run; got {values.shape}"
        )
    return values


def _end_times(
    name: str,
    seconds: Mapping[str, ArrayLike],
    shape: tuple[int, ...],
) -> np.ndarray:
    """Return the end times (seeds, steps) of one method."""
    if name not in seconds:
        raise ValueError(f"seconds has no entry for {name!r}, which is in curves")
    times = np.atleast_2d(np.asarray(seconds[name], float))
    if times.shape != shape:
        raise ValueError(
            f"seconds[{name!r}] must have the shape of its curve, {shape}; got {times.shape}"
        )
    if not (np.diff(times, axis=1) >= 0).all():
        raise ValueError(
            f"seconds[{name!r}] decreases within a run: expected the time since its start, "
            "not the duration of each evaluation"
        )
    return times


def _hold_values(
    values: np.ndarray, seconds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the times (k,) of all changes, and the values (seeds, k) at these times.

    The first time is when the last run gets its first value.
    """
    times = np.unique(seconds[seconds >= seconds[:, 0].max()])
    last = [np.searchsorted(row, times, side="right") - 1 for row in seconds]
    return times, np.take_along_axis(values, np.array(last), axis=1)


def _summarize(values: np.ndarray, spread: str) -> np.ndarray:
    """Return the lower edge, line and upper edge (3, k) of the band of runs (seeds, k).

    They are NaN where a run has no finite value.
    """
    values = np.where(np.isfinite(values).all(axis=0), values, np.nan)
    if spread == "quartiles":
        return np.quantile(values, [0.25, 0.5, 0.75], axis=0)
    n = len(values)
    mean = values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros_like(mean)
    return np.stack([mean - error, mean, mean + error])


def _count_runs(runs: list[int]) -> str:
    """Return the number of runs per method as text."""
    fewest = min(runs)
    most = max(runs)
    if fewest < most:
        return f"{fewest} to {most} runs"
    return "1 run" if most == 1 else f"{most} runs"


def _group_evaluations(y: np.ndarray) -> list[tuple[np.ndarray, str, str, str]]:
    """Return the mask (steps,), marker, color and label of each group of evaluations."""
    failed = ~np.isfinite(y)
    best_before = np.minimum.accumulate(np.append(np.inf, np.where(failed, np.inf, y)))[
        :-1
    ]
    improved = ~failed & (y < best_before)
    groups = [
        (~improved & ~failed, "o", BLUE, "evaluation"),
        (improved, "o", ORANGE, "best so far"),
    ]
    if failed.any():
        groups.append((failed, "x", BLACK, "failed"))
    return groups
