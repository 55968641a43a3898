"""Compare the designs found with Wilton's, and draw figures 3 to 8."""

from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from bonas import plots
from bonas.search import History
from experiments.figures import save
from experiments.wilton import system as wilton


def number(value) -> float | None:
    """Return a float, or None for NaN, which JSON does not have."""
    return float(value) if np.isfinite(value) else None


def best(trials: list[dict]) -> dict:
    """Return the trial with the lowest loss."""
    return min(
        (trial for trial in trials if trial["loss"] is not None),
        key=lambda trial: trial["loss"],
    )


def values(rows: list[dict], field: str = "loss") -> np.ndarray:
    """Return one number per retraining; failed ones are infinite."""
    return np.array([np.inf if row[field] is None else row[field] for row in rows])


def compare_with_published(rows: dict, name: str, test_rows: int) -> dict:
    """Compare one design with Wilton's; both are retrained with the same keys."""
    ours, theirs = values(rows[name]), values(rows["published"])
    error = (
        (ours - theirs).std(ddof=1) / np.sqrt(len(ours)) if len(ours) > 1 else np.nan
    )
    return {
        "rmse": number(ours.mean() / np.sqrt(test_rows)),
        "ratio": number(ours.mean() / theirs.mean()),
        "ratio_error": number(error / theirs.mean()),
        "retrainings_won": float(np.mean(ours <= theirs)),
    }


def summarize_seed(record: dict, test_rows: int, others: int) -> dict:
    """Summarize one search; other training data are compared on the first retrainings."""
    rows, trials = record["retrained"], record["trials"]
    chosen = {"found": best(trials), "recommended": trials[record["recommended"]]}
    compared = {
        name: some[:others]
        for name, some in rows.items()
        if name not in ("published", "recommended")
    }
    return {
        "seed": record["seed"],
        "rmse_published": number(values(rows["published"]).mean() / np.sqrt(test_rows)),
        **{
            name: {
                "design": trial["design"],
                "iteration": trial["iteration"],
                "members_counted": trial["counted"],
                "search_loss": trial["loss"],
                **compare_with_published(rows, name, test_rows),
            }
            for name, trial in chosen.items()
        },
        "rmse_by_view": {
            name: number(values(some).mean() / np.sqrt(test_rows))
            for name, some in compared.items()
        },
        "near_jumps_by_view": {
            name: number(values(some, "near_jumps").mean())
            for name, some in compared.items()
        },
    }


def summarize_choice(seeds: list[dict], name: str) -> dict:
    """Return whether the claim holds for one way to choose designs."""
    ratios = np.array(
        [np.inf if row[name]["ratio"] is None else row[name]["ratio"] for row in seeds]
    )
    low, median, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    return {
        "median_ratio": number(median),
        "quartiles": [number(low), number(high)],
        "seeds_at_least_as_good": int((ratios <= 1.0).sum()),
        "reached": bool(median <= 1.0),
        "from_the_initial_designs": sum(row[name]["iteration"] == 0 for row in seeds),
    }


def summarize(
    experiment: wilton.Experiment, records: list[dict], *, test_rows: int, others: int
) -> dict:
    """Summarize all seeds."""
    seeds = [summarize_seed(record, test_rows, others) for record in records]
    trials = [trial for record in records for trial in record["trials"]]
    return {
        "published": list(experiment.published),
        "iterations": experiment.iterations,
        "found": summarize_choice(seeds, "found"),
        "recommended": summarize_choice(seeds, "recommended"),
        "failed_evaluations": sum(trial["loss"] is None for trial in trials),
        "views": {
            name: summarize_view(experiment, name, seeds)
            for name in seeds[0]["rmse_by_view"]
            if name != "found"
        },
        "median_seconds": {
            what: float(np.median([trial[f"seconds_to_{what}"] for trial in trials]))
            for what in ("ask", "train")
        },
        "seeds": seeds,
    }


