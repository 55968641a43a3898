"""How long do users wait for the compiler?

Five questions: how many seconds of CPU tracing, lowering and compiling an ask take, for spaces and
capacities; when `minimize` and `Study.optimize` call the objective for the first time, and when
they reach the first point that a model chose, with an empty and with a filled compilation cache;
whether the thread that compiles slows an objective in JAX; what `run_many` saves by passing a table
to the objective as an argument; and what one call for a heat map, as in the ninth notebook, saves
over a search per setting. Each measurement is made in a new process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

import bonas
from bonas.study import Study
from experiments import common
from experiments.benchmarks.heat_map import cpu_seconds, heat_map, show_heat_map
from experiments.raiders.networks import raiders


@dataclass(frozen=True)
class Config:
    spaces: tuple[str, ...] = (
        "2 floats",
        "6 floats",
        "20 floats",
        "4 conditional",
        "24 Raiders",
    )
    # the first capacity of a study, and the largest at which all trials are modeled
    capacities: tuple[int, ...] = (64, 512)
    trials: int = 8  # the first five are initial points
    tables: int = 3  # tables of one shape, one call of run_many each
    steps: int = 20  # evaluations in each of these calls
    # products of matrices in one evaluation of an objective, for about 0.05 s and 0.5 s
    lengths: tuple[int, ...] = (40, 400)
    seeds: int = 3  # processes for each start; the median is reported
    side: int = 8  # values of each of the two settings of the heat map
    runs: int = 20  # searches for each pair of settings, with 20 evaluations each
    looped: int = (
        3  # settings that the loop measures; the others are assumed to take as long
    )


SMOKE = Config(
    spaces=("2 floats",),
    capacities=(16,),
    trials=6,
    tables=2,
    steps=6,
    lengths=(4,),
    seeds=1,
    side=2,
    runs=2,
    looped=1,
)


def space_of(name: str) -> bonas.Space:
    """Return a space by its name in the table."""
    if name == "4 conditional":
        return bonas.Space(
            depth=bonas.Int(1, 2),
            width_1=bonas.Int(4, 64, log=True),
            width_2=bonas.Int(4, 64, log=True, when={"depth": (">=", 2)}),
            rate=bonas.Float(1e-4, 1e-1, log=True),
        )
    if name == "24 Raiders":
        return raiders().space
    count = int(name.split()[0])
    return bonas.Space(**{f"x{i}": bonas.Float(0.0, 1.0) for i in range(count)})


# Measurements, each in a process of its own


def program(space: str, capacity: int) -> dict[str, float]:
    """Measure CPU seconds of tracing, lowering and compiling an ask."""
    search = bonas.bayes(space_of(space))
    key = jax.random.key(0)
    state = jax.eval_shape(lambda: search.init(key, capacity))
    traced, trace = cpu_seconds(lambda: jax.jit(search.ask).trace(key, state))
    lowered, lower = cpu_seconds(traced.lower)
    _, compiling = cpu_seconds(lowered.compile)
    return {
        "trace": trace,
        "lower": lower,
        "compile": compiling,
        "equations": count_equations(traced.jaxpr.jaxpr),
    }


def start(runner: str, space: str, trials: int) -> dict[str, float]:
    """Measure the time to the first evaluation, and to the first point that a model chose."""
    searched = space_of(space)
    times: list[float] = []

    def objective(config: dict[str, Any]) -> float:
        times.append(time.perf_counter())
        return float(sum(value for value in config.values()))

    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        cpu = time.process_time()
        if runner == "minimize":
            bonas.minimize(objective, searched, trials=trials, progress=False)
        else:
            with Study(Path(folder) / "runs.db", searched) as study:
                study.optimize(objective, trials, progress=False)
        cpu = time.process_time() - cpu
    return {"first": times[0] - begin, "model": times[5] - begin, "cpu": cpu}


def slowdown(length: int) -> dict[str, float]:
    """Measure an objective in JAX while the model is compiled, and without."""
    x = jax.random.normal(jax.random.key(0), (512, 512), jnp.float32)

    @jax.jit
    def train(rate: jax.Array) -> jax.Array:
        def step(w: jax.Array, _: None) -> tuple[jax.Array, None]:
            return jnp.tanh(x @ w) * (1.0 - rate), None

        return jax.lax.scan(step, x, length=length)[0].sum()

    def objective(config: dict[str, Any]) -> float:
        return float(train(jnp.float32(config["x0"])))

    space = space_of("6 floats")
    objective({"x0": 0.5})  # compiled before
    found = {}
    for name, trials in (("alone", 5), ("compiling", 6)):
        result = bonas.minimize(objective, space, trials=trials, progress=False)
        found[name] = sum(each.seconds for each in result.evaluations[:5]) / 5
    return found


def many_tables(tables: int, steps: int) -> dict[str, Any]:
    """Measure calls of `run_many` on tables of one shape, as an argument and as a constant."""
    rows = jnp.linspace(0.0, 1.0, 200)
    values = jax.random.normal(jax.random.key(0), (tables, 200)).cumsum(axis=1)
    search = bonas.bayes(space_of("2 floats"))
    keys = jax.random.split(jax.random.key(1), 4)

    def look_up(key: jax.Array, u: jax.Array, table: jax.Array) -> jax.Array:
        return jnp.interp(u.mean(), rows, table)

    def with_argument(table: jax.Array) -> Any:
        return bonas.run_many(search, look_up, keys, steps, table)

    def with_constant(table: jax.Array) -> Any:
        return bonas.run_many(
            search, lambda key, u: look_up(key, u, table), keys, steps
        )

    return {
        name: [
            cpu_seconds(lambda t=t, f=f: jax.block_until_ready(f(t)))[1] for t in values
        ]
        for name, f in (("argument", with_argument), ("constant", with_constant))
    }


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    each.__name__: each for each in (program, start, slowdown, many_tables, heat_map)
}


def count_equations(jaxpr: Any) -> int:
    """Count the equations of a jaxpr, those of inner jaxprs included."""
    inner = [
        sub for each in jaxpr.eqns for sub in jax.core.jaxprs_in_params(each.params)
    ]
    return len(jaxpr.eqns) + sum(count_equations(sub) for sub in inner)


# The parent process


def measure(name: str, cache: str | None, *arguments: Any) -> dict[str, Any]:
    """Call a measurement in a new process, with a folder of compiled programs or without."""
    call = json.dumps([name, cache, arguments])
    done = subprocess.run(
        [sys.executable, "-m", "experiments.benchmarks.compile", "--measure", call],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    return json.loads(done.stdout.splitlines()[-1])


def measure_all(config: Config) -> dict[str, Any]:
    """Make all measurements, with a progress bar."""
    programs = [(space, n) for space in config.spaces for n in config.capacities]
    runners = ("minimize", "study")
    found: dict[str, Any] = {"programs": [], "starts": []}
    with common.progress_bar(20, disable=None) as bar:
        task = bar.add_task(
            "", total=len(programs) + 2 * config.seeds * len(runners) + 3
        )
        for space, n in programs:
            bar.update(task, description=f"{space}, {n}")
            row = measure("program", None, space, n)
            found["programs"].append({"space": space, "capacity": n, **row})
            bar.advance(task)
        space = (
            "4 conditional" if "4 conditional" in config.spaces else config.spaces[0]
        )
        for runner in runners:
            bar.update(task, description=runner)
            rows: dict[str, list[dict[str, float]]] = {"empty": [], "filled": []}
            for _ in range(config.seeds):
                with tempfile.TemporaryDirectory() as cache:
                    for kind in rows:
                        rows[kind].append(
                            measure("start", cache, runner, space, config.trials)
                        )
                        bar.advance(task)
            for kind, each in rows.items():
                row = {name: median(one[name] for one in each) for name in each[0]}
                found["starts"].append({"runner": runner, "cache": kind, **row})
        bar.update(task, description="slowdown")
        found["slowdown"] = [measure("slowdown", None, n) for n in config.lengths]
        bar.advance(task)
        found["tables"] = measure("many_tables", None, config.tables, config.steps)
        bar.advance(task)
        bar.update(task, description="heat map")
        grid = config.side, config.runs, config.looped
        found["heat_map"] = measure("heat_map", None, *grid)
        bar.advance(task)
    return found


def show(found: dict[str, Any]) -> None:
    console = Console(width=100)
    table = Table(
        "space",
        "capacity",
        "trace",
        "lower",
        "compile",
        "equations",
        title="An ask, CPU s",
    )
    for row in found["programs"]:
        seconds = (f"{row[name]:.2f}" for name in ("trace", "lower", "compile"))
        table.add_row(
            row["space"], str(row["capacity"]), *seconds, str(row["equations"])
        )
    console.print(table)
    table = Table(
        "", "cache", "first evaluation", "first of the model", "CPU", title="Start, s"
    )
    for row in found["starts"]:
        seconds = (f"{row[name]:.2f}" for name in ("first", "model", "cpu"))
        table.add_row(row["runner"], row["cache"], *seconds)
    console.print(table)
    for row in found["slowdown"]:
        ratio = row["compiling"] / row["alone"]
        console.print(
            f"An objective in JAX of {row['alone']:.2f} s takes {ratio:.2f} times as long while "
            "the model is compiled."
        )
    for name, seconds in found["tables"].items():
        calls = ", ".join(f"{one:.2f}" for one in seconds)
        console.print(f"Calls of run_many, the table as {name}: {calls} CPU s")
    show_heat_map(console, found["heat_map"], found["config"])


def main() -> None:
    parser = common.parser(
        __doc__,
        "benchmarks_compile",
        smoke="one small space",
        seeds=f"processes for each start (default {Config.seeds})",
    )
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args, config = common.parse(parser, Config(), SMOKE)
    if args.measure:
        name, cache, arguments = json.loads(args.measure)
        bonas.configure(cache=cache or False)
        print(json.dumps(MEASUREMENTS[name](*arguments)))
        return
    common.setup(args.out)
    found = {
        "config": asdict(config),
        **common.provenance(),
        **measure_all(config),
    }
    common.write_json(args.out / "benchmarks_compile.json", found)
    show(found)


if __name__ == "__main__":
    main()
