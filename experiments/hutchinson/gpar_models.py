"""Fit GPAR to tables of learning curves and score held-out curves."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import bonas
from bonas import infer
from bonas.curves import GPAR, PartialCurves, fit_layers, gpar, log_predictive
from bonas.problems import bnn_table, learning_curves, tables
from bonas.problems.uci import UCI

# Three checkpoints: 1000 and 4000 of 50000 steps, or similar shares, and the last.
SHARES = np.array([0.02, 0.08, 1.0])
EPOCHS = {
    "metaqnn_cifar10": (1, 3, 20),
    "metaqnn_svhn": (1, 3, 20),
    "resnet_cifar10": (1, 4, 50),
    "lstm_ptb": (2, 6, 60),
}
STAND_IN = "gpar_prior"


class Split(NamedTuple):
    """Networks of a table, half to train on and half held out; the first axis is runs (r,)."""

    train: bonas.Dataset  # (r, h, ...)
    x: jax.Array  # (r, h, d)
    y: jax.Array  # (r, h, p)
    # (r, h) bool: other rows are padding, so that all tables have one shape
    held: jax.Array


def load(name: str) -> tables.Table:
    """Load a table of three checkpoints by name."""
    if name == STAND_IN:
        return tables.gpar_prior(jax.random.key(1))  # the first of the author's seeds
    if name in EPOCHS:
        return tables.checkpoints(
            learning_curves.load(name, progress=False), EPOCHS[name]
        )
    table = bnn_table.load(name)
    steps = np.asarray(table.steps)
    nearest = np.abs(
        np.log(steps[None, :]) - np.log(steps[-1] * SHARES)[:, None]
    ).argmin(axis=1)
    return tables.checkpoints(table, steps[np.unique(nearest)])


def names() -> list[str]:
    """Return the names of all sets."""
    return [
        *EPOCHS,
        STAND_IN,
        *(bnn_table.names() if bnn_table.TABLE_FILE.is_file() else UCI),
    ]


def splits(table: tables.Table, networks: int, train: int, runs: int) -> Split:
    """Draw `networks` for every run and use `train` of one half for training.

    Values are divided by their standard deviation in the table, which adds one constant to all
    densities of a set and makes sets comparable. Models see only their training data.
    """
    y = np.asarray(table.values)[:, 0]
    whole = np.flatnonzero(np.isfinite(y).all(axis=1))
    y, x, half = y / y[whole].std(axis=0), np.asarray(table.x), networks // 2

    def one(run):
        rows = np.random.default_rng(run).permutation(whole)[:networks]
        middle = len(rows) // 2
        training, held = rows[: min(train, middle)], rows[middle:][:half]
        padded = np.resize(held, half)
        return Split(
            bonas.dataset(x[training], y[training], half),
            x[padded],
            y[padded],
            np.arange(half) < len(held),
        )

    return jax.tree.map(
        lambda *leaves: jnp.stack(leaves), *[one(run) for run in range(runs)]
    )


@cache
def program(model: GPAR, how: str, steps: int, samples: int):
    """Return the compiled mean log predictive density of the held-out curves of all runs."""

    def params_of(key, data):
        if how == "layer by layer":
            return jax.tree.map(
                lambda leaf: leaf[None], fit_layers(key, model, data, steps=steps)
            )
        target = model.hyperposterior(data)
        z, _ = infer.maximize(key, target.maximizing, target.start, steps=steps)
        if how == "slice":
            last = jax.tree.map(lambda leaf: leaf[0], z)
            z, _ = infer.slice_sample(
                key, target.sampling, last, samples=samples, burn=samples
            )
        return jax.vmap(target.constrain)(z)

    def score(key, split):
        each = log_predictive(
            model, params_of(key, split.train), split.train, split.x, split.y
        )
        return jnp.where(split.held, each, 0.0).sum() / split.held.sum()

    @jax.jit
    def all_runs(keys, split):
        return jax.lax.map(lambda both: score(*both), (keys, split))

    return all_runs


def scores(
    model: GPAR, how: str, split: Split, *, steps: int, samples: int
) -> list[float]:
    """Return one score per run."""
    keys = jax.random.split(jax.random.key(0), len(split.held))
    return np.asarray(program(model, how, steps, samples)(keys, split)).tolist()


class Continued(NamedTuple):
    """Curves whose beginning was observed, in the units of the table."""

    seen: int  # checkpoints
    steps: np.ndarray  # (c,)
    curves: np.ndarray  # (m, c) true values
    mean: np.ndarray  # (m, c) predicted means
    std: np.ndarray  # (m, c) standard deviations of an observation

    @property
    def covered(self) -> float:
        """The share of the rest that lies within two standard deviations."""
        return float(
            (np.abs(self.curves - self.mean) < 2.0 * self.std)[:, self.seen :].mean()
        )


def predict_rest(
    table: tables.Table, seen: int, train: int, held: int, steps: int
) -> Continued:
    """Predict the rest of `held` curves after `seen` checkpoints, given `train` complete ones."""
    model, y = gpar(), np.asarray(table.values)[:, 0]
    rows = np.random.default_rng(0).permutation(
        np.flatnonzero(np.isfinite(y).all(axis=1))
    )[: train + held]
    training, unseen = rows[:train], rows[train:]
    data, at = bonas.dataset(table.x[training], y[training]), table.x[unseen]

    @jax.jit
    def fit(data):
        target = model.hyperposterior(data)
        z, _ = infer.maximize(
            jax.random.key(0), target.maximizing, target.start, steps=steps
        )
        return model.condition(
            target.constrain(jax.tree.map(lambda leaf: leaf[0], z)), data
        )

    curves = fit(data)
    mask = np.broadcast_to(
        np.arange(y.shape[1])[None, :] < seen, (len(unseen), y.shape[1])
    )
    found = model.predict(
        curves, at, PartialCurves(jnp.asarray(y[unseen]), jnp.asarray(mask)), draws=256
    )
    noise = np.asarray(curves.scale * jnp.sqrt(curves.noise))
    return Continued(
        seen,
        np.asarray(table.steps),
        y[unseen],
        np.asarray(found.mean),
        np.hypot(found.std, noise[None, :]),
    )
