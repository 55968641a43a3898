"""The README's figure, from the numbers of two experiments.

Left: what a search of 40 evaluations costs and how close it comes, beside other libraries (bench_search.py). Right: training
networks a little and predicting the rest, beside searches that train them to the end, or stop by rule (hutchinson_search.py).
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

FUNCTIONS = {  # by their names in the file
    "forrester": ("Forrester", "o"),
    "rosenbrock": ("Rosenbrock", "s"),
    "mccormick": ("McCormick", "^"),
    "six_hump_camel": ("six-hump camel", "D"),
}
LIBRARIES = {  # and where they are written
    "bonas": ("bonas", "C0", 0.4),
    "hyperoptax": ("Hyperoptax", "C1", 1.2),
    "optuna": ("Optuna, GP", "C2", 0.15),
    "botorch": ("BoTorch", "C3", 1.2),
}
SEARCHES = {
    "bonas": "C0",
    "Algorithm 2": "C1",
    "successive halving": "C4",
    "Hyperband": "C5",
    "final-performance BO": "C2",
    "random": "0.6",
}
SET = "metaqnn_cifar10"


def draw(results: Path, file: Path) -> bool:
    """Draw it into a file, if the numbers are in the folder."""
    sources = [results / f"{name}.json" for name in ("bench_search", "hutchinson_search")]
    found = [json.loads(source.read_text(encoding="utf-8")) for source in sources if source.exists()]
    if len(found) < 2 or SET not in found[1]["results"] or {row["contender"] for row in found[0]["results"]} < set(LIBRARIES):
        return False
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.7))
    costs(axes[0], found[0])
    curves(axes[1], found[1])
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_size(10)
    figure.tight_layout(w_pad=3.0)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150, metadata={"Software": None})
    plt.close(figure)
    return True


def costs(ax, found: dict) -> None:
    """CPU seconds and final regret of each library on each function."""
    rows = {(row["function"], row["contender"]): row for row in found["results"]}
    for library, (name, colour, height) in LIBRARIES.items():
        for function, (_, marker) in FUNCTIONS.items():
            row = rows[function, library]
            ax.plot(row["cpu_seconds"], row["regret"]["median"], marker, color=colour, ms=7, mec="white", mew=0.6)
        spent = np.median([rows[function, library]["cpu_seconds"] for function in FUNCTIONS])
        ax.annotate(name, (spent, height), color=colour, ha="center", fontsize=9, weight="bold")
    for function, marker in FUNCTIONS.values():
        ax.plot([], [], marker, color="0.4", label=function)
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(0.012, 30.0),
        ylim=(8e-9, 5.0),
        title="Searches of 40 evaluations, medians of 50 seeds",
    )
    ax.set(xlabel="CPU seconds a search, one core", ylabel="distance from the minimum")
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.45, 0.0))


def curves(ax, found: dict) -> None:
    """Mean regret against training spent."""
    size, rows = found["sets"][SET], found["results"][SET]
    for method, colour in SEARCHES.items():
        mean = rows[method]["mean"]
        x = np.arange(1, len(mean) + 1) / len(mean) * size["budget"] / size["steps"][-1]
        label = {"Algorithm 2": "Hutchinson's Algorithm 2", "final-performance BO": "BO, trained to the end"}.get(
            method, method
        )
        ax.plot(x, mean, color=colour, lw=2.4 if method == "bonas" else 1.4, label=label)
    ax.set(yscale="log", title=f"{size['networks']} networks on CIFAR-10, means of {found['seeds']} seeds")
    ax.set(xlabel="training spent, in whole networks", ylabel="distance from the best network\n(deviations of the table)")
    ax.legend(frameon=False, fontsize=8)
