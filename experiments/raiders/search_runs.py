"""Run a search in a host loop that saves every training and can be resumed."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.search import Observation, Search
from experiments import common
from experiments.raiders import networks
from experiments.raiders.images import CLASSES, Problem


def train_network(problem: Problem, key: Array, u: Array):
    """Train the network at a row u (d,)."""
    return networks.train(
        key[None], problem.layered, u[None], problem.examples, CLASSES
    )


def evaluation(problem: Problem, key: Array, u: Array) -> dict:
    """Return the result of one training."""
    began = time.process_time()
    found = train_network(problem, key, u)
    value = networks.log_error(found, len(problem.examples.valid_y), CLASSES)[0]
    config = problem.layered.space.decode(u)
    row = {
        "value": float(value),
        "error": float(np.exp(value)),
        "seconds": time.process_time() - began,
    }
    return row | {
        "status": int(found.status[0]),
        "depth": config["depth"],
        "config": config,
    }


def run(
    search: Search,
    problem: Problem,
    seed: int,
    evaluations: int,
    file: Path,
    find_saved: Callable[[int, list], dict | None],
) -> Iterator[dict]:
    """Run a search, one line of the file per training; saved trainings come first.

    A resumed search asks for the saved points again, which needs no training and leads to the same
    state. A file that does not match the search is refused.

    Args:
        find_saved: find_saved(i, x) returns the i-th training if another search made it at the same
        point.
    """
    init_key, ask_key, train_key = jax.random.split(jax.random.key(seed), 3)
    state = jax.jit(search.init, static_argnums=1)(init_key, evaluations)
    ask, tell, lines = (
        jax.jit(search.ask),
        jax.jit(search.tell),
        common.read_lines(file),
    )
    for i in range(evaluations):
        began = time.process_time()
        x, state, _ = ask(jax.random.fold_in(ask_key, i), state)
        x = jax.block_until_ready(x)[0]
        seconds = time.process_time() - began
        # ignores proposed values of inactive parameters
        exists = problem.layered.space.snap(x)
        if i < len(lines):
            row = lines[i]
            if not np.allclose(row["x"], np.asarray(x), atol=1e-6):
                raise SystemExit(
                    f"{file}, line {i + 1} is from another search; remove it or change --out"
                )
        else:
            row = find_saved(i, np.asarray(exists).tolist()) or evaluation(
                problem, jax.random.fold_in(train_key, i), exists
            )
            row = row | {
                "i": i,
                "x": np.asarray(x).tolist(),
                "network": np.asarray(exists).tolist(),
                "ask_seconds": seconds,
            }
            common.append_line(file, row)
        yes = jnp.asarray(True)
        y, cost = (
            jnp.asarray(row["value"], x.dtype),
            jnp.asarray(row["seconds"], x.dtype),
        )
        state = tell(
            state, Observation(x=x, y=y, step=jnp.asarray(0), cost=cost, ok=yes)
        )
        yield row


def test_error(problem: Problem, seed: int, row: dict) -> float | None:
    """Return the test error of a saved network, trained again with the same key."""
    if not len(problem.test_y):
        return None
    train_key = jax.random.split(jax.random.key(seed), 3)[2]
    u = jnp.asarray(row["network"])
    found = train_network(problem, jax.random.fold_in(train_key, row["i"]), u)
    found = found._replace(params=jax.tree.map(lambda leaf: leaf[0], found.params))
    return networks.wrong(
        problem.layered, found, u, problem.test_x, problem.test_y, CLASSES
    )
