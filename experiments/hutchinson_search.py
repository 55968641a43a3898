"""Does it pay to train networks a little and predict the rest? Hutchinson's figures 5.7 to 5.14 (H-E5), and beyond.

Every search looks up networks that were really trained: variational ones on the UCI sets (`bonas.problems.bnn_table`) and the
learning curves that Baker et al. published (MetaQNN on CIFAR-10 and SVHN, residual networks, LSTMs). A network advances from
checkpoint to checkpoint and what counts are training steps, of which a search has a fifth of the table's or fewer. Regret is
that of the best trained network, by its final value, in units of the standard deviation over the table's architectures; before
one is complete, that of a network drawn by chance. A second regret is that of its architecture, by the mean of its runs
(`curve_search.regret`).

The thesis compares by points sampled, and says: GPAR beats random search on 6 of 8 sets, is better than final-performance BO on
2, equal on 3 and worse on 3, slow to start since it "dithers". Its bands are errors over iterations (H-S7); here they are over
seeds. Its values are standardised by the whole table, which a search does not know; here by what was seen.

Beside the default of bonas, six baselines and Algorithm 2 there are variants of the two: the published acquisitions and
under-sampling, and other models of curves. Each run is saved as it ends, and a second call does what is missing. --smoke takes
a synthetic table (H-S10).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np
from curve_search import contenders, report
from curve_search.regret import KINDS, floor, regrets
from script import flags, progress, ready, record

import bonas
from bonas.problems import bnn_table, learning_curves, tables

REAL = {  # set: the epochs that are kept as checkpoints, about a twentieth, a seventh, two fifths and all of the training
    "metaqnn_cifar10": (1, 3, 8, 20),
    "metaqnn_svhn": (1, 3, 8, 20),
    "resnet_cifar10": (2, 7, 20, 50),
    "lstm_ptb": (3, 8, 24, 60),
}
UPDATES = (400, 1000, 2000, 6000)  # of the variational networks


@dataclass(frozen=True)
class Config:
    seeds: int = 32
    networks: int = 24  # whole ones that the budget trains at most; less where a fifth of the table is less
    share: float = 0.2  # of the table's steps
    points: int = 80  # of the curves of regret
    chunk: int = 4  # seeds a call, after which they are written down
    methods: tuple[str, ...] = contenders.MAIN
    variants: tuple[str, ...] = contenders.VARIANTS  # on the Bayesian networks, as in the thesis: elsewhere they take hours
    resamples: int = 10_000


SMOKE = Config(seeds=2, networks=3, points=6, chunk=2, methods=("bonas", "random", "successive halving"), variants=())


def problems(smoke: bool) -> dict[str, tables.Table]:
    """The tables that are there, by name."""
    if smoke:
        return {"gpar_prior": tables.gpar_prior(jax.random.key(1), slope=1.0)}
    found = {}
    if bnn_table.SHIPPED.is_file():
        for name in bnn_table.names():
            found[f"bnn_{name}"] = tables.checkpoints(bnn_table.load(name), UPDATES)
    for name, epochs in REAL.items():
        try:
            found[name] = tables.checkpoints(learning_curves.load(name, progress=False), epochs)
        except (OSError, ValueError) as problem:
            print(f"{name} is left out: {problem}")
    return found


def affordable(config: Config, table: tables.Table) -> int:
    """Networks that the budget trains to the end."""
    return max(1, min(config.networks, int(config.share * len(table.x))))


def methods_of(config: Config, name: str) -> tuple[str, ...]:
    """The searches of a set."""
    return config.methods + (config.variants if name.startswith("bnn_") else ())


def about(config: Config, table: tables.Table) -> dict:
    """What a run on a table depends on; runs that were made otherwise are not taken for it."""
    steps, networks = table.steps.tolist(), affordable(config, table)
    return {"networks": len(table.x), "runs": table.values.shape[1], "steps": steps, "budget": steps[-1] * networks}


def main() -> None:
    """Run what is missing, then draw and summarise."""
    args, config = flags.read(arguments(), Config(), SMOKE)
    ready.begin(args.out)
    known_tables = problems(args.smoke)
    if args.sets:
        known_tables = {name: table for name, table in known_tables.items() if name in args.sets}
    sizes = {name: about(config, table) for name, table in known_tables.items()}
    file = args.out / "runs.jsonl"
    known = {
        (row["set"], row["method"], row["seed"]): row
        for row in record.lines(file)
        if row.get("about") == sizes.get(row["set"]) and len(row["network"]) == config.points
    }
    jobs = [
        (name, method, seeds)
        for name in known_tables
        for method in methods_of(config, name)
        for seeds in chunks(config)
        if any((name, method, seed) not in known for seed in seeds)
    ]
    with progress.bar(disable=None) as bar:
        task = bar.add_task("searches", total=len(jobs))
        for i, (name, method, seeds) in enumerate(jobs):
            if i and name != jobs[i - 1][0]:
                jax.clear_caches()  # the programs of all sets together are more than a process may map
            bar.update(task, description=f"{method} on {name}")
            for row in runs(config, name, method, seeds, known_tables[name]):
                known[name, method, row["seed"]] = row
                record.add(file, row)
            bar.advance(task)
    found = report.summary(config, {name: methods_of(config, name) for name in known_tables}, known)
    floors = {name: {**sizes[name], "floor": floor(table)} for name, table in known_tables.items()}
    record.write(args.out / "hutchinson_search.json", {**record.about(), "sets": floors, "seeds": config.seeds, **found})
    report.draw(config, sizes, known, args.out)
    report.show(found)


def runs(config: Config, name: str, method: str, seeds: range, table: tables.Table) -> Iterator[dict]:
    """The regrets of some seeds of a method on a table, to be kept."""
    budget, keys = about(config, table)["budget"], jax.vmap(jax.random.key)(np.asarray(seeds))
    search = contenders.make(method, table, affordable(config, table))
    history = bonas.run_curves_many(search, objective_of(table), table.steps, keys, budget)
    found = regrets(table, jax.tree.map(np.asarray, history), budget, config.points)
    for i, seed in enumerate(seeds):
        rows = {kind: [float(f"{value:.5g}") for value in found[kind][i]] for kind in KINDS}
        yield {"set": name, "method": method, "seed": seed, "about": about(config, table), **rows}


_OBJECTIVES: dict[int, object] = {}


def objective_of(table: tables.Table):
    """One function a table, so that its searches are compiled once."""
    return _OBJECTIVES.setdefault(id(table), tables.objective(table))


def chunks(config: Config) -> list[range]:
    """Seeds that run in one call."""
    return [range(first, min(first + config.chunk, config.seeds)) for first in range(0, config.seeds, config.chunk)]


def arguments():
    """The parser of the flags."""
    parser = flags.parser(
        __doc__, "hutchinson_search", smoke="one synthetic table, two seeds", seeds="runs of each (default 32)"
    )
    parser.add_argument("--sets", nargs="+", metavar="SET", help="some of the sets: " + ", ".join(REAL) + ", bnn_yacht, …")
    return parser


if __name__ == "__main__":
    main()
