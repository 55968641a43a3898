"""What does a durable study cost: ask and tell, its file, imports?

Four questions: how much longer ask and tell of a Study take than the compiled core, with 100 and
with 1,000 trials; how the file grows; whether 10,000 trials of random search slow down; and how
long `import bonas` and `bonas --help` take. Most of the overhead is the disk, which has every value
before `tell` returns, so the time of one such transaction is measured too.

The files are created in the output folder, on the same disk, and removed.
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

import bonas
from bonas.search import Search, random
from bonas.study.compiled_search import compile_search, make_observation
from bonas.study.default_search import default_search
from bonas.study.stepper import FIRST_CAPACITY, ask_key, run_keys
from experiments import common


@dataclass(frozen=True)
class Config:
    columns: int = 4  # dimensions of the space, as for a small network
    # trials in the study when ask and tell are timed
    among: tuple[int, ...] = (100, 1000)
    # Timed trials, few enough that the capacity of a study does not double; the median is reported
    timed: int = 20
    long: int = 10_000  # trials of random search
    window: int = 200  # trials after those, each compared with a trial of a new study
    most_slowing: float = 2.0  # goal: at most this ratio
    most_import: float = 0.5  # goal: at most this CPU time beyond jax
    most_help: float = 1.0  # goal: at most this CPU time
    repeats: int = 3  # repeats of the imports; the fastest is reported
    seeds: int = 1  # studies of each kind: the cost hardly depends on the seed


_COMPILED = 2  # trials after which everything is compiled

SMOKE = Config(columns=2, among=(12,), timed=3, long=120, window=20, repeats=1)


def main() -> None:
    parser = common.parser(
        __doc__,
        "benchmarks_study",
        smoke="seconds: few trials",
        seeds=f"studies of each kind (default {Config.seeds})",
    )
    args, config = common.parse(parser, Config(), SMOKE)
    common.setup(args.out)
    with tempfile.TemporaryDirectory(dir=args.out) as folder:
        report = measure(config, Path(folder))
    common.write_json(
        args.out / "benchmarks_study.json",
        {"config": asdict(config), **common.provenance(), **report},
    )
    show(config, report)
    print(f"\nwritten to {args.out / 'benchmarks_study.json'}")


def measure(config: Config, folder: Path) -> dict:
    space = bonas.Space(
        **{f"x{i}": bonas.Float(0.0, 1.0) for i in range(config.columns)}
    )
    searches = {"random": random(space), "bayes": default_search(space)}
    overheads = [
        overhead(config, folder / f"{name}-{n}-{seed}.db", name, search, n, seed)
        for name, search in searches.items()
        for n in config.among
        for seed in range(config.seeds)
    ]
    long = [
        long_search(config, folder / f"long-{seed}.db", searches["random"], seed)
        for seed in range(config.seeds)
    ]
    return {"overhead": overheads, "long": long, "imports": imports(config)}


def loss(u: np.ndarray) -> float:
    return float(np.sum((u - 0.3) ** 2))


def overhead(
    config: Config, path: Path, name: str, search: Search, n: int, seed: int
) -> dict:
    """Time ask and tell of a Study with n trials, alternating with the compiled core."""
    rows = np.random.default_rng(seed).random((n, config.columns))
    study = bonas.Study(path, search.space, search=search, seed=seed)
    for u in rows:
        study.enqueue(search.space.decode(u))
    for u in rows:
        study.tell(study.ask(), loss(u))
    core, spent = of_core(config, search, rows, seed), []
    for _ in range(config.timed + 1):
        ask_time, trial = timed(study.ask)
        tell_time, _ = timed(lambda trial=trial: study.tell(trial, loss(trial.u)))
        commit_time, _ = timed(lambda: study.note("nothing", 0))
        spent.append((ask_time, tell_time, next(core), commit_time))
    ask, tell, compiled, commit = np.array(spent[1:]).T  # the first compiles
    study.close()
    return {
        "search": name,
        "trials": n,
        "seed": seed,
        "ask_seconds": median(ask),
        "tell_seconds": median(tell),
        "core_seconds": median(compiled),
        "overhead_seconds": median(ask + tell - compiled),
        "commit_seconds": median(commit),
        "bytes_a_trial": path.stat().st_size / (n + config.timed + 1),
    }


def of_core(
    config: Config, search: Search, rows: np.ndarray, seed: int
) -> Iterator[float]:
    """Yield seconds of ask and tell of the compiled functions at the capacity of a study."""
    init_key, run_key = run_keys(seed)
    made = compile_search(
        search, max(FIRST_CAPACITY, 1 << (len(rows) + config.timed).bit_length())
    )
    state = made.init(init_key)
    for u in rows:
        state = made.tell(
            state, make_observation(jnp.asarray(u), loss(u), 0.0, ok=True)
        )

    def step(state, i):
        x, state, _ = jax.block_until_ready(
            made.ask(ask_key(run_key, jnp.asarray(i)), state)
        )
        return jax.block_until_ready(
            made.tell(
                state, make_observation(x[0], loss(np.asarray(x[0])), 0.0, ok=True)
            )
        )

    for i in count():
        seconds, state = timed(lambda state=state, i=i: step(state, i))
        yield seconds


def long_search(config: Config, path: Path, search: Search, seed: int) -> dict:
    """Time trials of a long search, alternating with a new study on the same disk."""
    study, fresh = (
        bonas.Study(
            path.with_stem(f"{path.stem}-{end}"), search.space, search=search, seed=seed
        )
        for end in "ab"
    )
    total, sizes = timed(
        lambda: [
            one_trial(study) or study.path.stat().st_size for _ in range(config.long)
        ]
    )
    for _ in range(_COMPILED):
        one_trial(fresh)
    calls = (
        lambda: one_trial(study),
        lambda: one_trial(fresh),
        lambda: fresh.note("nothing", 0),
    )
    late, early, commit = np.array(
        [[timed(call)[0] for call in calls] for _ in range(config.window)]
    ).T
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
    """Return the seconds that a function took, and its result."""
    start = time.perf_counter()
    returned = function()
    return time.perf_counter() - start, returned


def imports(config: Config) -> dict:
    """Return CPU seconds of imports and of the command's help in new processes."""
    lines = {
        "nothing": "",
        "jax": "import jax",
        "bonas": "import jax, bonas",
        "study": "import jax, bonas; bonas.Study",
        "help": "import sys; sys.argv = ['bonas', '--help']\n"
        "from bonas.cli.arguments import main\nmain()",
    }
    spent = {
        name: min(processor_seconds(code) for _ in range(config.repeats))
        for name, code in lines.items()
    }
    return {
        "jax_seconds": spent["jax"] - spent["nothing"],
        "bonas_beyond_jax_seconds": spent["bonas"] - spent["jax"],
        "study_beyond_jax_seconds": spent["study"] - spent["jax"],
        "help_seconds": spent["help"],
    }


