"""Time updates of one variational network and of 32, by bonas and by PyTorch.

The networks have 2 × 50 units on data of the size of Boston's, with all rows and ten samples per
update, as published, and with batches of 128 and one sample, as in the table that bonas ships.
PyTorch draws every noise independently; bonas does so in one row, and in another it draws half of
them, in pairs of opposite sign, which is its default. Compiling is not counted; float32.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
from rich.table import Table

from bonas import nets
from experiments.benchmarks.rivals.contenders import Clock

NAMES = ("bonas", "torch")
RIVAL = Path(__file__).parent / "rivals" / "torch_vi.py"
# Rows and draws per update, and whether bonas draws antithetic pairs
WAYS = {
    "all rows, 10 independent draws": (None, 10, False),
    "all rows, 10 draws in pairs": (None, 10, True),
    "128 rows, 1 draw": (128, 1, False),
}


@dataclass(frozen=True)
class Vi:
    widths: tuple[int, ...] = (50, 50)
    rows: int = 430  # rows with 13 columns, as in Boston
    columns: int = 13
    together: int = 32
    updates: int = 300
    learning_rate: float = 0.001


SMALL = Vi(widths=(4, 4), rows=140, together=2, updates=4)


def problem(config: Vi, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    x = draw.uniform(-1.0, 1.0, size=(config.rows, config.columns))
    return x, np.sin(3.0 * x[:, 0]) * x[:, 1] + 0.5 * x[:, 2] + 0.1 * draw.normal(
        size=config.rows
    )


def by_bonas(config: Vi, seed: int, args) -> dict:
    x, y = problem(config, seed)
    data = nets.examples(x, y, x[:16], y[:16])
    shape = nets.Shape(
        config.columns,
        1,
        depth=len(config.widths),
        width=max(config.widths),
        activations=("relu",),
    )
    found = {}
    for way, (batch, draws, paired) in WAYS.items():
        vi = nets.VI(samples=draws, antithetic=paired)
        # the first checkpoint compiles
        course = nets.TrainingPlan((2, 2 + config.updates), batch, draws=1)
        for networks in (1, config.together):
            chosen = nets.stack([nets.architecture(shape, config.widths)] * networks)
            keys, traits = (
                jax.random.split(jax.random.key(seed), networks),
                nets.VIHyperparameters(config.learning_rate),
            )
            for _ in range(2):  # the first call compiles
                clock = Clock()
                done = nets.train_vi_many(keys, shape, vi, course, chosen, traits, data)
                spent = clock.read(networks * (2 + config.updates))
            found[f"{way}, {'one network' if networks == 1 else 'many'}"] = spent | {
                "bound": float(done.checkpoints.bound[:, -1].mean())
            }
    return found


def by_torch(config: Vi, seed: int, args) -> dict:
    """Time PyTorch; it has no paired samples, so the same time stands for both rows."""
    x, y = problem(config, seed)
    measured = {}
    for batch, draws in dict.fromkeys(each[:2] for each in WAYS.values()):
        for networks in (1, config.together):
            job = {
                "x": x.tolist(),
                "y": y.tolist(),
                "widths": config.widths,
                "batch": batch,
                "draws": draws,
                "seed": seed,
            }
            job |= {
                "learning_rate": config.learning_rate,
                "updates": config.updates,
                "networks": networks,
            }
            file = args.out / "job_vi.json"
            file.write_text(json.dumps(job), encoding="utf-8")
            try:
                done = subprocess.run(
                    [args.rivals, str(RIVAL), str(file)],
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
            finally:
                file.unlink()
            measured[batch, draws, networks] = json.loads(done.stdout)
    kinds = {"one network": 1, "many": config.together}
    return {
        f"{way}, {kind}": measured[*each[:2], kinds[kind]]
        for way, each in WAYS.items()
        for kind in kinds
    }


MEASURE = {"bonas": by_bonas, "torch": by_torch}


def summary(runs: list[dict]) -> dict:
    """Return milliseconds per update of a network, medians over seeds, and ratios to bonas."""
    found: dict = {}
    for way in (f"{way}, {kind}" for way in WAYS for kind in ("one network", "many")):
        spent = {
            name: [
                1e3 * row[way]["cpu_seconds"]
                for row in runs
                if row["name"] == name and way in row
            ]
            for name in NAMES
        }
        found[way] = {
            name: float(np.median(values)) for name, values in spent.items() if values
        }
        if "torch" in found[way]:
            found[way]["times_bonas"] = found[way]["torch"] / found[way]["bonas"]
    return found


def show(report: dict, console) -> None:
    table = Table(
        "variational network, per update", "bonas, ms", "PyTorch, ms", "× bonas"
    )
    for way, row in report.items():
        cells = [
            f"{row[name]:.2f}" if name in row else ""
            for name in ("bonas", "torch", "times_bonas")
        ]
        table.add_row(way, *cells)
    console.print(table)
