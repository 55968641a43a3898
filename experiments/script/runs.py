"""Runs of searches, kept as they end: a second call does what is missing."""

import time
from collections.abc import Callable
from pathlib import Path

import jax
from script import record

import bonas
from bonas.search import History, Search


class Runs:
    """The runs of one method on one problem, in a file of one line a seed; those of other settings are not taken for these."""

    def __init__(self, path: Path, settings: dict | list):
        self.path, self.settings = path, settings
        self.known = {row["seed"]: row for row in record.lines(path, settings)}

    def keep(self, row: dict) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        record.add(self.path, row, self.settings)
        self.known[row["seed"]] = row

    def of(self, seeds: int) -> list[dict]:
        """What is there of the first seeds, in their order."""
        return [self.known[seed] for seed in range(seeds) if seed in self.known]

    def missing(self, seeds: int) -> list[int]:
        """Those of the first seeds that are not there."""
        return [seed for seed in range(seeds) if seed not in self.known]


def timed(search: Search, objective: Callable, seed: int, steps: int) -> tuple[History, dict[str, float]]:
    """One run, with a leading axis of 1, and the seconds that it took."""
    wall, used = time.perf_counter(), time.process_time()
    history = jax.block_until_ready(bonas.run_many(search, objective, jax.random.key(seed)[None], steps))
    return history, {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - used}
