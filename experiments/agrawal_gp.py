"""How fast does GP-based optimisation find the minima of Agrawal's figure 11? The GP side of it, 50 repeats (G-E4).

Four functions, running minimum, circles the median, lines the quartiles. The claims about the GP: competitive on
Forrester, "does not always succeed" on Rosenbrock, finds the minimum of McCormick, and of the six-hump camel. Agrawal's
GP is GPyOpt's; kernel, acquisition settings and the number of iterations are not stated, nor the camel's initial points.
Here: Matérn 5/2 with a lower confidence bound (eq. 5.5) on plain values, the nearest to the document; the default of
bonas; and random search. All start from the same random points in a repeat.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
from network_search.four import EVALUATIONS, INITIAL, KAPPA
from script import flags, ready, record

import bonas
from bonas import gp, plots, surrogates
from bonas.problems import functions
from bonas.search import Search, random


@dataclass(frozen=True)
class Config:
    initial: tuple[tuple[str, int], ...] = INITIAL
    evaluations: int = EVALUATIONS
    kappa: float = KAPPA
    success: float = 1e-2  # a run whose regret ends below this has found the minimum: no wider than a line of the figure
    repeats: int = 50  # stated


SMOKE = Config(initial=(("forrester", 2),), evaluations=6, repeats=2)


def contenders(config: Config, problem: functions.Problem, initial: int) -> dict[str, Search]:
    matern = surrogates.gp(gp.matern52())
    bound = bonas.acquire.closed(bonas.lcb, kappa=config.kappa)
    return {
        "GP, lower confidence bound": bonas.bayes(
            problem.space, surrogate=matern, acquisition=bound, output="plain", initial=initial
        ),
        "bonas": bonas.bayes(problem.space, initial=initial),
        "random": random(problem.space),
    }


def curves(config: Config, name: str, initial: int) -> dict[str, np.ndarray]:
    """Running minima (repeats, evaluations) of every contender."""
    problem = getattr(functions, name)
    keys = jax.random.split(jax.random.key(0), config.repeats)
    found = {}
    for label, search in contenders(config, problem, initial).items():
        found[label] = np.asarray(bonas.run_many(search, problem.objective, keys, config.evaluations, progress=True).best)
    return found


def summarise(config: Config, name: str, best: np.ndarray) -> dict:
    regret = best - getattr(functions, name).optimum
    medians = np.median(regret, axis=0)
    reached = np.flatnonzero(medians < config.success)
    return {
        "final_regret": dict(zip(("quartile", "median", "upper"), np.quantile(regret[:, -1], [0.25, 0.5, 0.75]), strict=True)),
        "share_that_succeed": float((regret[:, -1] < config.success).mean()),
        "evaluations_until_the_median_succeeds": int(reached[0]) + 1 if len(reached) else None,
        "median_curve": medians.tolist(),
    }


def draw(config: Config, found: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """Figure 11 in its own units, and the regret below."""
    figure, axes = plt.subplots(2, len(found), figsize=(4.2 * len(found), 7), layout="constrained", squeeze=False)
    for column, (name, methods) in enumerate(found.items()):
        optimum, initial = getattr(functions, name).optimum, dict(config.initial)[name]
        for row, level in enumerate((None, optimum)):
            axis = plots.efficiency(methods, ax=axes[row, column], optimum=level)
            axis.axvline(initial + 0.5, color="0.6", lw=0.8, ls=":")
            if column or row:
                axis.get_legend().remove()
        top = np.median(methods["random"][:, initial - 1])  # where a typical run stands after the initial points
        axes[0, column].set(title=name.replace("_", " "), ylim=(optimum - 0.05 * (top - optimum), top))
        axes[0, column].axhline(optimum, color="0.6", lw=0.8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def report(results: dict) -> None:
    print(f"{'function':16} {'search':28} {'median regret':>13} {'quartiles':>20} {'succeed':>8}  median there after")
    for name, methods in results.items():
        for label, row in methods.items():
            final = row["final_regret"]
            after = row["evaluations_until_the_median_succeeds"] or "never"
            band = f"{final['quartile']:.1e} – {final['upper']:.1e}"
            print(f"{name:16} {label:28} {final['median']:13.1e} {band:>20} {row['share_that_succeed']:8.0%}  {after}")


def main() -> None:
    parser = flags.parser(
        __doc__,
        "agrawal_gp",
        smoke="one function, two repeats, to see that everything runs",
        seeds=f"repeats (default {Config.repeats})",
    )
    given, config = flags.read(parser, Config(), SMOKE, counted="repeats")

    ready.begin(given.out)
    found = {name: curves(config, name, initial) for name, initial in config.initial}
    results = {name: {label: summarise(config, name, best) for label, best in rows.items()} for name, rows in found.items()}
    draw(config, found, given.out / "figure_11.png")
    record.write(given.out / "agrawal_gp.json", {**record.about(), "config": asdict(config), "results": results})
    report(results)
    print(f"figure and numbers are in {given.out}")


if __name__ == "__main__":
    main()
