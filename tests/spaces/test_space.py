"""Whole spaces: configurations and rows, points that exist, equality, and what JAX may do with
them.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spaces.several import (
    GOOD,
    SPACES,
    chain,
    close,
    conditional_space,
    each_space,
    placing,
    snap,
    spread,
    uniform,
)

import bonas
from bonas import Choice, Float, Int, Space

# A conditional space


def test_a_conditional_space_works_as_written():
    space = bonas.Space(
        depth=bonas.Int(1, 5),
        lr=bonas.Float(1e-5, 1.0, log=True),
        activation=bonas.Choice("relu", "tanh"),
        width_2=bonas.Int(1, 256, log=True, when=lambda p: p["depth"] >= 2),
        slope=bonas.Float(0.0, 0.5, when={"activation": "relu"}),
    )
    config = {"depth": 3, "lr": 0.01, "activation": "tanh", "width_2": 16}
    u = space.encode(config)
    np.testing.assert_allclose(
        u, [0.5, 0.6, 1.0, 0.5, 0.0], atol=1e-14
    )  # (3 − 1)/4, 3 of 5 decades, the second, √256
    assert close(space.decode(u), config)


@pytest.mark.typed
def test_decoded_values_are_plain_python():
    decoded = conditional_space().decode(jnp.asarray([1.0, 0.5, 0.0, 0.5, 1.0]))
    assert {name: type(value) for name, value in decoded.items()} == {
        "depth": int,
        "lr": float,
        "activation": str,
        "width_2": int,
        "slope": float,
    }


# Rows and configurations


@each_space
def test_encode_is_the_inverse_of_decode(space):
    u = spread(space, uniform(0, space, 12))
    again = jnp.stack([space.encode(space.decode(row)) for row in u])
    np.testing.assert_allclose(again, u, atol=1e-12)


@each_space
def test_decode_is_the_inverse_of_encode(space):
    configs = [space.decode(row) for row in spread(space, uniform(1, space, 12))]
    assert all(close(space.decode(space.encode(config)), config) for config in configs)


@each_space
def test_decoded_values_stay_within_bounds(space):
    corners = jnp.asarray(list(itertools.product([0.0, 1.0], repeat=space.dim)))
    for config in map(space.decode, corners):
        numbers = {
            name: space.parameters[name]
            for name in config
            if not isinstance(space.parameters[name], Choice)
        }
        assert all(p.low <= config[name] <= p.high for name, p in numbers.items())


def test_conditions_compute_only_the_values_that_they_read():
    """An ask evaluates conditions many times; the values of all parameters would enlarge it."""

    class Unread(Float):
        calls = 0

        def value(self, u):
            Unread.calls += 1
            return super().value(u)

    space = Space(
        depth=Int(1, 2),
        rate=Unread(0.0, 1.0),
        dict=Float(0.0, 1.0, when={"depth": 2}),
        function=Float(0.0, 1.0, when=lambda values: values["depth"] > 1),
    )
    Unread.calls = 0
    found = space.active(jnp.asarray([0.0, 0.5, 0.5, 0.5]))
    assert found.tolist() == [True, True, False, False]
    assert Unread.calls == 0


@each_space
def test_only_active_parameters_are_decoded(space):
    for row in spread(space, uniform(2, space, 12)):
        active = {
            name for name, on in zip(space.names, space.active(row), strict=True) if on
        }
        assert space.decode(row).keys() == active


BAD_CONFIGS = {
    "unknown name": (GOOD | {"width": 3}, "unknown parameter 'width'"),
    "missing": ({name: GOOD[name] for name in GOOD if name != "lr"}, "'lr' is missing"),
    "missing child": (
        {name: GOOD[name] for name in GOOD if name != "slope"},
        "'slope' is missing; expected depth, lr, activation, width_2, slope",
    ),
    "inactive by a function": (GOOD | {"depth": 1}, "'width_2' is inactive"),
    "inactive by a dict": (GOOD | {"activation": "tanh"}, "'slope' is inactive"),
    "out of bounds": (GOOD | {"lr": 2.0}, "'lr' must be in"),
    "wrong kind": (GOOD | {"depth": "2"}, "'depth' must be a number"),
    "empty": ({}, "'depth' is missing"),
}


@pytest.mark.parametrize(("config", "words"), BAD_CONFIGS.values(), ids=BAD_CONFIGS)
def test_bad_configurations_are_refused_by_name(config, words):
    with pytest.raises(ValueError, match=words):
        conditional_space().encode(config)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_decode_refuses_what_is_not_a_number(bad):
    with pytest.raises(ValueError, match="NaN or infinity"):
        conditional_space().decode(jnp.asarray([0.0, bad, 0.0, 0.0, 0.0]))


def test_a_space_needs_a_parameter():
    with pytest.raises(ValueError, match=r"expected parameters by name.*got none"):
        Space()


# Points that exist


@each_space
@placing
def test_inactive_columns_are_zero(space, place):
    u = place(space, uniform(3, space))
    assert (np.asarray(u)[~np.asarray(jax.jit(space.active)(u))] == 0.0).all()


@each_space
def test_sampled_points_exist(space):
    u = space.sample(jax.random.key(4), 200)
    assert u.shape == (200, space.dim)
    np.testing.assert_allclose(snap(space, u), u, atol=1e-14)


@each_space
def test_snap_is_idempotent(space):
    once = snap(space, uniform(5, space, low=-0.5, high=1.5))
    np.testing.assert_array_equal(snap(space, once), once)


@each_space
def test_snap_keeps_the_configuration(space):
    u = uniform(6, space, 12)
    assert all(
        close(space.decode(there), space.decode(row))
        for there, row in zip(snap(space, u), u, strict=True)
    )


@each_space
def test_points_stay_in_the_unit_cube(space):
    u = snap(space, uniform(7, space, low=-0.5, high=1.5))
    assert ((u >= 0.0) & (u <= 1.0)).all()


@each_space
@placing
def test_one_row_is_treated_as_one_of_many(space, place):
    u = uniform(8, space, 200)[:5]
    np.testing.assert_allclose(
        jnp.stack([place(space, row) for row in u]), place(space, u), atol=1e-14
    )


@pytest.mark.typed
def test_snap_moves_every_column_to_its_own_grid():
    u = conditional_space().snap(jnp.asarray([0.6, 0.123, 0.6, 0.51, 0.7]))
    # depth 3.4 -> 3; lr stays; tanh, so no slope; width 256^0.51 = 16.9 -> 17
    np.testing.assert_allclose(
        u, [0.5, 0.123, 1.0, math.log(17) / math.log(256), 0.0], atol=1e-14
    )


@pytest.mark.parametrize("method", ["snap", "spread"])
@pytest.mark.parametrize("shape", [(4,), (6,), (3, 4), (2, 3, 5), ()], ids=str)
def test_rows_of_another_width_are_refused(method, shape):
    with pytest.raises(ValueError, match=r"points of shape \(n, 5\)"):
        getattr(conditional_space(), method)(jnp.zeros(shape))


def test_samples_are_fair_in_a_conditional_space():
    """Five standard errors of each share, at 20,000 draws: depth is uniform, and so is the child
    among the deep.
    """
    space = Space(
        depth=Int(1, 3), kind=Choice("a", "b", "c", "d", when={"depth": (">=", 2)})
    )
    n = 20_000
    depth, kind = np.asarray(
        jax.vmap(lambda row: jnp.stack([*space.values(row).values()]))(
            space.sample(jax.random.key(9), n)
        )
    ).T
    shares = [(depth == i).mean() for i in (1, 2, 3)] + [
        ((depth > 1) & (kind == i)).mean() for i in range(4)
    ]
    expected = np.array([1 / 3] * 3 + [1 / 6] * 4)
    assert (
        np.abs(shares - expected) <= 5.0 * np.sqrt(expected * (1.0 - expected) / n)
    ).all()


def test_different_keys_draw_different_points():
    space = SPACES["plain"]
    assert (
        space.sample(jax.random.key(0), 3) != space.sample(jax.random.key(1), 3)
    ).all()


# Under JAX


@each_space
def test_values_are_the_same_under_jit_and_vmap(space):
    u = uniform(10, space, 5)
    together = jax.jit(jax.vmap(space.values))(u)
    apart = [space.values(row) for row in u]
    for name in space.names:
        np.testing.assert_allclose(
            together[name], [values[name] for values in apart], rtol=1e-13
        )


@each_space
def test_values_have_the_kind_of_their_parameter(space):
    values = jax.jit(space.values)(jnp.zeros(space.dim))
    kinds = {
        name: jnp.issubdtype(value.dtype, jnp.integer) for name, value in values.items()
    }
    assert kinds == {
        name: not isinstance(p, Float) for name, p in space.parameters.items()
    }


@pytest.mark.parametrize("shape", [(4,), (6,), (1, 5), ()], ids=str)
def test_values_take_one_row_only(shape):
    with pytest.raises(ValueError, match="one row of 5 columns"):
        conditional_space().values(jnp.zeros(shape))


@pytest.mark.parametrize("name", ["conditional", "chain"])
@pytest.mark.parametrize("method", ["snap", "spread", "active"])
def test_points_are_the_same_without_jit(name, method):
    plain = getattr(SPACES[name], method)
    u = uniform(11, SPACES[name], 5)
    np.testing.assert_allclose(jax.jit(plain)(u), plain(u), atol=1e-14)


def test_gradients_reach_real_numbers():
    space = conditional_space()
    slope = jax.grad(lambda u: space.values(u)["lr"])(
        jnp.asarray([0.5, 0.4, 0.0, 0.0, 0.0])
    )
    expected = 1e-5 ** (1 - 0.4) * math.log(1e5)  # d/du low^(1 − u) high^u
    np.testing.assert_allclose(slope, [0.0, expected, 0.0, 0.0, 0.0], rtol=1e-12)


def test_equal_spaces_compile_once():
    traces = []

    @jax.jit
    def draw(space, key):
        traces.append(space)
        return space.sample(key, 4)

    for _ in range(3):
        draw(
            Space(a=Int(1, 3), b=Choice("x", "y", when={"a": (">", 1)})),
            jax.random.key(0),
        )
    assert len(traces) == 1


# Equality


def small(low=1, high=3, log=False, options=("x", "y"), when=("==", 2), last="c"):
    return Space(
        **{
            "a": Int(low, high, log),
            "b": Choice(*options),
            last: Float(0.0, 1.0, when={"a": when}),
        }
    )


def test_equal_spaces_hash_equal():
    assert small() == small()
    assert hash(small()) == hash(small())


def test_short_and_long_conditions_are_equal():
    assert small(when=2) == small(when=("==", 2))


DIFFERENCES = [
    {"low": 2},
    {"high": 4},
    {"log": True},
    {"options": ("y", "x")},
    {"options": ("x", "z")},
    {"when": ("!=", 2)},
    {"when": ("==", 1)},
    {"last": "d"},
]


@pytest.mark.parametrize("difference", DIFFERENCES, ids=str)
def test_different_spaces_are_unequal(difference):
    assert small(**difference) != small()


def test_a_missing_condition_is_a_difference():
    assert Space(a=Int(1, 3), b=Int(1, 3)) != Space(
        a=Int(1, 3), b=Int(1, 3, when={"a": 1})
    )


def test_kinds_of_parameter_are_a_difference():
    assert Space(a=Int(1, 3)) != Space(a=Float(1, 3))


def test_the_order_of_columns_is_a_difference():
    assert Space(a=Int(1, 3), b=Int(1, 3)) != Space(b=Int(1, 3), a=Int(1, 3))


def test_functions_are_equal_by_identity():
    def deep(p):
        return p["a"] > 1

    assert Space(a=Int(1, 3), b=Int(1, 3, when=deep)) == Space(
        a=Int(1, 3), b=Int(1, 3, when=deep)
    )
    assert conditional_space() != conditional_space()


def test_categories_are_counts_of_options():
    assert chain().categories == (3, 0, 0, 5, 0)


# float32


@pytest.mark.slow
@each_space
def test_encode_and_decode_are_inverse_in_float32(space):
    with jax.enable_x64(False):
        u = spread(space, uniform(16, space, 12))
        again = jnp.stack([space.encode(space.decode(row)) for row in u])
    assert again.dtype == jnp.float32
    np.testing.assert_allclose(again, u, atol=1e-5)


@each_space
def test_points_are_numbers_in_float32(space):
    with jax.enable_x64(False):
        u = snap(space, uniform(17, space, low=-0.5, high=1.5))
        values = jax.jit(jax.vmap(space.values))(u)
        np.testing.assert_array_equal(snap(space, u), u)
    assert ((u >= 0.0) & (u <= 1.0)).all()
    assert all(np.isfinite(value).all() for value in values.values())


@pytest.mark.parametrize("given", [([(0, 1)],), (bonas.Float(0.0, 1.0),), ()])
def test_parameters_have_names(given):
    words = r"expected parameters by name, such as Space\(rate=Float\(0, 1\)\); got"
    with pytest.raises(ValueError, match=words):
        bonas.Space(*given)
