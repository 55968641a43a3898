"""How do Bayesian networks of every depth and width train on eight data sets?

Builds the table that bonas ships. Every network is trained once; its validation log likelihood,
errors, active units and seconds are recorded at ten checkpoints, and the searches of Hutchinson's
figures 5.7 to 5.14 look them up. Split and scaling follow the thesis's code: 85% of the rows train,
15% validate, columns and values are scaled to [−1, 1]. There is one hyperprior per layer, with its
own density in the bound.

The scale is reduced to what one core trains in about two hours: 6,000 updates of 128 rows with one
sample and a learning rate of 0.005, where the author has 50,000 epochs over up to 1,000 rows with
ten samples and 0.001; 20 widths in place of 28, and four seeds in place of one to three. kin8nm,
power and protein have fewer widths, of at most 150 units, fewer seeds, and at most 1,500
validation rows. `--published` has the author's settings, which would take years on one core.

Every network is saved with its settings, and a second call trains the missing ones; networks that
the shipped table has with the same settings are not trained again. When all are done the table is
packed; `--install` copies it into the package and prints what to update. Without BONAS_DATA,
--smoke uses synthetic rows.
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

from bonas import nets
from bonas.problems import bnn_table, datasets
from bonas.problems.bnn_table import Network
from experiments import common
from experiments.hutchinson import uci_networks as sets
from experiments.hutchinson.uci_networks import VALIDATED

SMALL = ("yacht", "boston", "energy", "concrete", "wine_red")
WIDTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 35, 40, 50, 60, 70, 80, 100)
CHECKPOINTS = (100, 200, 400, 600, 1000, 1500, 2000, 3000, 4000, 6000)


@dataclass(frozen=True)
class Grid:
    widths: tuple[int, ...]
    seeds: int
    batch: int | None = 128
    # Updates (or passes, if epochs are given) that scores are averaged over; the thesis has 20, its
    # code 50
    window: int = 4
    # Also include networks where each layer has half the units of the layer before
    shrinking: bool = False
    # Passes over the rows at each checkpoint, which replace the updates of Config
    epochs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Config:
    sets: tuple[tuple[str, Grid], ...] = (
        ("yacht", Grid(WIDTHS, 4)),
        ("boston", Grid(WIDTHS, 4, shrinking=True)),
        ("energy", Grid(WIDTHS, 4, shrinking=True)),
        ("concrete", Grid(WIDTHS, 4)),
        ("wine_red", Grid(WIDTHS, 4)),
        # larger sets need more rows per update
        ("kin8nm", Grid((1, 3, 5, 10, 20, 40, 70, 100, 150), 2, batch=256, window=1)),
        ("power", Grid((1, 3, 5, 10, 15, 25, 40, 60, 80, 100), 2, batch=256, window=1)),
        ("protein", Grid((5, 10, 20, 35, 50, 75, 100, 150), 2, batch=256, window=1)),
    )
    depths: tuple[int, ...] = (1, 2, 3)
    checkpoints: tuple[int, ...] = CHECKPOINTS
    # Large enough for deviations to grow from e^−5.5 to 1 within 6,000 updates
    learning_rate: float = 0.005
    prior: str = "layers"
    samples: int = 1
    draws: int = 50  # posterior samples at each update that scores are averaged over
    validated: int | None = VALIDATED  # largest number of validation rows


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
        *(
            (
                name,
                Grid(_AUTHORS, 3 if name in _REPEATED else 1, 1000, 50, epochs=_EPOCHS),
            )
            for name in (*SMALL, "power")
        ),
        ("kin8nm", Grid(_MANY, 1, 1000, 50, epochs=_EPOCHS)),
        (
            "protein",
            Grid(
                (10, 20, 50, 100, 150, 200, 300, 400, 500, 600),
                1,
                10000,
                50,
                epochs=_EPOCHS[:-1],
            ),
        ),
    ),
    learning_rate=0.001,
    prior="published",
    samples=10,
    draws=100,
    validated=None,
)


@dataclass(frozen=True)
class Settings:
    """Training settings of the networks of a set."""

    checkpoints: tuple[int, ...]  # updates
    batch: int
    window: int  # updates
    learning_rate: float
    prior: str
    samples: int
    draws: int
    validated: int | None
    synthetic: bool


def settings_of(
    config: Config, grid: Grid, rows: int, *, synthetic: bool = False
) -> Settings:
    """Return the settings of a set; an epoch over its rows is ⌈rows / batch⌉ updates."""
    batch = min(grid.batch or rows, rows)
    turns = -(-rows // batch) if grid.epochs else 1
    checkpoints = tuple(turns * point for point in grid.epochs or config.checkpoints)
    shared = (
        config.learning_rate,
        config.prior,
        config.samples,
        config.draws,
        config.validated,
    )
    return Settings(checkpoints, batch, turns * grid.window, *shared, synthetic)


class Job(NamedTuple):
    """A network to train."""

    name: str
    network: Network
    seed: int


def plan(config: Config, seeds: int | None) -> Iterator[Job]:
    """Yield all networks seed by seed, so that an unfinished table has every network."""
    most = max(grid.seeds for _, grid in config.sets)
    for seed in range(min(most, seeds or most)):
        for name, grid in config.sets:
            if seed < grid.seeds:
                yield from (
                    Job(name, network, seed) for network in networks(config, grid)
                )


def networks(config: Config, grid: Grid) -> list[Network]:
    """Return the networks of a grid, narrow ones first."""
    patterns = (False, True) if grid.shrinking else (False,)
    every = [
        Network(depth, width, pattern)
        for width in grid.widths
        for depth in config.depths
        for pattern in patterns
    ]
    return [
        each
        for each in every
        if not (each.shrinking and (each.depth == 1 or each.width < 2))
    ]


def train(settings: Settings, job: Job) -> dict:
    """Train one network and return its row."""
    course = nets.TrainingPlan(
        settings.checkpoints, settings.batch, settings.draws, settings.window
    )
    vi = nets.VI(prior=settings.prior, samples=settings.samples, antithetic=False)
    where = {"synthetic": settings.synthetic, "validated": settings.validated}
    _, row = sets.train(
        job.name,
        job.network.widths(),
        job.seed,
        vi,
        course,
        nets.VIHyperparameters(settings.learning_rate),
        **where,
    )
    return {"set": job.name, "network": list(job.network), "seed": job.seed, **row}


def key_of(row: dict) -> Job:
    return Job(row["set"], Network(*row["network"]), row["seed"])


def main() -> None:
    """Train the missing networks, then pack the table."""
    args = arguments()
    config = SMOKE if args.smoke else PUBLISHED if args.published else Config()
    config = replace(
        config,
        sets=tuple(
            each for each in config.sets if not args.sets or each[0] in args.sets
        ),
    )
    synthetic = args.smoke and not os.environ.get(datasets.FOLDER_VARIABLE)
    common.setup(args.out)
    rows = {
        name: len(sets.data_of(name, synthetic, config.validated)[0].x)
        for name, _ in config.sets
    }
    settings = {
        name: settings_of(config, grid, rows[name], synthetic=synthetic)
        for name, grid in config.sets
    }
    jobs = list(plan(config, args.seeds))
    finished = train_missing(args, settings, jobs)
    packed, written = args.out / bnn_table.FILE, args.out / "hutchinson_make_table.json"
    about = {
        **common.provenance(),
        "settings": {name: asdict(own) for name, own in settings.items()},
    }
    bnn_table.pack(
        packed, [pad_layers(finished[job], max(config.depths)) for job in jobs], about
    )
    digest = bnn_table.digest(packed)
    print(
        f"{len(jobs)} networks in {packed}, {packed.stat().st_size / 1e6:.2f} MB, sha256 {digest}"
    )
    common.write_json(written, {**about, **summary(config, finished, jobs, digest)})
    if args.install:
        bnn_table.TABLE_FILE.parent.mkdir(exist_ok=True)
        shutil.copyfile(packed, bnn_table.TABLE_FILE)
        print(f"installed; now set SHA256 in bonas/problems/bnn_table.py to {digest},")
        print(
            "check that the datasheet in that file still holds, "
            f"copy {written} to experiments/results, and run `make page`"
        )


def train_missing(
    args, settings: dict[str, Settings], jobs: list[Job]
) -> dict[Job, dict]:
    """Return the row of each job; train and save the missing ones."""
    file = args.out / "networks.jsonl"
    finished = {
        key_of(row): row
        for row in (*read_shipped_rows(settings), *read_saved(file, settings))
    }
    missing = [job for job in jobs if job not in finished]
    with (
        common.progress_bar(disable=None) as bar,
        ThreadPoolExecutor(args.at_once) as pool,
    ):
        task = bar.add_task(
            "networks", total=len(jobs), completed=len(jobs) - len(missing)
        )
        try:
            for name, some in groupby(missing, lambda job: job.name):
                for row in pool.map(partial(train, settings[name]), some):
                    common.append_line(file, row, asdict(settings[name]))
                    finished[key_of(row)] = row
                    bar.update(task, advance=1, description=name)
                # the programs of all sets together exceed the memory maps of a process
                jax.clear_caches()
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise SystemExit(
                f"stopped with {len(finished)} networks saved; run again to continue"
            ) from None
    return finished


def read_saved(file: Path, settings: dict[str, Settings]) -> list[dict]:
    """Return the rows of a file that were made with these settings."""
    return [
        row
        for name, own in settings.items()
        for row in common.read_lines(file, asdict(own))
        if row["set"] == name
    ]


def read_shipped_rows(settings: dict[str, Settings]) -> list[dict]:
    """Return the rows of the package's table that were made with these settings."""
    if not bnn_table.TABLE_FILE.is_file():
        return []
    made, wanted = (
        bnn_table.settings(bnn_table.TABLE_FILE)["settings"],
        {name: asdict(own) for name, own in settings.items()},
    )
    same = [name for name in wanted if made.get(name) == common.as_json(wanted[name])]
    return [row for row in bnn_table.rows(bnn_table.TABLE_FILE) if row["set"] in same]


