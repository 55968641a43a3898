"""Is bonas better than BoTorch, Optuna and Hyperoptax, and what does a search cost?

Forty evaluations of the four functions of Agrawal's figure 11, 50 seeds, the first five points
shared by all methods; each method on one thread of one core, one after another. Also measured: one
suggestion with 50 and 100 observations of Hartmann 6, and jax.vmap(run) against run_many. The
other libraries have their own environment:

    python3 -m venv rivals
    rivals/bin/pip install -r experiments/benchmarks/rivals/requirements.txt
    python -m experiments.benchmarks.search --rivals rivals/bin/python

Every run is saved, and a second call runs the missing ones; `--again bonas` discards the runs of a
method. Without --rivals only bonas and random search run.
"""

import argparse
import json
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import bonas
from bonas.problems import functions
from bonas.search import Search
from experiments import common
from experiments.benchmarks import search_report
from experiments.benchmarks.rivals import contenders
from experiments.benchmarks.rivals.contenders import Clock
from experiments.benchmarks.search_report import missing, read_rows, row_file
from experiments.benchmarks.search_suggestions import suggestions

RIVALS = ("hyperoptax", "optuna", "botorch")
SEARCHES = ("random", "bonas", *RIVALS)
# choices of --only and --again
PARTS = (*SEARCHES, "suggestions", "rival_suggestions", "vmap")
NEED_RIVALS = (*RIVALS, "rival_suggestions")


@dataclass(frozen=True)
class Config:
    # As in Agrawal
    functions: tuple[str, ...] = (
        "forrester",
        "rosenbrock",
        "mccormick",
        "six_hump_camel",
    )
    seeds: int = 50  # enough to distinguish the median regrets of the contenders
    # a budget that separates good searches from bad ones on these functions
    evaluations: int = 40
    initial: int = 5  # initial points, the same for all contenders
    # Seeds per child process: a stopped run has similar numbers of seeds for all contenders
    chunk: int = 10
    # Smaller regrets are raised to this; the difference is irrelevant in practice
    equal: float = 1e-3
    # Bootstrap resamples: the interval is then stable to about a hundredth of its width
    resamples: int = 10_000
    # observations of Hartmann 6 for a timed suggestion
    sizes: tuple[int, ...] = (50, 100)
    # Observations for a suggestion that integrates over hyperparameters
    slice_sizes: tuple[int, ...] = (50,)
    samples: int = 16  # slice samples of the hyperparameters
    # Timed around each size; the first has no fit to start from and is excluded
    suggestions: int = 10
    # alternating repeats of vmap and run_many; the fastest of each is reported
    repeats: int = 3


SMOKE = Config(
    functions=("forrester",),
    seeds=2,
    evaluations=7,
    sizes=(12,),
    slice_sizes=(),
    suggestions=2,
    repeats=1,
)


def main() -> None:
    args, config = arguments()
    if not args.smoke:
        common.pin_to_core(args.core)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; run again to continue"))
    # one BLAS thread, here and in children; no cache, because compiling is timed
    bonas.configure(cache=args.smoke)
    args.out.mkdir(parents=True, exist_ok=True)
    check_functions(config)
    points = write_points(config, args.out)
    for part in args.again:
        row_file(args.out, part).unlink(missing_ok=True)
    if not args.rivals:
        print(
            "without --rivals, only bonas and random search run; saved results of other libraries"
            " are still shown"
        )
    run_parts(config, args, points)
    report = summarize(config, args.out)
    common.write_json(args.out / "benchmarks_search.json", report)
    search_report.show(report)
    print(f"\nwritten to {args.out / 'benchmarks_search.json'}")


def arguments() -> tuple[argparse.Namespace, Config]:
    parser = common.benchmark_parser(
        __doc__,
        "benchmarks_search",
        smoke="seconds: two seeds, few evaluations, one function",
        seeds=f"runs of every contender (default {Config.seeds})",
    )
    parser.add_argument(
        "--rivals",
        metavar="PYTHON",
        help="Python of the environment with the other libraries",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=PARTS,
        metavar="NAME",
        help=f"some of {', '.join(PARTS)}",
    )
    parser.add_argument(
        "--again",
        nargs="+",
        choices=PARTS,
        default=(),
        metavar="NAME",
        help="discard the results of these and run them again",
    )
    return common.parse(parser, Config(), SMOKE)


