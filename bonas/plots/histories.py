"""Figures of searches: how good they are as they go on, and what one of them chose."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jax.typing import ArrayLike
from matplotlib.axes import Axes

from bonas.plots.look import BLACK, BLUE, COLOURS, ORANGE, draw_band, panels_of, plain, scale_axis, whole_ticks
from bonas.plots.runs import best_so_far, rows_and_values
from bonas.spaces import Space

_STYLES = ("-", "--", ":", "-.")  # once the colours are used up
_SPREADS = {"quartiles": "median and quartiles", "error": "mean ± standard error"}


def efficiency(
    curves: Mapping[str, Any],
    *,
    ax: Axes | None = None,
    optimum: float | None = None,
    seconds: Mapping[str, ArrayLike] | None = None,
    spread: str = "quartiles",
    logarithmic: bool | None = None,
) -> Axes:
    """The best value so far against evaluations, or seconds: one line and one band a method.

    curves: for every method the best value so far (seeds, steps), or what has it: a History, a Study or what `minimise`
        returns, or a list of these, one a seed. Steps at which some run has no finite value yet are left out.
    optimum: where given, the regret is drawn, value − optimum, on a logarithmic scale unless `logarithmic` says otherwise;
        values at or below the optimum fall off its bottom.
    seconds: when each evaluation ended, since its run began, shaped as the curves. A curve holds its value until the next
        evaluation ends, and after the last; it begins when every run of the method has ended one.
    spread: "quartiles" for the median with the quartiles over seeds, "error" for the mean ± one standard error.
    """
    if not curves:
        raise ValueError("curves is empty: there is nothing to draw")
    if spread not in _SPREADS:
        raise ValueError(f"spread is one of {', '.join(_SPREADS)}; got {spread!r}")
    drawn = {}
    for name, given in curves.items():
        values = _curve(name, given) - (optimum or 0.0)
        times = np.arange(1, values.shape[1] + 1)
        drawn[name] = (times, values) if seconds is None else _in_time(values, _seconds(name, seconds, values.shape))
    ax = ax or plt.subplots(layout="constrained")[1]
    for i, (name, (times, values)) in enumerate(drawn.items()):
        look = {"label": name, "color": COLOURS[i % 8], "linestyle": _STYLES[i // 8 % 4]}
        draw_band(ax, times, _summary(values, spread), look, stepped=seconds is not None)
    if logarithmic or (logarithmic is None and optimum is not None):
        ax.set_yscale("log")
    if seconds is None:
        whole_ticks(ax)
    ax.set_xlabel("evaluations" if seconds is None else "seconds")
    ax.set_ylabel("best value so far" if optimum is None else "regret: best value so far − optimum")
    ax.legend(title=f"{_SPREADS[spread]} of {_counted([len(values) for _, values in drawn.values()])}", frameon=False)
    return plain(ax)


def _curve(name: str, given: Any) -> np.ndarray:
    """The best values so far (seeds, steps) of one method."""
    values = best_so_far(given)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"curves[{name!r}] must have shape (seeds, steps), a row a run; got {values.shape}")
    return values


def _seconds(name: str, seconds: Mapping[str, ArrayLike], shape: tuple[int, ...]) -> np.ndarray:
    if name not in seconds:
        raise ValueError(f"seconds has no entry for {name!r}, which is one of the curves")
    times = np.atleast_2d(np.asarray(seconds[name], float))
    if times.shape != shape:
        raise ValueError(f"seconds[{name!r}] must be shaped as its curve, {shape}; got {times.shape}")
    if not (np.diff(times, axis=1) >= 0).all():
        raise ValueError(f"seconds[{name!r}] goes down along a run: give the time since it began, not that of each evaluation")
    return times


def _in_time(values: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All times (k,) at which any run changes, from when each has a value, and the values (seeds, k) then."""
    times = np.unique(seconds[seconds >= seconds[:, 0].max()])
    last = [np.searchsorted(row, times, side="right") - 1 for row in seconds]
    return times, np.take_along_axis(values, np.array(last), axis=1)


def _summary(values: np.ndarray, spread: str) -> np.ndarray:
    """The lower edge, the line and the upper edge (3, k) over runs (seeds, k); NaN where some run has no finite value."""
    values = np.where(np.isfinite(values).all(axis=0), values, np.nan)
    if spread == "quartiles":
        return np.quantile(values, [0.25, 0.5, 0.75], axis=0)
    mean, n = values.mean(axis=0), len(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros_like(mean)
    return np.stack([mean - error, mean, mean + error])


def _counted(runs: list[int]) -> str:
    fewest, most = min(runs), max(runs)
    return f"{most} run{'s' * (most > 1)}" if fewest == most else f"{fewest} to {most} runs"


def choices(history: Any, space: Space, *, axes: Sequence[Axes] | None = None) -> tuple[Axes, ...]:
    """The values that one run chose against evaluations, a panel a parameter, with no point where that is inactive.

    Evaluations better than all before are orange, failed ones are crosses.

    history: a History, a Study, or what `minimise` returns.
    """
    rows, y = rows_and_values(history, space)
    if rows.ndim != 2 or rows.shape[1] != space.dim:
        raise ValueError(f"history must be that of one run, with x (steps, {space.dim}); its x has shape {rows.shape}")
    panels = panels_of(axes, (1,) * space.dim)
    on, steps, failed = np.asarray(space.active(rows)), np.arange(1, len(y) + 1), ~np.isfinite(y)
    better = ~failed & (y < np.minimum.accumulate(np.append(np.inf, np.where(failed, np.inf, y)))[:-1])
    kinds = [(~better & ~failed, "o", BLUE, "evaluation"), (better, "o", ORANGE, "best so far"), (failed, "x", BLACK, "failed")]
    kinds = kinds if failed.any() else kinds[:2]
    for i, (name, parameter) in enumerate(space.parameters.items()):
        values = np.asarray(parameter.value(rows[:, i]))
        for these, marker, colour, label in kinds:
            here = these & on[:, i]
            panels[i].plot(steps[here], values[here], marker, color=colour, markersize=4, label=label)
        panels[i].set_ylabel(name)
        scale_axis(panels[i], "y", parameter)
    panels[-1].set_xlabel("evaluations")
    whole_ticks(panels[-1])
    panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
    return panels
