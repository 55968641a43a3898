"""Compare ways to train variational networks in pairs of seeds, and draw their training curves."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

from experiments import compare, figures

METRICS = {
    "log_likelihood": "validation log\nlikelihood (nats per row)",
    "rmse": "validation RMSE",
}
SIGNS = {"log_likelihood": -1.0, "rmse": 1.0}  # factors that turn a metric into a loss
# By set, method and metric: (seeds, checkpoints), or (seeds,) for cpu_seconds
Curves = dict[str, dict[str, dict[str, np.ndarray]]]


def by_way(names: tuple[str, ...], ways: list[str], rows: dict) -> Curves:
    """Return the values of all networks by set, way and metric; NaN if training diverged."""

    def values(name: str, way: str, metric: str) -> np.ndarray:
        chosen = sorted(
            (job.seed, rows[job][metric])
            for job in rows
            if (job.name, job.way) == (name, way)
        )
        return np.array([value for _, value in chosen], float)

    return {
        name: {
            way: {
                metric: values(name, way, metric)
                for metric in (*METRICS, "cpu_seconds")
            }
            for way in ways
        }
        for name in names
    }


def summary(curves: Curves, ours: str, resamples: int) -> dict:
    """Return final means, training curves, seconds and comparisons for each set."""
    return {
        "sets": {name: _of_set(ways, ours, resamples) for name, ways in curves.items()}
    }


def _of_set(ways: dict[str, dict[str, np.ndarray]], ours: str, resamples: int) -> dict:
    means = {
        way: {metric: float(values[metric][:, -1].mean()) for metric in METRICS}
        | {"seconds": _middle(values["cpu_seconds"])}
        for way, values in ways.items()
    }
    against = {}
    for way in ways:
        if way != ours:
            against[way] = {
                metric: _compared(metric, ways[ours], ways[way], resamples)
                for metric in METRICS
            }
            against[way]["times_our_seconds"] = _middle(
                ways[way]["cpu_seconds"] / ways[ours]["cpu_seconds"]
            )
    along = {
        way: {metric: values[metric].mean(axis=0).tolist() for metric in METRICS}
        for way, values in ways.items()
    }
    return {"ways": means, "along": along, "against": against}


def _compared(
    metric: str,
    ours: dict[str, np.ndarray],
    theirs: dict[str, np.ndarray],
    resamples: int,
) -> dict:
    """Compare final values in pairs of seeds."""
    own, other = (SIGNS[metric] * values[metric][:, -1] for values in (ours, theirs))
    found = compare.paired(own, other, resamples)
    ends = (
        None
        if found["interval"] is None
        else sorted(SIGNS[metric] * end for end in found["interval"])
    )
    return found | {
        "mean_difference": SIGNS[metric] * found["mean_difference"],
        "interval": ends,
    }


def _middle(values: np.ndarray) -> float:
    """Return the median over seeds, because the first one compiles."""
    return float(np.median(values))


def draw(curves: Curves, checkpoints: tuple[int, ...], file: Path) -> None:
    """Draw scores against updates, means with standard errors over seeds."""
    figure, axes = plt.subplots(
        2, len(curves), figsize=(3.1 * len(curves), 5.2), squeeze=False, sharex=True
    )
    for column, (name, ways) in zip(axes.T, curves.items(), strict=True):
        for ax, metric in zip(column, METRICS, strict=True):
            for i, (way, values) in enumerate(ways.items()):
                mean, error = (
                    values[metric].mean(axis=0),
                    values[metric].std(axis=0) / np.sqrt(len(values[metric])),
                )
                ax.plot(checkpoints, mean, "o-", ms=3, color=f"C{i}", label=way)
                ax.fill_between(
                    checkpoints,
                    mean - error,
                    mean + error,
                    color=f"C{i}",
                    alpha=0.25,
                    lw=0,
                )
            ax.set_xscale("log")
            ax.set_xticks(checkpoints[::2], map(str, checkpoints[::2]))
            ax.minorticks_off()
            ax.spines[["top", "right"]].set_visible(False)
        column[0].set_title(name)
        column[1].set_xlabel("updates")
    figures.save_grid(figure, axes, METRICS.values(), file)


def show(found: dict, ours: str) -> None:
    """Print the summary as a table."""
    table = Table(
        "set",
        "way",
        "log likelihood",
        "RMSE",
        "seconds",
        f"{ours}: log likelihood",
        f"{ours}: RMSE",
    )
    for name, row in found["sets"].items():
        for way, means in row["ways"].items():
            pair = row["against"].get(way)
            verdicts = [_verdict(pair[metric]) if pair else "" for metric in METRICS]
            table.add_row(
                name,
                way,
                *(f"{means[key]:.3f}" for key in (*METRICS, "seconds")),
                *verdicts,
            )
    Console(width=130).print(table)


def _verdict(pair: dict) -> str:
    return f"{pair['mean_difference']:+.3f}, {pair['verdict']}"
