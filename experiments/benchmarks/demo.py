"""Does `bonas search` find better networks than the usual defaults?

For every seed the 442 rows of diabetes are split again and searched as in `make demo`, in a new
process. The final networks are compared on the test rows with ridge regression, whose penalty is
chosen by leave-one-out, and with scikit-learn's network of two layers of 64 units on scaled data
with early stopping; both are fitted to all rows but the test rows.

The claim for five seeds: in the median the test error is below the error of scikit-learn's network,
and above the error of ridge regression by at most one standard error, which is about 4 on 89 rows.
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

from experiments import common

CONTENDERS = ("bonas", "linear", "mlp")


@dataclass(frozen=True)
class Config:
    trials: int = 40  # default of the command
    method: str = "bayes"  # default of the command
    seeds: int = 5


SMOKE = Config(trials=2, method="random", seeds=1)


def main() -> None:
    args, config = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = [
        run_search(config, seed)
        for seed in track(range(config.seeds), description="searches")
    ]
    results = {"verdict": verdict(rows), "runs": rows}
    file = args.out / "benchmarks_demo.json"
    common.write_json(
        file, {**common.provenance(), "config": asdict(config), "results": results}
    )
    show(results)
    print(f"\nwritten to {file}")


def run_search(config: Config, seed: int) -> dict:
    """Run one search from the command line; return its errors and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        flags_ = [
            "--trials",
            str(config.trials),
            "--method",
            config.method,
            "--seed",
            str(seed),
            "--json",
        ]
        began = time.perf_counter()
        command = [
            str(Path(sys.executable).with_name("bonas")),
            "search",
            "diabetes",
            *flags_,
        ]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True
        )
    reply = json.loads(done.stdout)
    return {
        "seed": seed,
        "seconds": time.perf_counter() - began,
        "best": reply["best"]["in_words"],
        "validation": {name: reply["validation"][name]["rmse"] for name in CONTENDERS},
        "test": {name: reply["test"][name]["rmse"] for name in CONTENDERS},
        "error": {name: reply["test"][name]["rmse_error"] for name in CONTENDERS},
        "within_90": reply["test"]["bonas"]["within_90"],
    }


def verdict(rows: list[dict]) -> dict:
    """Return medians over seeds and whether the claim holds."""
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
            str(row["seed"]),
            *errors,
            f"{row['error']['linear']:.2f}",
            f"{row['within_90']:.0%}",
            f"{row['seconds']:.0f}",
        )
    found = results["verdict"]
    table.add_section()
    medians = [f"{found['median_test_rmse'][name]:.2f}" for name in CONTENDERS]
    table.add_row(
        "median",
        *medians,
        f"{found['standard_error_of_ridge']:.2f}",
        "",
        f"{found['median_seconds']:.0f}",
    )
    console = Console(width=100)
    console.print(table)
    for name in ("better_than_mlp", "within_one_error_of_ridge"):
        console.print(f"{name.replace('_', ' ')}: {'yes' if found[name] else 'no'}")


def arguments():
    parser = common.parser(
        __doc__,
        "benchmarks_demo",
        smoke="two random trials of one seed, as a quick test",
        seeds="number of splits (default 5)",
    )
    return common.parse(parser, Config(), SMOKE)


if __name__ == "__main__":
    main()
