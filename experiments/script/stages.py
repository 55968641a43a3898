"""Figures of a search stage by stage: a model above its acquisition, several such pairs side by side."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

ACROSS = 3  # stages side by side


def pairs_of_axes(stages: int, *, height: float) -> tuple[Figure, np.ndarray]:
    """A figure and its axes (stages, 2), model and acquisition, of which the lower have a quarter of the height."""
    across, down = min(ACROSS, stages), -(-stages // ACROSS)
    size = {"figsize": (4.2 * across, height * down + 0.5), "height_ratios": (3, 1) * down}
    figure, axes = plt.subplots(2 * down, across, sharex="col", squeeze=False, layout="constrained", **size)
    panels = axes.reshape(down, 2, across).swapaxes(1, 2).reshape(-1, 2)
    for axis in panels[stages:].ravel():
        axis.remove()
    return figure, panels[:stages]


def tidy(figure: Figure, panels: np.ndarray, *, value: str, acquisition: str) -> None:
    """One legend for all panels, labels on the left alone, one scale."""
    handles, across = panels[0, 0].get_legend_handles_labels(), min(ACROSS, len(panels))
    limits = [axis.get_ylim() for axis in panels[:, 0]]
    for i, (model, below) in enumerate(panels):
        model.get_legend().remove()
        model.set(ylim=(min(low for low, _ in limits), max(high for _, high in limits)), ylabel="" if i % across else value)
        below.set(ylabel="" if i % across else acquisition, xlabel="x" if i >= len(panels) - across else "")
    figure.legend(*handles, loc="outside lower center", ncols=2 * across, frameon=False)
