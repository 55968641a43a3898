"""The contract that every parameter type keeps, also one that is defined here."""

import json
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import Choice, Float, Int, Ordinal, Space
from bonas.spaces import Parameter, parameter_from_json


@dataclass(frozen=True)
class PowerOfTwo(Parameter):
    """2^low, ..., 2^high: a parameter type of one class, with exponents as numbers."""

    low: int
    high: int
    when: object = None

    @property
    def size(self):
        return self.high - self.low + 1

    @property
    def bounds(self):
        return self.low, self.high

    @property
    def description(self):
        return f"2^{self.low} to 2^{self.high}"

    @property
    def choices(self):
        return tuple(2**i for i in range(self.low, self.high + 1))

    def check(self, name):
        if self.low > self.high:
            raise ValueError(f"parameter {name!r}: the range is empty")

    def value(self, u):
        return jnp.round(self.low + jnp.clip(u, 0.0, 1.0) * (self.size - 1)).astype(int)

    def unit(self, number):
        return (jnp.asarray(number) - self.low) / max(self.size - 1, 1)

    def spread(self, u):
        return self.unit(
            self.low + jnp.clip(jnp.floor(u * self.size), 0, self.size - 1)
        )

    def snap(self, u):
        return self.unit(self.value(u).astype(u.dtype))

    def decode(self, number):
        return 2 ** int(number)

    def number(self, name, value):
        if value not in self.choices:
            raise ValueError(
                f"parameter {name!r} must be a power of two; got {value!r}"
            )
        return math.log2(value)

    def to_json(self):
        return {"kind": "PowerOfTwo", "low": self.low, "high": self.high}

    @classmethod
    def from_json(cls, written, when=None):
        return cls(written["low"], written["high"], when)


PARAMETERS = [
    Float(-2.0, 5.0),
    Float(1e-5, 1.0, log=True),
    Float(0.3, 0.3),
    Int(-3, 12),
    Int(1, 256, log=True),
    Int(4, 4),
    Choice("relu", "tanh"),
    Choice("a", 1, None, (2, 3), 2.5),
    Choice("only"),
    Ordinal((16, 32, 64, 128)),
    Ordinal([1e-4, 1e-3, 1e-2]),
    Ordinal(("low", "middle", "high")),
    Ordinal(("only",)),
    PowerOfTwo(3, 7),
]
each_parameter = pytest.mark.parametrize("parameter", PARAMETERS, ids=str)
DRAWS = jnp.linspace(0.0, 1.0, 41)


def values_of(parameter):
    """Python values of a parameter, from one end to the other."""
    numbers = np.unique(np.asarray(parameter.value(parameter.snap(DRAWS))))
    return [parameter.decode(number) for number in numbers]


@each_parameter
def test_decoded_values_encode_to_their_column(parameter):
    for value in values_of(parameter):
        u = parameter.encode("p", value)
        assert 0.0 <= u <= 1.0
        again = parameter.decode(parameter.value(jnp.asarray(u)))
        assert (
            math.isclose(again, value) if isinstance(value, float) else again == value
        )


@each_parameter
@pytest.mark.parametrize("method", ["snap", "spread"])
def test_snap_and_spread_give_columns_of_values(parameter, method):
    u = getattr(parameter, method)(DRAWS)
    np.testing.assert_allclose(parameter.snap(u), u, atol=1e-14)


@each_parameter
def test_methods_of_columns_are_the_same_under_jit(parameter):
    for method in (parameter.value, parameter.snap, parameter.spread):
        np.testing.assert_allclose(jax.jit(method)(DRAWS), method(DRAWS), rtol=1e-13)


@each_parameter
def test_neighbors_are_one_step_away(parameter):
    """An ordered value moves down and up by one, an option to every other option."""
    for u in np.asarray(parameter.grid()):
        number = (
            int(parameter.value(jnp.asarray(u))) if parameter.size < math.inf else None
        )
        moved = [
            int(parameter.value(other)) for other in parameter.neighbors(jnp.asarray(u))
        ]
        if number is None:
            assert moved == []
        elif parameter.ordered:
            assert moved == [
                max(number - 1, parameter.low),
                min(number + 1, parameter.high),
            ]
        else:
            assert sorted([number, *moved]) == list(range(parameter.categories))


