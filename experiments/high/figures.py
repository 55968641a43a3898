"""The best value so far against evaluations, one panel a problem; and final regrets beside those of random search."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from high.cases import CASES, TITLES
from high.methods import CHANCE, EVEN, METHODS, NETWORK, SAAS
from high.verdicts import best
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from bonas import plots

# In the first figure are those that differ most; all are in the second.
MAIN = (CHANCE, "Matérn", "Matérn, long scales", "REMBO, low", "Add-GP-UCB", "TuRBO-1", NETWORK, SAAS)
NARROW = 100.0  # from the highest to the lowest regret of a panel
BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, _ = plots.COLOURS
COLOURS = dict(zip(MAIN, (BLACK, BLUE, SKY, PINK, GREEN, RED, ORANGE, "0.55"), strict=True))


def progress(config, found: dict[str, dict[str, list[dict]]], path: Path) -> None:
    """Medians over seeds of the regret, with quartiles; an empty place holds the legend."""
    figure, axes = _panels(len(found) + 1, 3.4)
    for axis, (name, methods) in zip(axes, found.items(), strict=False):
        for method in (method for method in MAIN if methods.get(method)):
            regret = best(methods[method]) - CASES[name].problem.optimum
            low, line, high = np.quantile(regret, [0.25, 0.5, 0.75], axis=0)
            steps = np.arange(1, regret.shape[1] + 1)
            axis.plot(steps, line, color=COLOURS[method], lw=1.6, ls="--" if method == CHANCE else "-", label=method)
            axis.fill_between(steps, low, high, color=COLOURS[method], alpha=0.10, lw=0)
        axis.axvline(config.initial + 0.5, color="0.6", lw=0.8, ls=":")
        axis.set(title=TITLES[name], yscale="log", xlim=(1, None), xlabel="evaluations", ylabel="regret of the best so far")
        _ticks(axis.yaxis, *axis.get_ylim())
        axis.spines[["top", "right"]].set_visible(False)
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    axes[len(found)].legend(
        handles.values(), handles.keys(), loc="center", frameon=False, title="median and quartiles over seeds"
    )
    for axis in axes[len(found) :]:
        axis.axis("off")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def finals(results: dict, path: Path) -> None:
    """Final regrets of all methods: median and quartiles; filled where what the method assumes holds."""
    figure, axes = _panels(len(results), 3.9, columns=len(results), width=3.1, sharey=True)
    names = [name for name in METHODS if any(name in result["searches"] for result in results.values())][::-1]
    for axis, (case, result) in zip(axes, results.items(), strict=True):
        for i, name in enumerate(names):
            row = result["searches"].get(name)
            if row is None:
                continue
            final = row["final_regret"]
            colour = BLACK if name in (CHANCE, EVEN) else BLUE
            axis.plot([final["quartile"], final["upper"]], [i, i], color=colour, lw=1.4)
            axis.plot(final["median"], i, "o", ms=6, color=colour, mfc=colour if row["holds"] else "white")
        chance = result["searches"].get(CHANCE)
        if chance:
            axis.axvline(chance["final_regret"]["median"], color="0.6", lw=0.8, ls="--", zorder=0)
        axis.set(title=TITLES[case].replace(": ", ":\n"), xscale="log", xlabel="regret after the last evaluation")
        _ticks(axis.xaxis, *axis.get_xlim())
        axis.grid(axis="y", color="0.92", lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(names)), [f"{name} ({METHODS[name].needs})" for name in names])
    figure.suptitle("median and quartiles over seeds; in brackets what a method assumes, a hollow circle where that fails")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _ticks(axis, low: float, high: float) -> None:
    """Powers of ten; 1, 2 and 5 as plain numbers where there are too few of those."""
    if high / low < NARROW:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())


def _panels(n: int, height: float, columns: int = 3, width: float = 4.4, **options):
    rows, columns = -(-n // columns), min(columns, n)
    size = (max(width * columns, 9.0), height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)
    return figure, axes.reshape(-1)
