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

`--variants` adds the published acquisitions and under-sampling, and other models of curves. Each run is saved as it ends,
and a second call does what is missing. --smoke takes a synthetic table (H-S10).
"""

from dataclasses import dataclass, replace

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
    resamples: int = 10_000


SMOKE = Config(seeds=2, networks=3, points=6, chunk=2, methods=("bonas", "random", "successive halving"))


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


def budget_of(config: Config, table: tables.Table) -> int:
    """Training steps."""
    whole, n = int(table.steps[-1]), len(table.x)
    return whole * max(1, min(config.networks, int(config.share * n)))


def main() -> None:
    """Run what is missing, then draw and summarise."""
    args = arguments()
    config = SMOKE if args.smoke else Config(methods=contenders.MAIN + (contenders.VARIANTS if args.variants else ()))
    config = replace(config, seeds=args.seeds or config.seeds)
    ready.begin(args.out)
    known_tables = problems(args.smoke)
    if args.sets:
        known_tables = {name: table for name, table in known_tables.items() if name in args.sets}
    file = args.out / "runs.jsonl"
    known = {(row["set"], row["method"], row["seed"]): row for row in record.lines(file)}
    jobs = [
        (name, method, seeds)
        for name in known_tables
        for method in config.methods
        for seeds in chunks(config)
        if any((name, method, seed) not in known for seed in seeds)
    ]
    with progress.bar(disable=None) as bar, file.open("a", encoding="utf-8") as growing:
        task = bar.add_task("searches", total=len(jobs))
        for i, (name, method, seeds) in enumerate(jobs):
            if i and name != jobs[i - 1][0]:
                jax.clear_caches()  # the programs of all sets together are more than a process may map
            bar.update(task, description=f"{method} on {name}")
            table = known_tables[name]
            keys = jax.vmap(jax.random.key)(np.asarray(seeds))
            search, budget = contenders.make(method, table), budget_of(config, table)
            history = bonas.run_curves_many(search, objective_of(table), table.steps, keys, budget)
            found = regrets(table, jax.tree.map(np.asarray, history), budget, config.points)
            for i, seed in enumerate(seeds):
                rows = {kind: [float(f"{value:.5g}") for value in found[kind][i]] for kind in KINDS}
                known[name, method, seed] = {"set": name, "method": method, "seed": seed, **rows}
                growing.write(record.line(known[name, method, seed]))
            growing.flush()
            bar.advance(task)
    sizes = {
        name: {
            "networks": len(table.x),
            "runs": table.values.shape[1],
            "steps": table.steps.tolist(),
            "budget": budget_of(config, table),
            "floor": floor(table),
        }
        for name, table in known_tables.items()
    }
    found = report.summary(config, list(known_tables), known)
    record.write(args.out / "hutchinson_search.json", {**record.about(), "sets": sizes, "seeds": config.seeds, **found})
    report.draw(config, sizes, known, args.out)
    report.show(found)


_OBJECTIVES: dict[int, object] = {}


def objective_of(table: tables.Table):
    """One function a table, so that its searches are compiled once."""
    return _OBJECTIVES.setdefault(id(table), tables.objective(table))


def chunks(config: Config) -> list[range]:
    """Seeds that run in one call."""
    return [range(first, min(first + config.chunk, config.seeds)) for first in range(0, config.seeds, config.chunk)]


def arguments():
    """The flags."""
    parser = flags.parser(
        __doc__, "hutchinson_search", smoke="one synthetic table, two seeds", seeds="runs of each (default 32)"
    )
    parser.add_argument("--variants", action="store_true", help="published acquisitions and other models of curves too")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="some of the sets: " + ", ".join(REAL) + ", bnn_yacht, …")
    return parser.parse_args()


if __name__ == "__main__":
    main()
