"""Figures 10 and 11 of Agrawal."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from network_search.verdicts import GP, NETWORK
from script import stages

import bonas
from bonas import plots
from bonas.problems import functions
from bonas.search import Search, Trial

LOOK = {NETWORK: ("#0072B2", "o"), GP: ("#009E73", "s")}  # blue and green, as in Agrawal's figures
TITLES = {"six_hump_camel": "six-hump camel", "mccormick": "McCormick"}
FLOOR = 1e-6  # of the regret that is drawn


def efficiency(config, curves: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """Figure 11: running minima, circles the median, lines the quartiles; and the same as regret below."""
    figure, axes = plt.subplots(2, len(curves), figsize=(4.2 * len(curves), 7), layout="constrained", squeeze=False)
    for column, (name, rows) in enumerate(curves.items()):
        optimum, initial = getattr(functions, name).optimum, dict(config.initial)[name]
        top, bottom = axes[:, column]
        for label, best in rows.items():
            _quartiles(top, best, label)
            _quartiles(bottom, np.maximum(best - optimum, FLOOR), label)
        start = np.median(np.concatenate([best[:, initial - 1] for best in rows.values()]))
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
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), len(curves)), frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _quartiles(axis, values: np.ndarray, label: str) -> None:
    colour, marker = LOOK[label]
    times, (low, middle, high) = np.arange(1, values.shape[1] + 1), np.quantile(values, [0.25, 0.5, 0.75], axis=0)
    axis.plot(times, middle, marker, color=colour, markersize=4, fillstyle="none", label=label)
    axis.plot(times, low, color=colour, lw=0.9)
    axis.plot(times, high, color=colour, lw=0.9)


def others(config, curves: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """Regret of every surrogate: medians over the repeats that all of them have."""
    figure, axes = plt.subplots(1, len(curves), figsize=(4.2 * len(curves), 4.2), layout="constrained", squeeze=False)
    for axis, (name, rows) in zip(axes[0], curves.items(), strict=True):
        n = min(map(len, rows.values()))
        for i, (label, best) in enumerate(rows.items()):
            regret = np.maximum(np.median(best[:n] - getattr(functions, name).optimum, axis=0), FLOOR)
            axis.plot(np.arange(1, len(regret) + 1), regret, color=plots.COLOURS[i], label=label)
        axis.set(yscale="log", xlabel="evaluations", title=TITLES.get(name, name.capitalize()))
        axis.axvline(dict(config.initial)[name] + 0.5, color="0.6", lw=0.8, ls=":")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel(f"median regret of {n} run{'s' * (n > 1)}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2 * len(curves), frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def iterations(config, search: Search, surrogate, out: Path) -> dict:
    """Figure 10: the model, the bound and the proposal of every iteration, from the random points; and the proposals."""
    problem, model = functions.forrester, surrogate.adapt(functions.forrester.space)
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    bound = partial(bonas.lcb, kappa=config.kappa)
    init_key, run_key = jax.random.split(jax.random.key(config.pictured))
    state, proposals = search.init(init_key, config.shown + config.iterations), []
    figure, panels = stages.pairs_of_axes(config.iterations, height=5.0)
    for i in range(config.shown + config.iterations):
        data = state.record.data
        x, state, _ = ask(jax.random.fold_in(run_key, i), state)
        y = problem.objective(run_key, x[0])
        if i >= config.shown:
            _panel(panels[i - config.shown], model, jax.tree.map(lambda leaf: leaf[0], state.model), data, bound, x[0], y)
            panels[i - config.shown, 0].set_title(f"iteration {i - config.shown + 1}")
            proposals.append({"x": float(x[0, 0]), "y": float(y)})
        state = tell(state, Trial(x=x[0], y=y, step=jnp.asarray(0), cost=jnp.ones(()), ok=jnp.asarray(True)))
    stages.tidy(figure, panels, value="value", acquisition="κ std − mean")
    figure.savefig(out / "figure_10.png", dpi=130)
    plt.close(figure)
    return {"seed": config.pictured, "initial": config.shown, "proposals": proposals, "optimum": problem.optimum}


def _panel(axes, model, fitted, data, bound, x, y) -> None:
    """One iteration, in the units of the function."""
    _, centre, unit = bonas.standardise(data)

    def score(rows):
        mean, std = model.predict(fitted, rows)
        return bound(mean, std, jnp.zeros(len(mean)))

    plots.posterior_slice(
        model, fitted, functions.forrester.space, data=data, objective=functions.forrester.objective,
        acquisition=score, scale=(centre, unit), axes=list(axes),
    )  # fmt: skip
    axes[0].plot(float(x[0]), float(y), "*", color="#D55E00", markersize=13, zorder=5, label="proposal and its value")
