"""Plot a surrogate along one parameter, with observations and the acquisition."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float
from matplotlib.axes import Axes

from bonas.data import Dataset
from bonas.gp import Prediction
from bonas.plots.style import (
    BLACK,
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    draw_band,
    scale_axis,
    stacked_panels,
)
from bonas.search import SAME_POINT
from bonas.spaces import Parameter, Space, column_values, rows_along
from bonas.surrogates import Surrogate

# Number of points of a line that looks smooth.
_LINE_POINTS = 401


def posterior_slice(
    surrogate: Surrogate,
    state: Any,
    space: Space,
    *,
    parameter: str | None = None,
    at: Mapping[str, Any] | ArrayLike | None = None,
    data: Dataset | None = None,
    objective: Callable[[Array, Array], Array] | None = None,
    acquisition: Callable[[Array], Array] | None = None,
    scale: tuple[ArrayLike, ArrayLike] = (0.0, 1.0),
    axes: Axes | Sequence[Axes] | None = None,
) -> tuple[Axes, ...]:
    """Plot the prediction of a surrogate along one parameter: mean ± 2 standard deviations.

    Similar to Twist, figure 7, and Agrawal, figure 4.

    Args:
        surrogate: The surrogate.
        state: Its state after a fit.
        space: The space that is searched.
        parameter: The name of the parameter to vary; not needed in a space with one parameter.
        at: A configuration or point (d,) with the values of the other parameters (default: the best
            observation, or the middle of the space). A parameter that becomes active along the
            slice takes its middle value.
        data: Observations to show; those not on the slice are gray.
        objective: A function (key, u (d,)) -> () to plot, called with a fixed key.
        acquisition: A function from points (m, d) to scores (m,). It is drawn in a panel below, and
            its maximum is marked.
        scale: The mean and standard deviation of the values, as `bonas.standardize` returns them,
            if the surrogate was fitted to standardized values. Data and objective are in original
            units.
        axes: Axes to draw into, one, or two with an acquisition (default: a new figure).

    Returns:
        The axes, one per panel.
    """
    name = _parameter_name(space, parameter)
    column = space.names.index(name)
    sliced = space.parameters[name]
    base = _base_row(space, name, at, data)
    line = rows_along(space, base, name, column_values(sliced, _LINE_POINTS))
    rows = space.snap(line)
    x = np.asarray(sliced.value(rows[:, column]))
    scores = None if acquisition is None else _check_scores(acquisition(rows), rows)
    panels = stacked_panels(axes, (1,) if scores is None else (3, 1))
    mean, std = mixture_moments(surrogate.predict(state, rows))
    center = np.asarray(scale[0])
    unit = np.asarray(scale[1])
    _draw_prediction(
        panels[0],
        sliced,
        x,
        center + unit * np.asarray(mean),
        unit * np.asarray(std),
    )
    if objective is not None:
        values = np.asarray(jax.vmap(objective, (None, 0))(jax.random.key(0), rows))
        style: dict[str, Any] = {
            "color": BLACK,
            "fillstyle": "none",
            "label": "objective",
        }
        panels[0].plot(x, values, _line_or_marker(sliced, "--", "D"), **style)
    if data is not None:
        _draw_data(panels[0], space, base, name, data)
    if scores is not None:
        _draw_acquisition(panels, x, scores, _line_or_marker(sliced, "-", "o"))
    panels[0].set_ylabel("value")
    panels[0].legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=2,
        frameon=False,
    )
    panels[-1].set_xlabel(name)
    for ax in panels:
        scale_axis(ax, "x", sliced)
    return panels


def mixture_moments(
    prediction: Prediction,
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Return the mean and standard deviation of a mixture of predictions with equal weights.

    By the law of total variance, the variance is the mean of the variances plus the variance of
    the means.

    Args:
        prediction: The predictions (s, m) of s hyperparameter samples.

    Returns:
        The mean (m,) and the standard deviation (m,).
    """
    mean, std = prediction
    return mean.mean(axis=0), jnp.sqrt(jnp.mean(std**2, axis=0) + jnp.var(mean, axis=0))


def _parameter_name(space: Space, name: str | None) -> str:
    """Return the name of the sliced parameter."""
    if name is None and space.dim == 1:
        return space.names[0]
    if name not in space.names:
        raise ValueError(
            f"parameter must be one of {', '.join(space.names)}; got {name!r}"
        )
    return name