def pad_layers(row: dict, depth: int) -> dict:
    """Pad the active units of a row with zeros to the layers of the deepest network."""
    return row | {
        "active": [layers + [0] * (depth - len(layers)) for layers in row["active"]]
    }


def summary(config: Config, finished: dict, jobs: list[Job], digest: str) -> dict:
    """Return the size of the table, and the best network of each set by its mean over seeds."""
    found: dict = {
        "sha256": digest,
        "networks": len(jobs),
        "hours": sum(finished[job]["seconds"][-1] for job in jobs) / 3600.0,
    }
    for name, _ in config.sets:
        rows = [finished[job] for job in jobs if job.name == name]
        finals: dict[Network, list[float]] = {}
        for row in rows:
            if row["log_likelihood"][-1] is not None:
                finals.setdefault(Network(*row["network"]), []).append(
                    row["log_likelihood"][-1]
                )
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
    """Parse the flags."""
    parser = common.parser(
        __doc__,
        "hutchinson_make_table",
        smoke="a few tiny networks",
        seeds="seeds of each network, at most the number in the grid",
    )
    parser.add_argument(
        "--published",
        action="store_true",
        help="use the author's widths, updates and draws",
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=[name for name, _ in Config().sets],
        help="run only these sets",
    )
    parser.add_argument(
        "--at-once",
        type=common.positive_int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="networks trained at once (default: one per core)",
    )
    parser.add_argument(
        "--install", action="store_true", help="copy the table into the package"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
