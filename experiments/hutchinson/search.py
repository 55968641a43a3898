"""Does it pay to train networks briefly and predict the rest? Hutchinson's figures 5.7 to 5.14.

Every search looks up networks that were really trained: variational networks on UCI sets
(`bonas.problems.bnn_table`) and the learning curves of Baker et al. (MetaQNN on CIFAR-10 and SVHN,
residual networks, LSTMs). A network advances from checkpoint to checkpoint; the budget is at most
a fifth of the training steps of the table. The regret is for the best fully trained network, in
standard deviations of the table's architectures, and for a random network before one is complete.
A second regret is for the network's architecture, by the mean of its runs (see `regret.py`).

The thesis counts sampled points, and claims that GPAR beats random search on 6 of 8 sets, and is
better than final-performance BO on 2, equal on 3 and worse on 3. Its bands are errors over
iterations, here over seeds. Its values are standardized by the whole table, here by the observed
values.

Besides the default of bonas, six baselines and Algorithm 2 there are variants of both: the
published acquisitions and undersampling, and other models of curves. Every run is saved, and a
second call runs the missing ones. --smoke uses a synthetic table.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np

import bonas
from bonas.problems import bnn_table, learning_curves, tables
from experiments import common
from experiments.hutchinson import curve_searches as contenders
from experiments.hutchinson import search_report as report
from experiments.hutchinson.regret import KINDS, floor, regrets

# The epochs used as checkpoints, by set: about 1/20, 1/7, 2/5 and all of the training
REAL = {
    "metaqnn_cifar10": (1, 3, 8, 20),
    "metaqnn_svhn": (1, 3, 8, 20),
    "resnet_cifar10": (2, 7, 20, 50),
    "lstm_ptb": (3, 8, 24, 60),
}
UPDATES = (400, 1000, 2000, 6000)  # checkpoints of the variational networks


@dataclass(frozen=True)
class Config:
    seeds: int = 32
    # Largest number of complete networks in the budget, which is at most a fifth of the table
    networks: int = 24
    share: float = 0.2  # largest share of the table's steps in the budget
    points: int = 80  # points of a regret curve
    chunk: int = 4  # seeds per call; results are saved after each call
    methods: tuple[str, ...] = contenders.MAIN
    # Only on the Bayesian networks, as in the thesis: on other sets they take hours
    variants: tuple[str, ...] = contenders.VARIANTS
    resamples: int = 10_000


SMOKE = Config(
    seeds=2,
    networks=3,
    points=6,
    chunk=2,
    methods=("bonas", "random", "successive halving"),
    variants=(),
)


def problems(smoke: bool) -> dict[str, tables.Table]:
    """Return the available tables by name."""
    if smoke:
        return {"gpar_prior": tables.gpar_prior(jax.random.key(1), slope=1.0)}
    found = {}
    if bnn_table.TABLE_FILE.is_file():
        for name in bnn_table.names():
            found[f"bnn_{name}"] = tables.checkpoints(bnn_table.load(name), UPDATES)
    for name, epochs in REAL.items():
        try:
            found[name] = tables.checkpoints(
                learning_curves.load(name, progress=False), epochs
            )
        except (OSError, ValueError) as problem:
            print(f"{name} is skipped: {problem}")
    return found


def affordable_networks(config: Config, table: tables.Table) -> int:
    """Return how many networks the budget trains completely."""
    return max(1, min(config.networks, int(config.share * len(table.x))))


def methods_of(config: Config, name: str) -> tuple[str, ...]:
    """Return the searches of a set."""
    return config.methods + (config.variants if name.startswith("bnn_") else ())


def settings_of_table(config: Config, table: tables.Table) -> dict:
    """Return what a run on a table depends on."""
    steps, networks = table.steps.tolist(), affordable_networks(config, table)
    return {
        "networks": len(table.x),
        "runs": table.values.shape[1],
        "steps": steps,
        "budget": steps[-1] * networks,
    }


def main() -> None:
    """Run the missing searches, then draw and summarize."""
    args, config = common.parse(arguments(), Config(), SMOKE)
    common.setup(args.out)
    tables_by_name = problems(args.smoke)
    if args.sets:
        tables_by_name = {
            name: table for name, table in tables_by_name.items() if name in args.sets
        }
    sizes = {
        name: settings_of_table(config, table) for name, table in tables_by_name.items()
    }
    file = args.out / "runs.jsonl"
    runs_by_job = {
        (row["set"], row["method"], row["seed"]): row
        for row in common.read_lines(file)
        if row.get("about") == sizes.get(row["set"])
        and len(row["network"]) == config.points
    }
    jobs = [
        (name, method, seeds)
        for name in tables_by_name
        for method in methods_of(config, name)
        for seeds in chunks(config)
        if any((name, method, seed) not in runs_by_job for seed in seeds)
    ]
    with common.progress_bar(disable=None) as bar:
        task = bar.add_task("searches", total=len(jobs))
        for i, (name, method, seeds) in enumerate(jobs):
            if i and name != jobs[i - 1][0]:
                # the programs of all sets together exceed the memory maps of a process
                jax.clear_caches()
            bar.update(task, description=f"{method} on {name}")
            for row in runs(config, name, method, seeds, tables_by_name[name]):
                runs_by_job[name, method, row["seed"]] = row
                common.append_line(file, row)
            bar.advance(task)
    found = report.summary(
        config, {name: methods_of(config, name) for name in tables_by_name}, runs_by_job
    )
    floors = {
        name: {**sizes[name], "floor": floor(table)}
        for name, table in tables_by_name.items()
    }
    common.write_json(
        args.out / "hutchinson_search.json",
        {**common.provenance(), "sets": floors, "seeds": config.seeds, **found},
    )
    report.draw(config, sizes, runs_by_job, args.out)
    report.show(found)


def runs(
    config: Config, name: str, method: str, seeds: range, table: tables.Table
) -> Iterator[dict]:
    """Yield the regrets of some seeds of a method on a table."""
    budget, keys = (
        settings_of_table(config, table)["budget"],
        jax.vmap(jax.random.key)(np.asarray(seeds)),
    )
    search = contenders.make(method, table, affordable_networks(config, table))
    history = bonas.run_curves_many(
        search, objective_of(table), table.steps, keys, budget
    )
    found = regrets(table, jax.tree.map(np.asarray, history), budget, config.points)
    for i, seed in enumerate(seeds):
        rows = {
            kind: [float(f"{value:.5g}") for value in found[kind][i]] for kind in KINDS
        }
        yield {
            "set": name,
            "method": method,
            "seed": seed,
            "about": settings_of_table(config, table),
            **rows,
        }


_OBJECTIVES: dict[int, object] = {}


def objective_of(table: tables.Table):
    """Return one objective per table, so that its searches compile once."""
    return _OBJECTIVES.setdefault(id(table), tables.objective(table))


def chunks(config: Config) -> list[range]:
    """Return the seeds that run in one call."""
    return [
        range(first, min(first + config.chunk, config.seeds))
        for first in range(0, config.seeds, config.chunk)
    ]


def arguments():
    """Create the parser."""
    parser = common.parser(
        __doc__,
        "hutchinson_search",
        smoke="one synthetic table, two seeds",
        seeds="runs of each method (default 32)",
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        metavar="SET",
        help="run only these sets: " + ", ".join(REAL) + ", bnn_yacht, …",
    )
    return parser


if __name__ == "__main__":
    main()
