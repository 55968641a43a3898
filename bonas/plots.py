"""Figures from histories and surrogates. Every function draws into the axes it is given, or into new ones, and returns them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bonas.data import Dataset
from bonas.search.record import SAME
from bonas.search.types import History
from bonas.spaces import Choice, Space
from bonas.spaces.parameters import Parameter
from bonas.surrogates import Surrogate

# Colour-blind people tell them apart: Okabe & Ito 2008; yellow, faint on white, comes last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_BLUE, _RED, _GREEN, _BLACK, _GREY = *COLOURS[:3], "#000000", "#999999"
_STYLES = ("-", "--", ":", "-.")  # once the colours are used up
_BAND = 0.2  # opacity
_FINE = 401  # points of a line that looks smooth
_SPREADS = {"quartiles": "median and quartiles", "error": "mean ± standard error"}


def efficiency(
    curves: Mapping[str, ArrayLike | History],
    *,
    ax: Axes | None = None,
    optimum: float | None = None,
    seconds: Mapping[str, ArrayLike] | None = None,
    spread: str = "quartiles",
    logarithmic: bool | None = None,
) -> Axes:
    """The best value so far against evaluations, or seconds: one line and one band a method.

    curves: for every method the best value so far (seeds, steps), or a History, of which this is `best`. Steps at which
        some run has no finite value yet are left out.
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
        _draw_band(ax, times, _summary(values, spread), look, stepped=seconds is not None)
    if logarithmic or (logarithmic is None and optimum is not None):
        ax.set_yscale("log")
    if seconds is None:
        _whole_ticks(ax)
    ax.set_xlabel("evaluations" if seconds is None else "seconds")
    ax.set_ylabel("best value so far" if optimum is None else "regret: best value so far − optimum")
    ax.legend(title=f"{_SPREADS[spread]} of {_counted([len(values) for _, values in drawn.values()])}", frameon=False)
    return _plain(ax)


def _curve(name: str, given: ArrayLike | History) -> np.ndarray:
    """The best values so far (seeds, steps) of one method."""
    values = np.atleast_2d(given.best) if isinstance(given, History) else np.asarray(given)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"curves[{name!r}] must have shape (seeds, steps), a row a run; got {values.shape}")
    return values.astype(float)


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


def _draw_band(ax: Axes, x: np.ndarray, summary: np.ndarray, look: dict[str, Any], *, stepped: bool = False) -> None:
    low, line, high = summary
    ax.plot(x, line, drawstyle="steps-post" if stepped else "default", **look)
    ax.fill_between(x, low, high, step="post" if stepped else None, color=look["color"], alpha=_BAND, linewidth=0)


def _counted(runs: list[int]) -> str:
    fewest, most = min(runs), max(runs)
    return f"{most} run{'s' * (most > 1)}" if fewest == most else f"{fewest} to {most} runs"


def _whole_ticks(ax: Axes) -> None:
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))


