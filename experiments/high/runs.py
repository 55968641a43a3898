"""Searches of one problem, seed by seed."""

from collections.abc import Callable

import jax
import numpy as np
from script.runs import Runs, timed

from bonas.problems import Problem
from bonas.search import Search


def do(runs: Runs, make: Callable[[], Search], problem: Problem, steps: int, seeds: int, advance: Callable[[], None]) -> None:
    """Search for every seed that is missing; the whole search is compiled once, in the first of them."""
    missing = runs.missing(seeds)
    search = make() if missing else None
    for number, seed in enumerate(missing):
        history, seconds = timed(search, problem.objective, seed, steps)
        info = history.info
        runs.keep(
            {
                "seed": seed,
                "values": np.asarray(history.y[0], float).tolist(),
                "random": int(info.random.sum()),
                "converged": float(info.converged.mean()),
                "duplicates": int(info.duplicates.sum()),
                "restarts": int(getattr(history.state, "restarts", np.zeros(1))[0]),
                "compiled": number == 0,
                **seconds,
            }
        )
        advance()
    jax.clear_caches()  # compiled programs of one method are of no use to the next
