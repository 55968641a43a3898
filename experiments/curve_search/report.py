"""Figures 5.7 to 5.14 and the table of hutchinson_search.py."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from curve_search.regret import KINDS
from rich.console import Console
from rich.table import Table
from script import pairs

OURS, BASELINES = (
    "bonas",
    ("final-performance BO", "random", "evolution", "successive halving", "Hyperband", "one epoch, top 4"),
)


_TITLES = {
    "metaqnn_cifar10": "MetaQNN, CIFAR-10",
    "metaqnn_svhn": "MetaQNN, SVHN",
    "resnet_cifar10": "ResNets, CIFAR-10",
    "lstm_ptb": "LSTMs, Penn Treebank",
    "bnn_wine_red": "Bayesian networks, red wine",
}


def title(name: str) -> str:
    """What a set is called in figures and tables."""
    kind, _, which = name.partition("_")
    return _TITLES.get(name) or (f"Bayesian networks, {which}" if kind == "bnn" else name)


def curves(config, known: dict, name: str, method: str, kind: str = "network") -> np.ndarray:
    """(seeds, points) regrets."""
    return np.array([known[name, method, seed][kind] for seed in range(config.seeds)])


def summary(config, names: list[str], known: dict) -> dict:
    """Mean regrets of both kinds, and pairs of seeds against ours."""
    found = {kind: {name: _rows(config, known, name, kind) for name in names} for kind in KINDS}
    return {
        "results": found["network"],
        "verdicts": verdicts(found["network"]),
        "architectures": {"results": found["architecture"], "verdicts": verdicts(found["architecture"])},
    }


def _rows(config, known: dict, name: str, kind: str) -> dict:
    """Each method on one set: at half and at the whole of the budget, along it, and beside ours."""
    every = {method: curves(config, known, name, method, kind) for method in config.methods}
    ours, rows = every[OURS], {}
    for method, values in every.items():
        rows[method] = {
            "half": float(np.mean(values[:, config.points // 2 - 1])),
            "end": float(np.mean(values[:, -1])),
            "error": float(np.std(values[:, -1], ddof=1) / np.sqrt(config.seeds)),
            "deviation": float(np.std(values[:, -1], ddof=1)),
            "ours_reaches_its_end_at": _reaches(ours, values),
            "mean": [float(f"{value:.4g}") for value in np.mean(values, axis=0)],  # at equal parts of the budget
        }
        if method != OURS:
            along = np.mean(ours, axis=1), np.mean(values, axis=1)
            rows[method]["ours_against_it"] = pairs.against(ours[:, -1], values[:, -1], config.resamples)
            rows[method]["ours_against_it_along"] = pairs.against(*along, config.resamples)
    return rows


def _reaches(ours: np.ndarray, theirs: np.ndarray) -> float | None:
    """The share of the budget after which our mean regret is no more than theirs in the end."""
    there = np.flatnonzero(np.mean(ours, axis=0) <= np.mean(theirs[:, -1]) + 1e-12)
    return float((there[0] + 1) / ours.shape[1]) if len(there) else None


def verdicts(found: dict) -> dict:
    """Against random search and against the best baseline, by the mean regret along the budget and in the end."""
    made: dict = {}
    for name, rows in found.items():
        rivals = [method for method in BASELINES if method in rows]
        best = min(rivals, key=lambda method: rows[method]["end"])
        final = rows.get("final-performance BO")
        made[name] = {
            "against_random": rows["random"]["ours_against_it"]["verdict"] if "random" in rows else None,
            "against_random_along": rows["random"]["ours_against_it_along"]["verdict"] if "random" in rows else None,
            "best_baseline": best,
            "against_best_baseline": rows[best]["ours_against_it"]["verdict"],
            "share_of_steps_of_final_performance": final["ours_reaches_its_end_at"] if final else None,
        }
    return made


def draw(config, sizes: dict, known: dict, folder: Path) -> None:
    """For each set the mean regret with its standard error over seeds, and below it the standard deviation."""
    names = list(sizes)
    for first in range(0, len(names), 4):
        some = names[first : first + 4]
        figure, axes = plt.subplots(
            2, len(some), figsize=(3.6 * len(some), 5.6), squeeze=False, height_ratios=(2, 1), sharex="col"
        )
        for column, name in zip(axes.T, some, strict=True):
            x = np.linspace(0.0, sizes[name]["budget"], config.points + 1)[1:] / sizes[name]["steps"][-1]
            for i, method in enumerate(config.methods):
                values = curves(config, known, name, method)
                mean, spread = np.mean(values, axis=0), np.std(values, axis=0)
                look = {"color": f"C{i}" if i < 10 else "0.5", "lw": 2.2 if method == OURS else 1.2}
                column[0].plot(x, mean, label=method, **look)
                column[0].fill_between(
                    x,
                    mean - spread / np.sqrt(len(values)),
                    mean + spread / np.sqrt(len(values)),
                    alpha=0.15,
                    color=look["color"],
                    lw=0,
                )
                column[1].plot(x, spread, **look)
            column[0].set_title(title(name), fontsize=10)
            column[0].set_yscale("log")
            column[1].set_xlabel("training spent, in whole networks")
            for ax in column:
                ax.spines[["top", "right"]].set_visible(False)
        axes[0, 0].set_ylabel("mean regret\n(deviations of the table)")
        axes[1, 0].set_ylabel("its deviation\nover seeds")
        handles, texts = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="lower center", ncols=min(5, len(texts)), frameon=False, fontsize=9)
        figure.tight_layout(rect=(0, 0.1, 1, 1))
        figure.savefig(folder / f"figure_5_{7 + first}_on.png", dpi=150)
        plt.close(figure)


def show(found: dict) -> None:
    """Mean regret in the end, set by set."""
    methods = list(next(iter(found["results"].values())))
    table = Table(
        "set", *methods, "against random", "against the best baseline", title="mean regret in the end, deviations of the table"
    )
    for name, rows in found["results"].items():
        made = found["verdicts"][name]
        best = min(row["end"] for row in rows.values())
        cells = [f"{'[bold]' if row['end'] == best else ''}{row['end']:.3f}" for row in rows.values()]
        table.add_row(
            title(name), *cells, str(made["against_random"]), f"{made['against_best_baseline']} ({made['best_baseline']})"
        )
    Console(width=200).print(table)
