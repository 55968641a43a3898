"""Runs of searches, kept as they end: a second call does what is missing."""

import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from script import record

import bonas
from bonas.problems import Problem
from bonas.search import Search


class Runs:
    """The runs of one method on one problem, in a file of one line a seed; those of other settings are not taken for these."""

    def __init__(self, path: Path, settings: dict):
        self.path, self.settings = path, settings
        self.known = {row["seed"]: row for row in record.lines(path) if row["settings"] == settings}

    def keep(self, row: dict) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(record.line({**row, "settings": self.settings}))
        self.known[row["seed"]] = row

    def of(self, seeds: int) -> list[dict]:
        """What is there of the first seeds, in their order."""
        return [self.known[seed] for seed in range(seeds) if seed in self.known]


def do(runs: Runs, make: Callable[[], Search], problem: Problem, steps: int, seeds: int, advance: Callable[[], None]) -> None:
    """Search for every seed that is missing; the whole search is compiled once, in the first of them."""
    missing = [seed for seed in range(seeds) if seed not in runs.known]
    search = make() if missing else None
    for number, seed in enumerate(missing):
        wall, used = time.perf_counter(), time.process_time()
        history = jax.block_until_ready(bonas.run_many(search, problem.objective, jax.random.key(seed)[None], steps))
        wall, used = time.perf_counter() - wall, time.process_time() - used
        y, info = np.asarray(history.y[0], float), history.info
        runs.keep(
            {
                "seed": seed,
                "values": y.tolist(),
                "random": int(info.random.sum()),
                "converged": float(info.converged.mean()),
                "duplicates": int(info.duplicates.sum()),
                "restarts": int(getattr(history.state, "restarts", np.zeros(1))[0]),
                "compiled": number == 0,
                "seconds": wall,
                "cpu_seconds": used,
            }
        )
        advance()
    jax.clear_caches()  # compiled programs of one method are of no use to the next
