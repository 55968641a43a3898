"""The spaces of `bonas search`: what they hold, and how a configuration is told to people."""

import jax
import pytest

from bonas.tabular.spaces import SPACES, Size, family, in_words, widths_of

REGRESSION = Size(300, 10, 1, "regression")


def made(name):
    return family(name, REGRESSION)


def test_layers_that_are_not_there_have_no_width():
    space = made("mlp").space
    for row in space.sample(jax.random.key(0), 20):
        config = space.decode(row)
        assert [f"width_{i}" in config for i in (1, 2, 3)] == [i <= config["depth"] for i in (1, 2, 3)]
        assert len(widths_of(config)) == config["depth"]


@pytest.mark.parametrize("name", SPACES)
def test_checkpoints_rise_and_can_be_cut_into_five_stages(name):
    checkpoints = made(name).checkpoints
    assert list(checkpoints) == sorted(set(checkpoints))
    assert len(checkpoints) % 5 == 0


@pytest.mark.parametrize("name", SPACES)
def test_every_configuration_has_words(name):
    space = made(name).space
    for row in space.sample(jax.random.key(1), 10):
        assert f"{space.decode(row)['depth']} hidden layer" in in_words(space.decode(row))


def test_the_words_of_a_network():
    config = {"depth": 3, "width_1": 8, "width_2": 4, "width_3": 2, "activation": "tanh", "learning_rate": 0.01}
    assert in_words(config) == "3 hidden layers of 8, 4 and 2 tanh units, learning rate 0.01"
    config = {"depth": 1, "width": 8, "members": 7, "density": 0.5}
    assert in_words(config) == "7 networks of 1 hidden layer of 8 relu units, each with 50% of its weights"


@pytest.mark.parametrize(("rows", "least", "most"), [(300, 2800, 3000), (1600, 2800, 3000), (12_800, 8000, 9000)])
def test_updates_grow_with_the_rows_where_there_are_many(rows, least, most):
    """Batches are of 32, 128 and 256 rows; checkpoints are rounded down to whole epochs."""
    batch = {300: 32, 1600: 128, 12_800: 256}[rows]
    assert least <= family("mlp", REGRESSION._replace(rows=rows)).checkpoints[-1] * -(-rows // batch) <= most


def test_the_first_network_on_many_rows_is_one_of_the_space():
    made = family("mlp", REGRESSION._replace(rows=12_800))
    assert made.space.decode(made.space.encode(made.first))["width_2"] == 64
    assert family("mlp", REGRESSION).first is None


def test_a_million_rows_are_seen_40_times():
    assert family("mlp", REGRESSION._replace(rows=1_000_000)).checkpoints[-1] == 40


@pytest.mark.parametrize(
    ("name", "task", "message"), [("cnn", "regression", "a space is one of"), ("bnn", "classification", "is for regression")]
)
def test_what_there_is_not_is_refused(name, task, message):
    with pytest.raises(ValueError, match=message):
        family(name, REGRESSION._replace(task=task))
