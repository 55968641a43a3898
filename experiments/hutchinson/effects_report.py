"""Draw figures 5.1 to 5.3 and summarize them."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

from bonas import nets
from experiments import figures

NAMES = {
    "log_likelihood": "validation log\nlikelihood (nats per row)",
    "rmse": "validation RMSE",
}


def curves(rows: dict, metric: str, **wanted) -> np.ndarray:
    """Return values (seeds, checkpoints) of the matching networks; NaN if training diverged."""
    chosen = [
        row
        for job, row in rows.items()
        if all(getattr(job, key) == value for key, value in wanted.items())
    ]
    return np.array([row[metric] for row in chosen], float)


def finals(rows: dict, metric: str = "log_likelihood", **wanted) -> np.ndarray:
    """Return the final values of the matching networks."""
    return curves(rows, metric, **wanted)[:, -1]


def job_fields(name: str, **more) -> dict:
    """Return the job fields of a sweep where only the named ones vary."""
    return {
        "name": name,
        "noise": nets.VIHyperparameters().noise,
        "multiple": 1.0,
        "weight": 1.0,
        **more,
    }


def mean_over_seeds(values: np.ndarray) -> float:
    """Return the mean over seeds."""
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def summary(config, rows: dict) -> dict:
    """Return the effects of width, prior, initial noise and repeated data for each set."""
    found: dict = {}
    for name in config.sets:
        by_width = [
            max(
                mean_over_seeds(finals(rows, **job_fields(name, width=w, prior=p)))
                for p in config.priors
            )
            for w in config.widths
        ]
        structure = config.structures[-1]
        by_prior = [
            mean_over_seeds(finals(rows, **job_fields(name, width=structure, prior=p)))
            for p in config.prior_widths
        ]
        by_noise = [
            mean_over_seeds(
                finals(
                    rows, name=name, width=structure, prior=1.0, noise=n, multiple=1.0
                )
            )
            for n in config.noises
        ]
        multiples = {}
        for kind in ("right", "published"):
            cells = [_multiplied(config, rows, name, m, kind) for m in config.multiples]
            multiples[kind] = {
                part: [each[part] for each in cells] for part in cells[0]
            }
        found[name] = {
            "by_width": by_width,
            "best_width": config.widths[int(np.nanargmax(by_width))],
            "drop_from_best_to_widest": float(np.nanmax(by_width) - by_width[-1]),
            "by_prior": by_prior,
            "best_prior": config.prior_widths[int(np.nanargmax(by_prior))],
            "cost_of_narrowest_prior": float(np.nanmax(by_prior) - by_prior[0]),
            "cost_of_widest_prior": float(np.nanmax(by_prior) - by_prior[-1]),
            "by_first_noise": by_noise,
            "range_over_first_noise": float(np.nanmax(by_noise) - np.nanmin(by_noise)),
            "multiples": multiples,
        }
    return {"sets": found}


def weight_of(multiple: float, kind: str) -> float:
    """Return the weight of the likelihood of the rows."""
    right = max(multiple, 1.0)
    return right if kind == "right" else right * multiple


def _multiplied(config, rows: dict, name: str, multiple: float, kind: str) -> dict:
    """Summarize networks with repeated data: final values and the best validation value."""
    wanted = {
        "name": name,
        "width": config.multiplied,
        "prior": 1.0,
        "multiple": multiple,
        "weight": weight_of(multiple, kind),
    }
    ends = {
        "train": mean_over_seeds(finals(rows, "train_log_likelihood", **wanted)),
        "validation": mean_over_seeds(finals(rows, **wanted)),
    }
    return ends | best_checkpoint(
        config.checkpoints, curves(rows, "log_likelihood", **wanted)
    )


def best_checkpoint(checkpoints: tuple[int, ...], values: np.ndarray) -> dict:
    """Return the best of the mean curve (s, c), its update, and the paired loss to the end.

    All are None if a seed diverged.
    """
    if np.isnan(values).any():
        return dict.fromkeys(("best", "after", "lost", "lost_error"))
    mean = values.mean(axis=0)
    at = int(np.argmax(mean))
    lost = values[:, at] - values[:, -1]
    error = float(lost.std(ddof=1) / np.sqrt(len(lost))) if len(lost) > 1 else None
    return {
        "best": float(mean[at]),
        "after": checkpoints[at],
        "lost": float(lost.mean()),
        "lost_error": error,
    }


def draw(config, rows: dict, folder: Path) -> None:
    """Draw the three figures."""
    _by_trait(
        config,
        rows,
        folder / "figure_5_1.png",
        "width",
        config.widths,
        "prior",
        config.priors,
        "units per layer",
    )
    labels = ("prior", config.prior_widths, "width", config.structures)
    _by_trait(config, rows, folder / "figure_5_2.png", *labels, "prior variance")
    _multiples(config, rows, folder / "figure_5_3.png")


def _by_trait(
    config, rows, file: Path, along: str, places, color: str, kinds, label: str
) -> None:
    figure, axes = plt.subplots(
        2,
        len(config.sets),
        figsize=(3.4 * len(config.sets), 5.4),
        squeeze=False,
        sharex=True,
    )
    for column, name in zip(axes.T, config.sets, strict=True):
        for ax, metric in zip(column, NAMES, strict=True):
            for i, kind in enumerate(kinds):
                each = [
                    finals(
                        rows, metric, **job_fields(name, **{along: place, color: kind})
                    )
                    for place in places
                ]
                word = "variance" if color == "prior" else "units"
                ax.plot(
                    places,
                    [mean_over_seeds(values) for values in each],
                    "o-",
                    ms=3,
                    color=f"C{i}",
                    label=f"{kind:g} {word}"
                    if word == "units"
                    else f"prior variance {kind:g}",
                )
                for place, values in zip(places, each, strict=True):
                    ax.plot(
                        [place] * len(values),
                        values,
                        ".",
                        ms=3,
                        color=f"C{i}",
                        alpha=0.4,
                    )
            ax.set_xscale("log")
            _within(ax, rows, metric, name)
            ax.spines[["top", "right"]].set_visible(False)
        column[0].set_title(name)
        column[1].set_xlabel(label)
    figures.save_grid(figure, axes, NAMES.values(), file)


def _within(ax, rows, metric: str, name: str) -> None:
    """Set limits that leave out a few extreme networks."""
    values = finals(rows, metric, name=name)
    values = values[np.isfinite(values)]
    low, high = np.quantile(
        values, [0.05, 0.98] if metric == "log_likelihood" else [0.0, 0.93]
    )
    margin = 0.15 * (high - low) + 1e-9
    ax.set_ylim(low - margin, high + margin)


def _multiples(config, rows, file: Path) -> None:
    figure, axes = plt.subplots(
        2,
        len(config.sets),
        figsize=(3.4 * len(config.sets), 5.4),
        squeeze=False,
        sharex=True,
    )
    for column, name in zip(axes.T, config.sets, strict=True):
        for ax, metric in zip(
            column, ("train_log_likelihood", "log_likelihood"), strict=True
        ):
            for i, multiple in enumerate(config.multiples):
                wanted = {
                    "name": name,
                    "width": config.multiplied,
                    "prior": 1.0,
                    "multiple": multiple,
                }
                chosen = curves(
                    rows, metric, **wanted, weight=weight_of(multiple, "published")
                )
                ax.plot(
                    config.checkpoints,
                    np.nanmean(chosen, axis=0),
                    "o-",
                    ms=3,
                    color=plt.colormaps["viridis"](i / len(config.multiples)),
                    label=f"data × {multiple:g}",
                )
            values = finals(rows, metric, name=name, width=config.multiplied)
            values = values[np.isfinite(values)]
            low, high = np.quantile(values, [0.02, 1.0])
            ax.set_ylim(
                low - 0.2 * (high - low) - 1e-6, high + 0.2 * (high - low) + 1e-6
            )
            ax.spines[["top", "right"]].set_visible(False)
            ax.set_xscale("log")
        column[0].set_title(name)
        column[1].set_xlabel("updates")
    labels = ("training log\nlikelihood (nats per row)", NAMES["log_likelihood"])
    figures.save_grid(figure, axes, labels, file)


def show(config, found: dict) -> None:
    """Print the summary as two tables."""
    table = Table(
        "set",
        "best width",
        "lost at the widest",
        "narrowest prior costs",
        "widest prior costs",
        "first noise changes",
    )
    for name, row in found["sets"].items():
        keys = (
            "drop_from_best_to_widest",
            "cost_of_narrowest_prior",
            "cost_of_widest_prior",
            "range_over_first_noise",
        )
        table.add_row(
            name, str(row["best_width"]), *(f"{row[key]:.3f}" for key in keys)
        )
    Console().print(table)
    data = Table(
        "set", "data ×", "best validation", "after updates", "in the end", "lost"
    )
    for name, row in found["sets"].items():
        parts = row["multiples"]["right"]
        for i, multiple in enumerate(config.multiples):
            best, end, lost = (
                "" if parts[key][i] is None else f"{parts[key][i]:.3f}"
                for key in ("best", "validation", "lost")
            )
            data.add_row(
                name, f"{multiple:g}", best, str(parts["after"][i] or ""), end, lost
            )
    Console().print(data)