def _base_row(
    space: Space,
    name: str,
    at: Mapping[str, Any] | ArrayLike | None,
    data: Dataset | None,
) -> Float[Array, " d"]:
    """Return a row of the unit cube that the slice contains."""
    if isinstance(at, Mapping):
        row = space.encode(at)
    elif at is not None:
        row = space.snap(jnp.asarray(at))
    elif data is not None and data.mask.any():
        row = data.x[jnp.argmin(jnp.where(data.mask[:, 0], data.y[:, 0], jnp.inf))]
    else:
        row = space.snap(jnp.full(space.dim, 0.5))
    if row.shape != (space.dim,):
        raise ValueError(
            f"`at` must be a configuration or an array of shape ({space.dim},); got {row.shape}"
        )
    if not space.active(row)[space.names.index(name)]:
        raise ValueError(
            f"parameter {name!r} is inactive at {space.decode(row)}: choose `at` so that its "
            "condition holds"
        )
    return row


def _line_or_marker(
    parameter: Parameter,
    line: str,
    marker: str,
) -> str:
    """Return the line format, or the marker for options, which have no order."""
    return line if parameter.ordered else marker


def _draw_prediction(
    ax: Axes,
    parameter: Parameter,
    x: np.ndarray,
    mean: np.ndarray,
    std: np.ndarray,
) -> None:
    """Draw the prediction as a band, or as error bars for options."""
    style: dict[str, Any] = {"label": "mean ± 2 standard deviations", "color": BLUE}
    if parameter.ordered:
        draw_band(ax, x, np.stack([mean - 2.0 * std, mean, mean + 2.0 * std]), style)
    else:
        ax.errorbar(
            x,
            mean,
            2.0 * std,
            fmt="o",
            capsize=4,
            **style,
        )


def _draw_data(
    ax: Axes,
    space: Space,
    base: Float[Array, " d"],
    name: str,
    data: Dataset,
) -> None:
    """Draw observations with an active parameter: black on the slice, else gray."""
    column = space.names.index(name)
    shown = np.asarray(data.mask[:, 0] & space.active(data.x)[:, column])
    rows = data.x[shown]
    y = np.asarray(data.y[:, 0])[shown]
    x = np.asarray(space.parameters[name].value(rows[:, column]))
    on_slice = space.snap(rows_along(space, base, name, rows[:, column]))
    near = np.asarray(jnp.abs(rows - on_slice).max(axis=1)) < SAME_POINT
    groups = ((~near, GRAY, "observed off the slice"), (near, BLACK, "observed"))
    for members, color, label in groups:
        if members.any():
            ax.plot(
                x[members],
                y[members],
                "o",
                color=color,
                markersize=5,
                label=label,
            )


def _check_scores(scores: ArrayLike, rows: Float[Array, "m d"]) -> np.ndarray:
    """Return the scores (m,), or raise a ValueError if they cannot be drawn."""
    scores = np.asarray(scores)
    if scores.shape != rows.shape[:1]:
        raise ValueError(
            f"acquisition must return scores of shape ({len(rows)},) for points of shape "
            f"{rows.shape}; got {scores.shape}"
        )
    if not np.isfinite(scores).any():
        raise ValueError(
            "acquisition has no finite score on this slice; the surrogate may predict NaN"
        )
    return scores


def _draw_acquisition(
    panels: tuple[Axes, ...],
    x: np.ndarray,
    scores: np.ndarray,
    fmt: str,
) -> None:
    """Draw the scores in the lower panel, and mark the maximum in both.

    Log acquisitions fall steeply near observations, so the axis may omit the lowest tenth.
    """
    finite = scores[np.isfinite(scores)]
    high = finite.max()
    tenth = np.quantile(finite, 0.1)
    low = max(finite.min(), tenth - 0.25 * (high - tenth))
    best = np.nanargmax(scores)
    margin = 0.1 * (high - low) or 1.0
    panels[1].plot(x, scores, fmt, color=GREEN)
    panels[1].plot(
        x[best],
        scores[best],
        "v",
        color=ORANGE,
        markersize=8,
        clip_on=False,
    )
    panels[0].axvline(
        x[best],
        color=ORANGE,
        linestyle=":",
        label="highest acquisition",
    )
    panels[1].set(ylabel="acquisition", ylim=(low - margin, high + margin))
