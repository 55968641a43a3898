"""Network families: their spaces and checkpoints."""

import jax
import pytest

from bonas.tabular.network_families import FAMILIES, make_family
from bonas.tabular.network_family import hidden_widths
from bonas.tabular.splits import Size

REGRESSION = Size(300, 10, 1, "regression")


def small_family(name):
    return make_family(name, REGRESSION)


def test_only_the_layers_of_a_network_have_a_width():
    space = small_family("mlp").space
    for row in space.sample(jax.random.key(0), 20):
        config = space.decode(row)
        assert [f"width_{i}" in config for i in (1, 2, 3)] == [
            i <= config["depth"] for i in (1, 2, 3)
        ]
        assert len(hidden_widths(config)) == config["depth"]


@pytest.mark.parametrize("name", FAMILIES)
def test_checkpoints_rise_and_can_be_cut_into_five_stages(name):
    checkpoints = small_family(name).checkpoints
    assert list(checkpoints) == sorted(set(checkpoints))
    assert len(checkpoints) % 5 == 0


@pytest.mark.parametrize(
    ("rows", "least", "most"),
    [(300, 2800, 3000), (1600, 2800, 3000), (12_800, 8000, 9000)],
)
def test_updates_grow_with_the_rows_of_a_large_table(rows, least, most):
    """Batches are of 32, 128 and 256 rows; checkpoints are rounded down to whole epochs."""
    batch = {300: 32, 1600: 128, 12_800: 256}[rows]
    assert (
        least
        <= make_family("mlp", REGRESSION._replace(rows=rows)).checkpoints[-1]
        * -(-rows // batch)
        <= most
    )


def test_the_first_configuration_of_a_large_table_is_in_the_space():
    family = make_family("mlp", REGRESSION._replace(rows=12_800))
    assert (
        family.space.decode(family.space.encode(family.first_config))["width_2"] == 64
    )
    assert make_family("mlp", REGRESSION).first_config is None


def test_a_million_rows_are_trained_for_40_epochs():
    assert make_family("mlp", REGRESSION._replace(rows=1_000_000)).checkpoints[-1] == 40


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("cnn", "regression", "space must be one of"),
        ("bnn", "classification", "supports only regression"),
    ],
)
def test_unknown_families_and_tasks_are_refused(name, task, message):
    with pytest.raises(ValueError, match=message):
        make_family(name, REGRESSION._replace(task=task))
