"""Tables of networks that were really trained, as problems of search."""

from typing import NamedTuple

import jax
import numpy as np

import bonas
from bonas.problems import metaqnn, raiders

TABLES = ("raiders", "cifar10", "svhn")
TITLES = {"raiders": "networks of Raiders, MNIST", "cifar10": "MetaQNN, CIFAR-10", "svhn": "MetaQNN, SVHN"}
FILLING = 0  # seed of the random numbers in irrelevant columns: one filling a table, for all searches


class Problem(NamedTuple):
    """A table: rows of a space, and what was found there."""

    space: bonas.Listed
    blind: bonas.Listed  # the same rows for models that know nothing of relevance
    error: np.ndarray  # (n,) validation error
    depth: np.ndarray  # (n,) int: layers
    layers: str  # what these are


def load(name: str, *, rate: bool, synthetic: int = 0) -> Problem:
    """The table of that name, or a small one of the same form with so many rows, made up by a formula."""
    if name == "raiders":
        return _raiders(raiders.synthetic(jax.random.key(0), synthetic) if synthetic else raiders.load())
    table = metaqnn.synthetic(jax.random.key(0), synthetic, positions=2) if synthetic else metaqnn.load(name, rate=rate)
    return _problem(table.space, table.error, table.depth, "layers, softmax included")


def _raiders(table: raiders.Table) -> Problem:
    """The authors' searches met 34 networks again, and found the same error each time, so that each is kept once."""
    parameters = {"depth": bonas.Int(0, raiders.DEEPEST)}
    for name, layer in list(zip(raiders.NAMES, raiders.LAYERS, strict=True))[1:]:
        parameters[name] = bonas.Float(0.0, 1.0, when={"depth": (">=", layer)} if layer else None)
    _, first, group = np.unique(table.x, axis=0, return_index=True, return_inverse=True)
    if not (table.y == table.y[first][group.reshape(-1)]).all():
        raise ValueError("two rows of the table are one network with two errors")
    kept = np.sort(first)
    space = bonas.Listed(bonas.Space(**parameters), table.x[kept])
    return _problem(space, table.y[kept], table.depth[kept], "hidden layers")


def _problem(space: bonas.Listed, error: np.ndarray, depth: np.ndarray, layers: str) -> Problem:
    return Problem(space, space.without_conditions(jax.random.key(FILLING)), error, depth, layers)
