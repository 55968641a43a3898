"""The number of points of a finite space, and the list of them."""

import itertools
import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spaces.several import SPACES, snap

from bonas import Choice, Float, Int, Space

COUNTED = {
    "product": (Space(a=Int(1, 4), b=Choice("x", "y", "z")), 4 * 3),
    "growing depth": (
        Space(
            depth=Int(1, 3),
            w2=Int(1, 4, when={"depth": (">=", 2)}),
            w3=Choice("a", "b", when={"depth": (">=", 3)}),
        ),
        1 + 4 + 4 * 2,
    ),
    "chain": (
        Space(
            a=Choice("x", "y"),
            b=Int(0, 4, when={"a": "x"}),
            c=Int(1, 3, when=lambda p: p["b"] >= 3),
        ),
        1 + 3 + 2 * 3,  # y; x with b of 0, 1, 2; x with b of 3, 4 and any c
    ),
    "log parent that may be absent": (
        Space(
            b=Int(7, 8, log=True, when={"a": 1}),
            a=Choice(0, 1),
            c=Int(1, 3, when={"b": 8}),
        ),
        1 + 1 + 3,
    ),
    "two parents": (
        Space(
            a=Int(0, 2),
            b=Int(0, 2),
            c=Int(1, 5, when=lambda p: p["a"] + p["b"] >= 3),
            d=Choice("x", "y", when={"a": 0}),
        ),
        3 * 2
        + 2
        + 5
        + 5
        + 1
        # a = 0: any b and d; a = 1: b of 0, 1, then 2 with c; a = 2: b of 0, then 1, 2 with c
        + 5,
    ),
    "never": (Space(a=Int(1, 3), b=Int(1, 100, when={"a": (">", 3)})), 3),
    "single values": (
        Space(
            a=Choice("only"),
            b=Int(2, 2),
            c=Float(0.1, 0.1),
            d=Int(1, 9, when={"a": "only"}),
        ),
        9,
    ),
}


def existing(space):
    """The configurations of a finite space as a set, by trying every combination of columns on a
    fine grid.
    """
    columns = [
        np.linspace(0.0, 1.0, 61) if isinstance(p, Int) else np.linspace(0.0, 1.0, 9)
        for p in space.parameters.values()
    ]
    rows = np.array(list(itertools.product(*columns)))
    return np.unique(
        np.asarray(jax.jit(space.snap)(jnp.asarray(rows))).round(9), axis=0
    )


@pytest.mark.parametrize(("space", "count"), COUNTED.values(), ids=COUNTED)
def test_size_is_the_count_by_hand(space, count):
    assert space.size == count


@pytest.mark.slow
@pytest.mark.parametrize("name", ["log parent that may be absent", "chain"])
def test_size_is_the_same_in_float32(name):
    space, count = COUNTED[name]
    with jax.enable_x64(False):
        assert (space.size, len(space.points())) == (count, count)


@cache
def points_of(space):
    return space.points()


@jax.jit
def read(space, u):
    """What a row means, as numbers (n, d): values where active, and a number that none has
    elsewhere.
    """
    values = jnp.stack([*jax.vmap(space.values)(u).values()], axis=1)
    return jnp.where(space.active(u), values, -99)


@pytest.mark.slow
@pytest.mark.parametrize(("space", "count"), COUNTED.values(), ids=COUNTED)
def test_points_are_all_and_different(space, count):
    different = {tuple(row) for row in np.asarray(read(space, points_of(space)))}
    assert len(different) == len(points_of(space)) == count


@pytest.mark.parametrize("space", [space for space, _ in COUNTED.values()], ids=COUNTED)
def test_points_exist(space):
    np.testing.assert_allclose(
        snap(space, points_of(space)), points_of(space), atol=1e-14
    )


def test_points_hold_whatever_a_fine_grid_finds():
    space, _ = COUNTED["chain"]
    np.testing.assert_allclose(existing(space), space.points(), atol=1e-9)


@pytest.mark.parametrize("name", ["conditional", "chain", "plain"])
def test_real_numbers_make_a_space_infinite(name):
    assert SPACES[name].size == math.inf


def test_large_spaces_are_counted_exactly():
    space = Space(**{f"p{i}": Int(1, 1000) for i in range(12)})
    assert space.size == 1000**12


@pytest.mark.parametrize("name", ["conditional", "wide"])
def test_too_many_points_are_refused(name):
    with pytest.raises(ValueError, match="cannot enumerate"):
        SPACES[name].points()
