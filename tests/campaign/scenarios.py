"""Searches to be killed: how each opens its study, what it evaluates and how it is run.

Processes that import this module and fork must not have used JAX before.
"""

import contextlib
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from study import searcher

import bonas
import bonas.cli
import bonas.tabular  # also all that the command imports while it runs
from bonas.search import evolution, sobol
from bonas.study import storage

SPACE = searcher.SPACE
CONDITIONAL = bonas.Space(
    depth=bonas.Int(1, 3),
    a=bonas.Float(1e-3, 1.0, log=True),
    b=bonas.Float(0.0, 1.0, when={"depth": (">=", 2)}),
)
SEED = 3
TABLE = "table.csv"
_LINE = "finished"


@dataclass(frozen=True)
class Scenario:
    """A search, and what must be true of it after kills."""

    run: Callable[[Path, Callable], None]
    trials: int
    expected: Callable | None = None  # the value of a configuration; NaN if it fails
    sequential: bool = True  # whether points and values do not depend on time
    processes: int = 1  # at once
    is_costly: bool = False  # takes many seconds to compile


def loss(config):
    return (
        (config["a"] - 0.3) ** 2
        + 0.7 * config.get("b", 0.4)
        + 0.1 * (config.get("kind") == "x")
    )


def in_part_of_the_space(config):
    """Fail in two ways in about a third of the space."""
    if config["a"] > 0.8:
        raise MemoryError("too wide")
    return math.nan if config["b"] > 0.8 else loss(config)


def _unhurried(objective):
    def wait_first(config):
        time.sleep(0.02)
        return objective(config)

    return wait_first


def _study(search=None, *, space=SPACE, objective=loss, trials=24, **more):
    """Return a scenario that runs `Study.optimize`."""
    threads = more.pop("threads", 0)
    settings = {
        name: more.pop(name) for name in ("direction", "_capacity") if name in more
    }

    def run(folder, callback):
        made = None if search is None else search()
        with bonas.Study(
            folder / "runs.db", space, search=made, seed=SEED, **settings
        ) as study:
            executor = ThreadPoolExecutor(threads) if threads else None
            with executor or contextlib.nullcontext():
                study.optimize(
                    _unhurried(objective),
                    trials,
                    executor=executor,
                    progress=False,
                    callback=callback,
                )

    def expected(config):
        try:
            return objective(config)
        except MemoryError:
            return math.nan

    sequential = not threads and more.get("processes", 1) == 1
    return Scenario(run, trials, expected, sequential=sequential, **more)


def _command(method, trials):
    """Return a scenario that runs the command line, and resumes in one of its two ways."""

    def run(folder, callback):
        os.chdir(folder)
        limit = ["--trials", str(trials), "--study", "runs.db"]
        arguments = ["search", TABLE, "--target", "y", "--method", method, *limit]
        if bonas_has_started(folder) and os.getpid() % 2:
            arguments = ["resume", "runs.db"]
        os._exit(bonas.cli.main(arguments))

    stages = 5 if method == "curves" else 1
    return Scenario(run, trials * stages, is_costly=True)


def bonas_has_started(folder):
    """Return whether the study knows its table and its limit, so that it can be resumed."""
    if not (folder / "runs.db").exists():
        return False
    with contextlib.suppress(bonas.study.StudyError), bonas.Study("runs.db") as study:
        return "budget" in study.notes
    return False


def make_table(path):
    """Write a small table, which every run of the command searches."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (60, 2))
    y = np.tanh(2.0 * x[:, 0]) - x[:, 1] + rng.normal(0.0, 0.1, 60)
    np.savetxt(path, np.c_[x, y], "%.5f", ",", header="a,b,y", comments="")


def _model(infer="map", batch=1):
    """Bayesian optimization with settings that compile fast."""
    from bonas import acquire, gp, surrogates

    model = surrogates.gp(gp.matern52(), infer=infer, samples=2)
    box = acquire.random_candidates(SPACE, candidates=100)
    return bonas.bayes(
        SPACE, surrogate=model, maximizer=box, initial=3, output="plain", batch=batch
    )


def _regularized_evolution():
    return evolution(SPACE, population=8)


SCENARIOS = {
    "evolution": _study(_regularized_evolution),
    "sobol, failing": _study(lambda: sobol(SPACE), objective=in_part_of_the_space),
    "threads": _study(_regularized_evolution, threads=3),
    "two workers": _study(_regularized_evolution, processes=2),
    "model, maximizing, failing": _study(
        _model,
        objective=in_part_of_the_space,
        direction="maximize",
        trials=10,
        _capacity=6,
    ),
    "batch": _study(lambda: _model(batch=2), trials=12, is_costly=True),
    "slice": _study(lambda: _model("slice"), trials=8, is_costly=True),
    "default": _study(trials=10, _capacity=8, is_costly=True),
    "conditional": _study(space=CONDITIONAL, trials=10, _capacity=8, is_costly=True),
    "model, two workers": _study(_model, trials=12, processes=2, is_costly=True),
    "command, bayes": _command("bayes", 6),
    "command, curves": _command("curves", 2),
}


def live(name, folder, log):
    """Work on a study until it is complete or this process is killed; log every trial."""
    storage._TOKEN = os.urandom(4).hex()  # this process is a fork
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    bonas.configure()

    def callback(event):
        if event.state in ("complete", "failed"):
            line = f"{_LINE} {event.trial.number} {event.trial.value!r}\n"
            os.write(output, line.encode())

    SCENARIOS[name].run(Path(folder), callback)


def read_log(log):
    """Return number and value of every logged trial; not a line that a kill cut off."""
    text = Path(log).read_text() if Path(log).exists() else ""
    words = [
        line.split()
        for line in text.splitlines(keepends=True)
        if line.startswith(_LINE) and line.endswith("\n")
    ]
    return [
        (int(number), None if value == "None" else float(value))
        for _, number, value in words
    ]
