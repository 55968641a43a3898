"""Draw figures 5.7 to 5.14, summarize the searches and print the table."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from rich.console import Console
from rich.table import Table

from experiments import compare
from experiments.hutchinson import curve_searches as contenders
from experiments.hutchinson.regret import KINDS

OURS, FINAL, RANDOM = "bonas", "final-performance BO", "random"
BASELINES = (
    FINAL,
    RANDOM,
    "evolution",
    "successive halving",
    "Hyperband",
    "one epoch, top 4",
)
# Suffix of a figure's file name, the method that a set must have to be included, and the methods
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
    """Return the title of a set."""
    kind, _, which = name.partition("_")
    return _TITLES.get(name) or (
        f"Bayesian networks, {which}" if kind == "bnn" else name
    )


def curves(
    config, runs_by_job: dict, name: str, method: str, kind: str = "network"
) -> np.ndarray:
    """Return regrets (seeds, points)."""
    return np.array(
        [runs_by_job[name, method, seed][kind] for seed in range(config.seeds)]
    )


def summary(config, methods: dict[str, tuple[str, ...]], runs_by_job: dict) -> dict:
    """Return mean regrets of both kinds, and paired comparisons with the default of bonas."""
    found = {
        kind: {
            name: _rows(config, runs_by_job, name, some, kind)
            for name, some in methods.items()
        }
        for kind in KINDS
    }
    return {
        "results": found["network"],
        "verdicts": verdicts(found["network"]),
        "architectures": {
            "results": found["architecture"],
            "verdicts": verdicts(found["architecture"]),
        },
    }


def _rows(
    config, runs_by_job: dict, name: str, methods: tuple[str, ...], kind: str
) -> dict:
    """Summarize each method on one set."""
    every = {
        method: curves(config, runs_by_job, name, method, kind) for method in methods
    }
    ours, rows = every[OURS], {}
    for method, values in every.items():
        rows[method] = {
            "half": float(np.mean(values[:, config.points // 2 - 1])),
            "end": float(np.mean(values[:, -1])),
            "error": float(np.std(values[:, -1], ddof=1) / np.sqrt(config.seeds)),
            "deviation": float(np.std(values[:, -1], ddof=1)),
            "ours_reaches_its_end_at": _reaches(ours, values),
            "mean": [
                float(f"{value:.4g}") for value in np.mean(values, axis=0)
            ],  # at equal shares of the budget
        }
        if method != OURS:
            along = np.mean(ours, axis=1), np.mean(values, axis=1)
            rows[method]["ours_against_it"] = compare.paired(
                ours[:, -1], values[:, -1], config.resamples
            )
            rows[method]["ours_against_it_along"] = compare.paired(
                *along, config.resamples
            )
        rows[method]["against"] = {
            rival: compare.paired(values[:, -1], every[rival][:, -1], config.resamples)[
                "verdict"
            ]
            for rival in (RANDOM, FINAL)
            if rival in every and rival != method
        }
    return rows


def _reaches(ours: np.ndarray, theirs: np.ndarray) -> float | None:
    """Return the share of the budget after which our mean regret reaches their final one."""
    present = np.flatnonzero(np.mean(ours, axis=0) <= np.mean(theirs[:, -1]) + 1e-12)
    return float((present[0] + 1) / ours.shape[1]) if len(present) else None


def verdicts(found: dict) -> dict:
    """Compare the default of bonas with random search and with the best baseline."""
    made: dict = {}
    for name, rows in found.items():
        rivals = [method for method in BASELINES if method in rows]
        best = min(rivals, key=lambda method: rows[method]["end"])
        final = rows.get(FINAL)
        made[name] = {
            "against_random": rows[RANDOM]["ours_against_it"]["verdict"]
            if RANDOM in rows
            else None,
            "against_random_along": rows[RANDOM]["ours_against_it_along"]["verdict"]
            if RANDOM in rows
            else None,
            "best_baseline": best,
            "against_best_baseline": rows[best]["ours_against_it"]["verdict"],
            "share_of_steps_of_final_performance": final["ours_reaches_its_end_at"]
            if final
            else None,
        }
    return made


def draw(config, sizes: dict, runs_by_job: dict, folder: Path) -> None:
    """Draw four sets per figure: the default with the baselines, and with its variants."""
    for kind, needed, methods in FIGURES:
        some = [name for name in sizes if (name, needed, 0) in runs_by_job]
        for first in range(0, len(some), 4):
            four = {name: sizes[name] for name in some[first : first + 4]}
            _figure(config, four, runs_by_job, methods).savefig(
                folder / f"figure_5_{7 + first}_on{kind}.png", dpi=150
            )
            plt.close()


def _figure(config, sizes: dict, runs_by_job: dict, methods: tuple[str, ...]) -> Figure:
    """Draw the mean regret with its standard error, and its standard deviation below."""
    size = {"figsize": (max(3.6 * len(sizes), 6.4), 5.8), "height_ratios": (2, 1)}
    figure, axes = plt.subplots(
        2, len(sizes), squeeze=False, sharex="col", layout="constrained", **size
    )
    for column, (name, about) in zip(axes.T, sizes.items(), strict=True):
        x = (
            np.linspace(0.0, about["budget"], config.points + 1)[1:]
            / about["steps"][-1]
        )
        for i, method in enumerate(methods):
            if (name, method, 0) not in runs_by_job:
                continue
            values, look = (
                curves(config, runs_by_job, name, method),
                {"color": f"C{i}", "lw": 2.2 if method == OURS else 1.2},
            )
            mean, spread = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
            error = spread / np.sqrt(len(values))
            column[0].plot(x, mean, label=method, **look)
            column[0].fill_between(
                x, mean - error, mean + error, alpha=0.15, color=look["color"], lw=0
            )
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
    figure.legend(
        handles,
        texts,
        loc="outside lower center",
        ncols=min(5, len(texts)),
        frameon=False,
        fontsize=9,
    )
    return figure


def show(found: dict) -> None:
    """Print the mean final regret for each set; the file also has the variants."""
    present = {method for rows in found["results"].values() for method in rows}
    methods = [method for method in contenders.MAIN if method in present]
    table = Table(
        "set",
        *methods,
        "against random",
        "against the best baseline",
        title="mean regret in the end, deviations of the table",
    )
    for name, rows in found["results"].items():
        made = found["verdicts"][name]
        ends = [rows[method]["end"] for method in methods]
        cells = [f"{'[bold]' if end == min(ends) else ''}{end:.3f}" for end in ends]
        table.add_row(
            title(name),
            *cells,
            str(made["against_random"]),
            f"{made['against_best_baseline']} ({made['best_baseline']})",
        )
    Console(width=200).print(table)