# The five common points are drawn from the key that a run gives to its search, and saved for the
# other libraries.


@cache
def default_search(problem: functions.Problem, count: int) -> Search:
    """Return the default search from the common points; cached, so that it compiles once."""
    search = bonas.bayes(problem.space, initial=count)
    return common.StartFrom(search, common.uniform_design)


def keys(config: Config):
    return jax.vmap(jax.random.key)(jnp.arange(config.seeds))


def write_points(config: Config, out: Path) -> dict:
    """Write points.json: the first points of every function and seed, and points of Hartmann 6."""

    def of_seed(key, d):
        init_key, _ = jax.random.split(key)  # as run does
        return jax.random.uniform(init_key, (config.initial, d))

    points = {}
    for name in config.functions:
        d = getattr(functions, name).space.dim
        points[name] = np.asarray(
            jax.vmap(lambda key, d=d: of_seed(key, d))(keys(config))
        ).tolist()
    points["hartmann6"] = (
        np.random.default_rng(0).random((max(config.sizes), 6)).tolist()
    )
    file, text = out / "points.json", json.dumps(points)
    # another call may be about to read the file, so it is only written if it changes
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")
    return points


def check_functions(config: Config) -> None:
    """Raise if the other libraries would search other functions."""
    for name in (*config.functions, "hartmann6"):
        problem = getattr(functions, name)
        for u in np.random.default_rng(0).random((20, problem.space.dim)):
            ours = problem.objective(jax.random.key(0), jnp.asarray(u))
            theirs = contenders.FUNCTIONS[name](u)
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=name)


# Runs


def run_parts(config: Config, args, points: dict) -> None:
    """Run everything that is requested and missing."""
    selected = [part for part in args.only if args.rivals or part not in NEED_RIVALS]
    run_searches(config, args, points, [part for part in selected if part in SEARCHES])
    if args.rivals and not read_rows(config, args.out, "versions"):
        common.append_line(
            row_file(args.out, "versions"), next(run_child(args.rivals, "versions"))
        )
    for part, measure in (
        ("suggestions", suggestions),
        ("rival_suggestions", rival_suggestions),
        ("vmap", time_vmap),
    ):
        if part in selected and not read_rows(config, args.out, part):
            print(f"... {part}", flush=True)
            for row in measure(config, args):
                common.append_line(row_file(args.out, part), row)


def run_searches(config: Config, args, points: dict, searches: list[str]) -> None:
    # refreshed once per second, because it shares the contenders' core
    with common.progress_bar(32, refresh_per_second=1) as bar:
        task = bar.add_task(
            "runs", total=len(searches) * len(config.functions) * config.seeds
        )
        for part, function, seeds in schedule(config, searches):
            bar.update(task, description=f"{part} on {function}")
            absent = missing(config, args.out, part, function, seeds)
            bar.advance(task, len(seeds) - len(absent))
            for row in runs(config, args, points, part, function, absent):
                regret = row["best"][-1] - getattr(functions, function).optimum
                about = {"function": function, "evaluations": config.evaluations}
                row = {**about, "regret": regret, **row}
                common.append_line(row_file(args.out, part), row)
                bar.advance(task)


def schedule(config: Config, searches: list[str]):
    """Yield (part, function, seeds): methods that do all seeds at once first, then chunks."""
    everything = list(range(config.seeds))
    chunked = [part for part in searches if part in ("optuna", "botorch")]
    for part in searches:
        if part not in chunked:
            yield from ((part, function, everything) for function in config.functions)
    for start in range(0, config.seeds, config.chunk):
        for part in chunked:
            yield from (
                (part, function, everything[start : start + config.chunk])
                for function in config.functions
            )


