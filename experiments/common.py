"""Shared by all experiments: command-line flags, records as JSON, runs that can be resumed."""

import argparse
import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

import bonas
from bonas.acquire import random_shift, sobol
from bonas.search import History, Observation, Search

Config = TypeVar("Config", bound=Any)  # a frozen dataclass

# Command-line flags


def parser(
    doc: str | None, name: str, *, smoke: str, seeds: str
) -> argparse.ArgumentParser:
    """Create a parser with --smoke, --seeds and --out; its help starts with the script's docstring.

    Args:
        doc: The docstring of the script.
        name: The name of the experiment; results go to `results/name` by default.
        smoke: Help text of --smoke.
        seeds: Help text of --seeds.
    """
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--smoke", action="store_true", help=smoke)
    made.add_argument("--seeds", type=positive_int, metavar="N", help=seeds)
    default = Path("results") / name
    made.add_argument(
        "--out", type=Path, default=default, metavar="DIR", help=f"default {default}"
    )
    return made


def benchmark_parser(
    doc: str | None, name: str, *, smoke: str, seeds: str
) -> argparse.ArgumentParser:
    """Create the same parser with --core, for `pin_to_core`."""
    made = parser(doc, name, smoke=smoke, seeds=seeds)
    made.add_argument(
        "--core", type=int, help="the processor core to run on (default: the last)"
    )
    return made


def parse(
    parser: argparse.ArgumentParser,
    full: Config,
    smoke: Config,
    *,
    seeds_field: str = "seeds",
) -> tuple[argparse.Namespace, Config]:
    """Parse the command line and choose the configuration.

    Args:
        full: The configuration of a full run.
        smoke: The configuration of `--smoke`.
        seeds_field: The field of the configuration that --seeds replaces.
    """
    args = parser.parse_args()
    config = smoke if args.smoke else full
    if args.seeds:
        config = replace(config, **{seeds_field: args.seeds})
    return args, config


def positive_int(text: str) -> int:
    """Convert an argument to an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {number}")
    return number


def pin_to_core(core: int | None) -> None:
    """Keep this process and its children on one core, where the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        chosen = max(os.sched_getaffinity(0)) if core is None else core
        os.sched_setaffinity(0, {chosen})


def setup(out: Path) -> None:
    """Configure bonas and matplotlib, and create the output folder."""
    bonas.configure()
    plt.switch_backend("Agg")
    out.mkdir(parents=True, exist_ok=True)


