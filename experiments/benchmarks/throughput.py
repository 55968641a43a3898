"""How many seconds of CPU do a long search, and a thousand short ones in one call, take?

A long search of a function of six dimensions, in one compiled call, and `run_many` with 1 to 1,000
seeds on four test functions. The first call compiles; the second one, with other keys, does not.
Both are printed, because a person who searches once pays for both.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import jax
from rich.console import Console
from rich.table import Table

import bonas
from bonas.problems import functions
from bonas.search import History
from experiments import common
from experiments.benchmarks.heat_map import cpu_seconds


@dataclass(frozen=True)
class Config:
    functions: tuple[str, ...] = (
        "forrester",
        "rosenbrock",
        "mccormick",
        "six_hump_camel",
    )
    fewer: tuple[int, ...] = (1, 10, 50)  # numbers of seeds
    seeds: int = 1000  # the largest number of seeds
    evaluations: int = 40
    long_function: str = "hartmann6"
    long_evaluations: int = 500


SMOKE = Config(
    functions=("forrester",),
    fewer=(1,),
    seeds=2,
    evaluations=7,
    long_function="branin",
    long_evaluations=8,
)


def measure_many(name: str, seeds: int, evaluations: int) -> dict:
    """Measure `run_many`."""
    problem = getattr(functions, name)
    search = bonas.bayes(problem.space)

    def call(seed: int) -> History:
        keys = jax.random.split(jax.random.key(seed), seeds)
        return bonas.run_many(search, problem.objective, keys, evaluations)

    measured = measure_twice(call)
    return {"function": name, "seeds": seeds, "evaluations": evaluations, **measured}


def measure_long(name: str, evaluations: int) -> dict:
    """Measure a compiled `run`."""
    problem = getattr(functions, name)
    search = bonas.bayes(problem.space)

    @jax.jit
    def run(seed: jax.Array) -> History:
        key = jax.random.key(seed)
        return bonas.run(search, problem.objective, key, evaluations)

    return {
        "function": name,
        "seeds": 1,
        "evaluations": evaluations,
        **measure_twice(run),
    }


def measure_twice(call: Callable[[int], History]) -> dict:
    """Measure a first call, which compiles, and a second one with another seed."""
    _, first = cpu_seconds(lambda: jax.block_until_ready(call(0)))
    history, again = cpu_seconds(lambda: jax.block_until_ready(call(1)))
    seconds = {"first": first, "again": again}
    return {"cpu_seconds": seconds, "best": float(history.y.min())}


def show(found: dict) -> None:
    table = Table(
        "function",
        "evaluations",
        "seeds",
        "first call, CPU s",
        "again",
        "again, per seed",
    )
    for row in [found["long"], *found["many"]]:
        first, again = row["cpu_seconds"].values()
        table.add_row(
            row["function"],
            str(row["evaluations"]),
            str(row["seeds"]),
            f"{first:.1f}",
            f"{again:.1f}",
            f"{again / row['seeds']:.3f}",
        )
    Console(width=100).print(table)
    most = found["most"]
    print(
        f"{most['searches']} searches on all functions: {most['first']:.0f} CPU s with compiling, "
        f"{most['again']:.0f} without"
    )


def main() -> None:
    parser = common.parser(
        __doc__,
        "benchmarks_throughput",
        smoke="two seeds, one function",
        seeds=f"the largest number of seeds (default {Config.seeds})",
    )
    args, config = common.parse(parser, Config(), SMOKE)
    bonas.configure(cache=False)  # first calls compile
    args.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        (name, seeds)
        for seeds in (*config.fewer, config.seeds)
        for name in config.functions
    ]
    many = []
    with common.progress_bar(disable=None) as bar:
        task = bar.add_task(config.long_function, total=len(jobs) + 1)
        long = measure_long(config.long_function, config.long_evaluations)
        bar.advance(task)
        for name, seeds in jobs:
            bar.update(task, description=f"{name}, {seeds}")
            many.append(measure_many(name, seeds, config.evaluations))
            bar.advance(task)
    largest = [row for row in many if row["seeds"] == config.seeds]
    most = {
        kind: sum(row["cpu_seconds"][kind] for row in largest)
        for kind in ("first", "again")
    }
    most["searches"] = sum(row["seeds"] for row in largest)
    found = {
        **common.provenance(),
        "config": asdict(config),
        "long": long,
        "many": many,
        "most": most,
    }
    common.write_json(args.out / "benchmarks_throughput.json", found)
    show(found)


if __name__ == "__main__":
    main()
