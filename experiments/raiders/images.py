"""Images to train on, to validate on and to test on."""

from typing import NamedTuple

import numpy as np

from bonas import nets
from bonas.problems import datasets
from experiments.raiders import networks

CLASSES = 10


class Problem(NamedTuple):
    """The networks to search, and the rows of each part."""

    layered: networks.Layered
    examples: nets.Examples  # for training and validation
    test_x: np.ndarray  # (t, inputs) never seen by a search; t is 0 without test images
    test_y: np.ndarray  # (t,)


def problem(name: str) -> Problem:
    """Return a problem by the name of its data; all but "mnist" are reduced to one core."""
    if name == "mnist":
        train, test = datasets.images("mnist")
        parts = (
            train.x[:50_000],
            train.y[:50_000],
            train.x[50_000:],
            train.y[50_000:],
            test.x,
            test.y,
        )
        return _problem(networks.raiders(), *parts)
    if name == "digits":  # included in scikit-learn: small enough for a quick test
        whole = datasets.load("digits")
        x, y = whole.x / 16.0, whole.y
        layered = networks.Layered(units=32, step=4, updates=60, warm=6)
        return _problem(
            layered, x[:600], y[:600], x[600:1200], y[600:1200], x[1200:], y[1200:]
        )
    train, held = datasets.images(name)
    return _problem(
        networks.small(), train.x, train.y, held.x, held.y, *_unseen(name, held)
    )


def _problem(
    layered: networks.Layered, x, y, valid_x, valid_y, test_x, test_y
) -> Problem:
    return Problem(layered, nets.examples(x, y, valid_x, valid_y), test_x, test_y)


def _unseen(name: str, held: datasets.Examples) -> tuple[np.ndarray, np.ndarray]:
    """Return the test images of the complete set that are not used for validation, if available."""
    try:
        _, test = datasets.images(name.removesuffix("_small"), download=False)
    except FileNotFoundError:
        return held.x[:0], held.y[:0]
    used_rows = {row.tobytes() for row in held.x}
    fresh = np.array([row.tobytes() not in used_rows for row in test.x])
    return test.x[fresh], test.y[fresh]
