"""What do searches with thousands of observations cost, and are they better with all of them?

Three questions: how many seconds of CPU an ask takes for 50 to 10,000 observations, with
`surrogates.large_gp` (exact for up to 512 observations, through 512 inducing points above) and with
the default of studies, an exact model of the 256 best and the 256 latest others; which of them
finds better points of three noisy functions in 2,000 evaluations, from the same first 512; and what
time, memory and file a study of 5,000 trials of a cheap objective takes.

The regret is that of the recommended point, the evaluated point with the lowest mean of the model,
without noise. Every finished run is saved, and a second call continues.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import bonas
from bonas.study import Study
from experiments import common
from experiments.benchmarks.large_regret import compare_regrets, models


@dataclass(frozen=True)
class Config:
    sizes: tuple[int, ...] = (50, 100, 200, 400, 600, 1000, 2000, 5000, 10_000)
    columns: tuple[int, ...] = (6, 10)
    timed: int = 5  # asks; the median is reported
    # Other libraries stop there, or after the first ask that takes so many CPU seconds.
    largest_rival: int = 2000
    most_seconds: float = 20.0
    # Problems and the standard deviation of their noise: a tenth to a quarter of that of the
    # function over the cube. The method was chosen on other functions.
    problems: tuple[tuple[str, float], ...] = (
        ("hartmann6", 0.1),
        ("levy8", 3.0),
        ("ackley10", 0.2),
    )
    initial: int = 20
    # rows of both models, and evaluations up to which they are the same
    common: int = 512
    evaluations: tuple[int, ...] = (1000, 1500, 2000)  # where the regret is taken
    seeds: int = 20
    resamples: int = 10_000
    trials: int = 5000  # of the study


# A quarter of the rows and evaluations: a twentieth of the time.
QUARTER = {"common": 128, "evaluations": (250, 375, 500)}
MODELS = ("inducing", "subset")

SMOKE = Config(
    sizes=(50, 600),
    columns=(2,),
    timed=1,
    problems=(("hartmann6", 0.1),),
    initial=4,
    common=16,
    evaluations=(18, 20),
    seeds=2,
    resamples=100,
    trials=8,
)


def ask_seconds(model: str, n: int, d: int, timed: int) -> dict[str, Any]:
    """Measure the CPU seconds of asks after n observations, compiled before."""
    space = bonas.Space(**{f"x{i}": bonas.Float(0.0, 1.0) for i in range(d)})
    search = bonas.bayes(space, surrogate=models(512)[model])
    capacity = max(64, 1 << (n + timed).bit_length())  # that of a study
    state = observed(search.init(jax.random.key(0), capacity), n, d)
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    seconds = []
    for i in range(timed + 1):
        begin = time.process_time()
        x, state, _ = jax.block_until_ready(ask(jax.random.key(i), state))
        seconds.append(time.process_time() - begin)
        state = tell(state, bonas.Observation(x[0], 0.3))
    return {
        "model": model,
        "n": n,
        "d": d,
        "cpu_seconds": float(np.median(seconds[1:])),
        "first_cpu_seconds": seconds[0],
    }


def observations(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n points and noisy values: half uniform, half near a minimum."""
    rng = np.random.default_rng(0)
    near = 0.4 + 0.1 * rng.standard_normal((n, d))
    uniform = rng.random((n, d))
    x = np.where(np.arange(n)[:, None] % 2 == 0, uniform, near).clip(0.0, 1.0)
    y = ((x - 0.4) ** 2).sum(axis=1) + 0.2 * np.sin(5.0 * x).sum(axis=1)
    return x, y + 0.05 * rng.standard_normal(n)


def observed(state: Any, n: int, d: int) -> Any:
    """Return a state with n observations."""
    x, y = observations(n, d)
    data = bonas.dataset(x, y, capacity=len(state.observations.pending))
    return state._replace(observations=state.observations._replace(data=data))


# A study


def study(trials: int) -> dict[str, Any]:
    """Measure a study of a cheap objective: time, memory and file."""
    space = bonas.Space(**{f"x{i}": bonas.Float(0.0, 1.0) for i in range(6)})

    def objective(config: dict[str, Any]) -> float:
        return sum((value - 0.3) ** 2 for value in config.values())

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        begin, cpu = time.perf_counter(), time.process_time()
        with Study(path, space) as opened:
            opened.optimize(objective, trials, progress=False)
            best = opened.best.value
        return {
            "trials": trials,
            "seconds": time.perf_counter() - begin,
            "cpu_seconds": time.process_time() - cpu,
            # kilobytes on Linux
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
            "file_megabytes": path.stat().st_size / 2.0**20,
            "best": best,
        }


