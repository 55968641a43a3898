"""Searches of one table, seed by seed."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from script.runs import Runs, timed

from bonas.search import Search


def do(
    runs: Runs, search: Callable[[], Search], error: np.ndarray, steps: int, seeds: int, advance: Callable[[], None]
) -> None:
    """Search the table for every seed that is missing; the whole search is compiled once, in the first of them."""
    missing = runs.missing(seeds)
    if not missing:
        return
    made, values = search(), jnp.log(error)

    def objective(key, u):
        return values[made.space.row(u)]

    for number, seed in enumerate(missing):
        history, seconds = timed(made, objective, seed, steps)
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
                **seconds,
            }
        )
        advance()
