"""Searches in a host loop that write every training down, and go on where they were stopped."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from layered.data import CLASSES, Problem
from script import record

from bonas.problems import networks
from bonas.search import Search, Trial


def trained(problem: Problem, key: Array, u: Array):
    """The network at a row u (d,), trained."""
    return networks.train(key[None], problem.layered, u[None], problem.examples, CLASSES)


def evaluation(problem: Problem, key: Array, u: Array) -> dict:
    """What one training came to."""
    began = time.process_time()
    found = trained(problem, key, u)
    value = networks.log_error(found, len(problem.examples.valid_y), CLASSES)[0]
    config = problem.layered.space.decode(u)
    row = {"value": float(value), "error": float(np.exp(value)), "seconds": time.process_time() - began}
    return row | {"status": int(found.status[0]), "depth": config["depth"], "config": config}


def run(
    search: Search, problem: Problem, seed: int, evaluations: int, file: Path, known: Callable[[int, list], dict | None]
) -> Iterator[dict]:
    """A search of so many trainings, one line of the file each, those of an earlier call first.

    What was trained before is asked for again, which takes no training and leads to the same state: a search is a function
    of its key and of what it is told. A file that does not follow from the search is refused.
    known(i, x): the i-th training of this seed where another search has made it at the same point.
    """
    init_key, ask_key, train_key = jax.random.split(jax.random.key(seed), 3)
    state = jax.jit(search.init, static_argnums=1)(init_key, evaluations)
    ask, tell, lines = jax.jit(search.ask), jax.jit(search.tell), record.lines(file)
    for i in range(evaluations):
        began = time.process_time()
        x, state, _ = ask(jax.random.fold_in(ask_key, i), state)
        x = jax.block_until_ready(x)[0]
        seconds = time.process_time() - began
        exists = problem.layered.space.snap(x)  # the network, whatever the search thinks of parameters that it does not have
        if i < len(lines):
            row = lines[i]
            if not np.allclose(row["x"], np.asarray(x), atol=1e-6):
                raise SystemExit(f"{file}, line {i + 1} is of another search; give another --out, or remove it")
        else:
            row = known(i, np.asarray(exists).tolist()) or evaluation(problem, jax.random.fold_in(train_key, i), exists)
            row = row | {"i": i, "x": np.asarray(x).tolist(), "network": np.asarray(exists).tolist(), "ask_seconds": seconds}
            record.add(file, row)
        yes = jnp.asarray(True)
        y, cost = jnp.asarray(row["value"], x.dtype), jnp.asarray(row["seconds"], x.dtype)
        state = tell(state, Trial(x=x, y=y, step=jnp.asarray(0), cost=cost, ok=yes))
        yield row


def test_error(problem: Problem, seed: int, row: dict) -> float | None:
    """The share of unseen images that the network of a line gets wrong, trained again as it was."""
    if not len(problem.test_y):
        return None
    train_key = jax.random.split(jax.random.key(seed), 3)[2]
    u = jnp.asarray(row["network"])
    found = trained(problem, jax.random.fold_in(train_key, row["i"]), u)
    found = found._replace(params=jax.tree.map(lambda leaf: leaf[0], found.params))
    return networks.wrong(problem.layered, found, u, problem.test_x, problem.test_y, CLASSES)
