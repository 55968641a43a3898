"""Summarize the searches in many dimensions, compare them and draw their regrets."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from bonas import plots
from experiments.beyond.high_problems import CASES, TITLES, Case
from experiments.beyond.high_searches import CHANCE, EVEN, METHODS, NETWORK, SAAS
from experiments.compare import paired, quartiles
from experiments.figures import save


def best(runs: list[dict]) -> np.ndarray:
    """Return the running minimum (seeds, steps)."""
    return np.minimum.accumulate(np.array([run["values"] for run in runs]), axis=1)


def summarize(config, case: Case, found: dict[str, list[dict]]) -> dict:
    optimum = case.problem.optimum
    regret = {
        name: dict(
            zip([run["seed"] for run in runs], best(runs) - optimum, strict=True)
        )
        for name, runs in found.items()
    }
    return {
        "problem": case.problem.name,
        "columns": case.problem.space.dim,
        "optimum": optimum,
        "assumptions_that_hold": sorted(case.holds),
        "searches": {
            name: summarize_method(config, case, name, runs)
            for name, runs in found.items()
        },
        "pairs": pairs(config, regret),
        "mean_ranks": ranks(regret),
    }


def summarize_method(config, case: Case, name: str, runs: list[dict]) -> dict:
    regret = best(runs) - case.problem.optimum
    warm = [run for run in runs if not run["compiled"]]
    return {
        "needs": METHODS[name].needs,
        "holds": METHODS[name].needs in case.holds,
        "seeds": len(runs),
        "final_regret": quartiles(regret[:, -1]),
        "mean_regret_of_all_suggestions": float(regret[:, config.initial :].mean()),
        "median_curve": np.median(regret, axis=0).tolist(),
        "random_asks": float(np.mean([run["random"] for run in runs])),
        "converged_fits": float(np.mean([run["converged"] for run in runs])),
        "restarts": float(np.mean([run["restarts"] for run in runs])),
        # the first run of a call compiles and is excluded
        "cpu_seconds_a_seed": float(np.median([run["cpu_seconds"] for run in warm]))
        if warm
        else None,
        "cpu_seconds_compiling": float(np.max([run["cpu_seconds"] for run in runs]))
        if len(warm) < len(runs)
        else None,
    }


def pairs(config, regret: dict[str, dict[int, np.ndarray]]) -> dict:
    """Compare regrets in pairs on the seeds that both have; negative means the first is better."""
    made = {}
    for theirs in (CHANCE, EVEN):
        for ours in regret:
            common = sorted(set(regret[ours]) & set(regret.get(theirs, ())))
            if ours != theirs and common:
                a, b = (
                    np.stack([regret[name][seed] for seed in common])
                    for name in (ours, theirs)
                )
                made[f"{ours} against {theirs}"] = {
                    "seeds": len(common),
                    "final_regret": paired(a[:, -1], b[:, -1], config.resamples),
                    "log_final_regret": paired(
                        *(np.log10(values[:, -1] + TINY) for values in (a, b)),
                        config.resamples,
                    ),
                }
    return made


TINY = 1e-12  # added before a logarithm: the rounding error of the optimum


def ranks(regret: dict[str, dict[int, np.ndarray]]) -> dict[str, float]:
    """Return mean ranks of the final regret among the methods with all seeds; 1 is best."""
    most = max(len(each) for each in regret.values())
    full = {name: each for name, each in regret.items() if len(each) == most}
    final = np.array(
        [[each[seed][-1] for seed in sorted(each)] for each in full.values()]
    )
    order = final.argsort(axis=0).argsort(axis=0) + 1
    return dict(zip(full, order.mean(axis=1).tolist(), strict=True))


# The first figure shows the methods that differ most; the second shows all.
MAIN = (
    CHANCE,
    "Matérn",
    "Matérn, long scales",
    "REMBO, low",
    "Add-GP-UCB",
    "TuRBO-1",
    NETWORK,
    SAAS,
)
NARROW = 100.0  # ratio of the highest to the lowest regret in a panel
BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, _ = plots.COLORS
COLORS = dict(
    zip(MAIN, (BLACK, BLUE, SKY, PINK, GREEN, RED, ORANGE, "0.55"), strict=True)
)


def draw_progress(config, found: dict[str, dict[str, list[dict]]], path: Path) -> None:
    """Draw median regrets with quartiles, one panel per problem and one for the legend."""
    figure, axes = _panels(len(found) + 1, 3.4)
    for axis, (name, methods) in zip(axes, found.items(), strict=False):
        for method in (method for method in MAIN if methods.get(method)):
            regret = best(methods[method]) - CASES[name].problem.optimum
            low, line, high = np.quantile(regret, [0.25, 0.5, 0.75], axis=0)
            steps = np.arange(1, regret.shape[1] + 1)
            axis.plot(
                steps,
                line,
                color=COLORS[method],
                lw=1.6,
                ls="--" if method == CHANCE else "-",
                label=method,
            )
            axis.fill_between(steps, low, high, color=COLORS[method], alpha=0.10, lw=0)
        axis.axvline(config.initial + 0.5, color="0.6", lw=0.8, ls=":")
        axis.set(
            title=TITLES[name],
            yscale="log",
            xlim=(1, None),
            xlabel="evaluations",
            ylabel="regret of the best so far",
        )
        _ticks(axis.yaxis, *axis.get_ylim())
        axis.spines[["top", "right"]].set_visible(False)
    handles = {
        label: handle
        for axis in axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    axes[len(found)].legend(
        handles.values(),
        handles.keys(),
        loc="center",
        frameon=False,
        title="median and quartiles over seeds",
    )
    for axis in axes[len(found) :]:
        axis.axis("off")
    save(figure, path)


def draw_finals(results: dict, path: Path) -> None:
    """Draw final regrets of all methods, filled if the method's assumption holds."""
    figure, axes = _panels(
        len(results), 3.9, columns=len(results), width=3.1, sharey=True
    )
    names = [
        name
        for name in METHODS
        if any(name in result["searches"] for result in results.values())
    ][::-1]
    for axis, (case, result) in zip(axes, results.items(), strict=True):
        for i, name in enumerate(names):
            row = result["searches"].get(name)
            if row is None:
                continue
            final = row["final_regret"]
            color = BLACK if name in (CHANCE, EVEN) else BLUE
            axis.plot([final["quartile"], final["upper"]], [i, i], color=color, lw=1.4)
            axis.plot(
                final["median"],
                i,
                "o",
                ms=6,
                color=color,
                mfc=color if row["holds"] else "white",
            )
        chance = result["searches"].get(CHANCE)
        if chance:
            axis.axvline(
                chance["final_regret"]["median"], color="0.6", lw=0.8, ls="--", zorder=0
            )
        axis.set(
            title=TITLES[case].replace(": ", ":\n"),
            xscale="log",
            xlabel="regret after the last evaluation",
        )
        _ticks(axis.xaxis, *axis.get_xlim())
        axis.grid(axis="y", color="0.92", lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(
        range(len(names)), [f"{name} ({METHODS[name].needs})" for name in names]
    )
    figure.suptitle(
        "median and quartiles over seeds; assumptions in brackets, hollow circles where they fail"
    )
    save(figure, path)


def _ticks(axis, low: float, high: float) -> None:
    """Show powers of ten, and 1, 2 and 5 as plain numbers on short axes."""
    if high / low < NARROW:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())


def _panels(n: int, height: float, columns: int = 3, width: float = 4.4, **options):
    rows, columns = -(-n // columns), min(columns, n)
    size = (max(width * columns, 9.0), height * rows)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False, **options
    )
    return figure, axes.reshape(-1)
