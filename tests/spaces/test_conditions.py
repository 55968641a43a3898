"""Conditions as dicts and as functions, chains of conditions, and malformed ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import Choice, Float, Int, Space


def is_active(space, name, config):
    """Whether `name` is active where the other parameters are as in `config`, by their columns
    alone.
    """
    row = [
        p.encode(other, config[other]) if other in config else 0.5
        for other, p in space.parameters.items()
    ]
    return bool(space.active(jnp.asarray(row))[space.names.index(name)])


# One condition

COMPARISONS = {
    "equal": (("==", 3), [False, False, True, False, False]),
    "equal, for short": (3, [False, False, True, False, False]),
    "not equal": (("!=", 3), [True, True, False, True, True]),
    "less": (("<", 3), [True, True, False, False, False]),
    "at most": (("<=", 3), [True, True, True, False, False]),
    "more": ((">", 3), [False, False, False, True, True]),
    "at least": ((">=", 3), [False, False, True, True, True]),
    "between whole numbers": ((">", 2.5), [False, False, True, True, True]),
}


@pytest.mark.parametrize(("wanted", "expected"), COMPARISONS.values(), ids=COMPARISONS)
def test_numbers_are_compared_as_written(wanted, expected):
    space = Space(depth=Int(1, 5), width=Float(0.0, 1.0, when={"depth": wanted}))
    assert [
        is_active(space, "width", {"depth": depth}) for depth in range(1, 6)
    ] == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [((">=", 0.1), [False, True]), (("<", 0.1), [True, False])],
    ids=str,
)
def test_real_numbers_are_compared_by_value_not_by_column(wanted, expected):
    space = Space(
        lr=Float(1e-4, 1.0, log=True), momentum=Float(0.0, 1.0, when={"lr": wanted})
    )
    assert [is_active(space, "momentum", {"lr": lr}) for lr in (0.05, 0.2)] == expected


OPTIONS = ("relu", None, 3, (1, 2), True)


@pytest.mark.parametrize("option", OPTIONS, ids=repr)
@pytest.mark.parametrize("comparison", ["==", "!=", "for short"])
def test_options_are_compared_by_name(option, comparison):
    wanted = option if comparison == "for short" else (comparison, option)
    space = Space(kind=Choice(*OPTIONS), slope=Float(0.0, 1.0, when={"kind": wanted}))
    expected = [(other == option) != (comparison == "!=") for other in OPTIONS]
    assert [is_active(space, "slope", {"kind": other}) for other in OPTIONS] == expected


def test_all_entries_of_a_dict_must_hold():
    space = Space(
        a=Int(1, 2), b=Choice("x", "y"), c=Float(0.0, 1.0, when={"a": 2, "b": "y"})
    )
    active = [
        is_active(space, "c", {"a": a, "b": b}) for a in (1, 2) for b in ("x", "y")
    ]
    assert active == [False, False, False, True]


def test_functions_see_numbers_and_positions():
    space = Space(
        a=Int(3, 7),
        b=Choice("x", "y"),
        c=Float(0.0, 1.0, when=lambda p: (p["a"] > 5) | (p["b"] == 1)),
    )
    active = [
        is_active(space, "c", {"a": a, "b": b}) for a in (5, 6) for b in ("x", "y")
    ]
    assert active == [False, True, True, True]


def test_a_condition_may_come_before_what_it_rests_on():
    space = Space(width=Float(0.0, 1.0, when={"depth": (">=", 2)}), depth=Int(1, 2))
    assert [is_active(space, "width", {"depth": depth}) for depth in (1, 2)] == [
        False,
        True,
    ]


# Chains: `c` rests on `b`, which rests on `a`

CHAINS = {
    "dicts": Space(
        a=Choice("off", "on"),
        b=Int(0, 4, when={"a": "on"}),
        c=Float(0.0, 1.0, when={"b": (">=", 2)}),
    ),
    "functions": Space(
        a=Choice("off", "on"),
        b=Int(0, 4, when=lambda p: p["a"] == 1),
        c=Float(0.0, 1.0, when=lambda p: p["b"] >= 2),
    ),
    "reversed": Space(
        c=Float(0.0, 1.0, when={"b": (">=", 2)}),
        b=Int(0, 4, when=lambda p: p["a"] == 1),
        a=Choice("off", "on"),
    ),
    "read by get": Space(
        a=Choice("off", "on"),
        b=Int(0, 4, when=lambda p: p.get("a") == 1),
        c=Float(0.0, 1.0, when=lambda p: p.get("b") >= 2),
    ),
}


@pytest.mark.parametrize("space", CHAINS.values(), ids=CHAINS)
def test_children_of_the_inactive_are_inactive(space):
    """Also where their own comparison would hold: b's column says 4 here, but b does not exist."""
    assert not is_active(space, "c", {"a": "off", "b": 4})


@pytest.mark.parametrize("space", CHAINS.values(), ids=CHAINS)
def test_children_of_the_active_follow_their_own_condition(space):
    assert [is_active(space, "c", {"a": "on", "b": b}) for b in (1, 2)] == [False, True]


