"""Summarize the searches on tables, compare them with the arc kernel and draw figure 3."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter
from scipy import stats

from bonas import plots
from experiments.compare import paired, quartiles
from experiments.figures import legend_below, save
from experiments.raiders.tables_problems import TITLES
from experiments.raiders.tables_searches import (
    ARC,
    BLIND,
    CHANCE,
    EVOLUTION,
    METHODS,
    SAMPLED,
)


def best(error: np.ndarray, runs: list[dict]) -> np.ndarray:
    """Return the running minimum of the error (seeds, steps)."""
    return np.minimum.accumulate(error[np.array([run["rows"] for run in runs])], axis=1)


def summarize(config, problem, found: dict[str, list[dict]]) -> dict:
    """Summarize every search and compare it with the arc kernel in pairs of seeds."""
    curves = {
        name: dict(
            zip([run["seed"] for run in runs], best(problem.error, runs), strict=True)
        )
        for name, runs in found.items()
    }
    usual = [name for name in found if not name.endswith(SAMPLED)]
    return {
        "networks": len(problem.error),
        "columns": problem.space.dim,
        "least_error": float(problem.error.min()),
        "table_depths": shares(problem, np.arange(len(problem.error))),
        "searches": {
            name: summarize_search(config, problem, runs)
            for name, runs in found.items()
        },
        "pairs": pairs(config, curves),
        "mean_ranks": ranks(config, {name: curves[name] for name in usual}),
        "mean_ranks_with_sampled": ranks(config, curves),
    }


def summarize_search(config, problem, runs: list[dict]) -> dict:
    curve = best(problem.error, runs)
    regret = curve - problem.error.min()
    asked = np.array([run["rows"][config.initial :] for run in runs])
    warm = [run for run in runs if not run["compiled"]]
    return {
        "seeds": len(runs),
        "final_regret": quartiles(regret[:, -1]),
        "mean_final_regret": float(regret[:, -1].mean()),
        "mean_regret_of_all_suggestions": float(regret[:, config.initial :].mean()),
        "share_that_find_the_best": float((regret[:, -1] == 0.0).mean()),
        "median_curve": np.median(curve, axis=0).tolist(),
        "depths": shares(problem, asked),
        "random_asks": float(np.mean([run["random"] for run in runs])),
        "converged_fits": float(np.mean([run["converged"] for run in runs])),
        # the first run of a call compiles and is excluded
        "seconds_a_seed": float(np.median([run["seconds"] for run in warm]))
        if warm
        else None,
        "cpu_seconds_a_seed": float(np.median([run["cpu_seconds"] for run in warm]))
        if warm
        else None,
    }


def shares(problem, rows: np.ndarray) -> dict[int, float]:
    """Return the share of rows at each depth."""
    depths = problem.depth[rows].reshape(-1)
    return {
        int(depth): float((depths == depth).mean())
        for depth in np.unique(problem.depth)
    }


def pairs(config, curves: dict[str, dict[int, np.ndarray]]) -> dict:
    """Compare errors in pairs of seeds; negative means the first is better."""
    wanted = [(name, ARC) for name in curves if name != ARC] + [
        (BLIND + SAMPLED, ARC + SAMPLED)
    ]
    made = {}
    for ours, theirs in wanted:
        common = sorted(set(curves.get(ours, ())) & set(curves.get(theirs, ())))
        if common:
            a, b = (
                np.stack([curves[name][seed] for seed in common])
                for name in (ours, theirs)
            )
            made[f"{ours} against {theirs}"] = {
                "seeds": len(common),
                "final_error": paired(a[:, -1], b[:, -1], config.resamples),
                "error_over_all_suggestions": paired(
                    a[:, config.initial :].mean(axis=1),
                    b[:, config.initial :].mean(axis=1),
                    config.resamples,
                ),
            }
    return made


def ranks(config, curves: dict[str, dict[int, np.ndarray]]) -> dict:
    """Return mean ranks over the common seeds; 1 is best, ties share their rank."""
    common = (
        sorted(set.intersection(*(set(curve) for curve in curves.values())))
        if curves
        else []
    )
    if not common:
        return {}
    # (methods, seeds, steps)
    stacked = np.stack(
        [np.stack([curve[seed] for seed in common]) for curve in curves.values()]
    )
    final, over = stacked[:, :, -1], stacked[:, :, config.initial :].mean(axis=2)
    means = [
        stats.rankdata(values, axis=0).mean(axis=1).tolist() for values in (final, over)
    ]
    each = {
        name: {"final": a, "over_all_suggestions": b}
        for name, a, b in zip(curves, *means, strict=True)
    }
    return {"seeds": len(common), "methods": each}


MAIN = (ARC, BLIND, EVOLUTION, CHANCE, ARC + SAMPLED, BLIND + SAMPLED)
COLORS = dict(zip(MAIN, plots.COLORS, strict=False))
# By compared quantity: vertical offset, label, color
KINDS = {
    "final_error": (0.15, "after the last evaluation", plots.COLORS[0]),
    "error_over_all_suggestions": (-0.15, "mean over all suggestions", plots.COLORS[1]),
}


def draw_progress(config, problems: dict, found: dict, path: Path) -> None:
    """Draw the median of the best error so far, with quartiles."""
    figure, axes = _panels(problems, 4.6)
    for axis, (name, problem) in zip(axes, problems.items(), strict=True):
        curves = {
            method: 100.0 * best(problem.error, found[name][method])
            for method in MAIN
            if found[name].get(method)
        }
        if curves:
            plots.efficiency(curves, ax=axis, logarithmic=True)
            axis.get_legend().remove()
            for line, band in zip(
                axis.lines, axis.collections, strict=True
            ):  # the same color in all panels
                line.set_color(COLORS[line.get_label()])
                band.set_color(COLORS[line.get_label()])
        axis.axhline(100.0 * problem.error.min(), color="0.6", lw=0.8)
        axis.axvline(config.initial + 0.5, color="0.6", lw=0.8, ls=":")
        start = [
            np.quantile(curve[:, config.initial - 1], 0.75) for curve in curves.values()
        ]
        axis.set(
            title=TITLES[name],
            ylim=(97.0 * problem.error.min(), max(start, default=100.0)),
        )
        axis.set_ylabel("best validation error so far (%)")
        axis.yaxis.set_major_locator(MaxNLocator(6))
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.yaxis.set_minor_formatter(NullFormatter())
    _save(figure, axes, path)


def draw_differences(results: dict, path: Path) -> None:
    """Draw the paired difference of every method's error from the arc kernel's."""
    figure, axes = _panels(results, 5.0, sharey=True)
    compared = {
        pair.removesuffix(f" against {ARC}")
        for result in results.values()
        for pair in result["pairs"]
    }
    names = [name for name in METHODS if name in compared][::-1]
    for axis, (table, result) in zip(axes, results.items(), strict=True):
        for i, name in enumerate(names):
            for what, (shift, label, color) in KINDS.items():
                pair = result["pairs"].get(f"{name} against {ARC}", {}).get(what)
                if pair:
                    mean, band = (
                        100.0 * pair["mean_difference"],
                        [100.0 * end for end in pair["interval"] or ()],
                    )
                    axis.plot(band, [i + shift] * len(band), lw=1.4, color=color)
                    axis.plot(mean, i + shift, "o", ms=5, color=color, label=label)
        axis.axvline(0.0, color="0.4", lw=0.8)
        axis.set(
            title=TITLES[table],
            xlabel="best error so far − the arc kernel's\n"
            "(percentage points, mean over seeds with 95% interval)",
        )
        axis.grid(axis="y", color="0.92", lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(names)), names)
    _save(figure, axes, path)


def depths(problems: dict, results: dict, path: Path) -> None:
    """Draw the share of suggested networks by number of layers."""
    figure, axes = _panels(problems, 4.4)
    for axis, (name, problem) in zip(axes, problems.items(), strict=True):
        table = results[name]["table_depths"]
        axis.bar(
            list(table),
            [100.0 * share for share in table.values()],
            color="0.85",
            label="all of the table",
        )
        for method in (
            method for method in MAIN if method in results[name]["searches"]
        ):
            share = results[name]["searches"][method]["depths"]
            style = {
                "color": COLORS[method],
                "ls": "--" if method.endswith(SAMPLED) else "-",
                "label": method,
            }
            axis.plot(
                list(share),
                [100.0 * value for value in share.values()],
                marker="o",
                ms=4,
                **style,
            )
        axis.set(
            title=TITLES[name],
            xlabel=problem.layers,
            ylabel="share of suggestions (%)",
            ylim=(0.0, None),
        )
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.spines[["top", "right"]].set_visible(False)
    _save(figure, axes, path)


def _panels(tables: dict, height: float, **options):
    figure, axes = plt.subplots(
        1,
        len(tables),
        figsize=(max(5.0 * len(tables), 7.5), height),
        layout="constrained",
        squeeze=False,
        **options,
    )
    return figure, axes[0]


def _save(figure, axes, path: Path) -> None:
    """Draw one legend below all panels, and write the figure to a file."""
    legend_below(figure, axes, columns=7 if len(axes) > 1 else 4)
    save(figure, path)
