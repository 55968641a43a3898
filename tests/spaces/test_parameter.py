"""Numbers and columns of each parameter type, and malformed parameters and values."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import Choice, Float, Int, Space

FLOATS = [
    Float(-2.0, 5.0),
    Float(0.0, 1.0),
    Float(1e-5, 1.0, log=True),
    Float(3.0, 3e6, log=True),
]
INTS = [
    Int(1, 5),
    Int(-3, 12),
    Int(0, 1),
    Int(1, 256, log=True),
    Int(7, 8, log=True),
    Int(3, 40, log=True),
]
CHOICES = [
    Choice("only"),
    Choice("relu", "tanh"),
    Choice("a", None, 3),
    Choice("a", 1, None, (2, 3), 2.5),
]


def numbers(parameter):
    """All values of an Int or the positions of a Choice."""
    low = parameter.low if isinstance(parameter, Int) else 0
    return np.arange(low, low + parameter.size)


def grid(parameter):
    """The column values at which an Int or a Choice is defined, by hand."""
    if isinstance(parameter, Choice):
        return numbers(parameter) / max(parameter.size - 1, 1)
    low, high, scaled = parameter.low, parameter.high, numbers(parameter).astype(float)
    return (
        np.log(scaled / low) / np.log(high / low)
        if parameter.log
        else (scaled - low) / (high - low)
    )


# Numbers and columns


@pytest.mark.parametrize("parameter", FLOATS, ids=str)
def test_float_interpolates_between_its_ends(parameter):
    u = np.linspace(0.0, 1.0, 21)
    low, high = parameter.low, parameter.high
    expected = low ** (1 - u) * high**u if parameter.log else (1 - u) * low + u * high
    np.testing.assert_allclose(parameter.value(jnp.asarray(u)), expected, rtol=1e-13)


@pytest.mark.parametrize("parameter", FLOATS, ids=str)
def test_float_unit_is_the_inverse_of_value(parameter):
    u = jnp.linspace(0.0, 1.0, 21)
    np.testing.assert_allclose(parameter.unit(parameter.value(u)), u, atol=1e-14)


@pytest.mark.parametrize("parameter", INTS, ids=str)
def test_int_columns_are_even_on_its_own_scale(parameter):
    np.testing.assert_allclose(
        parameter.unit(jnp.asarray(numbers(parameter), float)),
        grid(parameter),
        atol=1e-14,
    )


@pytest.mark.parametrize("parameter", [*INTS, *CHOICES], ids=str)
def test_value_gives_every_number_back(parameter):
    np.testing.assert_array_equal(
        parameter.value(jnp.asarray(grid(parameter))), numbers(parameter)
    )


@pytest.mark.parametrize("parameter", [*INTS, *CHOICES], ids=str)
def test_values_are_whole_numbers_by_type(parameter):
    assert jnp.issubdtype(parameter.value(jnp.asarray(0.3)).dtype, jnp.integer)


@pytest.mark.parametrize("parameter", [*FLOATS, *INTS], ids=str)
def test_ends_do_not_leave_the_unit_interval(parameter):
    ends = parameter.unit(jnp.asarray([parameter.low, parameter.high], float))
    assert ends[0] == 0.0
    assert 1.0 - 1e-14 < ends[1] <= 1.0


@pytest.mark.parametrize("low", range(1, 30))
def test_ends_do_not_leave_the_unit_interval_in_float32(low):
    with jax.enable_x64(False):
        ends = Int(low, low + 1, log=True).unit(
            jnp.asarray([low, low + 1], jnp.float32)
        )
    assert ends[0] == 0.0
    assert 1.0 - 1e-5 < ends[1] <= 1.0


@pytest.mark.parametrize(
    "parameter",
    [
        Float(0.3, 0.3),
        Float(0.3, 0.3, log=True),
        Int(4, 4),
        Int(4, 4, log=True),
        Choice("only"),
    ],
    ids=str,
)
def test_one_value_is_column_zero(parameter):
    space = Space(a=parameter)
    np.testing.assert_array_equal(
        space.snap(jnp.asarray([[0.0], [0.4], [1.0]])), np.zeros((3, 1))
    )


@pytest.mark.parametrize(
    "parameter",
    [Float(0.3, 0.3), Float(0.3, 0.3, log=True), Int(4, 4), Int(4, 4, log=True)],
    ids=str,
)
def test_one_number_is_decoded_exactly(parameter):
    assert Space(a=parameter).decode(jnp.asarray([0.7])) == {"a": parameter.low}


# Draws and rounding


@pytest.mark.parametrize("parameter", [*INTS, *CHOICES], ids=str)
def test_every_value_gets_its_fair_share(parameter):
    """Five standard errors of each share, at 40,000 draws."""
    n = 40_000
    drawn = parameter.value(
        parameter.spread(jax.random.uniform(jax.random.key(0), (n,)))
    )
    share = np.array(
        [(np.asarray(drawn) == number).mean() for number in numbers(parameter)]
    )
    if isinstance(parameter, Int) and parameter.log:
        edges = np.log(np.append(numbers(parameter) - 0.5, parameter.high + 0.5))
        expected = np.diff(edges) / (edges[-1] - edges[0])
    else:
        expected = np.full(parameter.size, 1.0 / parameter.size)
    assert (
        np.abs(share - expected) <= 5.0 * np.sqrt(expected * (1.0 - expected) / n)
    ).all()


@pytest.mark.parametrize("parameter", [*INTS, *CHOICES], ids=str)
def test_the_last_draw_below_one_is_still_a_value(parameter):
    u = parameter.spread(jnp.asarray([0.0, np.nextafter(1.0, 0.0), 1.0]))
    np.testing.assert_allclose(u, grid(parameter)[[0, -1, -1]], atol=1e-14)


@pytest.mark.parametrize("parameter", [*INTS, *CHOICES], ids=str)
def test_snap_goes_to_the_nearest_value(parameter):
    """Nearest by number: u stands for a real number (log or not), and no value is closer to it."""
    u = np.random.default_rng(1).uniform(0.0, 1.0, 200)
    if isinstance(parameter, Choice):
        exact = u * (parameter.size - 1)
    else:
        low, high = parameter.low, parameter.high
        exact = low ** (1 - u) * high**u if parameter.log else low + u * (high - low)
    nearest = np.abs(exact[:, None] - numbers(parameter)[None, :]).argmin(axis=1)
    np.testing.assert_allclose(
        parameter.snap(jnp.asarray(u)), grid(parameter)[nearest], atol=1e-14
    )


@pytest.mark.parametrize("parameter", [*FLOATS, *INTS, *CHOICES], ids=str)
def test_snap_from_outside_goes_to_the_ends(parameter):
    snapped = parameter.snap(jnp.asarray([-0.7, 1.7]))
    np.testing.assert_allclose(
        snapped,
        [0.0, float(not isinstance(parameter, Choice) or parameter.size > 1)],
        atol=1e-14,
    )


# Bad parameters

BAD_PARAMETERS = {
    "empty float range": (Float(1.0, 0.0), "low must not exceed high"),
    "empty int range": (Int(3, 2), "low must not exceed high"),
    "log from zero": (Float(0.0, 1.0, log=True), "needs low > 0"),
    "log from below zero": (Float(-1.0, 1.0, log=True), "needs low > 0"),
    "log int from zero": (Int(0, 8, log=True), "needs low > 0"),
    "log too wide": (Float(1e-300, 1.0, log=True), "needs high / low"),
    "infinite high": (Float(0.0, math.inf), "finite"),
    "infinite low": (Float(-math.inf, 0.0), "finite"),
    "nan": (Float(math.nan, 1.0), "finite"),
    "infinite int": (Int(0, math.inf), "finite"),
    "fractional int": (Int(1, 2.5), "needs integer bounds"),
    "text for a bound": (Float("0", 1.0), "numbers"),
    "truth for a bound": (Int(False, True), "numbers"),
    "no option": (Choice(), "at least one"),
    "option twice": (Choice("a", "b", "a"), "'a' is repeated"),
    "option that cannot be hashed": (Choice([1], [2]), "hashable"),
    "hidden option that cannot be hashed": (Choice((1, [2]), 3), "hashable"),
    "a list for its options": (Choice(["relu", "tanh"]), "separate arguments"),
    "a tuple for its options": (Choice(("relu", "tanh")), "separate arguments"),
    "a plain tuple": ((0.0, 1.0), "must be a spaces.Parameter, such as Float"),
    "a class for an instance": (Float, "must be a spaces.Parameter, such as Float"),
}


@pytest.mark.parametrize(
    ("parameter", "words"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS
)
def test_bad_parameters_are_refused_by_name(parameter, words):
    with pytest.raises(ValueError, match=f"'culprit'.*{re.escape(words)}"):
        Space(innocent=Float(0.0, 1.0), culprit=parameter)


# Bad values

BAD_VALUES = {
    "below": (Float(0.0, 1.0), -0.1, "must be in"),
    "above": (Float(0.0, 1.0), 1.1, "must be in"),
    "nan": (Float(0.0, 1.0), math.nan, "must be in"),
    "infinite": (Float(0.0, 1.0), math.inf, "must be in"),
    "text": (Float(0.0, 1.0), "0.5", "must be a number"),
    "nothing": (Float(0.0, 1.0), None, "must be a number"),
    "complex": (Float(0.0, 1.0), np.complex128(0.5), "must be a number"),
    "truth for a float": (Float(0.0, 1.0), True, "must be a number"),
    "truth for an int": (Int(0, 1), True, "must be a number"),
    "numpy truth for an int": (Int(0, 1), np.True_, "must be a number"),
    "fraction for an int": (Int(0, 3), 1.5, "must be an integer"),
    "int below": (Int(1, 3), 0, "must be in"),
    "int above": (Int(1, 3), 4, "must be in"),
    "unknown option": (Choice("a", "b"), "c", "must be one of"),
    "list for a tuple": (Choice((1, 2), None), [1, 2], "must be one of"),
}


@pytest.mark.parametrize(
    ("parameter", "value", "words"), BAD_VALUES.values(), ids=BAD_VALUES
)
def test_bad_values_are_refused_by_name(parameter, value, words):
    with pytest.raises(ValueError, match=f"'culprit' {words}"):
        Space(innocent=Float(0.0, 1.0), culprit=parameter).encode(
            {"innocent": 0.5, "culprit": value}
        )


@pytest.mark.parametrize("value", [3, 3.0, np.int32(3), np.float32(3.0)], ids=repr)
def test_any_whole_number_is_an_int(value):
    np.testing.assert_allclose(Space(a=Int(1, 5)).encode({"a": value}), [0.5])


@pytest.mark.parametrize("parameter", CHOICES, ids=str)
def test_options_keep_their_kind(parameter):
    space = Space(a=parameter)
    decoded = [
        space.decode(space.encode({"a": option}))["a"] for option in parameter.choices
    ]
    assert decoded == list(parameter.choices)
    assert [type(option) for option in decoded] == [
        type(option) for option in parameter.choices
    ]


WIDE = [(64, -1e300, 1.7e308), (64, -1.7e308, 1.7e308), (32, -3e38, 3e38)]


@pytest.mark.parametrize(("bits", "low", "high"), WIDE)
def test_a_range_whose_width_overflows_is_covered(bits, low, high):
    with jax.enable_x64(bits == 64):
        parameter = Float(low, high)
        u = jnp.linspace(0.0, 1.0, 9)
        numbers = parameter.value(u)
        exact = [low * (1 - each) + high * each for each in u.tolist()]
        np.testing.assert_allclose(numbers, exact, rtol=1e-6, atol=1e-6 * high)
        assert (jnp.diff(numbers / 4) > 0).all()
        np.testing.assert_allclose(parameter.unit(numbers), u, atol=1e-6)
