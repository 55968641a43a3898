"""Fits of GPAR to tables of learning curves, and what they say of curves that were held out."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import bonas
from bonas import gp, infer
from bonas.problems import bnn_table, learning_curves, tables
from bonas.problems.uci import UCI

# Three checkpoints: 1000 and 4000 of 50000 steps, or about as early, and the last (H-E4).
SHARES = np.array([0.02, 0.08, 1.0])
EPOCHS = {"metaqnn_cifar10": (1, 3, 20), "metaqnn_svhn": (1, 3, 20), "resnet_cifar10": (1, 4, 50), "lstm_ptb": (2, 6, 60)}
STAND_IN = "gpar_prior"


class Split(NamedTuple):
    """Networks drawn from a table: half to train on, half held out, the same for every model; runs (r,) in the first axis."""

    train: bonas.Dataset  # (r, h, ...)
    x: jax.Array  # (r, h, d)
    y: jax.Array  # (r, h, p)
    held: jax.Array  # (r, h) bool: those beyond are padding, which keeps one shape for all tables


def load(name: str) -> tables.Table:
    """A table of three checkpoints, by the name of a set of real curves or of a set of UCI, or the synthetic one."""
    if name == STAND_IN:
        return tables.gpar_prior(jax.random.key(1))  # the first of the seeds of H-S10
    if name in EPOCHS:
        return tables.checkpoints(learning_curves.load(name, progress=False), EPOCHS[name])
    table = bnn_table.load(name)
    steps = np.asarray(table.steps)
    nearest = np.abs(np.log(steps[None, :]) - np.log(steps[-1] * SHARES)[:, None]).argmin(axis=1)
    return tables.checkpoints(table, steps[np.unique(nearest)])


def names() -> list[str]:
    """All sets that may be there."""
    return [*EPOCHS, STAND_IN, *(bnn_table.names() if bnn_table.SHIPPED.is_file() else UCI)]


def splits(table: tables.Table, networks: int, train: int, runs: int) -> Split:
    """`networks` drawn anew for every run, the first run of each that never diverged; of one half, `train` are trained on.

    Values are divided by their standard deviation in the table, so that densities of different sets can be read side by side:
    that adds one constant to all of a set. What the models know of scales is what they are shown.
    """
    y = np.asarray(table.values)[:, 0]
    whole = np.flatnonzero(np.isfinite(y).all(axis=1))
    y, x, half = y / y[whole].std(axis=0), np.asarray(table.x), networks // 2

    def one(run):
        rows = np.random.default_rng(run).permutation(whole)[:networks]
        middle = len(rows) // 2
        known, held = rows[: min(train, middle)], rows[middle:][:half]
        padded = np.resize(held, half)
        return Split(bonas.dataset(x[known], y[known], half), x[padded], y[padded], np.arange(half) < len(held))

    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[one(run) for run in range(runs)])


@cache
def program(model: gp.GPAR, how: str, steps: int, samples: int):
    """score(key, Split of one run) -> the mean log predictive density of a curve (), and of each of the held-out ones."""

    def params_of(key, data):
        if how == "layer by layer":
            return jax.tree.map(lambda leaf: leaf[None], gp.fit_layers(key, model, data, steps=steps))
        target = model.hyperposterior(data)
        z, _ = infer.maximise(key, target.maximising, target.start, steps=steps)
        if how == "slice":
            last = jax.tree.map(lambda leaf: leaf[0], z)
            z, _ = infer.slice_sample(key, target.sampling, last, samples=samples, burn=samples)
        return jax.vmap(target.constrain)(z)

    def score(key, split):
        each = gp.log_predictive(model, params_of(key, split.train), split.train, split.x, split.y)
        return jnp.where(split.held, each, 0.0).sum() / split.held.sum()

    @jax.jit
    def all_runs(keys, split):
        return jax.lax.map(lambda both: score(*both), (keys, split))

    return all_runs


def scores(model: gp.GPAR, how: str, split: Split, *, steps: int, samples: int) -> list[float]:
    """One number a run."""
    keys = jax.random.split(jax.random.key(0), len(split.held))
    return np.asarray(program(model, how, steps, samples)(keys, split)).tolist()


class Continued(NamedTuple):
    """Curves of which the beginning was shown, in the units of the table."""

    seen: int  # checkpoints
    steps: np.ndarray  # (c,)
    curves: np.ndarray  # (m, c) as they were
    mean: np.ndarray  # (m, c) as they were expected to be
    std: np.ndarray  # (m, c) of an observation

    @property
    def covered(self) -> float:
        """The share of the rest that lies within two standard deviations."""
        return float((np.abs(self.curves - self.mean) < 2.0 * self.std)[:, self.seen :].mean())


def continued(table: tables.Table, seen: int, train: int, held: int, steps: int) -> Continued:
    """The rest of `held` curves after `seen` checkpoints, by the model of Hutchinson given `train` whole ones."""
    model, y = gp.gpar(), np.asarray(table.values)[:, 0]
    rows = np.random.default_rng(0).permutation(np.flatnonzero(np.isfinite(y).all(axis=1)))[: train + held]
    known, others = rows[:train], rows[train:]
    data, at = bonas.dataset(table.x[known], y[known]), table.x[others]

    @jax.jit
    def fit(data):
        target = model.hyperposterior(data)
        z, _ = infer.maximise(jax.random.key(0), target.maximising, target.start, steps=steps)
        return model.condition(target.constrain(jax.tree.map(lambda leaf: leaf[0], z)), data)

    curves = fit(data)
    mask = np.broadcast_to(np.arange(y.shape[1])[None, :] < seen, (len(others), y.shape[1]))
    found = model.predict(curves, at, gp.Known(jnp.asarray(y[others]), jnp.asarray(mask)), draws=256)
    noise = np.asarray(curves.scale * jnp.sqrt(curves.noise))
    return Continued(seen, np.asarray(table.steps), y[others], np.asarray(found.mean), np.hypot(found.std, noise[None, :]))
