"""Figures of panels in rows and columns: what their rows are, one legend for all, and the file."""

from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure


def finish(figure: Figure, axes: np.ndarray, rows: Iterable[str], file: Path) -> None:
    """Name the rows on the left, put the legend of the first panel above all, write the file."""
    for ax, text in zip(axes[:, 0], rows, strict=True):
        ax.set_ylabel(text)
    handles, texts = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="upper center", ncols=len(texts), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    figure.savefig(file, dpi=150)
    plt.close(figure)
