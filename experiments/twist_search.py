"""Does expected improvement find a better network than chance, and which? Twist's figure 8 (T-E7).

Hidden layers, epochs and learning rate of a network for two classes of the plane are searched, with as many trainings for
every search: bonas by default, which infers all it needs; Twist's Algorithm 4, whose prior parameters are given; expected
improvement per unit of cost, which he names as future work (T-F1); and random search. The claims: the search is better
than experiment; it always favours larger architectures, which a cost in the acquisition could mend; the learning rate has an
optimum within its interval, with a noticeable drop below and above.

An evaluation is one training, as published. That has much luck in it: the same design may fail from another start. So there
are also runs whose evaluations are means of several trainings; they were added after the others had been seen to decide
little, and both are reported. Every seed has points of its own, which all searches share, so they are compared in pairs. What
a search found is its best observed design (Algorithm 4, line 12), trained anew several times and scored on points that no
search has seen. That makes twelve comparisons with chance: of their 95% intervals 0.6 would leave out 0 by luck alone.
"""

from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from plane import panels, shading, verdicts
from plane.saved import kept
from rich.progress import Progress
from script import flags, ready, record

import bonas
from bonas import acquire, nets
from bonas.problems import twist
from bonas.search import Search, random

MAIN, CHANCE = "bonas", "random"
KINDS = ("one training", "averaged")  # what an evaluation is: as published, and with less luck


@dataclass(frozen=True)
class Config:
    intervals: twist.Intervals = field(default_factory=twist.Intervals)  # not stated: see there
    points: int = 100  # to train on, to validate on, and how much the classes mix: not stated, see twist.plane
    validation: int = 400
    noise: float = 0.05
    test: int = 4000  # unseen points: chance in a share of 0.07 is then 0.004
    evaluations: int = 30  # not stated; five times the number of columns
    initial: int = 5  # not stated: the default of bonas, for every search
    candidates: int = 1000  # n_c, not stated
    alpha: float = 1.0  # α, σ, ℓ: not stated, see twist.algorithm4
    sigma: float = 0.05
    lengthscale: float = 0.5
    retrained: int = 5  # trainings of a design that was found, over which its score is averaged
    swept: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 0.6, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)  # learning rates of 8c, 8d
    sweeps: int = 10  # seeds whose optimum is looked at along the learning rate
    drop: float = 0.02  # a noticeable drop of the accuracy: five times the chance in the test points
    resamples: int = 10_000  # of the seeds, for intervals
    averaged: int = 3  # Twist trains a design once, with much luck in it; here also so often, at three times the price
    averaged_seeds: int = 12  # fewer, for that price
    seeds: int = 20


SMOKE = Config(
    intervals=twist.Intervals(layers=2, widest=5, epochs=(1, 10)),
    validation=50,
    test=100,
    evaluations=8,
    retrained=2,
    swept=(0.01, 1.0, 10.0),
    sweeps=2,
    seeds=2,
)


def searches(config: Config) -> dict[str, Search]:
    space = config.intervals.space
    given = {"alpha": config.alpha, "sigma": config.sigma, "lengthscale": config.lengthscale}
    return {
        MAIN: bonas.bayes(space, initial=config.initial),
        "Algorithm 4": twist.algorithm4(space, initial=config.initial, candidates=config.candidates, **given),
        "bonas, per cost": bonas.bayes(space, acquisition=acquire.per_second(), initial=config.initial),
        CHANCE: random(space),
    }


def prepare(config: Config, seed: int) -> tuple[jax.Array, nets.Examples, nets.Examples]:
    """The key of a seed's searches, its points, and the same to train on with unseen ones in place of validation."""
    data_key, test_key, search_key = jax.random.split(jax.random.key(seed), 3)
    data = twist.plane(data_key, train=config.points, validation=config.validation, noise=config.noise)
    unseen = twist.plane(test_key, train=1, validation=config.test, noise=config.noise)
    return search_key, data, data._replace(valid_x=unseen.valid_x, valid_y=unseen.valid_y)


def look(config: Config, search: Search, trainings: int, key: jax.Array, data: nets.Examples) -> dict:
    """A whole search, in one compiled call."""
    history = bonas.run(search, twist.objective(data, config.intervals, trainings=trainings), key, config.evaluations)
    return {"x": history.x, "y": history.y, "best": history.best, "cost": history.state.record.cost}


def score(config: Config, key: jax.Array, u: jax.Array, test: nets.Examples) -> jax.Array:
    """The share of unseen points that a design gets wrong, averaged over trainings."""
    return twist.objective(test, config.intervals, trainings=config.retrained)(key, u)[0]


def search_all(config: Config, folder: Path, progress: Progress, trainings: int, seeds: int) -> dict[str, list[dict]]:
    """Every search of every seed, with the score of what it found."""
    found, same, scored = {}, unseeded(config), jax.jit(partial(score, config))
    for name, search in searches(config).items():
        compiled, rows = jax.jit(partial(look, config, search, trainings)), []
        for seed in progress.track(range(seeds), description=f"{name}, trainings an evaluation: {trainings}"):
            key, data, test = prepare(config, seed)

            def make():
                run = compiled(key, data)
                chosen = run["x"][jnp.nanargmin(run["y"])]
                return run | {"chosen": chosen, "score": scored(jax.random.fold_in(key, 1), chosen, test)}

            rows.append(kept(folder / f"{name.replace(' ', '_').replace(',', '')}_{trainings}_{seed}.npz", same, make))
        found[name] = rows
    return found