def processor_seconds(code: str) -> float:
    """Return the CPU seconds of a new interpreter that runs the code."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    after = os.times()
    return (
        after.children_user
        + after.children_system
        - before.children_user
        - before.children_system
    )


def show(config: Config, report: dict) -> None:
    print(
        f"{'search':8} {'trials':>6} {'ask':>9} {'tell':>9} {'core':>9} {'overhead':>9} "
        f"{'commit':>9} {'bytes/trial':>14}"
    )
    for row in report["overhead"]:
        times = (
            row[f"{what}_seconds"]
            for what in ("ask", "tell", "core", "overhead", "commit")
        )
        print(
            f"{row['search']:8} {row['trials']:6}",
            *(f"{1e3 * each:6.2f} ms" for each in times),
            f"{row['bytes_a_trial']:14.0f}",
        )
    for row in report["long"]:
        print(
            f"\n{row['trials']} trials of random search: {row['seconds']:.0f} s, then "
            f"{1e3 * row['late_seconds']:.2f} ms per trial; a new study needs "
            f"{1e3 * row['early_seconds']:.2f} ms: ratio {row['slowing']:.2f} (goal: at most "
            f"{config.most_slowing:g}); two commits per trial, "
            f"{1e3 * row['commit_seconds']:.2f} ms each; {row['bytes'] / 1e6:.1f} MB"
        )
    beyond, shown = (
        report["imports"]["bonas_beyond_jax_seconds"],
        report["imports"]["help_seconds"],
    )
    print(
        f"\nimport bonas: {beyond:.2f} s beyond jax (goal: at most {config.most_import:g}), "
        f"with Study {report['imports']['study_beyond_jax_seconds']:.2f} s; "
        f"bonas --help: {shown:.2f} s (goal: at most {config.most_help:g})"
    )


if __name__ == "__main__":
    main()
