"""Read bands, labels and lines back from axes; and a space to plot."""

import numpy as np

import bonas

SPACE = bonas.Space(
    rate=bonas.Float(1e-4, 1.0, log=True),
    kind=bonas.Choice("p", "q", "r"),
    depth=bonas.Int(1, 3),
    width=bonas.Float(10.0, 20.0, when={"depth": (">=", 2)}),
)


def edges(ax, i=0):
    """Return lower and upper edge of the i-th band: {x: (low, high)}."""
    x, y = ax.collections[i].get_paths()[0].vertices.T
    return {place: (y[x == place].min(), y[x == place].max()) for place in np.unique(x)}


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def line(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)
