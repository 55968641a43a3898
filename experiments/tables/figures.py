"""Figures of searches on tables: the best error so far, differences from the arc kernel, and depths."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter
from tables.methods import ARC, BLIND, CHANCE, EVOLUTION, METHODS, SAMPLED
from tables.problems import TITLES
from tables.verdicts import best

from bonas import plots

MAIN = (ARC, BLIND, EVOLUTION, CHANCE, ARC + SAMPLED, BLIND + SAMPLED)
COLOURS = dict(zip(MAIN, plots.COLOURS, strict=False))
KINDS = {  # what is compared: height in its row, name, colour
    "final_error": (0.15, "after the last evaluation", plots.COLOURS[0]),
    "error_over_all_suggestions": (-0.15, "mean over all suggestions", plots.COLOURS[1]),
}


def progress(config, problems: dict, found: dict, path: Path) -> None:
    """Figure a: the median over seeds of the best error so far, with quartiles."""
    figure, axes = _panels(problems, 4.6)
    for axis, (name, problem) in zip(axes, problems.items(), strict=True):
        curves = {method: 100.0 * best(problem.error, found[name][method]) for method in MAIN if found[name].get(method)}
        if curves:
            plots.efficiency(curves, ax=axis, logarithmic=True)
            axis.get_legend().remove()
            for line, band in zip(axis.lines, axis.collections, strict=True):  # a method has one colour in all panels
                line.set_color(COLOURS[line.get_label()])
                band.set_color(COLOURS[line.get_label()])
        axis.axhline(100.0 * problem.error.min(), color="0.6", lw=0.8)
        axis.axvline(config.initial + 0.5, color="0.6", lw=0.8, ls=":")
        start = [np.quantile(curve[:, config.initial - 1], 0.75) for curve in curves.values()]
        axis.set(title=TITLES[name], ylim=(97.0 * problem.error.min(), max(start, default=100.0)))
        axis.set_ylabel("best validation error so far (%)")
        axis.yaxis.set_major_locator(MaxNLocator(6))
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.yaxis.set_minor_formatter(NullFormatter())
    _legend(figure, axes, path)


def differences(results: dict, path: Path) -> None:
    """How much higher than the arc kernel's each method's error is, seed by seed, with intervals of the mean."""
    figure, axes = _panels(results, 5.0, sharey=True)
    known = {pair.removesuffix(f" against {ARC}") for result in results.values() for pair in result["pairs"]}
    names = [name for name in METHODS if name in known][::-1]
    for axis, (table, result) in zip(axes, results.items(), strict=True):
        for i, name in enumerate(names):
            for what, (shift, label, colour) in KINDS.items():
                pair = result["pairs"].get(f"{name} against {ARC}", {}).get(what)
                if pair:
                    mean, band = 100.0 * pair["mean_difference"], [100.0 * end for end in pair["interval"] or ()]
                    axis.plot(band, [i + shift] * len(band), lw=1.4, color=colour)
                    axis.plot(mean, i + shift, "o", ms=5, color=colour, label=label)
        axis.axvline(0.0, color="0.4", lw=0.8)
        axis.set(
            title=TITLES[table],
            xlabel="best error so far − the arc kernel's\n(percentage points, mean over seeds with 95% interval)",
        )
        axis.grid(axis="y", color="0.92", lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(names)), names)
    _legend(figure, axes, path)


def depths(problems: dict, results: dict, path: Path) -> None:
    """Figure c: which share of the suggested networks has how many layers."""
    figure, axes = _panels(problems, 4.4)
    for axis, (name, problem) in zip(axes, problems.items(), strict=True):
        table = results[name]["table_depths"]
        axis.bar(list(table), [100.0 * share for share in table.values()], color="0.85", label="all of the table")
        for method in (method for method in MAIN if method in results[name]["searches"]):
            share = results[name]["searches"][method]["depths"]
            style = {"color": COLOURS[method], "ls": "--" if method.endswith(SAMPLED) else "-", "label": method}
            axis.plot(list(share), [100.0 * value for value in share.values()], marker="o", ms=4, **style)
        axis.set(title=TITLES[name], xlabel=problem.layers, ylabel="share of suggestions (%)", ylim=(0.0, None))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.spines[["top", "right"]].set_visible(False)
    _legend(figure, axes, path)


def _panels(tables: dict, height: float, **options):
    figure, axes = plt.subplots(
        1, len(tables), figsize=(max(5.0 * len(tables), 7.5), height), layout="constrained", squeeze=False, **options
    )
    return figure, axes[0]


def _legend(figure, axes, path: Path) -> None:
    """One legend below all panels, in which each name stands once."""
    named = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if named:
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=7 if len(axes) > 1 else 4, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