# The parent process

MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "ask_seconds": ask_seconds,
    "study": study,
}


def measure(name: str, *arguments: Any) -> dict[str, Any]:
    """Call a measurement in a new process."""
    call = json.dumps([name, arguments])
    done = subprocess.run(
        [sys.executable, "-m", "experiments.benchmarks.large", "--measure", call],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def measure_rivals(python: str, config: Config, out: Path, d: int) -> list[dict]:
    """Measure asks of other libraries, or load them; they stop where an ask gets too slow."""
    saved = out / f"large_rivals_{d}.jsonl"
    if not common.read_lines(saved):
        sizes = [n for n in config.sizes if n <= config.largest_rival]
        x, y = observations(max(sizes), d)
        points = out / "large_points.json"
        common.write_json(points, {"x": x.tolist(), "y": y.tolist(), "sizes": sizes})
        script = Path(__file__).parent / "rivals" / "large_asks.py"
        call = [python, str(script), str(points), "--most", str(config.most_seconds)]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            common.append_line(saved, json.loads(line))
    return common.read_lines(saved)


def load_or_measure(out: Path, name: str, *arguments: Any) -> dict[str, Any]:
    """Return a saved measurement with these arguments, or make and save it."""
    settings = [name, *arguments]
    saved = common.SavedRuns(out / "large_measurements.jsonl", settings)
    if 0 not in saved.rows:
        saved.save({"seed": 0, **measure(name, *arguments)})
    row = dict(saved.rows[0])
    return {key: row[key] for key in row if key not in ("seed", "settings")}


def show(found: dict[str, Any]) -> None:
    console = Console(width=100)
    table = Table("model", "columns", "observations", "CPU s", title="An ask")
    for row in found["asks"]:
        cells = (row["model"], row["d"], row["n"], f"{row['cpu_seconds']:.3f}")
        table.add_row(*map(str, cells))
    console.print(table)
    names = ("problem", "evaluations", "pairs", "inducing", "subset", "wins", "losses")
    table = Table(*names, "verdict", title="Median regret of the recommended point")
    for row in found["regrets"]:
        row = {**row, **{name: f"{row[name]:.3g}" for name in MODELS}}
        table.add_row(*(str(row[name]) for name in (*names, "verdict")))
    console.print(table)
    row = found["study"]
    console.print(
        f"A study of {row['trials']} trials: {row['seconds']:.0f} s, {row['cpu_seconds']:.0f} "
        f"CPU s, {row['megabytes']:.0f} MB of memory, a file of {row['file_megabytes']:.1f} MB"
    )


def main() -> None:
    parser = common.parser(
        __doc__,
        "benchmarks_large",
        smoke="few observations, one problem",
        seeds=f"pairs of runs of each problem (default {Config.seeds})",
    )
    parser.add_argument(
        "--quarter",
        action="store_true",
        help="compare regrets with 128 rows and 500 evaluations instead of 512 and 2,000",
    )
    parser.add_argument("--rivals", help="a Python with BoTorch and Optuna, see README")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args, config = common.parse(parser, Config(), SMOKE)
    if args.measure:
        name, arguments = json.loads(args.measure)
        bonas.configure()
        print(json.dumps(MEASUREMENTS[name](*arguments)))
        return
    if args.quarter:
        config = replace(config, **QUARTER)
    common.setup(args.out)
    asks = [
        (name, n, d) for d in config.columns for name in MODELS for n in config.sizes
    ]
    total = len(asks) + config.seeds * len(config.problems) + 1
    with common.progress_bar(20, disable=None) as bar:
        task = bar.add_task("", total=total)

        def advance(text: str) -> None:
            bar.update(task, description=text, advance=1)

        found: dict[str, Any] = {"asks": []}
        for name, n, d in asks:
            advance(f"{name}, {n}")
            row = load_or_measure(args.out, "ask_seconds", name, n, d, config.timed)
            found["asks"].append(row)
        if args.rivals:
            for d in config.columns:
                found["asks"] += measure_rivals(args.rivals, config, args.out, d)
        found["regrets"] = compare_regrets(config, args.out, advance)
        advance("study")
        found["study"] = load_or_measure(args.out, "study", config.trials)
    record = {"config": asdict(config), **common.provenance(), **found}
    common.write_json(args.out / "benchmarks_large.json", record)
    show(found)


if __name__ == "__main__":
    main()
