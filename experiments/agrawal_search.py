"""Does a Bayesian network search as well as a GP? Agrawal's figures 10 and 11, both sides, 50 repeats (G-E3, G-E4).

Four functions, from 2 random points (Forrester) or 5, by a lower confidence bound (eq. 5.5) as published, and by log EI.
The network is `bonas.surrogates.hmc_network()`, the GP the default of bonas; both start at the same random points in a repeat.
Agrawal says: the network is competitive on Forrester; on Rosenbrock it "finds the minimum after roughly 7 iterations", the GP
not always; on McCormick it is better at first and ends slightly above the minimum; on the camel it is stuck in a local one.
kappa, the network of the searches, its samples and the number of iterations are not stated, nor the camel's initial points.

The defaults of hmc_network and the scale of its values were chosen by results on other functions (see its docstring), though
early ones on plain values had been seen on Rosenbrock and the camel. kappa was 1 at first, by Branin and Levy; on Forrester
the network then leaves the local minimum late, so it is the usual 2.

Every run is saved when it ends, and a second call does what is missing. `--others` adds other surrogates,
fewer repeats: the network with its output layer sampled, as published, by NUTS, by Metropolis, a deep ensemble, and
regression on the last layer of one network.
"""

import argparse
import time
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import jax
import numpy as np
from network_search import figures, verdicts
from network_search.four import EVALUATIONS, INITIAL, KAPPA
from script import flags, progress, ready, record

import bonas
from bonas import surrogates
from bonas.problems import functions
from bonas.search import Search


@dataclass(frozen=True)
class Config:
    initial: tuple[tuple[str, int], ...] = INITIAL
    evaluations: int = EVALUATIONS
    kappa: float = KAPPA  # at 1 Branin and Levy were found faster, and Forrester much later
    output: str = "tails"  # the scale of all but the GP, which chooses by its evidence: better on other functions than "plain"
    repeats: int = 50  # stated
    others: int = 10  # repeats of the other surrogates
    resamples: int = 10_000  # of the bootstrap
    shown: int = 4  # initial points of figure 10, as stated
    iterations: int = 6  # of figure 10: "a few"
    pictured: int = 0  # the seed of figure 10
    network: tuple[tuple[str, object], ...] = ()  # of hmc_network: as it comes


SMALL = (("widths", (8,)), ("chains", 2), ("samples", 10), ("first", 20), ("burn", 2), ("steps", 5))
SMOKE = Config(initial=(("forrester", 2),), evaluations=7, repeats=2, others=1, resamples=100, iterations=2, network=SMALL)
MAIN, OTHERS = "runs", "others"  # the files of runs


@cache
def surrogate(config: Config, name: str) -> surrogates.Surrogate | None:
    """The model of a contender; None is the default of bonas, a GP."""
    given: dict = dict(config.network)
    # Agrawal's: all weights sampled, precisions drawn between trajectories, and noise that leaves trajectories some room
    seed = {"output": "sampled", "precisions": "gibbs", "noise_prior": (10.0, 0.02)}
    seed |= {"widths": (50, 50, 50), "samples": 100, "first": 300, "steps": 20, "target": 0.9}
    made = {
        verdicts.NETWORK: lambda: surrogates.hmc_network(**given),
        verdicts.GP: lambda: None,
        "all layers sampled": lambda: surrogates.hmc_network(**{**seed, **given}),
        # adapts anew at every fit, so it has fewer and shorter chains for about the same price
        "NUTS": lambda: surrogates.hmc_network(
            **{"chains": 2, "samples": 20, "first": 50, "depth": 4, **given, "method": "nuts"}
        ),
        "Metropolis": lambda: surrogates.hmc_network(**given, method="metropolis"),
        "deep ensemble": surrogates.ensemble,
        "last layer": surrogates.last_layer,
    }
    return made[name]()


NAMES = {
    MAIN: (verdicts.NETWORK, verdicts.GP),
    OTHERS: ("all layers sampled", "NUTS", "Metropolis", "deep ensemble", "last layer"),
}


@cache
def search(config: Config, name: str, function: str, acquisition: str, initial: int, output: str | None = None) -> Search:
    """A contender that starts at uniform random points, the same for all in a repeat; the same object when asked again."""
    score = {"lcb": bonas.acquire.closed(bonas.lcb, kappa=config.kappa), "log_ei": bonas.log_ei}[acquisition]
    space, model = getattr(functions, function).space, surrogate(config, name)
    scale = None if model is None else output or config.output
    made = bonas.bayes(space, surrogate=model, acquisition=score, initial=initial, output=scale)

    def init(key, capacity):
        return made.init(key, capacity)._replace(design=jax.random.uniform(key, (initial, space.dim)))

    return replace(made, init=init)


