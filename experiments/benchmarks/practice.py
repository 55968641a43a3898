"""Is a search worthwhile for users of scikit-learn and Optuna? Networks on diabetes.

Each method has 40 trials of networks with 1 to 3 hidden layers of 4 to 64 units, a learning rate
from 1e-4 to 0.1 and at most 300 epochs, on one split into training, validation and test rows; each
seed has another split. Optuna's TPE and scikit-learn's RandomizedSearchCV train an MLPRegressor,
which stops when its training loss no longer improves; bonas trains its own networks for all 300
epochs. No method uses the validation rows during training. Choosing by validation rows is
optimistic, so the test error is reported too.

Every search is a process on one core, timed with its imports. bonas runs once with an empty
cache of compiled programs; later runs reuse the cache, as they would in practice. On a busy machine
CPU seconds are the fairer measure.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments import common
from experiments.benchmarks.practice_contenders import CONTENDERS

CHILD = Path(__file__).parent / "practice_contenders.py"
FIRST = "bonas, first time"


@dataclass(frozen=True)
class Config:
    trials: int = 40
    epochs: int = 300
    layers: int = 3
    widths: tuple[int, int] = (4, 64)
    rates: tuple[float, float] = (1e-4, 1e-1)
    batch: int = 200  # rows per update: scikit-learn's default
    seeds: int = 10  # medians are reported


SMOKE = Config(trials=6, epochs=5, layers=2, widths=(4, 8), seeds=1)


def main() -> None:
    args, config = arguments()
    common.pin_to_core(args.core)
    args.out.mkdir(parents=True, exist_ok=True)
    runs: dict[str, list[dict]] = {name: [] for name in (FIRST, *CONTENDERS)}
    with tempfile.TemporaryDirectory() as cache:
        runs[FIRST].append(run_search("bonas", 0, config, cache))
        # a second run compiles the programs that differ when the cache is warm
        run_search("bonas", 0, config, cache)
        for seed in track(range(config.seeds), description="seeds"):
            for name in CONTENDERS:
                runs[name].append(run_search(name, seed, config, cache))
    results = {"verdict": verdict(runs), "runs": runs}
    file = args.out / "benchmarks_practice.json"
    rivals = {name: version(name) for name in ("optuna", "scikit-learn")}
    common.write_json(
        file,
        {
            **common.provenance(),
            "rivals": rivals,
            "config": asdict(config),
            "results": results,
        },
    )
    show(results)
    print(f"\nwritten to {file}")


def run_search(name: str, seed: int, config: Config, cache: str) -> dict:
    """Run one search in a new process."""
    where = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
    command = [sys.executable, str(CHILD), name, str(seed), json.dumps(asdict(config))]
    done = subprocess.run(command, env=where, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name}, seed {seed}: {done.stderr}")
    return {"seed": seed, **json.loads(done.stdout)}


def verdict(runs: dict[str, list[dict]]) -> dict:
    """Return medians over seeds and comparisons with bonas."""
    medians = {
        name: {
            key: float(np.median([run[key] for run in each]))
            for key in ("validation", "test", "seconds", "processor_seconds")
        }
        for name, each in runs.items()
    }
    others = [medians[name] for name in CONTENDERS if name != "bonas"]
    return {
        "median": medians,
        "first_time_under_a_minute": medians[FIRST]["seconds"] < 60.0,
        "no_slower": medians["bonas"]["seconds"]
        <= min(other["seconds"] for other in others),
        "no_slower_by_processor_seconds": medians["bonas"]["processor_seconds"]
        <= min(other["processor_seconds"] for other in others),
        "lower_validation_rmse": medians["bonas"]["validation"]
        < min(other["validation"] for other in others),
        "lower_test_rmse": medians["bonas"]["test"]
        < min(other["test"] for other in others),
    }


def show(results: dict) -> None:
    table = Table(title="medians over seeds")
    for name in ("", "validation RMSE", "test RMSE", "seconds", "CPU seconds"):
        table.add_column(name, justify="right" if name else "left")
    for name, median in results["verdict"]["median"].items():
        seconds = [f"{median[key]:.1f}" for key in ("seconds", "processor_seconds")]
        table.add_row(
            name, f"{median['validation']:.2f}", f"{median['test']:.2f}", *seconds
        )
    console = Console(width=100)
    console.print(table)
    for name, holds in results["verdict"].items():
        if isinstance(holds, bool):
            console.print(f"{name.replace('_', ' ')}: {'yes' if holds else 'no'}")


def arguments():
    parser = common.benchmark_parser(
        __doc__,
        "benchmarks_practice",
        smoke="tiny sizes, as a quick test",
        seeds="number of splits; medians are reported (default 10)",
    )
    return common.parse(parser, Config(), SMOKE)


if __name__ == "__main__":
    main()
