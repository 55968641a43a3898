"""Scores of Table 1: means, paired differences, other scales, and the figure."""

from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table as Printed
from scipy import stats

from experiments.figures import BLUE, GREEN, VERMILION, save
from experiments.raiders import authors_table as raiders
from experiments.raiders.folds import contiguous_folds, paired, random_folds
from experiments.raiders.table1_models import BEST

BASELINE = "GP"
FAMILY = (
    "Arc GP",
    "box",
    "wedge",
    "sum of arcs",
    "arc + shared arc",
    BEST,
    "product of arcs",
)
CHOSEN = "the family, by density in training"
# Distinguishable with color blindness (Okabe and Ito)
TITLES = {"log": "logarithms of errors", "original": "errors as they are"}


def summarize(rows: list[dict], table: raiders.Table, k: int) -> dict:
    """Return scores of every model by kind of run, with paired differences from the baseline."""
    runs: dict = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        row = row | {
            "lpd": _log_density(row, table, k),
            "single": _without(raiders.repeated(table), row, table, k),
        }
        kind = f"{row['column']}, {_inference(row)}, {row['folds']} folds"
        runs[kind][row["model"]][row["seed"], row["fold"]] = row
    for kind, models in runs.items():
        models |= _chosen(models) if ", map," in kind else {}
    results = {
        kind: {name: _scores(done, models, k) for name, done in models.items()}
        for kind, models in runs.items()
    }
    return {
        "results": results,
        "rescaled": _rescaled(rows, table, k),
        "by_the_variance_of_the_fold": _by_fold(rows, table, k),
    }


def _chosen(models: dict) -> dict:
    """Choose, for each fold, the model of the family with the highest training density.

    Test rows are not used; only models fitted on all folds are candidates.
    """
    folds = set(models.get(FAMILY[0], {}))
    complete = [
        models[name] for name in FAMILY if folds and folds <= set(models.get(name, {}))
    ]
    if len(complete) < 2:
        return {}
    return {
        CHOSEN: {
            key: max(
                (done[key] for done in complete), key=lambda row: row["log_density"]
            )
            for key in folds
        }
    }


def _inference(row: dict) -> str:
    return "map" if row["inference"] == "map" else "sampled"


def _without(left_out: np.ndarray, row: dict, table: raiders.Table, k: int) -> float:
    """Return the score of a fold without rows that have a duplicate."""
    y, test = _values(row, table), _test_rows(row, len(table.y), k)
    counts = ~left_out[test]
    return float(
        np.mean((np.array(row["mean"]) - y[test])[counts] ** 2) / y.var(ddof=1)
    )


def _values(row: dict, table: raiders.Table) -> np.ndarray:
    return np.log(table.y) if row["column"] == "log" else table.y


def _log_density(row: dict, table: raiders.Table, k: int) -> float:
    """Return the mean log predictive density of the fold's values."""
    y = _values(row, table)
    return float(
        stats.norm.logpdf(y[_test_rows(row, len(y), k)], row["mean"], row["std"]).mean()
    )


def _scores(done: dict, models: dict, k: int) -> dict:
    scores = np.array([row["nmse"] for row in done.values()])
    found = {
        "nmse": float(scores.mean()),
        "folds": len(scores),
        "seconds_a_fold": float(np.median(_of(done, "seconds"))),
    }
    found |= {
        "log_predictive_density": float(np.mean(_of(done, "lpd"))),
        "without_twins": float(np.mean(_of(done, "single"))),
    }
    if len(scores) > 1:
        found |= {
            "fold_sd": float(scores.std(ddof=1)),
            "error": paired(scores, 1.0 / k).error,
        }
    common = [key for key in done if key in models.get(BASELINE, {})]
    if done is not models.get(BASELINE) and len(common) > 1:
        differences = [
            done[key]["nmse"] - models[BASELINE][key]["nmse"] for key in common
        ]
        found["minus_baseline"] = {
            **paired(differences, 1.0 / k)._asdict(),
            "folds": len(common),
        }
        gains = [done[key]["lpd"] - models[BASELINE][key]["lpd"] for key in common]
        single = [
            done[key]["single"] - models[BASELINE][key]["single"] for key in common
        ]
        found["without_twins_minus_baseline"] = paired(single, 1.0 / k)._asdict()
        found["log_predictive_density_minus_baseline"] = paired(
            gains, 1.0 / k
        )._asdict()
        found["minus_baseline"]["share_of_folds_better"] = float(
            np.mean(np.array(differences) < 0.0)
        )
    return found


def _of(done: dict, name: str) -> list:
    return [row[name] for row in done.values()]


def _test_rows(row: dict, n: int, k: int) -> np.ndarray:
    folds = (
        random_folds(n, k, row["seed"])
        if row["folds"] == "random"
        else contiguous_folds(n, k)
    )
    return folds[row["fold"]]


