"""Is a bonas search better than its rivals, and what does it cost? BoTorch, Optuna, Hyperoptax, random search, 50 seeds.

Forty evaluations of the four functions of Agrawal's comparison (G-E3, G-E4), the first five at the same random points for
every contender; each contender on one thread of one core, one after another. Also: what a suggestion costs among 50 and 100
observations of Hartmann 6, and what jax.vmap(run) costs against run_many. The rivals live in an environment of their own:

    python3 -m venv rivals && rivals/bin/pip install -r experiments/rivals/requirements.txt
    python experiments/bench_search.py --rivals rivals/bin/python

That takes an hour or two. Every run is written down as it ends, in one file a contender, and a second call does what is
missing; `--again bonas` forgets what is known of a contender. Without --rivals, bonas and random search run alone.
"""

import argparse
import json
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rivals import contenders, verdicts
from rivals.contenders import Clock
from rivals.rows import known, missing, save
from script import flags, progress, record

import bonas
from bonas.problems import functions
from bonas.search import Search, Trial

RIVALS = ("hyperoptax", "optuna", "botorch")
SEARCHES = ("random", "bonas", *RIVALS)
PARTS = (*SEARCHES, "suggestions", "rival_suggestions", "vmap")  # what --only and --again name
NEED_RIVALS = (*RIVALS, "rival_suggestions")


@dataclass(frozen=True)
class Config:
    functions: tuple[str, ...] = ("forrester", "rosenbrock", "mccormick", "six_hump_camel")  # Agrawal's
    seeds: int = 50  # a median regret is then known well enough to tell contenders apart
    evaluations: int = 40  # a budget at which a good search has found these minima and a bad one has not
    initial: int = 5  # of them, at points common to all contenders
    chunk: int = 10  # seeds a child process: what is known when the run is stopped is balanced over contenders
    equal: float = 1e-3  # regrets below this are all called this: nobody needs the difference
    resamples: int = 10_000  # of the bootstrap: its interval is then stable to about a hundredth of its width
    sizes: tuple[int, ...] = (50, 100)  # observations of Hartmann 6 among which a suggestion is timed
    slice_sizes: tuple[int, ...] = (50,)  # the same for a suggestion that integrates over hyperparameters
    samples: int = 16  # of the hyperparameters, by slice sampling
    suggestions: int = 10  # timed around each size; the first has no fit to start from and does not count
    repeats: int = 3  # of vmap and run_many, in turn; the fastest of each counts


SMOKE = Config(functions=("forrester",), seeds=2, evaluations=7, sizes=(12,), slice_sizes=(), suggestions=2, repeats=1)


def main() -> None:
    args, config = arguments()
    if not args.smoke:
        flags.pin(args.core)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; call again to go on"))
    bonas.configure(cache=args.smoke)  # one BLAS thread, here and in children; no cache, because compiling is timed
    args.out.mkdir(parents=True, exist_ok=True)
    same_functions(config)
    points = write_points(config, args.out)
    for part in args.again:
        (args.out / f"{part}.jsonl").unlink(missing_ok=True)
    if not args.rivals:
        print("without --rivals, only bonas and random search run; rivals' earlier results are still shown")
    work(config, args, points)
    report = summarise(config, args.out)
    record.write(args.out / "bench_search.json", report)
    verdicts.show(report)
    print(f"\nwritten to {args.out / 'bench_search.json'}")


def arguments() -> tuple[argparse.Namespace, Config]:
    parser = flags.benchmark(
        __doc__,
        "bench_search",
        smoke="seconds: two seeds, few evaluations, one function",
        seeds=f"runs of every contender (default {Config.seeds})",
    )
    parser.add_argument("--rivals", metavar="PYTHON", help="the Python of the rivals' environment")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="NAME", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--again", nargs="+", choices=PARTS, default=(), metavar="NAME", help="forget these and redo them")
    return flags.read(parser, Config(), SMOKE)


# The five common points: drawn from the key that a run gives to its search, and written down for the rivals.


def first_points(key, count: int, d: int):
    return jax.random.uniform(key, (count, d))


def from_first_points(search: Search, count: int) -> Search:
    """The search with its initial design replaced by the common points."""

    def init(key, capacity):
        return search.init(key, capacity)._replace(design=first_points(key, count, search.space.dim))

    return replace(search, init=init)


@cache
def contestant(problem: functions.Problem, count: int) -> Search:
    """bonas as it comes, from the common points; the same object for the same problem, so that it compiles once."""
    return from_first_points(bonas.bayes(problem.space, initial=count), count)