def plan(config: Config, part: str):
    """(contender, function, acquisition, repeats) of everything."""
    acquisitions = verdicts.ACQUISITIONS if part == MAIN else ("log_ei",)
    repeats = config.repeats if part == MAIN else min(config.others, config.repeats)
    for function, _ in config.initial:
        for acquisition in acquisitions:
            yield from ((name, function, acquisition, repeats) for name in NAMES[part])


def settings(config: Config, name: str, acquisition: str) -> dict:
    """What makes an old run comparable with a new one."""
    made: dict = {"evaluations": config.evaluations}
    if acquisition == "lcb":
        made["kappa"] = config.kappa
    if name != verdicts.GP:
        made |= {"network": repr(config.network), "output": config.output}
    return made


def known(config: Config, out: Path, part: str) -> dict[tuple[str, str, str, int], dict]:
    """The runs that have been saved under these settings."""
    rows = {}
    for row in record.lines(out / f"{part}.jsonl"):
        if row["settings"] == settings(config, row["contender"], row["acquisition"]):
            rows[row["contender"], row["function"], row["acquisition"], row["seed"]] = row
    return rows


def work(config: Config, out: Path, part: str) -> None:
    """Every run that is missing."""
    have, jobs = known(config, out, part), list(plan(config, part))
    with progress.bar(44, refresh_per_second=1) as bar:
        task = bar.add_task(part, total=sum(repeats for *_, repeats in jobs))
        for name, function, acquisition, repeats in jobs:
            bar.update(task, description=f"{name} on {function}, {acquisition}")
            absent = [seed for seed in range(repeats) if (name, function, acquisition, seed) not in have]
            bar.advance(task, repeats - len(absent))
            for seed in absent:
                row = one(config, name, function, acquisition, seed)
                record.add(out / f"{part}.jsonl", row)
                bar.advance(task)


def one(config: Config, name: str, function: str, acquisition: str, seed: int) -> dict:
    """One repeat; the first of a contender compiles the whole search, which its seconds include."""
    problem, found = getattr(functions, function), search(config, name, function, acquisition, dict(config.initial)[function])
    clock = time.process_time()
    best = np.asarray(bonas.run_many(found, problem.objective, jax.random.key(seed)[None], config.evaluations).best[0])
    about = {"contender": name, "function": function, "acquisition": acquisition, "seed": seed}
    return {
        **about,
        "settings": settings(config, name, acquisition),
        "cpu_seconds": time.process_time() - clock,
        "best": best.tolist(),
    }


def main() -> None:
    args, config = arguments()
    ready.begin(args.out)
    work(config, args.out, MAIN)
    if args.others:
        work(config, args.out, OTHERS)
    curves = {part: gather(config, args.out, part) for part in (MAIN, OTHERS)}
    # on plain values, so that model and function are drawn in the same units
    plain = search(config, verdicts.NETWORK, "forrester", "lcb", config.shown, "plain")
    shown = figures.iterations(config, plain, surrogate(config, verdicts.NETWORK), args.out)
    for acquisition in verdicts.ACQUISITIONS:
        figures.efficiency(config, curves[MAIN][acquisition], args.out / f"figure_11_{acquisition}.png")
    if curves[OTHERS].get("log_ei"):
        both = {name: curves[MAIN]["log_ei"][name] | rows for name, rows in curves[OTHERS]["log_ei"].items()}
        figures.others(config, both, args.out / "others.png")
    results = verdicts.summarise(config, curves, shown)
    record.write(args.out / "agrawal_search.json", {**record.about(), "config": asdict(config), **results})
    verdicts.show(results)
    print(f"figures and numbers are in {args.out}")


def arguments() -> tuple[argparse.Namespace, Config]:
    parser = flags.parser(
        __doc__,
        "agrawal_search",
        smoke="one function, two repeats of small networks, to see that everything runs",
        seeds=f"repeats (default {Config.repeats})",
    )
    parser.add_argument("--others", action="store_true", help=f"other surrogates too, {Config.others} repeats")
    return flags.read(parser, Config(), SMOKE, counted="repeats")


def gather(config: Config, out: Path, part: str) -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """acquisition -> function -> contender -> running minima (repeats, evaluations); what is not known is left out."""
    rows, found = known(config, out, part), {}
    for name, function, acquisition, repeats in plan(config, part):
        seeds = [
            rows[name, function, acquisition, seed]["best"]
            for seed in range(repeats)
            if (name, function, acquisition, seed) in rows
        ]
        if seeds:
            found.setdefault(acquisition, {}).setdefault(function, {})[name] = np.array(seeds)
    return found


if __name__ == "__main__":
    main()
