"""Tables of trained networks as search problems."""

from typing import NamedTuple

import jax
import numpy as np

import bonas
from bonas.problems import metaqnn
from experiments.raiders import authors_table as raiders

TABLES = ("raiders", "cifar10", "svhn")
TITLES = {
    "raiders": "networks of Raiders, MNIST",
    "cifar10": "MetaQNN, CIFAR-10",
    "svhn": "MetaQNN, SVHN",
}
# Seed of the random numbers in irrelevant columns: one per table, the same for all searches
FILLING = 0


class Problem(NamedTuple):
    """A table: rows of a space and their errors."""

    space: bonas.TableSpace
    blind: bonas.TableSpace  # rows for models that ignore relevance
    error: np.ndarray  # (n,) validation error
    depth: np.ndarray  # (n,) int: layers
    layers: str  # meaning of `depth`


def load(name: str, *, rate: bool, synthetic: int = 0) -> Problem:
    """Load a table by name, or create a small synthetic one with the same columns."""
    if name == "raiders":
        return _raiders(
            raiders.synthetic(jax.random.key(0), synthetic)
            if synthetic
            else raiders.load()
        )
    table = (
        metaqnn.synthetic(jax.random.key(0), synthetic, positions=2)
        if synthetic
        else metaqnn.load(name, rate=rate)
    )
    return _problem(table.space, table.error, table.depth, "layers, softmax included")


def _raiders(table: raiders.Table) -> Problem:
    """Keep each network once: the authors' searches met 34 again with the same error."""
    parameters = {"depth": bonas.Int(0, raiders.DEEPEST)}
    for name, layer in list(zip(raiders.NAMES, raiders.LAYERS, strict=True))[1:]:
        parameters[name] = bonas.Float(
            0.0, 1.0, when={"depth": (">=", layer)} if layer else None
        )
    _, first, group = np.unique(table.x, axis=0, return_index=True, return_inverse=True)
    if not (table.y == table.y[first][group.reshape(-1)]).all():
        raise ValueError(
            "expected one error per network; two rows with equal columns have different errors"
        )
    unique_rows = np.sort(first)
    space = bonas.TableSpace(bonas.Space(**parameters), table.x[unique_rows])
    return _problem(
        space, table.y[unique_rows], table.depth[unique_rows], "hidden layers"
    )


def _problem(
    space: bonas.TableSpace, error: np.ndarray, depth: np.ndarray, layers: str
) -> Problem:
    return Problem(
        space, space.without_conditions(jax.random.key(FILLING)), error, depth, layers
    )