def _plain(ax: Axes) -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def posterior_slice(
    surrogate: Surrogate,
    state: Any,
    space: Space,
    *,
    name_of_parameter: str | None = None,
    at: Mapping[str, Any] | ArrayLike | None = None,
    data: Dataset | None = None,
    objective: Callable[[Array, Array], Array] | None = None,
    acquisition: Callable[[Array], Array] | None = None,
    scale: tuple[ArrayLike, ArrayLike] = (0.0, 1.0),
    axes: Axes | Sequence[Axes] | None = None,
) -> tuple[Axes, ...]:
    """A surrogate along one parameter: mean ± 2 standard deviations, and the acquisition in a panel below.

    As Twist, figure 7, and Agrawal, figure 4. Hyperparameter samples are mixed: the mean of the means, and the
    variance as the mean of the variances plus the variance of the means.

    name_of_parameter: which; may be left out where there is one.
    at: a configuration, or a row (d,), where the other parameters are held (default: the best of the data, or the middle).
        A parameter that becomes active along the way is in its middle.
    data: observations; those off the slice are grey.
    objective: objective(key, u (d,)), drawn with one and the same key.
    acquisition: points (m, d) to scores (m,), of which the highest is marked.
    scale: mean and standard deviation of the values, as `bonas.standardise` returns them, where the surrogate knows
        standardised ones; data and objective are in their own units.
    axes: one, or two with an acquisition.
    """
    name = _chosen(space, name_of_parameter)
    column, parameter = space.names.index(name), space.parameters[name]
    base = _base(space, name, at, data)
    rows = _along(space, base, column, _columns(parameter))
    x = np.asarray(parameter.value(rows[:, column]))
    scores = None if acquisition is None else _scores(acquisition, rows)
    panels = _panels(axes, (1,) if scores is None else (3, 1))
    centre, unit = np.asarray(scale[0]), np.asarray(scale[1])
    mean, std = (np.asarray(field) for field in mixed(surrogate.predict(state, rows)))
    _draw_model(panels[0], parameter, x, centre + unit * mean, unit * std)
    if objective is not None:
        truth = jax.vmap(objective, (None, 0))(jax.random.key(0), rows)
        panels[0].plot(x, np.asarray(truth), _look(parameter, "--", "D"), color=_BLACK, fillstyle="none", label="objective")
    if data is not None:
        _draw_data(panels[0], space, base, column, data)
    if scores is not None:
        _draw_acquisition(panels, x, scores, _look(parameter, "-", "o"))
    panels[0].set_ylabel("value")
    panels[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
    panels[-1].set_xlabel(name)
    for ax in panels:
        _scale_axis(ax, "x", parameter)
    return panels


def mixed(prediction) -> tuple[Array, Array]:
    """Mean and standard deviation (m,) of an even mixture of predictions (s, m), by the law of total variance."""
    mean, std = prediction
    return mean.mean(axis=0), jnp.sqrt(jnp.mean(std**2, axis=0) + jnp.var(mean, axis=0))


def _chosen(space: Space, name: str | None) -> str:
    if name is None and space.dim == 1:
        return space.names[0]
    if name not in space.names:
        raise ValueError(f"name_of_parameter is one of {', '.join(space.names)}; got {name!r}")
    return name


def _base(space: Space, name: str, at: Mapping[str, Any] | ArrayLike | None, data: Dataset | None) -> Array:
    """The row (d,) through which the slice goes."""
    if at is None and data is not None and data.mask.any():
        row = data.x[jnp.argmin(jnp.where(data.mask[:, 0], data.y[:, 0], jnp.inf))]
    elif at is None:
        row = space.snap(jnp.full(space.dim, 0.5))
    else:
        row = space.encode(at) if isinstance(at, Mapping) else space.snap(jnp.asarray(at))
    if row.shape != (space.dim,):
        raise ValueError(f"at is a configuration or one row of {space.dim} columns; got shape {row.shape}")
    if not space.active(row)[space.names.index(name)]:
        raise ValueError(f"parameter {name!r} has no meaning at {space.decode(row)}: its condition does not hold")
    return row


def _columns(parameter: Parameter) -> np.ndarray:
    """Column values from one end to the other: every one that exists, or enough for a smooth line."""
    n = parameter.options if isinstance(parameter, Choice) else _FINE
    return np.unique(np.asarray(parameter.snap(jnp.linspace(0.0, 1.0, n))))


def _along(space: Space, base: Array, column: int, values: ArrayLike) -> Array:
    """Rows (m, d) that differ from the base in one column; what is inactive there starts in its middle."""
    start = jnp.where(space.active(base), base, 0.5)
    values = jnp.asarray(values)
    return space.snap(jnp.tile(start[None, :], (len(values), 1)).at[:, column].set(values))


def _panels(axes: Axes | Sequence[Axes] | None, heights: tuple[int, ...]) -> tuple[Axes, ...]:
    """The axes given, or new ones above one another, sharing what is below."""
    n = len(heights)
    if axes is None:
        size = (6.4, max(4.8, 1.2 * n))
        _, made = plt.subplots(n, sharex=True, squeeze=False, height_ratios=heights, figsize=size, layout="constrained")
        return _panels(list(made.ravel()), heights)
    panels = tuple(np.ravel(np.asarray(axes, object)))
    if len(panels) != n:
        raise ValueError(f"this figure has {n} panel{'s' * (n > 1)}; axes has {len(panels)}")
    return tuple(_plain(ax) for ax in panels)


def _look(parameter: Parameter, line: str, marker: str) -> str:
    """Options have no order: a marker each, and no line between them."""
    return marker if isinstance(parameter, Choice) else line


def _draw_model(ax: Axes, parameter: Parameter, x: np.ndarray, mean: np.ndarray, std: np.ndarray) -> None:
    look: dict[str, Any] = {"label": "mean ± 2 standard deviations", "color": _BLUE}
    if isinstance(parameter, Choice):
        ax.errorbar(x, mean, 2.0 * std, fmt="o", capsize=4, **look)
    else:
        _draw_band(ax, x, np.stack([mean - 2.0 * std, mean, mean + 2.0 * std]), look)


def _draw_data(ax: Axes, space: Space, base: Array, column: int, data: Dataset) -> None:
    """Observations where the parameter exists; black on the slice, grey elsewhere."""
    seen = np.asarray(data.mask[:, 0] & space.active(data.x)[:, column])
    rows, y = data.x[seen], np.asarray(data.y[:, 0])[seen]
    x = np.asarray(list(space.parameters.values())[column].value(rows[:, column]))
    near = np.asarray(jnp.abs(rows - _along(space, base, column, rows[:, column])).max(axis=1)) < SAME
    for here, colour, label in ((~near, _GREY, "observed off the slice"), (near, _BLACK, "observed")):
        if here.any():
            ax.plot(x[here], y[here], "o", color=colour, markersize=5, label=label)


def _scores(acquisition: Callable[[Array], Array], rows: Array) -> np.ndarray:
    scores = np.asarray(acquisition(rows))
    if scores.shape != rows.shape[:1]:
        raise ValueError(f"acquisition maps points (m, d) to scores (m,), here ({len(rows)},); got shape {scores.shape}")
    if not np.isfinite(scores).any():
        raise ValueError("acquisition has no finite score along this slice")
    return scores


def _draw_acquisition(panels: tuple[Axes, ...], x: np.ndarray, scores: np.ndarray, look: str) -> None:
    """The scores in the lower panel, the highest marked in both.

    Logarithms of acquisitions fall steeply where values are known: most of the lowest tenth may be below the panel.
    """
    finite = scores[np.isfinite(scores)]
    high, tenth = finite.max(), np.quantile(finite, 0.1)
    low, best = max(finite.min(), tenth - 0.25 * (high - tenth)), np.nanargmax(scores)
    margin = 0.1 * (high - low) or 1.0
    panels[1].plot(x, scores, look, color=_GREEN)
    panels[1].plot(x[best], scores[best], "v", color=_RED, markersize=8, clip_on=False)
    panels[0].axvline(x[best], color=_RED, linestyle=":", label="highest acquisition")
    panels[1].set(ylabel="acquisition", ylim=(low - margin, high + margin))


def _scale_axis(ax: Axes, which: str, parameter: Parameter) -> None:
    """The axis of a parameter, from end to end on its own scale, or by the names of its options; which is "x" or "y"."""
    if isinstance(parameter, Choice):
        getattr(ax, f"{which}axis").set_ticks(range(parameter.options), [str(option) for option in parameter.names])
        ends = (-0.5, parameter.options - 0.5)
    elif parameter.log:
        ax.set(**{f"{which}scale": "log"})
        pad = (parameter.high / parameter.low) ** 0.05
        ends = (parameter.low / pad, parameter.high * pad)
    else:
        pad = 0.05 * (parameter.high - parameter.low)
        ends = (parameter.low - pad, parameter.high + pad)
    if ends[0] < ends[1]:
        ax.set(**{f"{which}lim": ends})


def choices(history: History, space: Space, *, axes: Sequence[Axes] | None = None) -> tuple[Axes, ...]:
    """The values that one run chose against evaluations, a panel a parameter, with no point where that is inactive.

    Evaluations better than all before are red, failed ones are crosses.
    """
    rows, y = jnp.asarray(history.x), np.asarray(history.y)
    if rows.ndim != 2 or rows.shape[1] != space.dim:
        raise ValueError(f"history must be that of one run, with x (steps, {space.dim}); its x has shape {rows.shape}")
    panels = _panels(axes, (1,) * space.dim)
    on, steps, failed = np.asarray(space.active(rows)), np.arange(1, len(y) + 1), ~np.isfinite(y)
    better = ~failed & (y < np.minimum.accumulate(np.append(np.inf, np.where(failed, np.inf, y)))[:-1])
    kinds = ((~better & ~failed, "o", _BLUE, "evaluation"), (better, "o", _RED, "best so far"), (failed, "x", _BLACK, "failed"))
    for i, (name, parameter) in enumerate(space.parameters.items()):
        values = np.asarray(parameter.value(rows[:, i]))
        for these, marker, colour, label in kinds:
            here = these & on[:, i]
            panels[i].plot(steps[here], values[here], marker, color=colour, markersize=4, label=label)
        panels[i].set_ylabel(name)
        _scale_axis(panels[i], "y", parameter)
    panels[-1].set_xlabel("evaluations")
    _whole_ticks(panels[-1])
    panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
    return panels
