"""The table of trained Bayesian networks that bonas ships: depth, width and seed, on the UCI sets (H-S1, H-E3, H-E5).

Every network is trained once, with its validation log likelihood, errors, active units and seconds at ten checkpoints; the
searches of Hutchinson's figures 5.7 to 5.14 look them up. Split and scaling as in the thesis's code (H-S4): 85% of the rows
train, 15% validate, columns and values from −1 to 1. One hyper-prior a layer, with its own density in the bound (VI, "layers").

Scaled to what one core trains in about two hours: 6,000 updates of 128 rows with one draw and a learning rate of 0.005, where
the author has 50,000 passes over up to 1,000 rows with ten draws and 0.001; 20 widths for 28, and four seeds for one to three.
kin8nm, power and protein have fewer widths, of at most 150 units, and seeds, and at most 1,500 of their rows validate.
`--published` has the author's settings (H-S1), which count passes over the rows, not updates: years of such cores.

Each network is written down when it is done, with the settings that made it, and a second call does what is missing; what the
package's table has, and was trained in the same way, is not trained again. With all of them done the table is packed;
`--install` puts it into the package, and says what is to be changed then.
Without BONAS_DATA, --smoke takes synthetic rows.
"""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from script import flags, progress, ready, record
from variational import sets
from variational.sets import VALIDATED

from bonas import nets
from bonas.problems import bnn_table, datasets
from bonas.problems.bnn_table import Network

SMALL = ("yacht", "boston", "energy", "concrete", "wine_red")
WIDTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 35, 40, 50, 60, 70, 80, 100)
CHECKPOINTS = (100, 200, 400, 600, 1000, 1500, 2000, 3000, 4000, 6000)


@dataclass(frozen=True)
class Grid:
    widths: tuple[int, ...]
    seeds: int
    batch: int | None = 128
    window: int = 4  # updates, or passes where there are epochs, that scores are averaged over; the thesis has 20, its code 50
    shrinking: bool = False  # also networks of which each layer has half the units of the one before (H-F4)
    epochs: tuple[int, ...] = ()  # passes over the rows at each checkpoint, in place of the updates of Config


@dataclass(frozen=True)
class Config:
    sets: tuple[tuple[str, Grid], ...] = (
        ("yacht", Grid(WIDTHS, 4)),
        ("boston", Grid(WIDTHS, 4, shrinking=True)),
        ("energy", Grid(WIDTHS, 4, shrinking=True)),
        ("concrete", Grid(WIDTHS, 4)),
        ("wine_red", Grid(WIDTHS, 4)),
        # larger sets want more rows an update
        ("kin8nm", Grid((1, 3, 5, 10, 20, 40, 70, 100, 150), 2, batch=256, window=1)),
        ("power", Grid((1, 3, 5, 10, 15, 25, 40, 60, 80, 100), 2, batch=256, window=1)),
        ("protein", Grid((5, 10, 20, 35, 50, 75, 100, 150), 2, batch=256, window=1)),
    )
    depths: tuple[int, ...] = (1, 2, 3)
    checkpoints: tuple[int, ...] = CHECKPOINTS
    learning_rate: float = 0.005  # deviations begin at e^−5.5 and must be able to reach 1 in 6,000 updates
    prior: str = "layers"
    samples: int = 1
    draws: int = 50  # at each of the updates that scores are averaged over
    validated: int | None = VALIDATED  # rows at most


SMOKE = Config(
    sets=(("yacht", Grid((2, 5), 2, batch=32, window=2, shrinking=True)),),
    depths=(1, 2),
    checkpoints=(10, 20, 30),
    draws=4,
)
_MANY = (1, 3, 5, 7, 10, 20, 40, 50, 80, 100, 120, 140, 160, 180, 200)
_AUTHORS = (*range(1, 11), *range(15, 101, 5))
_REPEATED = ("boston", "concrete", "energy")
_EPOCHS = (500, 1000, 2000, 4000, 8000, 16000, 30000, 50000)
PUBLISHED = Config(
    sets=(
        *((name, Grid(_AUTHORS, 3 if name in _REPEATED else 1, 1000, 50, epochs=_EPOCHS)) for name in (*SMALL, "power")),
        ("kin8nm", Grid(_MANY, 1, 1000, 50, epochs=_EPOCHS)),
        ("protein", Grid((10, 20, 50, 100, 150, 200, 300, 400, 500, 600), 1, 10000, 50, epochs=_EPOCHS[:-1])),
    ),
    learning_rate=0.001,
    prior="published",
    samples=10,
    draws=100,
    validated=None,
)


