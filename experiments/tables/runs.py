"""Runs of searches on tables, kept as they end: a second call does what is missing."""

import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from script import record

import bonas
from bonas.search import Search


class Runs:
    """The runs of one method on one table, in a file of one line a seed; those of other settings are not taken for these."""

    def __init__(self, path: Path, settings: list):
        self.path, self.settings = path, settings
        self.known: dict[int, dict] = {}
        for row in record.lines(path):
            if row["settings"] == settings:
                self.known[row["seed"]] = row

    def keep(self, row: dict) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(record.line({**row, "settings": self.settings}))
        self.known[row["seed"]] = row

    def of(self, seeds: int) -> list[dict]:
        """What is there of the first seeds, in their order."""
        return [self.known[seed] for seed in range(seeds) if seed in self.known]


def do(
    runs: Runs, search: Callable[[], Search], error: np.ndarray, steps: int, seeds: int, advance: Callable[[], None]
) -> None:
    """Search the table for every seed that is missing; the whole search is compiled once, in the first of them."""
    missing = [seed for seed in range(seeds) if seed not in runs.known]
    if not missing:
        return
    made, values = search(), jnp.log(error)

    def objective(key, u):
        return values[made.space.row(u)]

    for number, seed in enumerate(missing):
        wall, used = time.perf_counter(), time.process_time()
        history = jax.block_until_ready(bonas.run_many(made, objective, jax.random.key(seed)[None], steps))
        wall, used = time.perf_counter() - wall, time.process_time() - used
        rows = np.asarray(made.space.row(history.x[0]))
        if len(np.unique(rows)) < min(steps, len(error)):
            raise ValueError(f"seed {seed}: a network was asked for twice: {rows}")
        runs.keep(
            {
                "seed": seed,
                "rows": rows.tolist(),
                "random": int(history.info.random.sum()),
                "converged": float(history.info.converged.mean()),
                "compiled": number == 0,
                "seconds": wall,
                "cpu_seconds": used,
            }
        )
        advance()
