"""Compare the network with the GP, and draw Agrawal's figures 10 and 11."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

import bonas
from bonas import plots
from bonas.problems import functions
from bonas.search import Observation, Search
from experiments import compare, figures
from experiments.compare import quartiles

NETWORK, GP = "network", "GP"
ACQUISITIONS = ("lcb", "log_ei")
# smaller regrets are raised to this; the difference is irrelevant in practice
SMALLEST = 1e-4

# Agrawal's claims by function
CLAIMS = {
    "forrester": "the network is competitive with the GP",
    "rosenbrock": "the network finds the minimum after roughly 7 iterations; "
    "the GP does not always succeed",
    "mccormick": "the network is better at first, then converges slightly above the minimum; "
    "the GP finds it",
    "six_hump_camel": "the GP is much better; the network is stuck in a local optimum",
}
# By function: evaluations, and the regret that the median of the network's repeats should reach.
# We interpret "finds the minimum" on Rosenbrock as a regret of 0.1, the width of a line in
# Agrawal's figure, after 5 points and 7 iterations.
GOALS = {
    "forrester": (15, 1e-2),
    "rosenbrock": (12, 0.1),
    "mccormick": (40, 1e-2),
    "six_hump_camel": (40, 1e-2),
}


def summarize(config, curves: dict, shown: dict) -> dict:
    """Summarize every method, compare the network with the GP in pairs, and check the goals."""
    results = {
        part: {
            acquisition: {
                name: {label: numbers(name, best) for label, best in rows.items()}
                for name, rows in by_function.items()
            }
            for acquisition, by_function in found.items()
        }
        for part, found in curves.items()
    }
    against, goals = {}, {}
    for acquisition, by_function in curves["runs"].items():
        for name, rows in by_function.items():
            if NETWORK in rows:
                goals.setdefault(name, {})[acquisition] = goal(
                    name, rows[NETWORK], dict(config.initial)[name]
                )
            if {NETWORK, GP} <= set(rows):
                against.setdefault(name, {})[acquisition] = compare_pairs(
                    config, name, rows
                )
    return {
        "claims": {name: CLAIMS[name] for name, _ in config.initial},
        "goals": goals,
        "network_against_gp": against,
        "figure_10": shown,
        "results": results,
    }


def numbers(name: str, best: np.ndarray) -> dict:
    regret = best - getattr(functions, name).optimum
    medians = np.median(regret, axis=0)
    reached = {f"{level:g}": np.flatnonzero(medians < level) for level in (0.1, 0.01)}
    return {
        "repeats": len(best),
        "final_regret": quartiles(regret[:, -1]),
        "share_below_0.01": float((regret[:, -1] < 0.01).mean()),
        "evaluations_until_median_below": {
            level: int(at[0]) + 1 if len(at) else None for level, at in reached.items()
        },
        "median_curve": medians.tolist(),
    }


def goal(name: str, best: np.ndarray, initial: int) -> dict | None:
    """Return whether the median reaches its goal, or None if the runs are too short.

    `share_of_start` is the median relative to the one after the initial points, where Agrawal's
    axis starts.
    """
    evaluations, level = GOALS[name]
    if best.shape[1] < evaluations:
        return None
    medians = np.median(best - getattr(functions, name).optimum, axis=0)
    median, start = float(medians[evaluations - 1]), float(medians[initial - 1])
    return {
        "evaluations": evaluations,
        "wanted_below": level,
        "median_regret": median,
        "reached": median < level,
        "share_of_start": median / start,
    }


def compare_pairs(config, name: str, rows: dict[str, np.ndarray]) -> dict:
    """Compare log10 of the final regrets of the network and the GP in pairs of seeds."""
    n = min(len(rows[NETWORK]), len(rows[GP]))
    logs = [
        np.log10(
            np.maximum(rows[who][:n, -1] - getattr(functions, name).optimum, SMALLEST)
        )
        for who in (NETWORK, GP)
    ]
    return compare.paired(*logs, config.resamples)


def show(results: dict) -> None:
    print(
        f"{'function':15} {'acquisition':12} {'surrogate':20} {'median regret':>13}"
        f" {'quartiles':>20}  < 0.1, < 0.01 after"
    )
    for found in results["results"].values():
        for acquisition, by_function in found.items():
            for name, rows in by_function.items():
                for label, row in rows.items():
                    final, after = (
                        row["final_regret"],
                        row["evaluations_until_median_below"],
                    )
                    band = f"{final['quartile']:.1e} – {final['upper']:.1e}"
                    when = ", ".join(str(at or "never") for at in after.values())
                    print(
                        f"{name:15} {acquisition:12} {label:20} {final['median']:13.1e}"
                        f" {band:>20}  {when}"
                    )
    for name, by_acquisition in results["goals"].items():
        for acquisition, row in by_acquisition.items():
            if row:
                share = f"{row['share_of_start']:.1%} of the initial regret"
                goal = (
                    f"goal {row['wanted_below']:g}: {'yes' if row['reached'] else 'no'}"
                )
                print(
                    f"{name}, {acquisition}: median regret {row['median_regret']:.1e} ({share})"
                    f" after {row['evaluations']} evaluations, {goal}"
                )


# blue and green, as in Agrawal's figures
LOOK = {NETWORK: (figures.BLUE, "o"), GP: (figures.GREEN, "s")}
TITLES = {"six_hump_camel": "six-hump camel", "mccormick": "McCormick"}
FLOOR = 1e-6  # smallest regret on the axis


def draw_efficiency(
    config, curves: dict[str, dict[str, np.ndarray]], path: Path
) -> None:
    """Draw figure 11: medians and quartiles of the running minima, with the regret below."""
    figure, axes = plt.subplots(
        2,
        len(curves),
        figsize=(4.2 * len(curves), 7),
        layout="constrained",
        squeeze=False,
    )
    for column, (name, rows) in enumerate(curves.items()):
        optimum, initial = getattr(functions, name).optimum, dict(config.initial)[name]
        top, bottom = axes[:, column]
        for label, best in rows.items():
            _quartiles(top, best, label)
            _quartiles(bottom, np.maximum(best - optimum, FLOOR), label)
        start = np.median(
            np.concatenate([best[:, initial - 1] for best in rows.values()])
        )
        top.set(
            title=TITLES.get(name, name.capitalize()),
            ylim=(optimum - 0.05 * (start - optimum), start + 0.05 * (start - optimum)),
        )
        top.axhline(optimum, color="0.6", lw=0.8)
        bottom.set(yscale="log", xlabel="evaluations")
        for axis in (top, bottom):
            axis.axvline(initial + 0.5, color="0.6", lw=0.8, ls=":")
            axis.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("running minimum")
    axes[1, 0].set_ylabel("regret: running minimum − optimum")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    repeats = max(len(best) for rows in curves.values() for best in rows.values())
    labels = [f"{label}: median and quartiles of {repeats} runs" for label in labels]
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(len(labels), len(curves)),
        frameon=False,
    )
    figures.save(figure, path, dpi=130)


def _quartiles(axis, values: np.ndarray, label: str) -> None:
    color, marker = LOOK[label]
    times, (low, middle, high) = (
        np.arange(1, values.shape[1] + 1),
        np.quantile(values, [0.25, 0.5, 0.75], axis=0),
    )
    axis.plot(
        times, middle, marker, color=color, markersize=4, fillstyle="none", label=label
    )
    axis.plot(times, low, color=color, lw=0.9)
    axis.plot(times, high, color=color, lw=0.9)


def draw_others(config, curves: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """Draw the median regret of every surrogate over the repeats that all of them have."""
    figure, axes = plt.subplots(
        1,
        len(curves),
        figsize=(4.2 * len(curves), 4.2),
        layout="constrained",
        squeeze=False,
    )
    for axis, (name, rows) in zip(axes[0], curves.items(), strict=True):
        n = min(map(len, rows.values()))
        for i, (label, best) in enumerate(rows.items()):
            regret = np.maximum(
                np.median(best[:n] - getattr(functions, name).optimum, axis=0), FLOOR
            )
            axis.plot(
                np.arange(1, len(regret) + 1),
                regret,
                color=plots.COLORS[i],
                label=label,
            )
        axis.set(
            yscale="log",
            xlabel="evaluations",
            title=TITLES.get(name, name.capitalize()),
        )
        axis.axvline(dict(config.initial)[name] + 0.5, color="0.6", lw=0.8, ls=":")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel(f"median regret of {n} run{'s' * (n > 1)}")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2 * len(curves),
        frameon=False,
    )
    figures.save(figure, path, dpi=130)


def draw_iterations(config, search: Search, surrogate, out: Path) -> dict:
    """Draw figure 10, the model and the bound at every iteration, and return the proposals."""
    problem, model = functions.forrester, surrogate.adapt(functions.forrester.space)
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    bound = partial(bonas.lcb, kappa=config.kappa)
    init_key, run_key = jax.random.split(jax.random.key(config.pictured))
    state, proposals = search.init(init_key, config.shown + config.iterations), []
    figure, panels = figures.stage_axes(config.iterations, height=5.0)
    for i in range(config.shown + config.iterations):
        data = state.observations.data
        x, state, _ = ask(jax.random.fold_in(run_key, i), state)
        y = problem.objective(run_key, x[0])
        if i >= config.shown:
            _panel(
                panels[i - config.shown],
                model,
                jax.tree.map(lambda leaf: leaf[0], state.model),
                data,
                bound,
                x[0],
                y,
            )
            panels[i - config.shown, 0].set_title(f"iteration {i - config.shown + 1}")
            proposals.append({"x": float(x[0, 0]), "y": float(y)})
        state = tell(
            state,
            Observation(
                x=x[0],
                y=y,
                step=jnp.asarray(0),
                cost=jnp.ones(()),
                ok=jnp.asarray(True),
            ),
        )
    figures.finish_stages(figure, panels, value="value", acquisition="κ std − mean")
    figures.save(figure, out / "figure_10.png", dpi=130)
    return {
        "seed": config.pictured,
        "initial": config.shown,
        "proposals": proposals,
        "optimum": problem.optimum,
    }


def _panel(axes, model, fitted, data, bound, x, y) -> None:
    """Draw one iteration in the units of the function."""
    _, center, unit = bonas.standardize(data)

    def score(rows):
        mean, std = model.predict(fitted, rows)
        return bound(mean, std, jnp.zeros(len(mean)))

    plots.posterior_slice(
        model,
        fitted,
        functions.forrester.space,
        data=data,
        objective=functions.forrester.objective,
        acquisition=score,
        scale=(center, unit),
        axes=list(axes),
    )
    axes[0].plot(
        float(x[0]),
        float(y),
        "*",
        color=figures.VERMILION,
        markersize=13,
        zorder=5,
        label="proposal and its value",
    )