def progress_bar(width: int = 1, **settings: Any) -> Progress:
    """Create a progress bar with counts and times; the description has at least `width` columns."""
    return Progress(
        TextColumn(f"{{task.description:{width}}}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        **settings,
    )


# Records

PACKAGES = (
    "bonas",
    "jax",
    "jaxlib",
    "numpy",
    "numpyro",
    "flax",
    "optax",
    "scipy",
    "matplotlib",
)
# Flags that change no number: paths, and how many processes run at once.
FLAGS_WITH_VALUE = ("--out", "--rivals", "--core", "--at-once")
FLAGS_ALONE = ("--install",)


def provenance() -> dict:
    """Return the command and the package versions behind a result."""
    versions = {name: version(name) for name in PACKAGES}
    return {
        "command": command(sys.argv),
        "versions": {"python": platform.python_version(), **versions},
    }


def command(arguments: list[str]) -> str:
    """Return the command line of a script, without flags that are specific to a machine.

    Args:
        arguments: `sys.argv`: the path of a script `experiments/source/script.py`, then its flags.
    """
    kept = []
    flags = iter(arguments[1:])
    for flag in flags:
        if flag in FLAGS_WITH_VALUE:
            next(flags, None)
        elif flag not in FLAGS_ALONE and flag.partition("=")[0] not in FLAGS_WITH_VALUE:
            kept.append(flag)
    script = Path(arguments[0])
    return shlex.join(
        ["python", "-m", f"experiments.{script.parent.name}.{script.stem}", *kept]
    )


def write_json(path: Path, record: dict) -> None:
    """Write a record as JSON; raise ValueError for NaN, which JSON does not have."""
    path.write_text(
        json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )


def append_line(file: Path, record: dict, settings: dict | list | None = None) -> None:
    """Append a record to a file of JSON lines, with the settings that produced it."""
    if settings is not None:
        record = {**record, "settings": settings}
    with file.open("a", encoding="utf-8") as opened:
        opened.write(json.dumps(record, allow_nan=False) + "\n")


def read_lines(file: Path, settings: dict | list | None = None) -> list[dict]:
    """Read the records of a file of JSON lines; return none if the file does not exist.

    An incomplete last line, left by a killed process, is removed from the file.

    Args:
        settings: Return only records with these settings. A file may also hold the records of a
            smoke run or of another version.
    """
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        file.write_text("".join(lines), encoding="utf-8")
    records = [json.loads(line) for line in lines if line.strip()]
    if settings is None:
        return records
    return [record for record in records if record.get("settings") == as_json(settings)]


def as_json(settings: dict | list) -> dict | list:
    """Return settings as they are read from JSON, where tuples are lists."""
    return json.loads(json.dumps(settings))


# Runs that can be resumed


class SavedRuns:
    """The runs of one method on one problem, in a file with one line per seed.

    Runs that were made with other settings are ignored.
    """

    def __init__(self, path: Path, settings: dict | list):
        self.path = path
        self.settings = settings
        self.rows = {row["seed"]: row for row in read_lines(path, settings)}

    def save(self, row: dict) -> None:
        """Append the run of one seed to the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self.path, row, self.settings)
        self.rows[row["seed"]] = row

    def first(self, seeds: int) -> list[dict]:
        """Return the saved runs among the first seeds, in order."""
        return [self.rows[seed] for seed in range(seeds) if seed in self.rows]

    def missing(self, seeds: int) -> list[int]:
        """Return the seeds among the first that have no run."""
        return [seed for seed in range(seeds) if seed not in self.rows]


@dataclass(frozen=True)
class StartFrom(Search):
    """A search with another initial state, so that several searches start from the same points."""

    search: Search
    change: Callable[[jax.Array, Any], Any]  # (key of init, state) -> state

    @property
    def space(self) -> bonas.Space:
        return self.search.space

    def init(self, key: jax.Array, capacity: int) -> Any:
        return self.change(key, self.search.init(key, capacity))

    def ask(self, key: jax.Array, state: Any) -> tuple:
        return self.search.ask(key, state)

    def tell(self, state: Any, observation: Observation) -> Any:
        return self.search.tell(state, observation)


def uniform_design(key: jax.Array, state: Any) -> Any:
    """Replace the initial design of `bonas.bayes` by uniform points."""
    return state._replace(design=jax.random.uniform(key, state.design.shape))


def plan_from_sobol(search: Search, initial: int) -> Search:
    """Start a search that follows a plan from the initial points of `bonas.bayes`."""

    def change(key: jax.Array, state: Any) -> Any:
        design = search.space.spread(
            random_shift(key, sobol(initial, search.space.dim))
        )
        plan = jnp.concatenate([design, state.plan])
        return state._replace(plan=plan, times=jnp.pad(state.times, (initial, 0)))

    return StartFrom(search, change)


def timed_run(
    search: Search, objective: Callable, seed: int, steps: int
) -> tuple[History, dict[str, float]]:
    """Run a search for one seed and measure it; the history has a leading axis of length 1."""
    wall = time.perf_counter()
    cpu = time.process_time()
    history = bonas.run_many(search, objective, jax.random.key(seed)[None], steps)
    jax.block_until_ready(history)
    seconds = {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
    }
    return history, seconds


def run_missing(
    runs: SavedRuns,
    make: Callable[[], Search],
    objective: Callable[[Search], Callable],
    steps: int,
    seeds: int,
    *,
    describe: Callable[[Search, History], dict],
    advance: Callable[[], None],
) -> None:
    """Run a search for every seed that has no run; it compiles once, for the first of them.

    Args:
        make: Creates the search, unless no seed is missing.
        objective: Returns the objective for the search.
        describe: Returns what to save of a history; its leading axis has length 1.
        advance: Called after each run.
    """
    missing = runs.missing(seeds)
    if not missing:
        return
    search = make()
    evaluate = objective(search)
    for number, seed in enumerate(missing):
        history, seconds = timed_run(search, evaluate, seed, steps)
        row = describe(search, history)
        runs.save({"seed": seed, **row, "compiled": number == 0, **seconds})
        advance()


def load_or_compute(
    path: Path, config: Any, compute: Callable[[], dict[str, Any]]
) -> dict[str, np.ndarray]:
    """Load the arrays saved at a path for this configuration, or compute and save them."""
    settings = json.dumps(asdict(config))
    if not path.exists() or str(np.load(path)["config"]) != settings:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part.npz")
        np.savez(unfinished, config=settings, **compute())
        unfinished.replace(path)  # atomic: the file is complete or absent
    return dict(np.load(path))
