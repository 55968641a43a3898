"""How fast does a GP find the minima of Agrawal's figure 11? The GP side of the figure.

The figure shows the running minimum on four functions, with the median and the quartiles of 50
repeats. Agrawal claims that the GP is competitive on Forrester, "does not always succeed" on
Rosenbrock, and finds the minima of McCormick and of the six-hump camel. His GP is GPyOpt's; its
kernel, its acquisition settings, the number of iterations and the initial points on the camel are
not stated. Here: Matérn 5/2 with a lower confidence bound (eq. 5.5) on plain values, which is
closest to the text; the default of bonas; and random search. All start from the same random points.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import bonas
from bonas import gp, plots, surrogates
from bonas.problems import functions
from bonas.search import Search, random
from experiments import common
from experiments.compare import quartiles
from experiments.figures import save

# Numbers of initial points; Agrawal does not state the camel's, which is assumed.
INITIAL = (
    ("forrester", 2),
    ("rosenbrock", 5),
    ("mccormick", 5),
    ("six_hump_camel", 5),
)
EVALUATIONS = 40  # not stated; enough for every curve to level off
# weight of the standard deviation in the confidence bound: not stated; a usual choice
KAPPA = 2.0


@dataclass(frozen=True)
class Config:
    initial: tuple[tuple[str, int], ...] = INITIAL
    evaluations: int = EVALUATIONS
    kappa: float = KAPPA
    # A run succeeds if its final regret is below this, the width of a line in the figure
    success: float = 1e-2
    repeats: int = 50  # stated


SMOKE = Config(initial=(("forrester", 2),), evaluations=6, repeats=2)


def contenders(
    config: Config, problem: functions.Problem, initial: int
) -> dict[str, Search]:
    matern = surrogates.gp(gp.matern52())
    bound = bonas.acquire.closed_form_acquisition(bonas.lcb, kappa=config.kappa)
    return {
        "GP, lower confidence bound": bonas.bayes(
            problem.space,
            surrogate=matern,
            acquisition=bound,
            output="plain",
            initial=initial,
        ),
        "bonas": bonas.bayes(problem.space, initial=initial),
        "random": random(problem.space),
    }


def curves(config: Config, name: str, initial: int) -> dict[str, np.ndarray]:
    """Return the running minima (repeats, evaluations) of every search."""
    problem = getattr(functions, name)
    keys = jax.random.split(jax.random.key(0), config.repeats)
    found = {}
    for label, search in contenders(config, problem, initial).items():
        found[label] = np.asarray(
            bonas.run_many(
                search, problem.objective, keys, config.evaluations, progress=True
            ).best
        )
    return found


def summarize(config: Config, name: str, best: np.ndarray) -> dict:
    regret = best - getattr(functions, name).optimum
    medians = np.median(regret, axis=0)
    reached = np.flatnonzero(medians < config.success)
    return {
        "final_regret": quartiles(regret[:, -1]),
        "share_that_succeed": float((regret[:, -1] < config.success).mean()),
        "evaluations_until_the_median_succeeds": int(reached[0]) + 1
        if len(reached)
        else None,
        "median_curve": medians.tolist(),
    }


def draw(config: Config, found: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """Draw figure 11 in its own units, with the regret below."""
    figure, axes = plt.subplots(
        2,
        len(found),
        figsize=(4.2 * len(found), 7),
        layout="constrained",
        squeeze=False,
    )
    for column, (name, methods) in enumerate(found.items()):
        optimum, initial = getattr(functions, name).optimum, dict(config.initial)[name]
        for row, level in enumerate((None, optimum)):
            axis = plots.efficiency(methods, ax=axes[row, column], optimum=level)
            axis.axvline(initial + 0.5, color="0.6", lw=0.8, ls=":")
            if column or row:
                axis.get_legend().remove()
        # the best value of a typical run after the initial points
        top = np.median(methods["random"][:, initial - 1])
        axes[0, column].set(
            title=name.replace("_", " "), ylim=(optimum - 0.05 * (top - optimum), top)
        )
        axes[0, column].axhline(optimum, color="0.6", lw=0.8)
    save(figure, path, dpi=130)


def report(results: dict) -> None:
    print(
        f"{'function':16} {'search':28} {'median regret':>13} {'quartiles':>20} {'succeed':>8}"
        "  median succeeds after"
    )
    for name, methods in results.items():
        for label, row in methods.items():
            final = row["final_regret"]
            after = row["evaluations_until_the_median_succeeds"] or "never"
            band = f"{final['quartile']:.1e} – {final['upper']:.1e}"
            print(
                f"{name:16} {label:28} {final['median']:13.1e} {band:>20}"
                f" {row['share_that_succeed']:8.0%}  {after}"
            )


def main() -> None:
    parser = common.parser(
        __doc__,
        "agrawal_gp",
        smoke="one function, two repeats, to see that everything runs",
        seeds=f"repeats (default {Config.repeats})",
    )
    given, config = common.parse(parser, Config(), SMOKE, seeds_field="repeats")

    common.setup(given.out)
    found = {name: curves(config, name, initial) for name, initial in config.initial}
    results = {
        name: {label: summarize(config, name, best) for label, best in rows.items()}
        for name, rows in found.items()
    }
    draw(config, found, given.out / "figure_11.png")
    common.write_json(
        given.out / "agrawal_gp.json",
        {**common.provenance(), "config": asdict(config), "results": results},
    )
    report(results)
    print(f"figure and numbers are in {given.out}")


if __name__ == "__main__":
    main()