def summarize_view(experiment: wilton.Experiment, name: str, seeds: list[dict]) -> dict:
    """Compare members with other training data with members that see everything."""
    ratios = [row["rmse_by_view"][name] / row["rmse_by_view"]["found"] for row in seeds]
    summary = {
        "median_ratio": float(np.median(ratios)),
        "seeds_better": sum(ratio < 1.0 for ratio in ratios),
    }
    if experiment.jumps:
        near = [
            row["near_jumps_by_view"][name] / row["near_jumps_by_view"]["found"]
            for row in seeds
        ]
        summary |= {
            "median_ratio_near_jumps": float(np.median(near)),
            "seeds_better_near_jumps": sum(r < 1.0 for r in near),
        }
    return summary


WAYS = {
    "found": "the lowest loss of the search, as in Wilton",
    "recommended": "the lowest posterior mean",
}


def report(chosen: int, summary: dict) -> None:
    """Print the tables and whether the claim holds."""
    print(
        f"\nExperiment {chosen}: the best design within {summary['iterations']} iterations, "
        f"compared with {tuple(summary['published'])}"
    )
    for name, way in WAYS.items():
        print(f"\n  {name}: {way}")
        print(
            f"  {'seed':>4}  {'(L, D, N, p)':22} {'iteration':>9} {'RMSE':>7} {'published':>10}"
            f" {'ratio':>15}"
        )
        for row in summary["seeds"]:
            ours = row[name]
            depth, width, members, density = ours["design"].values()
            design, ratio = (
                f"({depth}, {width}, {members}, {density:.3f})",
                f"{ours['ratio']:.3f} ± {ours['ratio_error']:.3f}",
            )
            losses = f"{ours['rmse']:7.2f} {row['rmse_published']:10.2f}"
            print(
                f"  {row['seed']:4}  {design:22} {ours['iteration']:9} {losses} {ratio:>15}"
            )
        result = summary[name]
        low, high = result["quartiles"]
        verdict = (
            "at least as good: reached" if result["reached"] else "worse: NOT reached"
        )
        print(
            f"  median ratio of test losses {result['median_ratio']:.3f}"
            f" (quartiles {low:.3f} to {high:.3f}), {verdict}"
        )
    for name, row in summary["views"].items():
        near = row.get("median_ratio_near_jumps")
        print(
            f"members on {name}: {row['median_ratio']:.3f} of the plain loss"
            + (f", {near:.3f} near jumps" if near else "")
        )


BLUE, VERMILION = plots.COLORS[:2]
# numbers of the figures: data, fits, exploration
NUMBERS = {1: (3, 4, 5), 2: (6, 7, 8)}
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
    """Draw data, fits and search of one seed, and the comparison over all seeds."""
    for name, figure in {
        f"figure_{NUMBERS[number][0]}": _data(experiment, x, data),
        f"figure_{NUMBERS[number][1]}": _fits(SHOWN[number], x, data, trials),
        f"figure_{NUMBERS[number][2]}": _exploration(experiment, trials),
        f"verdict_{number}": _verdict(summary, records),
    }.items():
        save(figure, folder / f"{name}.png", dpi=130)


def _data(experiment: wilton.Experiment, x: np.ndarray, data) -> plt.Figure:
    figure, axes = plt.subplots(
        1, 2, figsize=(10.0, 4.0), sharex=True, sharey=True, layout="constrained"
    )
    for axis, title, rows in zip(
        axes,
        ("training", "test"),
        ((data.x, data.y), (data.valid_x, data.valid_y)),
        strict=True,
    ):
        _truth(axis, experiment, x)
        axis.plot(*rows, ".", color=BLUE, label="data")
        axis.set(title=f"{title} set, {len(rows[0])} rows", xlabel="x")
    axes[0].set_ylabel("y")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )
    return figure


def _truth(axis, experiment: wilton.Experiment, x: np.ndarray) -> None:
    """Draw the noiseless function with a gap at each jump."""
    y = experiment.truth(x)
    for jump in experiment.jumps:
        y[np.searchsorted(x, jump) - 1] = np.nan
    axis.plot(x, y, color="0.55", lw=1.2, label="without noise")