def unseeded(config: Config) -> Config:
    """What a single run depends on."""
    return replace(config, seeds=0, averaged_seeds=0, sweeps=0)


def sweep_all(config: Config, folder: Path, progress: Progress, optima: list[dict]) -> np.ndarray:
    """Scores (seeds, rates) of the optima that bonas found."""
    scored, rows = jax.jit(partial(score, config)), []
    for seed, run in enumerate(progress.track(optima[: config.sweeps], description="learning rates")):
        key, _, test = prepare(config, seed)
        rows.append(
            kept(folder / f"rates_{seed}.npz", unseeded(config), partial(sweep, config, scored, run, key, test))["scores"]
        )
    return np.stack(rows)


def sweep(config: Config, scored, run: dict, key: jax.Array, test: nets.Examples) -> dict:
    """The scores of the optimum that bonas found when its learning rate alone is another."""
    low, high = config.intervals.rates
    rows = [jnp.asarray(run["chosen"]).at[-1].set((rate - low) / (high - low)) for rate in config.swept]
    return {"scores": np.array([scored(jax.random.fold_in(key, i), row, test) for i, row in enumerate(rows, 2)])}


def columns(config: Config, optima: list[dict], swept: np.ndarray) -> list[dict]:
    """What figure 8 shows: the optima of the first two seeds, trained once more."""
    train, intervals, shown = jax.jit(lambda *given: twist.fit(given[0], config.intervals, *given[1:])), config.intervals, []
    for seed, run in enumerate(optima[:2]):
        key, data, _ = prepare(config, seed)
        params = train(jax.random.fold_in(key, 1), jnp.asarray(run["chosen"]), data).params
        plane = shading.outputs(intervals.shape, intervals.design(jnp.asarray(run["chosen"]))[0], params)
        scores = swept[seed] if seed < len(swept) else None
        shown.append({"run": run, "data": data, "plane": plane, "scores": scores})
    return shown


def report(results: dict) -> None:
    heads = ("test error", "median", "validation", "all costs", "units", "layers", "epochs", "rate", "larger than random")
    for kind in KINDS:
        print(f"{kind:20}" + "".join(f"{head:>{len(head) + 2}}" for head in heads))
        for name, row in results[kind]["searches"].items():
            print(
                f"  {name:18}{row['test_error']['mean']:12.4f}{row['test_error']['median']:8.4f}"
                f"{row['best_validation_error']:12.4f}{row['cost_of_all_evaluations']:11.2e}"
                f"{row['median_units_of_the_design']:7.0f}{row['mean_layers_of_the_design']:8.1f}"
                f"{row['median_epochs_of_the_design']:8.0f}{row['median_learning_rate_of_the_design']:6.2f}"
                f"{row['suggestion_larger_than_a_random_one']['mean']:20.2f}"
            )
        for name, pair in results[kind]["pairs"].items():
            for what, row in pair.items():
                band = "" if row["interval"] is None else f" [{row['interval'][0]:+.4f}, {row['interval'][1]:+.4f}]"
                print(
                    f"  {name}, {what.replace('_', ' ')}: {row['mean_difference']:+.4f}{band}, "
                    f"{row['wins']}:{row['losses']}, p = {row['sign_test_p']:.3f}: {row['verdict']}"
                )
    rate = results["learning_rate"]
    print(
        f"best learning rate {rate['best_rate']:g}; drops {rate['drop_at_the_low_end']['mean']:.3f} below and "
        f"{rate['drop_at_the_high_end']['mean']:.3f} above; both in "
        f"{rate['share_of_seeds_with_an_interior_optimum_and_both_drops']:.0%} of seeds"
    )


def main() -> None:
    parser = flags.parser(
        __doc__,
        "twist_search",
        smoke="small networks, two seeds, to see that everything runs",
        seeds=f"how many seeds (default {Config.seeds})",
    )
    given, config = flags.read(parser, Config(), SMOKE)

    ready.begin(given.out)
    sizes = ((1, config.seeds), (config.averaged, min(config.averaged_seeds, config.seeds)))
    with Progress() as progress:
        found = {kind: search_all(config, given.out / "runs", progress, *size) for kind, size in zip(KINDS, sizes, strict=True)}
        optima = found[KINDS[0]][MAIN]
        swept = sweep_all(config, given.out / "runs", progress, optima)
    results = {kind: verdicts.summarise(config, rows, MAIN, CHANCE) for kind, rows in found.items()}
    results["learning_rate"] = verdicts.rates(config, swept)
    panels.figure_8(config, columns(config, optima, swept), given.out / "figure_8.png")
    for kind, rows in found.items():
        panels.searches(config, rows, given.out / f"searches_{kind.replace(' ', '_')}.png")
    record.write(given.out / "twist_search.json", {**record.about(), "config": asdict(config), "results": results})
    report(results)
    print(f"figures and numbers are in {given.out}")


if __name__ == "__main__":
    main()
