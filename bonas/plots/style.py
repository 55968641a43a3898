"""The style of all figures: colors, bands, stacked panels, and axes of parameters."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bonas.spaces import Parameter

# Distinguishable by color-blind people (Okabe & Ito 2008). Yellow is last: it is faint on white.
COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#F0E442",
)
BLUE = COLORS[0]
ORANGE = COLORS[1]
GREEN = COLORS[2]
BLACK = "#000000"
GRAY = "#999999"

_BAND_OPACITY = 0.2
_FIGURE_WIDTH = 6.4
_PANEL_HEIGHT = 1.2
_LEAST_HEIGHT = 4.8
# Space beyond the ends of a parameter on its axis, as a share of the range.
_MARGIN = 0.05


def draw_band(
    ax: Axes,
    x: np.ndarray,
    summary: np.ndarray,
    line_style: dict[str, Any],
    *,
    stepped: bool = False,
) -> None:
    """Draw a line with a band.

    Args:
        ax: The axes to draw into.
        x: The positions (k,).
        summary: The lower edge, the line and the upper edge (3, k).
        line_style: Arguments of `Axes.plot`, including the color, which the band shares.
        stepped: Whether to hold each value until the next position.
    """
    low, line, high = summary
    ax.plot(x, line, drawstyle="steps-post" if stepped else "default", **line_style)
    ax.fill_between(
        x,
        low,
        high,
        step="post" if stepped else None,
        color=line_style["color"],
        alpha=_BAND_OPACITY,
        linewidth=0,
    )


def stacked_panels(
    axes: Axes | Sequence[Axes] | None, heights: tuple[int, ...]
) -> tuple[Axes, ...]:
    """Return the given axes, or new panels on top of each other with a common x axis.

    Args:
        axes: The axes, one per panel, or None to make a new figure.
        heights: The relative heights of the panels.
    """
    n = len(heights)
    if axes is None:
        _, grid = plt.subplots(
            n,
            sharex=True,
            squeeze=False,
            height_ratios=heights,
            figsize=(_FIGURE_WIDTH, max(_LEAST_HEIGHT, _PANEL_HEIGHT * n)),
            layout="constrained",
        )
        axes = list(grid.ravel())
    panels = tuple(np.ravel(np.asarray(axes, object)))
    if len(panels) != n:
        raise ValueError(
            f"this figure needs {n} axes, one per panel; got {len(panels)}"
        )
    return tuple(hide_frame(ax) for ax in panels)


def scale_axis(
    ax: Axes,
    which: str,
    parameter: Parameter,
) -> None:
    """Give an axis the scale, the limits and the ticks of a parameter.

    Args:
        ax: The axes.
        which: "x" or "y".
        parameter: The parameter that the axis shows.
    """
    low = parameter.low
    high = parameter.high
    if parameter.choices:
        places, labels = zip(*parameter.ticks(), strict=True)
        getattr(ax, f"{which}axis").set_ticks(places, labels)
        limits = (low - 0.5, high + 0.5)
    elif parameter.log:
        ax.set(**{f"{which}scale": "log"})
        pad = (high / low) ** _MARGIN
        limits = (low / pad, high * pad)
    else:
        pad = _MARGIN * (high - low)
        limits = (low - pad, high + pad)
    if limits[0] < limits[1]:
        ax.set(**{f"{which}lim": limits})


def integer_ticks(ax: Axes) -> None:
    """Put the ticks of the x axis at integers."""
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))


def hide_frame(ax: Axes) -> Axes:
    """Hide the top and right spines, and return the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
