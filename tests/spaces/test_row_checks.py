"""Rows outside the unit cube, or with a value in an inactive column, are refused."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spaces.several import GOOD, chain, close, conditional_space

from bonas import Choice, Float, Int, Space

SPACE = conditional_space()
GOOD_ROW = np.asarray(SPACE.encode(GOOD))  # depth 2, relu: everything is active
LR, SLOPE, WIDTH = (SPACE.names.index(name) for name in ("lr", "slope", "width_2"))


def with_column(column, value, row=GOOD_ROW):
    changed = row.copy()
    changed[column] = value
    return changed


READERS = {
    "values": SPACE.values,
    "active": SPACE.active,
    "decode": SPACE.decode,
    "neighbors": SPACE.neighbors,
}
each_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


@each_reader
@pytest.mark.parametrize("value", [-0.01, 1.01, 256.0])
def test_a_row_outside_the_unit_cube_is_refused_by_name(read, value):
    with pytest.raises(
        ValueError,
        match=rf"row: the column of parameter 'lr' must be in \[0, 1\]; got {value}.*space\.encode",
    ):
        read(with_column(LR, value))


@pytest.mark.parametrize("read", [SPACE.values, SPACE.active], ids=["values", "active"])
def test_a_row_that_is_not_a_number_is_refused(read):
    with pytest.raises(
        ValueError, match=r"parameter 'lr' must be in \[0, 1\]; got nan"
    ):
        read(with_column(LR, math.nan))


def test_one_of_many_rows_is_refused_by_its_number():
    with pytest.raises(
        ValueError,
        match=r"row 2: the column of parameter 'slope' must be in \[0, 1\]; got 1\.5",
    ):
        SPACE.active(np.stack([GOOD_ROW, GOOD_ROW, with_column(SLOPE, 1.5)]))


@pytest.mark.slow
@each_reader
def test_rounding_is_not_outside(read):
    read(with_column(LR, 1.0 + 1e-7))
    read(with_column(LR, -1e-7))


def test_a_decoded_value_is_within_its_bounds_despite_rounding():
    assert SPACE.decode(with_column(LR, 1.0 + 1e-7))["lr"] == 1.0


def test_snap_goes_to_the_surface():
    assert SPACE.snap(with_column(LR, 1.5))[LR] == 1.0


def test_traced_rows_are_not_looked_at():
    outside = jnp.asarray(with_column(LR, 1.5))
    assert jax.jit(SPACE.active)(outside).all()
    assert jax.vmap(SPACE.values)(outside[None])["lr"] > 1.0
    jax.jit(lambda u: SPACE.check(u, exists=True))(outside)


# Something in an inactive column

SHALLOW = with_column(0, 0.0)  # depth 1, and a width of the second layer


def test_a_row_with_something_in_an_inactive_column_is_read_as_the_point_it_snaps_to():
    assert close(SPACE.decode(SHALLOW), SPACE.decode(SPACE.snap(SHALLOW)))
    assert "width_2" not in SPACE.decode(SHALLOW)


def test_something_in_an_inactive_column_is_no_point_that_exists():
    words = r"row: parameter 'width_2' is inactive: its condition does not hold where depth is 1, but its column is 0\.3"  # noqa: E501
    with pytest.raises(ValueError, match=words):
        SPACE.check(SHALLOW, exists=True)
    SPACE.check(SHALLOW)
    SPACE.check(SPACE.snap(SHALLOW), exists=True)


def test_one_of_many_points_is_named_by_what_it_is():
    with pytest.raises(
        ValueError,
        match=r"initial point 1: parameter 'width_2' is inactive.*expected 0, as from space\.snap",
    ):
        SPACE.check(np.stack([GOOD_ROW, SHALLOW]), "initial point", exists=True)


@pytest.mark.slow
def test_sampled_points_exist():
    for space in (SPACE, chain()):
        space.check(space.sample(jax.random.key(0), 50), exists=True)


def test_a_known_row_is_looked_at_while_something_else_is_traced():
    def inside(x):
        SPACE.check(SHALLOW, exists=True)
        return x

    with pytest.raises(ValueError, match="'width_2' is inactive"):
        jax.jit(inside)(1.0)


BAD = {
    "a number": (
        {**GOOD, "depth": 1},
        "'width_2' is inactive: its condition does not hold where depth is 1",
    ),
    "an option": (
        {**GOOD, "activation": "tanh"},
        "'slope' is inactive.* where activation is 'tanh'",
    ),
}


@pytest.mark.parametrize(("config", "words"), BAD.values(), ids=BAD)
def test_an_inactive_parameter_is_refused_with_the_state_of_its_condition(
    config, words
):
    with pytest.raises(ValueError, match=words):
        SPACE.encode(config)


def test_a_parent_that_is_inactive_itself_is_said_to_be():
    space = Space(
        a=Choice("on", "off"),
        b=Int(0, 3, when={"a": "on"}),
        c=Float(0.0, 1.0, when=lambda p: (p["b"] < 9) & (p["a"] < 9)),
    )
    with pytest.raises(
        ValueError, match=r"'c' is inactive: .* where b is inactive and a is 'off'"
    ):
        space.encode({"a": "off", "c": 0.5})


def test_a_condition_that_rests_on_nothing_has_no_state():
    space = Space(
        a=Float(0.0, 1.0), b=Float(0.0, 1.0, when=lambda p: jnp.asarray(False))
    )
    with pytest.raises(
        ValueError, match=r"'b' is inactive: its condition does not hold$"
    ):
        space.encode({"a": 0.5, "b": 0.5})
