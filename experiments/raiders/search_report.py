"""Summarize searches for networks, compare them in pairs of seeds, and draw figure 3."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter, NullFormatter
from rich.console import Console
from rich.table import Table

from experiments.figures import BLUE, VERMILION, save

COLORS = (BLUE, VERMILION, "0.45")
# test error of the best network, trained on 50,000 images
PUBLISHED = {"mnist": 0.0119}


def best_so_far(runs: list[list[dict]]) -> np.ndarray:
    """Return the running minimum of the error (seeds, evaluations)."""
    return np.minimum.accumulate(
        [[row["error"] for row in rows] for rows in runs], axis=1
    )


def shares(runs: list[list[dict]], initial: int, deepest: int) -> np.ndarray:
    """Return the share of the search's own choices at every depth (deepest + 1,)."""
    depths = [row["depth"] for rows in runs for row in rows[initial:]]
    return np.bincount(depths, minlength=deepest + 1) / max(len(depths), 1)


def summarize(found: dict, tests: dict, main: str, initial: int, deepest: int) -> dict:
    """Summarize each search, with paired differences from the main one."""
    results, curves = {}, {name: best_so_far(runs) for name, runs in found.items()}
    for name, runs in found.items():
        measured = [error for error in tests[name] if error is not None]
        results[name] = {
            "best_validation_error": curves[name][:, -1].tolist(),
            "median": float(np.median(curves[name][:, -1])),
            "mean_log_error": float(np.log(curves[name][:, -1]).mean()),
            "test_error": tests[name],
            "median_test_error": float(np.median(measured)) if measured else None,
            "least_test_error": float(min(measured)) if measured else None,
            "best_so_far": np.median(curves[name], axis=0).tolist(),
            "share_of_choices_by_depth": shares(runs, initial, deepest).tolist(),
            "depth_of_the_best": [
                min(rows, key=lambda row: row["value"])["depth"] for rows in runs
            ],
            "share_that_diverged": float(
                np.mean([row["status"] == 4 for rows in runs for row in rows])
            ),
            "seconds_a_training": float(
                np.mean([row["seconds"] for rows in runs for row in rows])
            ),
            "seconds_an_ask": float(
                np.median(
                    [row["ask_seconds"] for rows in runs for row in rows[initial + 1 :]]
                )
            ),
        }
    logs = {name: np.log(curve[:, -1]) for name, curve in curves.items()}
    for name in found:
        if name != main:
            difference = logs[main] - logs[name]
            results[name]["main_minus_this_in_log_error"] = {
                "mean": float(difference.mean()),
                "standard_error": float(
                    difference.std(ddof=1) / np.sqrt(len(difference))
                )
                if len(difference) > 1
                else None,
                "seeds_where_main_is_better": int((difference < 0).sum()),
                "ties": int((difference == 0).sum()),
                "seeds": len(difference),
            }
    return {"main": main, "results": results}


def show(whole: dict) -> None:
    heads = (
        "search",
        "validation error, median",
        "test error, median",
        "least",
        "mean depth",
        "pairs for the arc",
        "s an ask",
    )
    printed = Table(
        *heads,
        title=f"{whole['config']['data']}, {whole['config']['evaluations']} trainings per search",
    )
    for name, row in whole["results"].items():
        pair = row.get("main_minus_this_in_log_error")
        depth = float(
            np.arange(len(row["share_of_choices_by_depth"]))
            @ row["share_of_choices_by_depth"]
        )
        tests = [row["median_test_error"], row["least_test_error"]]
        printed.add_row(
            name,
            f"{row['median']:.2%}",
            *("" if error is None else f"{error:.2%}" for error in tests),
            f"{depth:.1f}",
            f"{pair['seeds_where_main_is_better']} of {pair['seeds']}, {pair['mean']:+.3f}"
            if pair
            else "",
            f"{row['seconds_an_ask']:.2f}",
        )
    console = Console(width=130)
    console.print(printed)
    published = PUBLISHED.get(whole["config"]["data"])
    if published:
        console.print(f"published: {published:.2%} test error")


def draw(found: dict, initial: int, deepest: int, path: Path) -> None:
    """Draw the best error so far of every seed with the median, and the chosen depths."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.5, 4.2), layout="constrained", width_ratios=(1.25, 1)
    )
    width = 0.8 / len(found)
    for number, ((name, runs), color) in enumerate(
        zip(found.items(), COLORS, strict=True)
    ):
        curves = 100 * best_so_far(runs)
        evaluations = np.arange(1, curves.shape[1] + 1)
        left.plot(evaluations, curves.T, color=color, lw=0.7, alpha=0.35)
        left.plot(
            evaluations, np.median(curves, axis=0), color=color, lw=2.2, label=name
        )
        places = np.arange(deepest + 1) + (number - (len(found) - 1) / 2) * width
        right.bar(
            places, 100 * shares(runs, initial, deepest), width, color=color, label=name
        )
    left.axvline(initial + 0.5, color="0.7", lw=0.8, ls=":")
    left.set(xlabel="trainings", ylabel="best validation error so far, %", yscale="log")
    left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    left.yaxis.set_minor_formatter(
        FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "235" else "")
        if curves.max() < 1e3
        else NullFormatter()
    )
    left.set_title("median of the seeds, and each seed", fontsize=10)
    right.set(xlabel="hidden layers", ylabel="share of a search's choices, %")
    right.set_title(f"without the first {initial} trainings", fontsize=10)
    for axis in (left, right):
        axis.grid(color="0.92", lw=0.6)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *left.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(found),
        frameon=False,
    )
    save(figure, path)
