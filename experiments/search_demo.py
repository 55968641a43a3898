"""Is what `bonas search` finds better than what one would train without it? On diabetes, whose test rows it never sees.

Every seed divides the 442 rows anew and searches as `make demo` does, in a process of its own. The networks that it keeps are
compared, on the same test rows, with ridge regression, whose penalty is chosen by leave-one-out, and with scikit-learn's
network of two layers of 64 units, on scaled inputs and targets, stopped early: both fitted to all rows but the test rows.

The claim, for five seeds: in the median the error on test rows is below that of the network, and not above that of ridge
regression by more than a standard error, which on 89 rows is about 4.

    python experiments/search_demo.py
"""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from script import flags, record

CONTENDERS = ("bonas", "linear", "mlp")


@dataclass(frozen=True)
class Config:
    trials: int = 40  # the default of the command
    method: str = "bayes"  # too
    seeds: int = 5


SMOKE = Config(trials=2, method="random", seeds=1)


def main() -> None:
    args, config = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = [searched(config, seed) for seed in track(range(config.seeds), description="searches")]
    results = {"verdict": verdict(rows), "runs": rows}
    file = args.out / "search_demo.json"
    record.write(file, {**record.about(), "config": asdict(config), "results": results})
    show(results)
    print(f"\nwritten to {file}")


def searched(config: Config, seed: int) -> dict:
    """One search, as a person would run it: the errors on validation and test rows, and the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        flags_ = ["--trials", str(config.trials), "--method", config.method, "--seed", str(seed), "--json"]
        began = time.perf_counter()
        command = [str(Path(sys.executable).with_name("bonas")), "search", "diabetes", *flags_]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    return {
        "seed": seed,
        "seconds": time.perf_counter() - began,
        "best": told["best"]["in_words"],
        "validation": {name: told["validation"][name]["rmse"] for name in CONTENDERS},
        "test": {name: told["test"][name]["rmse"] for name in CONTENDERS},
        "error": {name: told["test"][name]["rmse_error"] for name in CONTENDERS},
        "within_90": told["test"]["bonas"]["within_90"],
    }


def verdict(rows: list[dict]) -> dict:
    """Medians over seeds, and whether the claim holds."""
    test = {name: np.array([row["test"][name] for row in rows]) for name in CONTENDERS}
    median = {name: float(np.median(values)) for name, values in test.items()}
    error = float(np.median([row["error"]["linear"] for row in rows]))
    return {
        "median_test_rmse": median,
        "standard_error_of_ridge": error,
        "better_than_mlp": median["bonas"] < median["mlp"],
        "within_one_error_of_ridge": median["bonas"] <= median["linear"] + error,
        "wins_against_mlp": int((test["bonas"] < test["mlp"]).sum()),
        "wins_against_ridge": int((test["bonas"] < test["linear"]).sum()),
        "median_seconds": float(np.median([row["seconds"] for row in rows])),
    }


def show(results: dict) -> None:
    table = Table(title="error on test rows")
    for name in ("seed", *CONTENDERS, "± (ridge)", "within 90%", "seconds"):
        table.add_column(name, justify="right")
    for row in results["runs"]:
        errors = [f"{row['test'][name]:.2f}" for name in CONTENDERS]
        table.add_row(
            str(row["seed"]), *errors, f"{row['error']['linear']:.2f}", f"{row['within_90']:.0%}", f"{row['seconds']:.0f}"
        )
    found = results["verdict"]
    table.add_section()
    medians = [f"{found['median_test_rmse'][name]:.2f}" for name in CONTENDERS]
    table.add_row("median", *medians, f"{found['standard_error_of_ridge']:.2f}", "", f"{found['median_seconds']:.0f}")
    console = Console(width=100)
    console.print(table)
    for name in ("better_than_mlp", "within_one_error_of_ridge"):
        console.print(f"{name.replace('_', ' ')}: {'yes' if found[name] else 'no'}")


def arguments():
    parser = flags.parser(
        __doc__, "search_demo", smoke="two random trials of one seed, to see that it runs", seeds="splits (default 5)"
    )
    return flags.read(parser, Config(), SMOKE)


if __name__ == "__main__":
    main()