def _rescaled(rows: list[dict], table: raiders.Table, k: int) -> dict:
    """Score models of logarithms on the original values, by median and by mean."""
    scores: dict = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["column"] == "log":
            actual = table.y[_test_rows(row, len(table.y), k)]
            mean, std = np.array(row["mean"]), np.array(row["std"])
            name = f"{row['model']}, {_inference(row)}, {row['folds']} folds"
            for how, predicted in (
                ("median", np.exp(mean)),
                ("mean", raiders.expected_error(mean, std)),
            ):
                scores[name][how].append(
                    np.mean((predicted - actual) ** 2) / table.y.var(ddof=1)
                )
    return {
        name: {how: float(np.mean(each)) for how, each in found.items()}
        for name, found in scores.items()
    }


def _by_fold(rows: list[dict], table: raiders.Table, k: int) -> dict:
    """Return errors relative to the variance of each fold."""
    scores: dict = defaultdict(list)
    for row in rows:
        test = _test_rows(row, len(table.y), k)
        y = _values(row, table)
        ratio = y.var(ddof=1) / max(y[test].var(ddof=1), 1e-12)
        scores[
            f"{row['column']}, {row['model']}, {_inference(row)}, {row['folds']} folds"
        ].append(row["nmse"] * ratio)
    return {
        name: {
            "nmse": float(np.mean(each)),
            "fold_sd": float(np.std(each, ddof=1)) if len(each) > 1 else 0.0,
        }
        for name, each in scores.items()
    }


def show(results: dict) -> None:
    """Print one table per kind of run."""
    console = Console(width=140)
    for kind, models in results["results"].items():
        column, _, rest = kind.partition(",")
        heads = (
            "model",
            "published",
            "here",
            "through logs",
            "fold sd",
            "minus GP",
            "p",
            "log density",
            "folds",
            "s per fold",
        )
        printed = Printed(*heads, title=kind)
        for name, row in sorted(models.items(), key=lambda item: item[1]["nmse"]):
            published = results["published"].get(name, {}).get(column)
            pair, through = (
                row.get("minus_baseline"),
                results["rescaled"].get(f"{name},{rest}"),
            )
            printed.add_row(
                name,
                f"{published[0]:.3f} ± {published[1]:.3f}" if published else "",
                f"{row['nmse']:.3f} ± {row.get('error', np.nan):.3f}",
                f"{through['mean']:.3f}" if through and column == "original" else "",
                f"{row.get('fold_sd', np.nan):.3f}",
                f"{pair['mean']:+.3f} ± {pair['error']:.3f}" if pair else "",
                f"{pair['p']:.1e}" if pair else "",
                f"{row['log_predictive_density']:.3f}",
                str(row["folds"]),
                f"{row['seconds_a_fold']:.1f}",
            )
        console.print(printed)


def draw(results: dict, path: Path) -> None:
    """Draw both columns of the table with errors, and the published scores as crosses."""
    figure, axes = plt.subplots(
        1, 2, figsize=(10.5, 5.2), layout="constrained", sharey=True
    )
    log = results["results"].get("log, map, random folds", {})
    order = sorted(log, key=lambda name: -log[name]["nmse"])
    for axis, column in zip(axes, ("log", "original"), strict=True):
        ours, sampled = (
            results["results"].get(f"{column}, {how}, random folds", {})
            for how in ("map", "sampled")
        )
        kinds = (
            ("o", ours, BLUE, "most probable hyperparameters"),
            ("s", sampled, "black", "sampled hyperparameters"),
        )
        for marker, found, color, label in kinds:
            shown = [(i, found[name]) for i, name in enumerate(order) if name in found]
            heights = [i + (0.18 if marker == "s" else 0.0) for i, _ in shown]
            nmse, error = (
                [row.get(name, 0.0) for _, row in shown] for name in ("nmse", "error")
            )
            axis.errorbar(
                nmse,
                heights,
                xerr=error,
                fmt=marker,
                color=color,
                ms=5,
                capsize=2.5,
                lw=1.2,
                label=label,
            )
        published = [
            (i, results["published"][name][column])
            for i, name in enumerate(order)
            if name in results["published"]
        ]
        places, heights = (
            [pair[0] for _, pair in published],
            [i - 0.18 for i, _ in published],
        )
        axis.errorbar(
            places,
            heights,
            xerr=[pair[1] for _, pair in published],
            fmt="x",
            color=VERMILION,
            ms=6,
            lw=1.0,
            label="published",
        )
        if column == "original":
            rescaled = results["rescaled"]
            places = {name: f"{name}, map, random folds" for name in order}
            through = [
                (rescaled[places[name]]["mean"], i)
                for i, name in enumerate(order)
                if places[name] in rescaled
            ]
            axis.plot(
                *np.array(through).T,
                "D",
                color=GREEN,
                ms=5,
                label="by a model of logarithms",
            )
        axis.set(title=TITLES[column], xlabel="normalized mean squared error")
        axis.grid(color="0.9", lw=0.6)
        axis.set_axisbelow(True)
    axes[0].set_yticks(range(len(order)), order)
    figure.legend(
        *axes[1].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    save(figure, path)
