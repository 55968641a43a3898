"""Draw the figure of the README from the results of two experiments.

Left: the cost and the final regret of a search of 40 evaluations, compared with other libraries
(benchmarks.search). Right: training networks briefly and predicting the rest, compared with
searches that train them completely or stop by a rule (hutchinson.search).

    python -m experiments.readme_figure
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

FUNCTIONS = {  # name in the file: label and marker
    "forrester": ("Forrester", "o"),
    "rosenbrock": ("Rosenbrock", "s"),
    "mccormick": ("McCormick", "^"),
    "six_hump_camel": ("six-hump camel", "D"),
}
LIBRARIES = {  # name in the file: label, color, and height of the label
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


RESULTS = Path(__file__).parent / "results"
FIGURE = Path(__file__).parents[1] / "notebooks" / "site" / "static" / "readme.png"


def main() -> None:
    searches = json.loads(
        (RESULTS / "benchmarks_search.json").read_text(encoding="utf-8")
    )
    curve_searches = json.loads(
        (RESULTS / "hutchinson_search.json").read_text(encoding="utf-8")
    )
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.7))
    draw_costs(axes[0], searches)
    draw_regrets(axes[1], curve_searches)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_size(10)
    figure.tight_layout(w_pad=3.0)
    figure.savefig(FIGURE, dpi=150, metadata={"Software": None})
    print(f"wrote {FIGURE}")


def draw_costs(ax, found: dict) -> None:
    """Plot the final regret of each library on each function against CPU seconds."""
    rows = {(row["function"], row["contender"]): row for row in found["results"]}
    for library, (name, color, height) in LIBRARIES.items():
        for function, (_, marker) in FUNCTIONS.items():
            row = rows[function, library]
            ax.plot(
                row["cpu_seconds"],
                row["regret"]["median"],
                marker,
                color=color,
                ms=7,
                mec="white",
                mew=0.6,
            )
        spent = np.median(
            [rows[function, library]["cpu_seconds"] for function in FUNCTIONS]
        )
        ax.annotate(
            name, (spent, height), color=color, ha="center", fontsize=9, weight="bold"
        )
    for function, marker in FUNCTIONS.values():
        ax.plot([], [], marker, color="0.4", label=function)
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(0.012, 30.0),
        ylim=(8e-9, 5.0),
        title="Searches of 40 evaluations, medians of 50 seeds",
    )
    ax.set(
        xlabel="CPU seconds per search, one core", ylabel="distance from the minimum"
    )
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.45, 0.0))


def draw_regrets(ax, found: dict) -> None:
    """Plot the mean regret against the training spent."""
    size, rows = found["sets"][SET], found["results"][SET]
    for method, color in SEARCHES.items():
        mean = rows[method]["mean"]
        x = np.arange(1, len(mean) + 1) / len(mean) * size["budget"] / size["steps"][-1]
        label = {
            "Algorithm 2": "Hutchinson's Algorithm 2",
            "final-performance BO": "BO, trained to the end",
        }.get(method, method)
        ax.plot(x, mean, color=color, lw=2.4 if method == "bonas" else 1.4, label=label)
    ax.set(
        yscale="log",
        title=f"{size['networks']} networks on CIFAR-10, means of {found['seeds']} seeds",
    )
    ax.set(
        xlabel="training spent, in complete networks",
        ylabel="distance from the best network\n(standard deviations of the table)",
    )
    ax.legend(frameon=False, fontsize=8)


if __name__ == "__main__":
    main()
