"""Neighbors: points one step away in one parameter."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spaces.several import (
    GOOD,
    SPACES,
    around,
    close,
    conditional_space,
    same,
    snap,
    spread,
    uniform,
)

from bonas import Choice, Float, Int, Space


def configs_around(space, config):
    """The different configurations one step from `config`, itself left out."""
    found = []
    for row in around(space, space.encode(config)[None, :])[0]:
        decoded = space.decode(row)
        if not close(decoded, config) and not any(
            close(decoded, other) for other in found
        ):
            found.append(decoded)
    return found


def test_neighbors_by_hand():
    space = Space(
        depth=Int(1, 4),
        width=Int(1, 256, log=True, when={"depth": (">=", 2)}),
        kind=Choice("a", "b", "c"),
        lr=Float(0.0, 1.0),
    )
    found = configs_around(space, {"depth": 1, "kind": "b", "lr": 0.25})
    assert sorted(found, key=str) == sorted(
        [
            # the middle of 1..256 on its scale
            {"depth": 2, "width": 16, "kind": "b", "lr": 0.25},
            {"depth": 1, "kind": "a", "lr": 0.25},
            {"depth": 1, "kind": "c", "lr": 0.25},
        ],
        key=str,
    )


def test_neighbors_drop_what_becomes_inactive():
    space = Space(depth=Int(1, 2), width=Int(1, 9, when={"depth": 2}))
    found = configs_around(space, {"depth": 2, "width": 9})
    assert sorted(found, key=str) == [{"depth": 1}, {"depth": 2, "width": 8}]


def test_newly_active_chains_start_in_their_middles():
    space = Space(
        a=Int(0, 1), b=Int(0, 8, when={"a": 1}), c=Float(2.0, 4.0, when={"b": 4})
    )
    assert configs_around(space, {"a": 0}) == [{"a": 1, "b": 4, "c": 3.0}]


WITH_NEIGHBORS = {
    name: SPACES[name] for name in ("conditional", "chain", "single values", "wide")
}
each_space_with_neighbors = pytest.mark.parametrize(
    "space", WITH_NEIGHBORS.values(), ids=WITH_NEIGHBORS
)


@pytest.mark.slow
@each_space_with_neighbors
def test_neighbors_exist(space):
    rows = around(space, spread(space, uniform(12, space))).reshape(-1, space.dim)
    np.testing.assert_allclose(snap(space, rows), rows, atol=1e-14)


@cache
def neighboring_pairs(space, seed):
    """Pairs of neighboring configurations, and the names that they share but not with the same
    value.
    """
    configs = [space.decode(row) for row in spread(space, uniform(seed, space, 12))[:6]]
    pairs = [
        (config, other) for config in configs for other in configs_around(space, config)
    ]
    return [
        (a, b, [name for name in a.keys() & b.keys() if not same(a[name], b[name])])
        for a, b in pairs
    ]


@pytest.mark.slow
@each_space_with_neighbors
def test_neighbors_differ_in_one_parameter(space):
    assert {len(moved) for _, _, moved in neighboring_pairs(space, 13)} == {1}


@each_space_with_neighbors
def test_whole_numbers_move_by_one(space):
    moves = [
        (space.parameters[name], a[name], b[name])
        for a, b, (name,) in neighboring_pairs(space, 13)
    ]
    assert {abs(a - b) for parameter, a, b in moves if isinstance(parameter, Int)} == {
        1
    }


@each_space_with_neighbors
def test_parameters_come_and_go_only_with_the_one_that_moved(space):
    """A name that only one neighbor has must depend on the parameter that moved."""
    above = {
        "width_2": {"depth"},
        "slope": {"activation"},
        "b": {"a"},
        "c": {"a", "b"},
        "d": {"a", "b"},
        "e": {"a", "b", "c"},
    }
    for a, b, (moved,) in neighboring_pairs(space, 13):
        assert all(moved in above[name] for name in a.keys() ^ b.keys())


@each_space_with_neighbors
def test_neighbors_have_one_shape(space):
    count = sum(
        p.size - 1 if isinstance(p, Choice) else 2
        for p in space.parameters.values()
        if not isinstance(p, Float)
    )
    assert around(space, spread(space, uniform(15, space))).shape == (
        200,
        count,
        space.dim,
    )


@pytest.mark.slow
def test_neighbors_are_the_same_without_jit():
    space = conditional_space()
    row = space.encode(GOOD)
    np.testing.assert_allclose(
        space.neighbors(row), jax.jit(space.neighbors)(row), atol=1e-14
    )


def test_real_numbers_have_no_neighbors():
    assert SPACES["plain"].neighbors(jnp.asarray([0.2, 0.3])).shape == (0, 2)
