"""The small networks of beyond.search_defaults, trained for classification on tables of data."""

import jax
import numpy as np

import bonas
from bonas import nets
from bonas.problems import datasets

SPACE = bonas.Space(
    depth=bonas.Int(1, 3),
    width=bonas.Int(2, 32, log=True),
    learning_rate=bonas.Float(1e-4, 1.0, log=True),
    weight_decay=bonas.Float(1e-6, 1e-1, log=True),
    momentum=bonas.Float(0.0, 0.98),
    activation=bonas.Choice("relu", "tanh", "sigmoid"),
)
# Classes that the values of a regression are divided into, by quantiles
CLASSES = 4


def train(training, name: str, space: bonas.TableSpace) -> np.ndarray:
    """Return the validation errors of all networks of a space on one data set."""
    data = classification(training, name)
    classes = int(max(data.y.max(), data.valid_y.max())) + 1
    shape = nets.Shape(data.x.shape[1], classes, depth=3, width=32)
    configs = [space.decode(row) for row in space.rows]
    networks = nets.stack(
        [
            nets.architecture(shape, [c["width"]] * c["depth"], c["activation"])
            for c in configs
        ]
    )
    hyper = nets.Hyperparameters(
        **{
            key: np.array([c[key] for c in configs], np.float32)
            for key in ("learning_rate", "momentum", "weight_decay")
        }
    )
    settings = nets.Settings(
        loss="cross_entropy",
        metrics=("error",),
        optimizer="sgd",
        batch=training.batch,
        max_epochs=training.epochs,
        checkpoints=training.epochs,
    )
    keys = jax.random.split(jax.random.key(1), len(configs))
    found = nets.train_many(keys, shape, settings, networks, hyper, data)
    error = np.asarray(found.final[:, 0], float)
    return np.where(
        np.isfinite(error), error, 1.0
    )  # a diverged network is always wrong


def classification(training, name: str) -> nets.Examples:
    """Load a data set, divide values into classes, and split it at random."""
    data = datasets.load(name)
    y = data.y
    if y.dtype.kind == "f":
        y = np.searchsorted(np.quantile(y, np.arange(1, CLASSES) / CLASSES), y)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = data.x[order].astype(float), y[order].astype(np.int32)
    n = min(training.rows, int(0.6 * len(y)))
    end = n + training.valid_rows
    x = (x - x[:n].mean(axis=0)) / (x[:n].std(axis=0) + 1e-6)
    return nets.examples(x[:n], y[:n], x[n:end], y[n:end])
