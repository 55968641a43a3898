"""A surrogate along one parameter, with what was observed and where to look next."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from matplotlib.axes import Axes

from bonas.data import Dataset
from bonas.plots.look import BLACK, BLUE, GREEN, GREY, ORANGE, draw_band, panels_of, scale_axis
from bonas.search.record import SAME
from bonas.spaces import Choice, Space
from bonas.spaces.parameters import Parameter
from bonas.surrogates import Surrogate

_FINE = 401  # points of a line that looks smooth


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
    panels = panels_of(axes, (1,) if scores is None else (3, 1))
    centre, unit = np.asarray(scale[0]), np.asarray(scale[1])
    mean, std = (np.asarray(field) for field in mixed(surrogate.predict(state, rows)))
    _draw_model(panels[0], parameter, x, centre + unit * mean, unit * std)
    if objective is not None:
        truth = jax.vmap(objective, (None, 0))(jax.random.key(0), rows)
        panels[0].plot(x, np.asarray(truth), _look(parameter, "--", "D"), color=BLACK, fillstyle="none", label="objective")
    if data is not None:
        _draw_data(panels[0], space, base, column, data)
    if scores is not None:
        _draw_acquisition(panels, x, scores, _look(parameter, "-", "o"))
    panels[0].set_ylabel("value")
    panels[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
    panels[-1].set_xlabel(name)
    for ax in panels:
        scale_axis(ax, "x", parameter)
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


def _look(parameter: Parameter, line: str, marker: str) -> str:
    """Options have no order: a marker each, and no line between them."""
    return marker if isinstance(parameter, Choice) else line


def _draw_model(ax: Axes, parameter: Parameter, x: np.ndarray, mean: np.ndarray, std: np.ndarray) -> None:
    look: dict[str, Any] = {"label": "mean ± 2 standard deviations", "color": BLUE}
    if isinstance(parameter, Choice):
        ax.errorbar(x, mean, 2.0 * std, fmt="o", capsize=4, **look)
    else:
        draw_band(ax, x, np.stack([mean - 2.0 * std, mean, mean + 2.0 * std]), look)


def _draw_data(ax: Axes, space: Space, base: Array, column: int, data: Dataset) -> None:
    """Observations where the parameter exists; black on the slice, grey elsewhere."""
    seen = np.asarray(data.mask[:, 0] & space.active(data.x)[:, column])
    rows, y = data.x[seen], np.asarray(data.y[:, 0])[seen]
    x = np.asarray(list(space.parameters.values())[column].value(rows[:, column]))
    near = np.asarray(jnp.abs(rows - _along(space, base, column, rows[:, column])).max(axis=1)) < SAME
    for here, colour, label in ((~near, GREY, "observed off the slice"), (near, BLACK, "observed")):
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
    panels[1].plot(x, scores, look, color=GREEN)
    panels[1].plot(x[best], scores[best], "v", color=ORANGE, markersize=8, clip_on=False)
    panels[0].axvline(x[best], color=ORANGE, linestyle=":", label="highest acquisition")
    panels[1].set(ylabel="acquisition", ylim=(low - margin, high + margin))
