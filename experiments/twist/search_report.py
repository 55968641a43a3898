"""Compare the searches of Twist's system, and draw figure 8 and their progress."""

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from bonas import plots
from experiments.compare import interval, paired
from experiments.figures import save
from experiments.twist import plane as shading
from experiments.twist.system import Intervals


def units(intervals: Intervals, rows: np.ndarray) -> np.ndarray:
    """Return the number of hidden units of designs (..., d)."""
    return np.rint(rows[..., : intervals.layers] * intervals.widest).sum(axis=-1)


def layers(intervals: Intervals, rows: np.ndarray) -> np.ndarray:
    """Return the number of hidden layers of designs (..., d)."""
    return (rows[..., : intervals.layers] > 0.0).sum(axis=-1)


def larger_than_chance(
    intervals: Intervals, rows: np.ndarray, uniform: np.ndarray
) -> float:
    """Return the probability that a design has more hidden units than a random one."""
    ours, theirs = units(intervals, rows)[:, None], units(intervals, uniform)[None, :]
    return float(np.mean((ours > theirs) + 0.5 * (ours == theirs)))


def summarize(config, found: dict[str, list[dict]], main: str, chance: str) -> dict:
    """Summarize every search, and compare all with random search and with the main one."""
    uniform = np.asarray(config.intervals.space.sample(jax.random.key(0), 10_000))
    pairs = [(name, chance) for name in found if name != chance] + [
        (name, main) for name in found if name not in (main, chance)
    ]
    return {
        "searches": {
            name: summarize_search(config, rows, uniform)
            for name, rows in found.items()
        },
        "pairs": {
            f"{ours} against {theirs}": {
                "test_error": paired(
                    _stack(found[ours], "score"),
                    _stack(found[theirs], "score"),
                    config.resamples,
                ),
                "best_validation_error": paired(
                    _last(found[ours]), _last(found[theirs]), config.resamples
                ),
            }
            for ours, theirs in pairs
        },
    }


def _stack(rows: list[dict], name: str) -> np.ndarray:
    return np.stack([row[name] for row in rows])


def _last(rows: list[dict]) -> np.ndarray:
    return _stack(rows, "best")[:, -1]


def summarize_search(config, rows: list[dict], uniform: np.ndarray) -> dict:
    """Summarize one search: errors, costs and sizes of its designs."""
    intervals, chosen, scores = (
        config.intervals,
        _stack(rows, "chosen"),
        _stack(rows, "score"),
    )
    asked = _stack(rows, "x")[:, config.initial :]
    larger = np.array([larger_than_chance(intervals, x, uniform) for x in asked])
    designs = [intervals.space.decode(u) for u in chosen]
    return {
        "test_error": {
            "mean": float(scores.mean()),
            "median": float(np.median(scores)),
            "each": scores.tolist(),
        },
        "best_validation_error": float(_last(rows).mean()),
        "cost_of_all_evaluations": float(_stack(rows, "cost").sum(axis=1).mean()),
        "median_cost_of_the_design": float(
            np.median([row["cost"][np.nanargmin(row["y"])] for row in rows])
        ),
        "median_units_of_the_design": float(np.median(units(intervals, chosen))),
        "mean_layers_of_the_design": float(layers(intervals, chosen).mean()),
        "median_epochs_of_the_design": float(
            np.median([design["epochs"] for design in designs])
        ),
        "median_learning_rate_of_the_design": float(
            np.median([design["learning_rate"] for design in designs])
        ),
        "design_larger_than_a_random_one": larger_than_chance(
            intervals, chosen, uniform
        ),
        "suggestion_larger_than_a_random_one": {
            "mean": float(larger.mean()),
            "interval": interval(larger, config.resamples),
        },
        "median_units_of_suggestions": float(np.median(units(intervals, asked))),
        "mean_layers_of_suggestions": float(layers(intervals, asked).mean()),
        "designs": designs,
    }


def rates(config, errors: np.ndarray) -> dict:
    """Test whether the best learning rate lies inside its interval."""
    mean, top = errors.mean(axis=0), int(np.argmin(errors.mean(axis=0)))
    lowest = errors.argmin(axis=1)
    inside = (lowest > 0) & (lowest < errors.shape[1] - 1)
    both = np.minimum(errors[:, 0], errors[:, -1]) - errors.min(axis=1) > config.drop
    drops = {
        name: {
            "mean": float(mean[end] - mean[top]),
            "interval": interval(errors[:, end] - errors[:, top], config.resamples),
        }
        for name, end in (("drop_at_the_low_end", 0), ("drop_at_the_high_end", -1))
    }
    return {
        "rates": config.swept,
        "mean_accuracy": (1.0 - mean).tolist(),
        "best_rate": config.swept[top],
        **drops,
        "share_of_seeds_with_an_interior_optimum_and_both_drops": float(
            np.mean(inside & both)
        ),
    }


