"""What does durability cost? A Study's ask and tell beside the pure core's, its file, and what importing takes.

Four questions: what an ask and a tell cost more than the compiled core alone, among 100 and among 1,000 trials; how the file
grows; whether 10,000 trials of random search slow down; and what `import bonas` and `bonas --help` take. Most of the first
is the disk, which has every value before `tell` returns: the price of one such transaction is measured beside it.

    python experiments/bench_study.py

A minute or two. The files are made in a folder beside the results, on the same disk, and removed.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from script import flags, ready, record

import bonas
from bonas.search import Search, random
from bonas.study import states
from bonas.study.programs import programs, trial
from bonas.study.searching import FIRST
from bonas.study.subset import default_search


@dataclass(frozen=True)
class Config:
    columns: int = 4  # of the space: a small network's
    among: tuple[int, ...] = (100, 1000)  # trials, among which an ask and a tell are timed
    timed: int = 20  # of them, no more than fit before the memory of a study doubles; the median counts
    long: int = 10_000  # trials of random search
    window: int = 200  # trials after it, each compared with one of a study that has just begun
    most_slowing: float = 2.0  # what is aimed at
    most_import: float = 0.5  # processor seconds beyond jax
    most_help: float = 1.0  # processor seconds
    repeats: int = 3  # of the imports; the fastest counts
    seeds: int = 1  # studies of each kind: the cost is the machine's and hardly the seed's


_COMPILED = 2  # trials after which everything is

SMOKE = Config(columns=2, among=(12,), timed=3, long=120, window=20, repeats=1)


def main() -> None:
    parser = flags.parser(
        __doc__, "bench_study", smoke="seconds: few trials", seeds=f"studies of each kind (default {Config.seeds})"
    )
    args, config = flags.read(parser, Config(), SMOKE)
    ready.begin(args.out)
    with tempfile.TemporaryDirectory(dir=args.out) as folder:
        report = measure(config, Path(folder))
    record.write(args.out / "bench_study.json", {"config": asdict(config), **record.about(), **report})
    show(config, report)
    print(f"\nwritten to {args.out / 'bench_study.json'}")


def measure(config: Config, folder: Path) -> dict:
    space = bonas.Space(**{f"x{i}": bonas.Float(0.0, 1.0) for i in range(config.columns)})
    searches = {"random": random(space), "bayes": default_search(space)}
    overheads = [
        overhead(config, folder / f"{name}-{n}-{seed}.db", name, search, n, seed)
        for name, search in searches.items()
        for n in config.among
        for seed in range(config.seeds)
    ]
    long = [long_search(config, folder / f"long-{seed}.db", searches["random"], seed) for seed in range(config.seeds)]
    return {"overhead": overheads, "long": long, "imports": imports(config)}


def loss(u: np.ndarray) -> float:
    return float(np.sum((u - 0.3) ** 2))


def overhead(config: Config, path: Path, name: str, search: Search, n: int, seed: int) -> dict:
    """Median seconds of an ask and a tell among n trials, of a Study and, in turn with it, of the core alone."""
    rows = np.random.default_rng(seed).random((n, config.columns))
    study = bonas.Study(path, search.space, search=search, seed=seed)
    for u in rows:
        study.enqueue(search.space.decode(u))
    for u in rows:
        study.tell(study.ask(), loss(u))
    core, spent = of_core(config, search, rows, seed), []
    for _ in range(config.timed + 1):
        asked, trial = timed(study.ask)
        told, _ = timed(lambda trial=trial: study.tell(trial, loss(trial.u)))
        committed, _ = timed(lambda: study.note("nothing", 0))
        spent.append((asked, told, next(core), committed))
    ask, tell, alone, commit = np.array(spent[1:]).T  # the first compiles
    study.close()
    return {
        "search": name,
        "trials": n,
        "seed": seed,
        "ask_seconds": median(ask),
        "tell_seconds": median(tell),
        "core_seconds": median(alone),
        "overhead_seconds": median(ask + tell - alone),
        "commit_seconds": median(commit),
        "bytes_a_trial": path.stat().st_size / (n + config.timed + 1),
    }


def of_core(config: Config, search: Search, rows: np.ndarray, seed: int) -> Iterator[float]:
    """Seconds of an ask and a tell of the compiled functions, in a state of the capacity that a study's has."""
    init_key, run_key = states.keys(seed)
    made = programs(search, max(FIRST, 1 << (len(rows) + config.timed).bit_length()))
    state = made.init(init_key)
    for u in rows:
        state = made.tell(state, trial(jnp.asarray(u), loss(u), 0.0, ok=True))

    def step(state, i):
        x, state, _ = jax.block_until_ready(made.ask(states.ask_key(run_key, jnp.asarray(i)), state))
        return jax.block_until_ready(made.tell(state, trial(x[0], loss(np.asarray(x[0])), 0.0, ok=True)))

    for i in count():
        seconds, state = timed(lambda state=state, i=i: step(state, i))
        yield seconds