@pytest.mark.parametrize(
    "when", [{"b": ("!=", 4)}, lambda p: p["b"] != 4], ids=["dict", "function"]
)
def test_not_equal_does_not_wake_the_children_of_the_inactive(when):
    space = Space(
        a=Choice("off", "on"),
        b=Int(0, 4, when={"a": "on"}),
        c=Float(0.0, 1.0, when=when),
    )
    assert not is_active(space, "c", {"a": "off", "b": 0})


def test_long_chains_end_with_their_first_link():
    chain = {"p0": Int(0, 1)} | {
        f"p{i}": Int(0, 1, when={f"p{i - 1}": 1}) for i in range(1, 7)
    }
    space = Space(**chain)
    np.testing.assert_array_equal(
        space.active(jnp.asarray([1.0, 1, 0, 1, 1, 1, 1])), [1, 1, 1, 0, 0, 0, 0]
    )


# One row and many


@pytest.mark.parametrize("space", CHAINS.values(), ids=CHAINS)
def test_active_of_rows_is_active_of_each(space):
    u = jax.random.uniform(jax.random.key(0), (40, 3))
    np.testing.assert_array_equal(space.active(u), [space.active(row) for row in u])


@pytest.mark.parametrize("space", CHAINS.values(), ids=CHAINS)
def test_active_is_the_same_under_jit(space):
    u = jax.random.uniform(jax.random.key(0), (40, 3))
    np.testing.assert_array_equal(jax.jit(space.active)(u), space.active(u))


@pytest.mark.parametrize("shape", [(2,), (4,), (5, 2), (1, 5, 3), ()], ids=str)
def test_active_refuses_other_shapes(shape):
    with pytest.raises(ValueError, match="3 columns"):
        CHAINS["dicts"].active(jnp.zeros(shape))


# Bad conditions

BAD_CONDITIONS = {
    "unknown name in a dict": (
        {"nobody": 1},
        "'nobody', which is not a parameter; the space has",
    ),
    "unknown name in a function": (
        lambda p: p["nobody"] > 1,
        "'nobody', which is not a parameter; the space has",
    ),
    "itself in a dict": ({"culprit": (">", 0.5)}, "culprit -> culprit"),
    "itself in a function": (lambda p: p["culprit"] > 0.5, "culprit -> culprit"),
    "order of options": ({"kind": (">=", "relu")}, "no order"),
    "unknown option": ({"kind": "gelu"}, "'gelu' is not an option of 'kind'"),
    "position for a name": ({"kind": 1}, "1 is not an option of 'kind'"),
    "name for a number": ({"depth": "two"}, "a number, with 'two'"),
    "truth for a number": ({"depth": True}, "a number, with True"),
    "unknown comparison": ({"depth": ("=>", 2)}, "a number, with"),
    "empty dict": ({}, "a dict or a function"),
    "text": ("depth", "a dict or a function"),
    "truth": (True, "a dict or a function"),
    "name in a function": (lambda p: p["kind"] == "relu", "position"),
    "no answer": (lambda p: None, "a single boolean"),
    "many answers": (
        lambda p: jnp.stack([p["depth"], p["kind"]]) > 1,
        "a single boolean",
    ),
    "and for &": (lambda p: p["depth"] > 1 and p["kind"] == 1, "traceable"),
    "if in a function": (
        lambda p: p["kind"] == 1 if p["depth"] > 1 else False,
        "traceable",
    ),
}


@pytest.mark.parametrize(("when", "words"), BAD_CONDITIONS.values(), ids=BAD_CONDITIONS)
def test_bad_conditions_are_refused_by_name(when, words):
    with pytest.raises(ValueError, match=f"'culprit'.*{words}"):
        Space(
            depth=Int(1, 3),
            kind=Choice("relu", "tanh"),
            culprit=Float(0.0, 1.0, when=when),
        )


CYCLES = {
    "of two, dicts": {"a": {"b": 1}, "b": {"a": 1}},
    "of two, functions": {"a": lambda p: p["b"] > 0, "b": lambda p: p["a"] > 0},
    "of two, mixed": {"a": {"b": 1}, "b": lambda p: p["a"] > 0},
    "of three, dicts": {"a": {"b": 1}, "b": {"c": 1}, "c": {"a": 1}},
    "of three, functions": {
        "a": lambda p: p["b"] > 0,
        "b": lambda p: p["c"] > 0,
        "c": lambda p: p["a"] > 0,
    },
    "behind a parameter outside of it": {"z": {"a": 1}, "a": {"b": 1}, "b": {"a": 1}},
    "in the part of a function that would not be reached": {
        "a": lambda p: (p["z"] < 0) & (p["b"] > 0),
        "b": {"a": 1},
        "z": None,
    },
}


@pytest.mark.parametrize("conditions", CYCLES.values(), ids=CYCLES)
def test_cycles_are_refused_by_name(conditions):
    with pytest.raises(
        ValueError, match=r"'[abc]' depends on itself: [abc] -> .*[abc]"
    ):
        Space(**{name: Int(0, 1, when=when) for name, when in conditions.items()})


def test_two_ways_to_one_parent_are_no_cycle():
    space = Space(
        a=Int(0, 1),
        b=Int(0, 1, when={"a": 1}),
        c=Int(0, 1, when={"a": 1}),
        d=Int(0, 1, when={"b": 1, "c": 1}),
    )
    np.testing.assert_array_equal(space.active(jnp.ones(4)), [True] * 4)
