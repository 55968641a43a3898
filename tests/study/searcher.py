"""A small search that compiles fast, its objective and its study."""

import bonas
from bonas import acquire, gp, surrogates

SPACE = bonas.Space(
    a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0), kind=bonas.Choice("x", "y")
)
SEED, CAPACITY = 3, 8  # a small capacity, so that it grows often


def search():
    """Bayesian optimization, warm-started, with settings that compile fast."""
    model, box = (
        surrogates.gp(gp.matern52()),
        acquire.random_candidates(SPACE, candidates=200),
    )
    return bonas.bayes(SPACE, surrogate=model, maximizer=box, initial=3, output="plain")


def loss(config):
    return (
        (config["a"] - 0.3) ** 2
        + abs(config["b"] - 0.6)
        + 0.1 * (config["kind"] == "x")
    )


def opened(path):
    return bonas.Study(path, SPACE, search=search(), seed=SEED, _capacity=CAPACITY)
