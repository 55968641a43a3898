"""Configurations of network families: their descriptions and activations."""

import jax
import pytest

from bonas.tabular.network_families import FAMILIES, make_family
from bonas.tabular.network_family import activation_name, describe_network
from bonas.tabular.splits import Size

REGRESSION = Size(300, 10, 1, "regression")


@pytest.mark.parametrize("name", FAMILIES)
def test_every_configuration_has_a_description(name):
    space = make_family(name, REGRESSION).space
    for row in space.sample(jax.random.key(1), 10):
        assert f"{space.decode(row)['depth']} hidden layer" in describe_network(
            space.decode(row)
        )


def test_the_description_of_a_network():
    config = {
        "depth": 3,
        "width_1": 8,
        "width_2": 4,
        "width_3": 2,
        "activation": "tanh",
        "learning_rate": 0.01,
    }
    assert (
        describe_network(config)
        == "3 hidden layers of 8, 4 and 2 tanh units, learning rate 0.01"
    )
    config = {"depth": 1, "width": 8, "members": 7}
    assert describe_network(config) == "7 networks of 1 hidden layer of 8 relu units"
    config["density"] = 0.5
    assert (
        describe_network(config)
        == "7 networks of 1 hidden layer of 8 relu units, each with 50% of its weights"
    )


def test_an_activation_that_cannot_be_saved_is_refused():
    with pytest.raises(ValueError, match=r"one of relu, tanh, .* got 'gelu'"):
        activation_name({"depth": 1, "width": 8, "activation": "gelu"})