def draw_figure_8(config, columns: list[dict], path: Path) -> None:
    """Draw the classification by the optima of some seeds, and accuracy by learning rate below.

    Args:
        columns: One entry per seed with its run, plane, data, and scores at other rates, if any.
    """
    n = len(columns)
    figure, axes = plt.subplots(
        2,
        n,
        figsize=(5.2 * n, 8.6),
        layout="constrained",
        height_ratios=(1.25, 1),
        squeeze=False,
    )
    for above, below, column in zip(*axes, columns, strict=True):
        data, run = column["data"], column["run"]
        shading.draw(above, column["plane"], {"training points": ("x", data.x, data.y)})
        above.set_title(describe_design(config, run["chosen"]))
        draw_rates(below, config, run, column["scores"])
    for letter, axis in zip("abcdefgh", axes.ravel(), strict=False):
        axis.set_title(f"({letter}) {axis.get_title()}", fontsize="medium")
    figure.legend(
        *axes[1, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    save(figure, path, dpi=140)


def describe_design(config, chosen: np.ndarray) -> str:
    design = config.intervals.space.decode(chosen)
    hidden = [str(n) for name, n in design.items() if name.startswith("units") and n]
    title = f"layers of {', '.join(hidden)} units" if hidden else "no hidden layer"
    return f"{title}, {design['epochs']} epochs, η = {design['learning_rate']:.2f}"


def draw_rates(axis: Axes, config, run: dict, scores: np.ndarray | None) -> None:
    """Draw the optimum with other learning rates, and all evaluations of the search."""
    low, high = config.intervals.rates
    seen, best = (
        low + column * (high - low) for column in (run["x"][:, -1], run["chosen"][-1])
    )
    axis.plot(
        seen,
        1.0 - run["y"],
        "o",
        color="0.65",
        ms=4,
        label="evaluations of the search, of all designs",
    )
    if scores is not None:
        label = "the optimum's layers and epochs, other rates"
        axis.plot(
            config.swept, 1.0 - scores, "-o", color=plots.COLORS[1], ms=4, label=label
        )
    axis.axvline(best, color=plots.COLORS[0], ls=":", label="rate of the optimum")
    axis.set(
        xscale="log",
        xlabel="learning rate η",
        ylabel="accuracy",
        title="accuracy against the learning rate",
    )
    axis.spines[["top", "right"]].set_visible(False)


def draw_searches(config, found: dict[str, list[dict]], path: Path) -> None:
    """Draw progress by evaluations and by cost, test scores, and sizes of suggestions."""
    figure, axes = plt.subplots(2, 2, figsize=(11.4, 8.6), layout="constrained")
    curves = {
        name: np.stack([row["best"] for row in rows]) for name, rows in found.items()
    }
    spent = {
        name: np.stack([np.cumsum(row["cost"]) for row in rows]) / 1e6
        for name, rows in found.items()
    }
    plots.efficiency(curves, ax=axes[0, 0], spread="error")
    plots.efficiency(
        curves, ax=axes[0, 1], spread="error", seconds=spent
    ).get_legend().remove()
    axes[0, 0].axvline(config.initial + 0.5, color="0.6", lw=0.8, ls=":")
    axes[0, 0].set(title="(a) best so far, by evaluations")
    axes[0, 1].set(
        title="(b) best so far, by cost",
        xlabel="cost: millions of parameters × epochs × points",
        xlim=(0, None),
    )
    ends = [curve[:, -1].mean() for curve in curves.values()]
    begins = np.mean([curve[:, config.initial - 1].mean() for curve in curves.values()])
    for axis in axes[0]:
        axis.set(ylabel="best validation error so far", ylim=(0.85 * min(ends), begins))
    for i, (name, rows) in enumerate(found.items()):
        scores = np.array([row["score"] for row in rows])
        axes[1, 0].plot(
            i + np.linspace(-0.15, 0.15, len(scores)),
            scores,
            "o",
            color=plots.COLORS[i],
            ms=4,
            alpha=0.7,
        )
        axes[1, 0].plot(
            [i - 0.25, i + 0.25], [scores.mean()] * 2, color="black", lw=1.8
        )
        asked = np.sort(
            units(
                config.intervals,
                np.concatenate([row["x"][config.initial :] for row in rows]),
            )
        )
        axes[1, 1].step(
            asked,
            np.arange(1, len(asked) + 1) / len(asked),
            color=plots.COLORS[i],
            where="post",
            label=name,
        )
    axes[1, 0].set(
        title="(c) designs found, retrained; bars are means",
        ylabel="error on unseen points",
    )
    axes[1, 0].set_xticks(range(len(found)), list(found))
    axes[1, 1].set(
        title="(d) sizes of suggestions",
        xlabel="hidden units",
        ylabel="cumulative share of suggestions",
    )
    axes[1, 1].legend(frameon=False, loc="upper left")
    for axis in axes[1]:
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, path, dpi=140)