@dataclass(frozen=True)
class Settings:
    """How the networks of a set are trained, as it is kept with them."""

    checkpoints: tuple[int, ...]  # updates
    batch: int
    window: int  # updates
    learning_rate: float
    prior: str
    samples: int
    draws: int
    validated: int | None
    synthetic: bool


def settings_of(config: Config, grid: Grid, rows: int, *, synthetic: bool = False) -> Settings:
    """Those of a set with so many rows to train on; a pass over them is ⌈rows / batch⌉ updates."""
    batch = min(grid.batch or rows, rows)
    turns = -(-rows // batch) if grid.epochs else 1
    checkpoints = tuple(turns * point for point in grid.epochs or config.checkpoints)
    shared = (config.learning_rate, config.prior, config.samples, config.draws, config.validated)
    return Settings(checkpoints, batch, turns * grid.window, *shared, synthetic)


class Job(NamedTuple):
    """A network to train."""

    name: str
    network: Network
    seed: int


def plan(config: Config, seeds: int | None) -> Iterator[Job]:
    """All networks, one seed after the other, so that a table that is not finished has all networks."""
    most = max(grid.seeds for _, grid in config.sets)
    for seed in range(min(most, seeds or most)):
        for name, grid in config.sets:
            if seed < grid.seeds:
                yield from (Job(name, network, seed) for network in networks(config, grid))


def networks(config: Config, grid: Grid) -> list[Network]:
    """Those of a grid, narrow ones first."""
    patterns = (False, True) if grid.shrinking else (False,)
    every = [Network(depth, width, pattern) for width in grid.widths for depth in config.depths for pattern in patterns]
    return [each for each in every if not (each.shrinking and (each.depth == 1 or each.width < 2))]


def train(settings: Settings, job: Job) -> dict:
    """The row of one network."""
    course = nets.Course(settings.checkpoints, settings.batch, settings.draws, settings.window)
    vi = nets.VI(prior=settings.prior, samples=settings.samples, antithetic=False)
    where = {"synthetic": settings.synthetic, "validated": settings.validated}
    _, row = sets.train(job.name, job.network.widths(), job.seed, vi, course, nets.Traits(settings.learning_rate), **where)
    return {"set": job.name, "network": list(job.network), "seed": job.seed, **row}


def key_of(row: dict) -> Job:
    return Job(row["set"], Network(*row["network"]), row["seed"])


def main() -> None:
    """Train what is missing, then pack the table."""
    args = arguments()
    config = SMOKE if args.smoke else PUBLISHED if args.published else Config()
    config = replace(config, sets=tuple(each for each in config.sets if not args.sets or each[0] in args.sets))
    synthetic = args.smoke and not os.environ.get(datasets.FOLDER_VARIABLE)
    ready.begin(args.out)
    rows = {name: len(sets.data_of(name, synthetic, config.validated)[0].x) for name, _ in config.sets}
    settings = {name: settings_of(config, grid, rows[name], synthetic=synthetic) for name, grid in config.sets}
    jobs = list(plan(config, args.seeds))
    known = trained(args, settings, jobs)
    packed, written = args.out / bnn_table.FILE, args.out / "make_bnn_table.json"
    about = {**record.about(), "settings": {name: asdict(own) for name, own in settings.items()}}
    bnn_table.pack(packed, [in_columns(known[job], max(config.depths)) for job in jobs], about)
    digest = bnn_table.digest(packed)
    print(f"{len(jobs)} networks in {packed}, {packed.stat().st_size / 1e6:.2f} MB, sha256 {digest}")
    record.write(written, {**about, **summary(config, known, jobs, digest)})
    if args.install:
        bnn_table.SHIPPED.parent.mkdir(exist_ok=True)
        shutil.copyfile(packed, bnn_table.SHIPPED)
        print(f"installed; now set SHA256 in bonas/problems/bnn_table.py to {digest},")
        print(f"see whether the datasheet there still holds, copy {written} to experiments/results, and call `make page`")


def trained(args, settings: dict[str, Settings], jobs: list[Job]) -> dict[Job, dict]:
    """The row of each job; those that are not known are trained and written down."""
    file = args.out / "networks.jsonl"
    known = {key_of(row): row for row in (*shipped(settings), *kept(file, settings))}
    missing = [job for job in jobs if job not in known]
    with progress.bar(disable=None) as bar, ThreadPoolExecutor(args.at_once) as pool:
        task = bar.add_task("networks", total=len(jobs), completed=len(jobs) - len(missing))
        try:
            for name, some in groupby(missing, lambda job: job.name):
                for row in pool.map(partial(train, settings[name]), some):
                    record.add(file, row, asdict(settings[name]))
                    known[key_of(row)] = row
                    bar.update(task, advance=1, description=name)
                jax.clear_caches()  # the programs of all sets together are more than a process may map
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise SystemExit(f"stopped; the same command goes on from {len(known)} networks") from None
    return known


def kept(file: Path, settings: dict[str, Settings]) -> list[dict]:
    """The rows of a file that were made with these settings."""
    return [row for name, own in settings.items() for row in record.lines(file, asdict(own)) if row["set"] == name]


def shipped(settings: dict[str, Settings]) -> list[dict]:
    """The rows of the package's table that were made with these settings; of any version of it."""
    if not bnn_table.SHIPPED.is_file():
        return []
    made, wanted = bnn_table.settings(bnn_table.SHIPPED)["settings"], {name: asdict(own) for name, own in settings.items()}
    same = [name for name in wanted if made.get(name) == record.plain(wanted[name])]
    return [row for row in bnn_table.rows(bnn_table.SHIPPED) if row["set"] in same]


def in_columns(row: dict, depth: int) -> dict:
    """The row with the active units of as many layers as the deepest network has: those that are not there have none."""
    return row | {"active": [layers + [0] * (depth - len(layers)) for layers in row["active"]]}


def summary(config: Config, known: dict, jobs: list[Job], digest: str) -> dict:
    """What the table holds, and the best network of each set by its mean over seeds."""
    found: dict = {"sha256": digest, "networks": len(jobs), "hours": sum(known[job]["seconds"][-1] for job in jobs) / 3600.0}
    for name, _ in config.sets:
        rows = [known[job] for job in jobs if job.name == name]
        finals: dict[Network, list[float]] = {}
        for row in rows:
            if row["log_likelihood"][-1] is not None:
                finals.setdefault(Network(*row["network"]), []).append(row["log_likelihood"][-1])
        best = max(finals, key=lambda network: np.mean(finals[network]))
        diverged = sum(row["log_likelihood"][-1] is None for row in rows)
        found[name] = {
            "networks": len(rows),
            "best": list(best),
            "log_likelihood": float(np.mean(finals[best])),
            "diverged": diverged,
        }
    return found


def arguments():
    """The flags."""
    parser = flags.parser(
        __doc__, "make_bnn_table", smoke="a few tiny networks", seeds="seeds of each network, at most those of the grid"
    )
    parser.add_argument("--published", action="store_true", help="the author's widths, updates and draws")
    parser.add_argument("--sets", nargs="+", choices=[name for name, _ in Config().sets], help="some of the sets")
    parser.add_argument(
        "--at-once", type=flags.positive, default=os.cpu_count() or 1, metavar="N", help="networks (default: one a core)"
    )
    parser.add_argument("--install", action="store_true", help="put the table into the package")
    return parser.parse_args()


if __name__ == "__main__":
    main()
