"""A process that works on a study: `python -m study.searcher FILE LOG TRIALS`. It logs every value once it is told."""

import sys
import time

import bonas
from bonas import acquire, gp, surrogates

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0), kind=bonas.Choice("x", "y"))
SEED, CAPACITY = 3, 8  # a small capacity, so that it grows often


def search():
    """Bayesian optimisation, warm-started, with settings that compile fast."""
    model, box = surrogates.gp(gp.matern52()), acquire.uniform(SPACE, candidates=200)
    return bonas.bayes(SPACE, surrogate=model, maximiser=box, initial=3, output="plain")


def loss(config):
    return (config["a"] - 0.3) ** 2 + abs(config["b"] - 0.6) + 0.1 * (config["kind"] == "x")


def unhurried(config):
    time.sleep(0.06)
    return loss(config)


def opened(path):
    return bonas.Study(path, SPACE, search=search(), seed=SEED, _capacity=CAPACITY)


def main(path, log, trials):
    bonas.configure()
    with open(log, "a", buffering=1) as file:

        def watch(event):
            if event.kind == "told":
                file.write(f"{event.trial.number} {event.trial.value!r}\n")

        opened(path).optimise(unhurried, trials=int(trials), progress=False, watch=watch)


if __name__ == "__main__":
    main(*sys.argv[1:])
