"""The images that networks are trained on: to learn from, to choose by, and to report."""

from typing import NamedTuple

import numpy as np

from bonas import nets
from bonas.problems import datasets, networks

CLASSES = 10


class Problem(NamedTuple):
    """What is searched, and the rows of each part."""

    layered: networks.Layered
    examples: nets.Examples  # to train on, and to validate on
    test_x: np.ndarray  # (t, inputs) never seen by a search; t is 0 where there are none
    test_y: np.ndarray  # (t,)


def problem(name: str) -> Problem:
    """By the name of the data: "mnist" is the paper's, all others are scaled to one core."""
    if name == "mnist":
        train, test = datasets.images("mnist")
        parts = (train.x[:50_000], train.y[:50_000], train.x[50_000:], train.y[50_000:], test.x, test.y)
        return _problem(networks.raiders(), *parts)
    if name == "digits":  # what scikit-learn brings: small enough to see that everything runs
        whole = datasets.load("digits")
        x, y = whole.x / 16.0, whole.y
        layered = networks.Layered(units=32, step=4, updates=60, warm=6)
        return _problem(layered, x[:600], y[:600], x[600:1200], y[600:1200], x[1200:], y[1200:])
    train, held = datasets.images(name)
    return _problem(networks.small(), train.x, train.y, held.x, held.y, *_unseen(name, held))


def _problem(layered: networks.Layered, x, y, valid_x, valid_y, test_x, test_y) -> Problem:
    return Problem(layered, nets.examples(x, y, valid_x, valid_y), test_x, test_y)


def _unseen(name: str, held: datasets.Examples) -> tuple[np.ndarray, np.ndarray]:
    """The test images of the whole set that are not among those held for validation, where the whole set is at hand."""
    try:
        _, test = datasets.images(name.removesuffix("_small"), download=False)
    except FileNotFoundError:
        return held.x[:0], held.y[:0]
    known = {row.tobytes() for row in held.x}
    fresh = np.array([row.tobytes() not in known for row in test.x])
    return test.x[fresh], test.y[fresh]
