"""The figures of twist_search.py."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from plane import shading
from plane.verdicts import units

from bonas import plots


def figure_8(config, columns: list[dict], path: Path) -> None:
    """Above, the classification by the optima of some seeds; below, accuracy against the learning rate there.

    columns: one seed each, with its run, the network's plane, its data, and the scores at other rates, if any.
    """
    n = len(columns)
    figure, axes = plt.subplots(2, n, figsize=(5.2 * n, 8.6), layout="constrained", height_ratios=(1.25, 1), squeeze=False)
    for above, below, column in zip(*axes, columns, strict=True):
        data, run = column["data"], column["run"]
        shading.draw(above, column["plane"], {"training points": ("x", data.x, data.y)})
        above.set_title(described(config, run["chosen"]))
        along_rates(below, config, run, column["scores"])
    for letter, axis in zip("abcdefgh", axes.ravel(), strict=False):
        axis.set_title(f"({letter}) {axis.get_title()}", fontsize="medium")
    figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def described(config, chosen: np.ndarray) -> str:
    design = config.intervals.space.decode(chosen)
    hidden = [str(n) for name, n in design.items() if name.startswith("units") and n]
    title = f"layers of {', '.join(hidden)} units" if hidden else "no hidden layer"
    return f"{title}, {design['epochs']} epochs, η = {design['learning_rate']:.2f}"


def along_rates(axis: Axes, config, run: dict, scores: np.ndarray | None) -> None:
    """The optimum with other learning rates, and what the search saw."""
    low, high = config.intervals.rates
    seen, best = (low + column * (high - low) for column in (run["x"][:, -1], run["chosen"][-1]))
    axis.plot(seen, 1.0 - run["y"], "o", color="0.65", ms=4, label="evaluations of the search, of all designs")
    if scores is not None:
        label = "the optimum's layers and epochs, other rates"
        axis.plot(config.swept, 1.0 - scores, "-o", color=plots.COLOURS[1], ms=4, label=label)
    axis.axvline(best, color=plots.COLOURS[0], ls=":", label="rate of the optimum")
    axis.set(xscale="log", xlabel="learning rate η", ylabel="accuracy", title="accuracy against the learning rate")
    axis.spines[["top", "right"]].set_visible(False)


def searches(config, found: dict[str, list[dict]], path: Path) -> None:
    """Efficiency by evaluations and by cost, scores on unseen points, and the sizes of what was asked."""
    figure, axes = plt.subplots(2, 2, figsize=(11.4, 8.6), layout="constrained")
    curves = {name: np.stack([row["best"] for row in rows]) for name, rows in found.items()}
    spent = {name: np.stack([np.cumsum(row["cost"]) for row in rows]) / 1e6 for name, rows in found.items()}
    plots.efficiency(curves, ax=axes[0, 0], spread="error")
    plots.efficiency(curves, ax=axes[0, 1], spread="error", seconds=spent).get_legend().remove()
    axes[0, 0].axvline(config.initial + 0.5, color="0.6", lw=0.8, ls=":")
    axes[0, 0].set(title="(a) best so far, by evaluations")
    axes[0, 1].set(title="(b) best so far, by cost", xlabel="cost: millions of parameters × epochs × points", xlim=(0, None))
    ends = [curve[:, -1].mean() for curve in curves.values()]
    begins = np.mean([curve[:, config.initial - 1].mean() for curve in curves.values()])
    for axis in axes[0]:
        axis.set(ylabel="best validation error so far", ylim=(0.85 * min(ends), begins))
    for i, (name, rows) in enumerate(found.items()):
        scores = np.array([row["score"] for row in rows])
        axes[1, 0].plot(i + np.linspace(-0.15, 0.15, len(scores)), scores, "o", color=plots.COLOURS[i], ms=4, alpha=0.7)
        axes[1, 0].plot([i - 0.25, i + 0.25], [scores.mean()] * 2, color="black", lw=1.8)
        asked = np.sort(units(config.intervals, np.concatenate([row["x"][config.initial :] for row in rows])))
        axes[1, 1].step(asked, np.arange(1, len(asked) + 1) / len(asked), color=plots.COLOURS[i], where="post", label=name)
    axes[1, 0].set(title="(c) what was found, trained anew; bars are means", ylabel="error on unseen points")
    axes[1, 0].set_xticks(range(len(found)), list(found))
    axes[1, 1].set(title="(d) sizes asked for", xlabel="hidden units", ylabel="share of suggestions with at most so many")
    axes[1, 1].legend(frameon=False, loc="upper left")
    for axis in axes[1]:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)
    plt.close(figure)