def runs(
    config: Config, args, points: dict, part: str, function: str, seeds: list[int]
):
    """Yield one row per seed as soon as it is finished."""
    if not seeds:
        return
    if part in ("bonas", "random"):
        yield from (run_bonas if part == "bonas" else run_random)(
            config, points, function, seeds
        )
    else:
        options = (
            "--evaluations",
            str(config.evaluations),
            "--seeds",
            *map(str, seeds),
        )
        yield from run_child(
            args.rivals, "run", part, function, str(args.out / "points.json"), *options
        )


def run_child(python: str, *arguments: str):
    """Yield the rows that the script of the other libraries prints while it runs."""
    command = [python, contenders.__file__, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield from map(json.loads, process.stdout)
        if process.wait():
            raise SystemExit(
                f"{' '.join(command)} ended with code {process.returncode}"
            )
    finally:
        process.terminate()  # a stopped benchmark leaves no process behind


def run_bonas(config: Config, points: dict, function: str, seeds: list[int]):
    """Run all seeds of bonas in one compiled call."""
    problem = getattr(functions, function)
    search = default_search(problem, config.initial)

    def call():
        return jax.block_until_ready(
            bonas.run_many(search, problem.objective, keys(config), config.evaluations)
        )

    history, spent = contenders.all_at_once(call, config.seeds)
    np.testing.assert_array_equal(
        history.x[:, : config.initial],
        points[function],
        "bonas did not start at the common points",
    )
    for seed in seeds:
        yield {"seed": seed, "best": history.best[seed].tolist(), **spent}


def run_random(config: Config, points: dict, function: str, seeds: list[int]):
    """Run random search: uniform points after the common ones."""
    for seed in seeds:
        clock, first = Clock(), np.array(points[function][seed])
        later = np.random.default_rng(seed).random(
            (config.evaluations - config.initial, first.shape[1])
        )
        values = [
            contenders.FUNCTIONS[function](u) for u in np.concatenate([first, later])
        ]
        yield {
            "seed": seed,
            "best": np.minimum.accumulate(values).tolist(),
            **clock.read(),
        }


def rival_suggestions(config: Config, args):
    """Time one suggestion of Optuna, which uses point estimates."""
    options = ("--sizes", *map(str, config.sizes), "--count", str(config.suggestions))
    for row in run_child(
        args.rivals, "suggest", str(args.out / "points.json"), *options
    ):
        yield {"contender": "optuna", **row}


def time_vmap(config: Config, args):
    """Time all seeds by jax.vmap(run) and by run_many."""
    problem = getattr(functions, config.functions[-1])
    search = default_search(problem, config.initial)
    calls = {
        "vmap": jax.jit(
            jax.vmap(
                lambda key: bonas.run(
                    search, problem.objective, key, config.evaluations
                )
            )
        ),
        "run_many": lambda keys: bonas.run_many(
            search, problem.objective, keys, config.evaluations
        ),
    }
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(1 + config.repeats):
        for name, call in calls.items():
            clock = Clock()
            jax.block_until_ready(call(keys(config)))
            spent[name].append(clock.read()["cpu_seconds"])
    best = {name: min(seconds[1:]) for name, seconds in spent.items()}
    about = {
        "function": problem.name,
        "evaluations": config.evaluations,
        "seeds": config.seeds,
    }
    yield {**about, **best, "ratio": best["vmap"] / best["run_many"]}


def summarize(config: Config, out: Path) -> dict:
    """Return all saved results as numbers, even if some parts are missing."""
    rows = {part: read_rows(config, out, part) for part in (*PARTS, "versions")}
    return {
        "config": asdict(config),
        "settings": {
            "bonas": "bonas.bayes(space), all defaults, in run_many",
            **contenders.SETTINGS,
        },
        **common.provenance(),
        "rivals": rows["versions"][-1] if rows["versions"] else {},
        "results": search_report.compare(
            {part: rows[part] for part in SEARCHES},
            config.functions,
            smallest=config.equal,
            resamples=config.resamples,
        ),
        "suggestions": rows["suggestions"] + rows["rival_suggestions"],
        "vmap": rows["vmap"],
    }


if __name__ == "__main__":
    main()