def _fits(
    shown: tuple[int, ...], x: np.ndarray, data, trials: list[dict]
) -> plt.Figure:
    """Draw fits by iteration; iteration 0 is the best initial design."""
    initial = [trial for trial in trials if trial["iteration"] == 0]
    chosen = {
        0: min(
            initial,
            key=lambda trial: trial["loss"] if trial["loss"] is not None else np.inf,
        )
    }
    chosen |= {trial["iteration"]: trial for trial in trials if trial["iteration"] > 0}
    panels = [chosen[i] for i in shown if i in chosen]
    figure, axes = plt.subplots(
        2, 2, figsize=(10.0, 7.0), sharex=True, sharey=True, layout="constrained"
    )
    for axis, trial in zip(axes.flat, panels, strict=False):
        mean, std = (np.array(trial["fit"][name], float) for name in ("mean", "std"))
        axis.plot(data.x, data.y, ".", color="0.7", ms=4, label="training data")
        axis.plot(x, mean, color=VERMILION, lw=1.6, label="ensemble")
        axis.fill_between(
            x,
            mean - 2 * std,
            mean + 2 * std,
            color=VERMILION,
            alpha=0.2,
            lw=0,
            label="± 2 sd of its members",
        )
        depth, width, members, density = trial["design"].values()
        loss = "failed" if trial["loss"] is None else f"test loss {trial['loss']:.1f}"
        axis.set_title(
            f"iteration {trial['iteration']}: ({depth}, {width}, {members}, {density:.3f}), {loss}",
            fontsize=10,
        )
    y = np.asarray(data.y)
    axes[0, 0].set_ylim(y.min() - 0.1 * np.ptp(y), y.max() + 0.1 * np.ptp(y))
    for axis in axes[-1]:
        axis.set_xlabel("x")
    for axis in axes[:, 0]:
        axis.set_ylabel("y")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    return figure


def _exploration(experiment: wilton.Experiment, trials: list[dict]) -> plt.Figure:
    """Draw the designs and their losses in the order of the search."""
    y = np.array(
        [np.nan if trial["loss"] is None else trial["loss"] for trial in trials]
    )
    x, initial = (
        jnp.asarray([trial["u"] for trial in trials]),
        sum(trial["iteration"] == 0 for trial in trials),
    )
    figure, axes = plt.subplots(
        5, 1, figsize=(7.0, 9.0), sharex=True, layout="constrained"
    )
    steps, lowest = np.arange(1, len(y) + 1), np.fmin.accumulate(y)
    axes[0].plot(steps, y, "o", color=BLUE, ms=4, label="test loss")
    axes[0].step(steps, lowest, where="post", color=VERMILION, label="best so far")
    axes[0].set_ylabel("test loss")
    axes[0].spines[["top", "right"]].set_visible(False)
    axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    axes[0].set_title(
        "initial designs left of the dotted line", loc="left", fontsize=10
    )
    plots.choices(History(x, y, lowest, None, None), experiment.space, axes=axes[1:])
    for axis in axes:
        axis.axvline(initial + 0.5, color="0.6", lw=0.8, ls=":")
    return figure


def _verdict(summary: dict, records: list[dict]) -> plt.Figure:
    """Draw every retraining relative to the mean of Wilton's design."""
    figure, axis = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    for i, record in enumerate(records):
        rows = {
            name: np.array([row["loss"] for row in record["retrained"][name]], float)
            for name in ("published", "found", "recommended")
        }
        unit = rows["published"].mean()
        for (name, losses), shift, color in zip(
            rows.items(), (-0.22, 0.0, 0.22), plots.COLORS, strict=False
        ):
            label = {
                "published": "Wilton's design",
                "found": "least loss of the search",
                "recommended": "least posterior mean",
            }[name]
            axis.plot(
                np.full(len(losses), i + shift),
                losses / unit,
                ".",
                color=color,
                alpha=0.6,
                label=label if not i else None,
            )
            axis.plot(
                [i + shift - 0.09, i + shift + 0.09],
                [losses.mean() / unit] * 2,
                color=color,
                lw=2,
            )
    axis.axhline(1.0, color="0.6", lw=0.8, zorder=0)
    axis.set(
        xlabel="seed",
        ylabel="test loss / mean of Wilton's design",
        xticks=range(len(records)),
    )
    axis.set_title(
        f"{tuple(summary['published'])} and designs found, each retrained; bars are means",
        fontsize=10,
    )
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure
