"""Drawing shared by the experiments: colors, panels with one legend, searches stage by stage."""

from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# From the palette of Okabe and Ito, which color-blind readers can tell apart.
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
SKY = "#56B4E9"
COLORS = (BLUE, VERMILION, GREEN, "#CC79A7", "#E69F00", SKY)

STAGES_PER_ROW = 3


def save(figure: Figure, path: Path, dpi: int = 150) -> None:
    """Write a figure to a file and close it."""
    figure.savefig(path, dpi=dpi)
    plt.close(figure)


def hide_spines(axes: Iterable[Axes]) -> None:
    """Remove the top and right borders."""
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)


def legend_below(figure: Figure, axes: Iterable[Axes], columns: int) -> None:
    """Draw one legend below all panels; each label appears once."""
    handles = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles[label] = handle
    if handles:
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=columns,
            frameon=False,
        )


def save_grid(
    figure: Figure, axes: np.ndarray, row_labels: Iterable[str], path: Path
) -> None:
    """Label the rows of a grid of panels, put one legend above all, and write the file."""
    for axis, label in zip(axes[:, 0], row_labels, strict=True):
        axis.set_ylabel(label)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    save(figure, path)


def stage_axes(stages: int, *, height: float) -> tuple[Figure, np.ndarray]:
    """Create a figure with a pair of axes per stage: the model above, its acquisition below.

    Returns:
        The figure, and its axes (stages, 2).
    """
    columns = min(STAGES_PER_ROW, stages)
    rows = -(-stages // STAGES_PER_ROW)
    figure, axes = plt.subplots(
        2 * rows,
        columns,
        sharex="col",
        squeeze=False,
        layout="constrained",
        figsize=(4.2 * columns, height * rows + 0.5),
        height_ratios=(3, 1) * rows,
    )
    pairs = axes.reshape(rows, 2, columns).swapaxes(1, 2).reshape(-1, 2)
    for axis in pairs[stages:].ravel():
        axis.remove()
    return figure, pairs[:stages]


def finish_stages(
    figure: Figure, pairs: np.ndarray, *, value: str, acquisition: str
) -> None:
    """Give all stages one scale and one legend, and label the outer axes only."""
    handles = pairs[0, 0].get_legend_handles_labels()
    columns = min(STAGES_PER_ROW, len(pairs))
    limits = [axis.get_ylim() for axis in pairs[:, 0]]
    low = min(limit[0] for limit in limits)
    high = max(limit[1] for limit in limits)
    for i, (model, below) in enumerate(pairs):
        first = i % columns == 0
        last_row = i >= len(pairs) - columns
        model.get_legend().remove()
        model.set(ylim=(low, high), ylabel=value if first else "")
        below.set(ylabel=acquisition if first else "", xlabel="x" if last_row else "")
    figure.legend(
        *handles, loc="outside lower center", ncols=2 * columns, frameon=False
    )