def long_search(config: Config, path: Path, search: Search, seed: int) -> dict:
    """Seconds a trial of a long search and, in turn with it, of one that has just begun: the disk is the same for both."""
    study, fresh = (bonas.Study(path.with_stem(f"{path.stem}-{end}"), search.space, search=search, seed=seed) for end in "ab")
    total, sizes = timed(lambda: [one_trial(study) or study.path.stat().st_size for _ in range(config.long)])
    for _ in range(_COMPILED):
        one_trial(fresh)
    calls = (lambda: one_trial(study), lambda: one_trial(fresh), lambda: fresh.note("nothing", 0))
    late, early, commit = np.array([[timed(call)[0] for call in calls] for _ in range(config.window)]).T
    study.close()
    return {
        "seed": seed,
        "trials": config.long,
        "seconds": total,
        "early_seconds": median(early),
        "late_seconds": median(late),
        "slowing": median(late) / median(early),
        "commit_seconds": median(commit),
        "bytes": study.path.stat().st_size,
        "bytes_on_the_way": sizes[:: max(1, config.long // 10)],
    }


def one_trial(study: bonas.Study) -> None:
    trial = study.ask()
    study.tell(trial, loss(trial.u))


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds that a function took, and what it returned."""
    start = time.perf_counter()
    returned = function()
    return time.perf_counter() - start, returned


def imports(config: Config) -> dict:
    """Processor seconds of fresh processes: jax, what bonas and a Study need beyond it, and the help of the command."""
    lines = {
        "nothing": "",
        "jax": "import jax",
        "bonas": "import jax, bonas",
        "study": "import jax, bonas; bonas.Study",
        "help": "import sys; sys.argv = ['bonas', '--help']\nfrom bonas.study.cli import main\nmain()",
    }
    spent = {name: min(processor_seconds(code) for _ in range(config.repeats)) for name, code in lines.items()}
    return {
        "jax_seconds": spent["jax"] - spent["nothing"],
        "bonas_beyond_jax_seconds": spent["bonas"] - spent["jax"],
        "study_beyond_jax_seconds": spent["study"] - spent["jax"],
        "help_seconds": spent["help"],
    }


def processor_seconds(code: str) -> float:
    """What a new interpreter uses to run the code."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def show(config: Config, report: dict) -> None:
    print(
        f"{'search':8} {'trials':>6} {'ask':>9} {'tell':>9} {'core':>9} {'overhead':>9} {'a commit':>9} {'bytes a trial':>14}"
    )
    for row in report["overhead"]:
        times = (row[f"{what}_seconds"] for what in ("ask", "tell", "core", "overhead", "commit"))
        print(
            f"{row['search']:8} {row['trials']:6}",
            *(f"{1e3 * each:6.2f} ms" for each in times),
            f"{row['bytes_a_trial']:14.0f}",
        )
    for row in report["long"]:
        print(
            f"\n{row['trials']} trials of random search: {row['seconds']:.0f} s, then {1e3 * row['late_seconds']:.2f} ms a "
            f"trial, where a new study needs {1e3 * row['early_seconds']:.2f} ms: {row['slowing']:.2f} times (at most "
            f"{config.most_slowing:g}), with {1e3 * row['commit_seconds']:.2f} ms a commit, of which a trial has two; "
            f"{row['bytes'] / 1e6:.1f} MB"
        )
    beyond, shown = report["imports"]["bonas_beyond_jax_seconds"], report["imports"]["help_seconds"]
    print(
        f"\nimport bonas: {beyond:.2f} s beyond jax (at most {config.most_import:g}), with Study "
        f"{report['imports']['study_beyond_jax_seconds']:.2f} s; bonas --help: {shown:.2f} s (at most {config.most_help:g})"
    )


if __name__ == "__main__":
    main()
