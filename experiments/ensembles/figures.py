"""Figures 3 to 8 of Wilton, and one of the verdict."""

from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from bonas import plots
from bonas.problems import wilton
from bonas.search import History

BLUE, VERMILION = plots.COLOURS[:2]
NUMBERS = {1: (3, 4, 5), 2: (6, 7, 8)}  # of the figures: data, fits, exploration
SHOWN = {1: (0, 1, 2, 13), 2: (0, 1, 2, 3)}  # iterations of figures 4 and 7


def draw(
    number: int,
    experiment: wilton.Experiment,
    x: np.ndarray,
    data,
    trials: list[dict],
    summary: dict,
    records: list[dict],
    folder: Path,
) -> None:
    """All figures of one experiment: the data, the fits and the search of one seed, and the verdict over all."""
    for name, figure in {
        f"figure_{NUMBERS[number][0]}": _data(experiment, x, data),
        f"figure_{NUMBERS[number][1]}": _fits(SHOWN[number], x, data, trials),
        f"figure_{NUMBERS[number][2]}": _exploration(experiment, trials),
        f"verdict_{number}": _verdict(summary, records),
    }.items():
        figure.savefig(folder / f"{name}.png", dpi=130)
        plt.close(figure)


def _data(experiment: wilton.Experiment, x: np.ndarray, data) -> plt.Figure:
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 4.0), sharex=True, sharey=True, layout="constrained")
    for axis, title, rows in zip(axes, ("training", "test"), ((data.x, data.y), (data.valid_x, data.valid_y)), strict=True):
        _truth(axis, experiment, x)
        axis.plot(*rows, ".", color=BLUE, label="data")
        axis.set(title=f"{title} set, {len(rows[0])} rows", xlabel="x")
    axes[0].set_ylabel("y")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def _truth(axis, experiment: wilton.Experiment, x: np.ndarray) -> None:
    """The function without noise, with a gap at each jump."""
    y = experiment.truth(x)
    for jump in experiment.jumps:
        y[np.searchsorted(x, jump) - 1] = np.nan
    axis.plot(x, y, color="0.55", lw=1.2, label="without noise")


def _fits(shown: tuple[int, ...], x: np.ndarray, data, trials: list[dict]) -> plt.Figure:
    """Iteration 0 is the best of the initial designs."""
    initial = [trial for trial in trials if trial["iteration"] == 0]
    chosen = {0: min(initial, key=lambda trial: trial["loss"] if trial["loss"] is not None else np.inf)}
    chosen |= {trial["iteration"]: trial for trial in trials if trial["iteration"] > 0}
    panels = [chosen[i] for i in shown if i in chosen]
    figure, axes = plt.subplots(2, 2, figsize=(10.0, 7.0), sharex=True, sharey=True, layout="constrained")
    for axis, trial in zip(axes.flat, panels, strict=False):
        mean, std = (np.array(trial["fit"][name], float) for name in ("mean", "std"))
        axis.plot(data.x, data.y, ".", color="0.7", ms=4, label="training data")
        axis.plot(x, mean, color=VERMILION, lw=1.6, label="ensemble")
        axis.fill_between(x, mean - 2 * std, mean + 2 * std, color=VERMILION, alpha=0.2, lw=0, label="± 2 sd of its members")
        depth, width, members, density = trial["design"].values()
        loss = "failed" if trial["loss"] is None else f"test loss {trial['loss']:.1f}"
        axis.set_title(f"iteration {trial['iteration']}: ({depth}, {width}, {members}, {density:.3f}), {loss}", fontsize=10)
    y = np.asarray(data.y)
    axes[0, 0].set_ylim(y.min() - 0.1 * np.ptp(y), y.max() + 0.1 * np.ptp(y))
    for axis in axes[-1]:
        axis.set_xlabel("x")
    for axis in axes[:, 0]:
        axis.set_ylabel("y")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _exploration(experiment: wilton.Experiment, trials: list[dict]) -> plt.Figure:
    """What was tried, and what came of it."""
    y = np.array([np.nan if trial["loss"] is None else trial["loss"] for trial in trials])
    x, initial = jnp.asarray([trial["u"] for trial in trials]), sum(trial["iteration"] == 0 for trial in trials)
    figure, axes = plt.subplots(5, 1, figsize=(7.0, 9.0), sharex=True, layout="constrained")
    steps, so_far = np.arange(1, len(y) + 1), np.fmin.accumulate(y)
    axes[0].plot(steps, y, "o", color=BLUE, ms=4, label="test loss")
    axes[0].step(steps, so_far, where="post", color=VERMILION, label="least so far")
    axes[0].set_ylabel("test loss")
    axes[0].spines[["top", "right"]].set_visible(False)
    axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    axes[0].set_title("initial designs left of the dotted line", loc="left", fontsize=10)
    plots.choices(History(x, y, so_far, None, None), experiment.space, axes=axes[1:])
    for axis in axes:
        axis.axvline(initial + 0.5, color="0.6", lw=0.8, ls=":")
    return figure


def _verdict(summary: dict, records: list[dict]) -> plt.Figure:
    """Every retraining of the design found, relative to the average of Wilton's, seed by seed."""
    figure, axis = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    for i, record in enumerate(records):
        rows = {
            name: np.array([row["loss"] for row in record["retrained"][name]], float)
            for name in ("published", "found", "recommended")
        }
        unit = rows["published"].mean()
        for (name, losses), shift, colour in zip(rows.items(), (-0.22, 0.0, 0.22), plots.COLOURS, strict=False):
            label = {
                "published": "Wilton's design",
                "found": "least loss of the search",
                "recommended": "least posterior mean",
            }[name]
            axis.plot(
                np.full(len(losses), i + shift), losses / unit, ".", color=colour, alpha=0.6, label=label if not i else None
            )
            axis.plot([i + shift - 0.09, i + shift + 0.09], [losses.mean() / unit] * 2, color=colour, lw=2)
    axis.axhline(1.0, color="0.6", lw=0.8, zorder=0)
    axis.set(xlabel="seed", ylabel="test loss / mean of Wilton's design", xticks=range(len(records)))
    axis.set_title(f"{tuple(summary['published'])} and designs found, each trained anew; bars are means", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure
