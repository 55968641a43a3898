"""How figures look: colours, bands, panels above one another, and the axis of a parameter."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bonas.spaces import Choice
from bonas.spaces.parameters import Parameter

# Colour-blind people tell them apart: Okabe & Ito 2008; yellow, faint on white, comes last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
BLUE, ORANGE, GREEN, BLACK, GREY = *COLOURS[:3], "#000000", "#999999"
_BAND = 0.2  # opacity


def draw_band(ax: Axes, x: np.ndarray, summary: np.ndarray, look: dict[str, Any], *, stepped: bool = False) -> None:
    """The line summary[1] over x, and the band from summary[0] to summary[2]."""
    low, line, high = summary
    ax.plot(x, line, drawstyle="steps-post" if stepped else "default", **look)
    ax.fill_between(x, low, high, step="post" if stepped else None, color=look["color"], alpha=_BAND, linewidth=0)


def panels_of(axes: Axes | Sequence[Axes] | None, heights: tuple[int, ...]) -> tuple[Axes, ...]:
    """The axes given, or new ones above one another, sharing what is below."""
    n = len(heights)
    if axes is None:
        size = (6.4, max(4.8, 1.2 * n))
        _, made = plt.subplots(n, sharex=True, squeeze=False, height_ratios=heights, figsize=size, layout="constrained")
        return panels_of(list(made.ravel()), heights)
    panels = tuple(np.ravel(np.asarray(axes, object)))
    if len(panels) != n:
        raise ValueError(f"this figure has {n} panel{'s' * (n > 1)}; axes has {len(panels)}")
    return tuple(plain(ax) for ax in panels)


def scale_axis(ax: Axes, which: str, parameter: Parameter) -> None:
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


def whole_ticks(ax: Axes) -> None:
    """Marks at whole numbers alone, for evaluations."""
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))


def plain(ax: Axes) -> Axes:
    """The axes without a frame above and to the right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