@each_parameter
def test_json_gives_an_equal_parameter(parameter):
    written = json.loads(json.dumps(parameter.to_json()))
    assert parameter_from_json(written) == parameter
    assert parameter_from_json(written, when={"q": 1}) == parameter.with_condition(
        {"q": 1}
    )


@each_parameter
def test_the_grid_has_every_value_once(parameter):
    numbers = np.asarray(parameter.value(parameter.grid()))
    assert len(np.unique(numbers)) == (
        1 if parameter.size == math.inf else parameter.size
    )


@each_parameter
def test_ticks_name_the_choices(parameter):
    ticks = parameter.ticks()
    assert [label for _, label in ticks] == [
        str(choice) for choice in parameter.choices
    ]
    assert [parameter.decode(number) for number, _ in ticks] == list(parameter.choices)


@each_parameter
def test_a_space_of_it_is_equal_hashable_and_describes_itself(parameter):
    assert Space(p=parameter) == Space(p=parameter.with_condition(None))
    assert hash(Space(p=parameter)) == hash(Space(p=parameter))
    assert parameter.description


def test_json_of_a_range_and_of_options_is_that_of_earlier_study_files():
    assert Int(1, 8, log=True).to_json() == {
        "kind": "Int",
        "low": 1,
        "high": 8,
        "log": True,
    }
    assert Choice("a", (1, 2)).to_json() == {
        "kind": "Choice",
        "options": ["a", {"tuple": [1, 2]}],
    }


def test_an_unknown_type_in_json_says_what_to_do():
    with pytest.raises(
        ValueError, match="unknown parameter type 'Angle'; import the module"
    ):
        parameter_from_json({"kind": "Angle"})


# Ordinal


def test_ordinal_values_are_evenly_spaced_and_exact():
    space = Space(rate=Ordinal((1e-4, 1e-3, 1e-2)))
    np.testing.assert_array_equal(space.points(), [[0.0], [0.5], [1.0]])
    assert [space.decode(u)["rate"] for u in space.points()] == [1e-4, 1e-3, 1e-2]
    assert space.categories == (0,)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ((">=", 64), [64, 128]),
        (("<", 32), [16]),
        (64, [64]),
        (("!=", 16), [32, 64, 128]),
    ],
    ids=str,
)
def test_conditions_compare_the_order_of_an_ordinal(wanted, expected):
    space = Space(width=Ordinal((16, 32, 64, 128)), x=Int(1, 1, when={"width": wanted}))
    configs = [space.decode(u) for u in space.points()]
    assert [config["width"] for config in configs if "x" in config] == expected


def test_a_condition_on_a_value_that_is_not_in_the_ordinal_is_refused():
    with pytest.raises(ValueError, match="48 is not an option of 'width'"):
        Space(width=Ordinal((16, 32)), x=Int(1, 2, when={"width": (">", 48)}))


@pytest.mark.parametrize("values", [16, "relu"], ids=repr)
def test_an_ordinal_takes_one_sequence(values):
    with pytest.raises(TypeError, match=r"as in Ordinal\(\(16, 32, 64\)\)"):
        Ordinal(values)


@pytest.mark.parametrize(
    ("values", "words"),
    [((), "at least one"), ((1, 2, 1), "repeated"), (([1], [2]), "hashable")],
)
def test_bad_ordinals_are_refused_by_name(values, words):
    with pytest.raises(ValueError, match=f"'culprit'.*{words}"):
        Space(culprit=Ordinal(values))


# A new type


@pytest.mark.slow
def test_a_search_works_on_a_new_parameter_type():
    space = Space(width=PowerOfTwo(3, 7), rate=Float(0.0, 1.0), size=Ordinal((1, 2, 4)))

    configs = []

    def loss(config):
        configs.append(config)
        return abs(config["width"] - 32) + (config["rate"] - 0.5) ** 2 + config["size"]

    result = bonas.minimize(loss, space, trials=12, seed=0, progress=False)
    assert {config["width"] for config in configs} <= {8, 16, 32, 64, 128}
    assert {config["size"] for config in configs} <= {1, 2, 4}
    assert result.value < 2.0  # width 32 and size 1, of 15 combinations
