"""Figures 5.7 to 5.14 and the table of hutchinson_search.py."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from curve_search import contenders
from curve_search.regret import KINDS
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from rich.console import Console
from rich.table import Table
from script import pairs

OURS, FINAL, RANDOM = "bonas", "final-performance BO", "random"
BASELINES = (FINAL, RANDOM, "evolution", "successive halving", "Hyperband", "one epoch, top 4")
# how a figure's file is called, the method without which a set is not in it, and its methods
FIGURES = (
    ("", OURS, contenders.MAIN),
    ("_variants", contenders.VARIANTS[0], (OURS, "Algorithm 2", *contenders.VARIANTS)),
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


def summary(config, methods: dict[str, tuple[str, ...]], known: dict) -> dict:
    """Mean regrets of both kinds, and pairs of seeds against ours; methods are those of each set."""
    found = {kind: {name: _rows(config, known, name, some, kind) for name, some in methods.items()} for kind in KINDS}
    return {
        "results": found["network"],
        "verdicts": verdicts(found["network"]),
        "architectures": {"results": found["architecture"], "verdicts": verdicts(found["architecture"])},
    }


def _rows(config, known: dict, name: str, methods: tuple[str, ...], kind: str) -> dict:
    """Each method on one set: at half and at the whole of the budget, along it, and beside ours."""
    every = {method: curves(config, known, name, method, kind) for method in methods}
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
        rows[method]["against"] = {
            rival: pairs.against(values[:, -1], every[rival][:, -1], config.resamples)["verdict"]
            for rival in (RANDOM, FINAL)
            if rival in every and rival != method
        }
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
        final = rows.get(FINAL)
        made[name] = {
            "against_random": rows[RANDOM]["ours_against_it"]["verdict"] if RANDOM in rows else None,
            "against_random_along": rows[RANDOM]["ours_against_it_along"]["verdict"] if RANDOM in rows else None,
            "best_baseline": best,
            "against_best_baseline": rows[best]["ours_against_it"]["verdict"],
            "share_of_steps_of_final_performance": final["ours_reaches_its_end_at"] if final else None,
        }
    return made


def draw(config, sizes: dict, known: dict, folder: Path) -> None:
    """Four sets a figure: the default beside baselines, and beside variants."""
    for kind, needed, methods in FIGURES:
        some = [name for name in sizes if (name, needed, 0) in known]
        for first in range(0, len(some), 4):
            four = {name: sizes[name] for name in some[first : first + 4]}
            _figure(config, four, known, methods).savefig(folder / f"figure_5_{7 + first}_on{kind}.png", dpi=150)
            plt.close()


def _figure(config, sizes: dict, known: dict, methods: tuple[str, ...]) -> Figure:
    """For each set the mean regret with its standard error over seeds, and below it the standard deviation."""
    size = {"figsize": (max(3.6 * len(sizes), 6.4), 5.8), "height_ratios": (2, 1)}
    figure, axes = plt.subplots(2, len(sizes), squeeze=False, sharex="col", layout="constrained", **size)
    for column, (name, about) in zip(axes.T, sizes.items(), strict=True):
        x = np.linspace(0.0, about["budget"], config.points + 1)[1:] / about["steps"][-1]
        for i, method in enumerate(methods):
            if (name, method, 0) not in known:
                continue
            values, look = curves(config, known, name, method), {"color": f"C{i}", "lw": 2.2 if method == OURS else 1.2}
            mean, spread = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
            error = spread / np.sqrt(len(values))
            column[0].plot(x, mean, label=method, **look)
            column[0].fill_between(x, mean - error, mean + error, alpha=0.15, color=look["color"], lw=0)
            column[1].plot(x, spread, **look)
        column[0].set(title=title(name), yscale="log")
        column[0].yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        column[0].yaxis.set_major_formatter("{x:g}")
        column[0].yaxis.set_minor_formatter(NullFormatter())
        column[1].set_xlabel("training spent, in whole networks")
        for ax in column:
            ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("mean regret\n(deviations of the table)")
    axes[1, 0].set_ylabel("its deviation\nover seeds")
    handles, texts = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=min(5, len(texts)), frameon=False, fontsize=9)
    return figure


def show(found: dict) -> None:
    """Mean regret in the end, set by set; of variants it is in the file."""
    there = {method for rows in found["results"].values() for method in rows}
    methods = [method for method in contenders.MAIN if method in there]
    table = Table(
        "set", *methods, "against random", "against the best baseline", title="mean regret in the end, deviations of the table"
    )
    for name, rows in found["results"].items():
        made = found["verdicts"][name]
        ends = [rows[method]["end"] for method in methods]
        cells = [f"{'[bold]' if end == min(ends) else ''}{end:.3f}" for end in ends]
        table.add_row(
            title(name), *cells, str(made["against_random"]), f"{made['against_best_baseline']} ({made['best_baseline']})"
        )
    Console(width=200).print(table)