def keys(config: Config):
    return jax.vmap(jax.random.key)(jnp.arange(config.seeds))


def write_points(config: Config, out: Path) -> dict:
    """points.json: for every function the first points of every seed, and random points of Hartmann 6."""

    def of_seed(key, d):
        init_key, _ = jax.random.split(key)  # as run does
        return first_points(init_key, config.initial, d)

    points = {}
    for name in config.functions:
        d = getattr(functions, name).space.dim
        points[name] = np.asarray(jax.vmap(lambda key, d=d: of_seed(key, d))(keys(config))).tolist()
    points["hartmann6"] = np.random.default_rng(0).random((max(config.sizes), 6)).tolist()
    file, text = out / "points.json", json.dumps(points)
    if not file.exists() or file.read_text(encoding="utf-8") != text:  # a rival of another call may be about to read it
        file.write_text(text, encoding="utf-8")
    return points


def same_functions(config: Config) -> None:
    """Refuse to compare contenders that do not search the same functions."""
    for name in (*config.functions, "hartmann6"):
        problem = getattr(functions, name)
        for u in np.random.default_rng(0).random((20, problem.space.dim)):
            ours, theirs = problem.objective(jax.random.key(0), jnp.asarray(u)), contenders.FUNCTIONS[name](u)
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=name)


# The runs.


def work(config: Config, args, points: dict) -> None:
    """Everything that is asked for and not known yet."""
    wanted = [part for part in args.only if args.rivals or part not in NEED_RIVALS]
    compare(config, args, points, [part for part in wanted if part in SEARCHES])
    if args.rivals and not known(config, args.out, "versions"):
        save(args.out, "versions", next(child(args.rivals, "versions")))
    for part, measure in (("suggestions", suggestions), ("rival_suggestions", rival_suggestions), ("vmap", by_hand)):
        if part in wanted and not known(config, args.out, part):
            print(f"... {part}", flush=True)
            for row in measure(config, args):
                save(args.out, part, row)


def compare(config: Config, args, points: dict, searches: list[str]) -> None:
    with progress.bar(32, refresh_per_second=1) as bar:  # seldom: it shares the contenders' core
        task = bar.add_task("runs", total=len(searches) * len(config.functions) * config.seeds)
        for part, function, seeds in schedule(config, searches):
            bar.update(task, description=f"{part} on {function}")
            absent = missing(config, args.out, part, function, seeds)
            bar.advance(task, len(seeds) - len(absent))
            for row in runs(config, args, points, part, function, absent):
                regret = row["best"][-1] - getattr(functions, function).optimum
                save(args.out, part, {"function": function, "evaluations": config.evaluations, "regret": regret, **row})
                bar.advance(task)


def schedule(config: Config, searches: list[str]):
    """(part, function, seeds): what does all seeds at once comes first, then the slow ones by chunks of seeds."""
    everything, chunked = list(range(config.seeds)), [part for part in searches if part in ("optuna", "botorch")]
    for part in searches:
        if part not in chunked:
            yield from ((part, function, everything) for function in config.functions)
    for start in range(0, config.seeds, config.chunk):
        for part in chunked:
            yield from ((part, function, everything[start : start + config.chunk]) for function in config.functions)


def runs(config: Config, args, points: dict, part: str, function: str, seeds: list[int]):
    """One row a seed, as soon as it is known."""
    if not seeds:
        return
    if part in ("bonas", "random"):
        yield from (many if part == "bonas" else at_random)(config, points, function, seeds)
    else:
        options = ("--evaluations", str(config.evaluations), "--seeds", *map(str, seeds))
        yield from child(args.rivals, "run", part, function, str(args.out / "points.json"), *options)


def child(python: str, *arguments: str):
    """The rows that the rivals' script prints, while it runs."""
    command = [python, contenders.__file__, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield from map(json.loads, process.stdout)
        if process.wait():
            raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}")
    finally:
        process.terminate()  # a benchmark that is stopped leaves nobody on the core


def many(config: Config, points: dict, function: str, seeds: list[int]):
    """bonas, all seeds in one compiled call."""
    problem = getattr(functions, function)
    search = contestant(problem, config.initial)

    def call():
        return jax.block_until_ready(bonas.run_many(search, problem.objective, keys(config), config.evaluations))

    history, spent = contenders.all_at_once(call, config.seeds)
    np.testing.assert_array_equal(history.x[:, : config.initial], points[function], "bonas did not start at the common points")
    for seed in seeds:
        yield {"seed": seed, "best": history.best[seed].tolist(), **spent}


