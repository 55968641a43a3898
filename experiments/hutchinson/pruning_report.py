"""Draw figures 5.4 to 5.6 and summarize them."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

from bonas.nets import pruning
from bonas.problems.bnn_table import Record
from experiments.figures import save
from experiments.hutchinson import modes as groups

LAYERS = ("first layer", "second layer", "third layer")


def draw_histogram(divergence: np.ndarray, wide: tuple[str, int], file: Path) -> None:
    """Draw figure 5.4."""
    figure, ax = plt.subplots(figsize=(6, 3.6))
    logs = np.log10(np.maximum(divergence, 1e-6))
    bins = np.linspace(logs.min(), logs.max() + 1e-9, 50)
    for i, (row, threshold) in enumerate(zip(logs, pruning.THRESHOLDS, strict=False)):
        ax.hist(row, bins=bins, alpha=0.6, color=f"C{i}", label=LAYERS[i])
        ax.axvline(np.log10(threshold), color=f"C{i}", ls=":", lw=1)
    ax.set_xlabel("log₁₀ of the mean divergence of a unit's incoming weights (nats)")
    ax.set_ylabel("units")
    ax.set_title(
        f"2 × {wide[1]} units on {wide[0]}; dotted: thresholds of activity", fontsize=10
    )
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, file)


def layers(divergences: list[np.ndarray]) -> dict:
    """Return active units per layer, and the test for two groups of log divergences."""
    found = {}
    for seed, divergence in enumerate(divergences):
        active = np.asarray(pruning.active(divergence)).sum(axis=1)
        for name, row, used in zip(LAYERS, divergence, active.tolist(), strict=False):
            found[f"{name}, seed {seed}"] = {
                "active": used,
                **groups.two_group_statistics(np.log10(np.maximum(row, 1e-6))),
            }
    return {"units": divergences[0].shape[1], "layers": found}


def rows_of(record: Record, depth: int) -> tuple[np.ndarray, list[int]]:
    """Return widths and positions of the networks of constant width and one depth."""
    chosen = [
        i
        for i, network in enumerate(record.networks)
        if network.depth == depth and not network.shrinking
    ]
    return np.array([record.networks[i].width for i in chosen]), chosen


def used(record: Record, chosen: list[int]) -> np.ndarray:
    """Return the final active units (networks, layers), means over seeds."""
    final = record.active[chosen, :, -1].astype(float)
    return np.nanmean(np.where(final < 0, np.nan, final), axis=1)


def draw_against_width(records: dict[str, Record], what: str, file: Path) -> None:
    """Draw figure 5.5 (active units) or 5.6 (scores) for one to three hidden layers."""
    kinds = ("active",) if what == "active" else ("log_likelihood", "rmse")
    per_line = min(4, len(records))
    lines = -(-len(records) // per_line) * len(kinds)
    figure, axes = plt.subplots(
        lines, per_line, figsize=(3.1 * per_line, 2.5 * lines), squeeze=False
    )
    for ax in axes.flat[len(kinds) * len(records) :]:
        ax.axis("off")
    for number, (name, record) in enumerate(records.items()):
        for k, kind in enumerate(kinds):
            ax = axes[number // per_line * len(kinds) + k, number % per_line]
            for depth in sorted({network.depth for network in record.networks}):
                widths, chosen = rows_of(record, depth)
                if kind == "active":
                    total = used(record, chosen).sum(axis=1)
                    ax.plot(
                        widths,
                        total,
                        "o-",
                        ms=2.5,
                        color=f"C{depth - 1}",
                        label=f"{depth} hidden layer{'s' * (depth > 1)}",
                    )
                    ax.plot(widths, depth * widths, ":", lw=0.8, color=f"C{depth - 1}")
                    ax.set_yscale("log")
                else:
                    values = record.metrics[kind][chosen, :, -1]
                    ax.plot(
                        widths,
                        np.nanmean(values, axis=1),
                        "o-",
                        ms=2.5,
                        color=f"C{depth - 1}",
                        label=f"{depth} hidden layer{'s' * (depth > 1)}",
                    )
            if kind != "active":
                _limits(ax, record.metrics[kind][:, :, -1], kind)
            ax.set_xscale("log")
            ax.spines[["top", "right"]].set_visible(False)
            ax.set_title(name if k == 0 else "", fontsize=10)
            if number % per_line == 0:
                ax.set_ylabel(
                    {
                        "active": "active units",
                        "log_likelihood": "log likelihood",
                        "rmse": "RMSE",
                    }[kind]
                )
            if k == len(kinds) - 1:
                ax.set_xlabel("units per layer")
    handles, texts = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="upper center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / (2.5 * lines)))
    save(figure, file)


def _limits(ax, values: np.ndarray, kind: str) -> None:
    """Set limits that leave out the narrowest networks."""
    values = values[np.isfinite(values)]
    low, high = np.quantile(
        values, [0.12, 1.0] if kind == "log_likelihood" else [0.0, 0.88]
    )
    margin = 0.1 * (high - low) + 1e-9
    ax.set_ylim(low - margin, high + margin)


def verdict(record: Record) -> dict:
    """Summarize figures 5.5 and 5.6 for a set, by depth."""
    found: dict = {}
    for depth in sorted({network.depth for network in record.networks}):
        widths, chosen = rows_of(record, depth)
        layers = used(record, chosen)[:, :depth]
        total = layers.sum(axis=1)
        share = total / (depth * widths)
        full = [
            int(width) for width, part in zip(widths, share, strict=True) if part >= 0.9
        ]
        score = np.nanmean(record.metrics["log_likelihood"][chosen, :, -1], axis=1)
        found[str(depth)] = {
            "most_active": float(total.max()),
            "widest_with_nine_tenths_active": max(full, default=0),
            "active_at_the_widest": float(total[-1]),
            "share_of_first_layer_at_the_widest": float(
                layers[-1, 0] / max(total[-1], 1e-9)
            ),
            "best_width": int(widths[int(np.nanargmax(score))]),
            "log_likelihood_lost_at_the_widest": float(np.nanmax(score) - score[-1]),
        }
    return found


def show(found: dict) -> None:
    """Print the tests for two groups and the summaries as tables."""
    layers = Table(
        "wide networks",
        "active",
        "p of one mode",
        "Ashman's D",
        "BIC gain",
        "depth of the valley",
        "above it",
    )
    for name, row in found["wide"]["layers"].items():
        numbers = (
            f"{row[key]:.3g}"
            for key in ("one_mode_p", "ashman_d", "bic_gain", "valley", "upper_share")
        )
        layers.add_row(name, str(row["active"]), *numbers)
    Console().print(layers)
    table = Table(
        "set",
        "layers",
        "all used up to",
        "most active",
        "at the widest",
        "of them in the first",
        "best width",
        "nats lost at the widest",
    )
    for name, depths in found["sets"].items():
        for depth, row in depths.items():
            table.add_row(
                name,
                depth,
                str(row["widest_with_nine_tenths_active"]),
                f"{row['most_active']:.0f}",
                f"{row['active_at_the_widest']:.0f}",
                f"{row['share_of_first_layer_at_the_widest']:.0%}",
                str(row["best_width"]),
                f"{row['log_likelihood_lost_at_the_widest']:.3f}",
            )
    Console().print(table)
