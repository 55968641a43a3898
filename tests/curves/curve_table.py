"""A table of learning curves, and searches on it, which the tests share."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import bonas
from bonas.curves import (
    curve_search,
    full_training,
    hyperband,
    run_curves,
    successive_halving,
    top_k,
)
from bonas.search import Observation, random

STEPS = (10, 30, 90)
BUDGET = 18 * STEPS[-1]  # enough for everything
SMALL_BUDGET = 8 * STEPS[-1]
BOX = bonas.Space(depth=bonas.Int(1, 3), width=bonas.Int(1, 6))
SPACE = bonas.TableSpace(BOX, np.asarray(BOX.points()))  # 18 networks
RNG = np.random.default_rng(0)


def table_of(space, bad=()):
    """Return curves (n, c) that fall to ends smooth in the rows; some diverge at a checkpoint."""
    rows = np.asarray(space.points())
    ends = np.sin(3.0 * rows[:, 0]) + (rows[:, 1] - 0.6) ** 2
    falls = 1.0 + 0.3 * RNG.uniform(size=len(rows))
    y = ends[:, None] + falls[:, None] * np.array([0.8, 0.3, 0.0])[None, :]
    for row, step in bad:
        y[row, step:] = np.nan
    return jnp.asarray(y)


TABLE = table_of(SPACE)
DIVERGING = table_of(SPACE, bad=[(i, i % 3) for i in range(0, 18, 2)])


@partial(jax.jit, static_argnames=("search", "budget", "seeds"))
def run(search, table, budget=BUDGET, seeds=8):
    """Run a search with eight seeds; tests share the runs, because compilation takes long."""

    def objective(key, x, step):
        return table[SPACE.row(x), step]

    keys = jax.random.split(jax.random.key(1), seeds)
    return jax.lax.map(
        lambda key: run_curves(search, objective, STEPS, key, budget), keys
    )


SEARCHES = {
    "default": curve_search(SPACE, STEPS, initial=3, draws=32),
    "published": curve_search(
        SPACE, STEPS, initial=3, batch=4, draws=3, variant="published"
    ),
    "random": full_training(random(SPACE), STEPS),
    "side by side": full_training(random(SPACE), STEPS, batch=3),
    "halving": successive_halving(SPACE, STEPS),
    "hyperband": hyperband(SPACE, STEPS),
    "top_k": top_k(SPACE, STEPS, width=6, k=2),
}


def drive(search, table, turns, seed=0):
    """Ask and tell on the host; return the rows (turns, q), and the last state and info."""
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    state, done, named = search.init(jax.random.key(seed), 18), np.zeros(18, int), []
    for turn in range(turns):
        x, state, info = ask(jax.random.fold_in(jax.random.key(seed), turn), state)
        rows = [int(SPACE.row(point)) for point in x]
        named.append(rows)
        for row, point in zip(rows, x, strict=True):
            y = table[row, done[row]]
            state = tell(
                state,
                Observation(
                    point, y, jnp.asarray(done[row]), jnp.asarray(1.0), jnp.isfinite(y)
                ),
            )
            done[row] += 1
    return named, state, info