def at_random(config: Config, points: dict, function: str, seeds: list[int]):
    """Uniform points after the common ones."""
    for seed in seeds:
        clock, first = Clock(), np.array(points[function][seed])
        later = np.random.default_rng(seed).random((config.evaluations - config.initial, first.shape[1]))
        values = [contenders.FUNCTIONS[function](u) for u in np.concatenate([first, later])]
        yield {"seed": seed, "best": np.minimum.accumulate(values).tolist(), **clock.read()}


def suggestions(config: Config, args):
    """What one suggestion of bonas costs: by default, and averaged over hyperparameter samples."""
    space = functions.hartmann6.space
    sampled = bonas.surrogates.gp(bonas.gp.matern52(), infer="slice", samples=config.samples)
    slices = bonas.bayes(space, surrogate=sampled, acquisition=bonas.log_ei)
    for name, search, sizes in (("bonas", bonas.bayes(space), config.sizes), ("bonas, slice", slices, config.slice_sizes)):
        for n in sizes:
            yield {"contender": name, "n": n, **suggestion(config, search, n)}


def rival_suggestions(config: Config, args):
    """The same of Optuna, whose hyperparameters are a point estimate."""
    options = ("--sizes", *map(str, config.sizes), "--count", str(config.suggestions))
    for row in child(args.rivals, "suggest", str(args.out / "points.json"), *options):
        yield {"contender": "optuna", **row}


def suggestion(config: Config, search: Search, n: int) -> dict:
    """Median seconds of an ask around n observations of Hartmann 6, each warm from the one before it."""
    ask, tell, problem = jax.jit(search.ask), jax.jit(search.tell), functions.hartmann6
    capacity = max(64, 1 << (n + config.suggestions - 1).bit_length())  # as a study's, which doubles from 64

    def told(state, u):
        y = problem.objective(jax.random.key(0), u)
        return tell(state, Trial(x=u, y=y, step=jnp.asarray(0), cost=jnp.ones(()), ok=jnp.asarray(True)))

    state, clocks = search.init(jax.random.key(0), capacity), []
    for u in np.random.default_rng(0).random((max(config.sizes), 6))[: n - config.suggestions // 2]:
        state = told(state, jnp.asarray(u))
    compiling = Clock()
    jax.block_until_ready(ask(jax.random.key(0), state))
    first_call = compiling.read()["seconds"]
    for i in range(config.suggestions):
        clock = Clock()
        x, state, _ = jax.block_until_ready(ask(jax.random.key(i), state))
        clocks.append(clock.read())
        state = told(state, x[0])
    return {name: float(np.median([c[name] for c in clocks[1:]])) for name in clocks[0]} | {"first_call_seconds": first_call}


def by_hand(config: Config, args):
    """Seconds of all seeds by jax.vmap(run) and by run_many."""
    problem = getattr(functions, config.functions[-1])
    search = contestant(problem, config.initial)
    calls = {
        "vmap": jax.jit(jax.vmap(lambda key: bonas.run(search, problem.objective, key, config.evaluations))),
        "run_many": lambda keys: bonas.run_many(search, problem.objective, keys, config.evaluations),
    }
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(1 + config.repeats):
        for name, call in calls.items():
            clock = Clock()
            jax.block_until_ready(call(keys(config)))
            spent[name].append(clock.read()["cpu_seconds"])
    best = {name: min(seconds[1:]) for name, seconds in spent.items()}
    about = {"function": problem.name, "evaluations": config.evaluations, "seeds": config.seeds}
    yield {**about, **best, "ratio": best["vmap"] / best["run_many"]}


def summarise(config: Config, out: Path) -> dict:
    """Everything known, as numbers; nothing is left out because something else is missing."""
    rows = {part: known(config, out, part) for part in (*PARTS, "versions")}
    return {
        "config": asdict(config),
        "settings": {"bonas": "bonas.bayes(space), all defaults, in run_many", **contenders.SETTINGS},
        **record.about(),
        "rivals": rows["versions"][-1] if rows["versions"] else {},
        "results": verdicts.compare(
            {part: rows[part] for part in SEARCHES}, config.functions, smallest=config.equal, resamples=config.resamples
        ),
        "suggestions": rows["suggestions"] + rows["rival_suggestions"],
        "vmap": rows["vmap"],
    }


if __name__ == "__main__":
    main()
