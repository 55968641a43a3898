"""The space of Raiders' networks, their training, and what is minimized."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import nets
from experiments.raiders import authors_table as raiders
from experiments.raiders import networks

TINY = networks.Layered(deepest=2, units=6, step=2, updates=60, warm=20, batch=8)
KEY = jax.random.key(0)


def points(n, seed=0):
    return TINY.space.sample(jax.random.key(seed), n)


@pytest.fixture(scope="module")
def data():
    """Two clouds, far apart."""
    x = np.random.default_rng(0).normal(size=(30, 3))
    y = np.arange(30) % 2
    return nets.examples(
        x[:20] + 4 * y[:20, None], y[:20], x[20:] + 4 * y[20:, None], y[20:]
    )


@pytest.mark.slow
def test_the_space_is_that_of_the_paper():
    """There are 24 columns, and the active ones equal the authors' table column by column."""
    space = networks.raiders().space
    assert space.dim == raiders.SHAPE[1] == 24
    assert [name.partition("_")[0] for name in space.names] == [
        name.removeprefix("log_").partition("_")[0] for name in raiders.NAMES
    ]
    u = space.sample(KEY, 50)
    np.testing.assert_array_equal(space.active(u), jax.vmap(raiders.active)(u))
    deepest = space.encode(
        {
            name: {"depth": 5, "units": 20, "rate": 1.0, "norm": 8.0, "dropout": 0.8}[
                name.partition("_")[0]
            ]
            for name in space.names
        }
    )
    np.testing.assert_array_equal(deepest, np.ones(24))
    chosen, hyper = networks.raiders().design(deepest)
    np.testing.assert_array_equal(chosen.widths, [2000] * 5)
    np.testing.assert_allclose(hyper.learning_rate, 1.0)
    np.testing.assert_allclose(hyper.dropout, 0.8)


def test_without_conditions_the_same_networks_are_there():
    flat = networks.Layered(conditional=False).space
    assert np.asarray(flat.active(flat.sample(KEY, 5))).all()
    u = networks.raiders().space.sample(KEY, 20)
    for row in u:
        for one, other in zip(
            jax.tree.leaves(networks.raiders().design(row)),
            jax.tree.leaves(networks.raiders(conditional=False).design(row)),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)


def test_layers_of_weights_are_counted_from_the_inputs():
    """A network of depth 1 has the weights 0 and 1: its output has the second rate and norm."""
    config = {"depth": 1, "rate_0": 0.1, "norm_0": 1.0, "dropout_0": 0.3, "units_1": 2}
    config |= {"rate_1": 0.01, "norm_1": 2.0, "dropout_1": 0.5}
    chosen, hyper = TINY.design(TINY.space.encode(config))
    np.testing.assert_array_equal(chosen.widths, [4, 0])
    np.testing.assert_allclose(
        np.asarray(hyper.learning_rate)[[0, -1]], [0.1, 0.01], rtol=1e-6
    )
    np.testing.assert_allclose(
        np.asarray(hyper.max_norm)[[0, -1]], [1.0, 2.0], rtol=1e-6
    )
    np.testing.assert_allclose(hyper.input_dropout, 0.3, rtol=1e-6)
    np.testing.assert_allclose(hyper.dropout[0], 0.5, rtol=1e-6)


def test_a_network_without_hidden_layers_has_the_first_of_everything():
    config = {"depth": 0, "rate_0": 0.1, "norm_0": 1.5, "dropout_0": 0.0}
    chosen, hyper = TINY.design(TINY.space.encode(config))
    assert int(chosen.widths.sum()) == 0
    np.testing.assert_allclose(hyper.learning_rate[-1], 0.1, rtol=1e-6)
    np.testing.assert_allclose(hyper.max_norm[-1], 1.5, rtol=1e-6)


def test_parameters_of_layers_that_are_not_there_change_nothing(data):
    """Desideratum 1 of the paper, for the networks themselves."""
    row = TINY.space.encode(
        {"depth": 0, "rate_0": 0.1, "norm_0": 8.0, "dropout_0": 0.1}
    )
    other = jnp.where(TINY.space.active(row), row, 0.7)
    found = networks.train(
        jnp.stack([KEY, KEY]), TINY, jnp.stack([row, other]), data, 2
    )
    np.testing.assert_array_equal(found.final[0], found.final[1])
    np.testing.assert_array_equal(found.losses[0], found.losses[1])


def test_good_settings_learn_and_the_bound_holds(data):
    config = {"depth": 1, "rate_0": 0.1, "norm_0": 0.5, "dropout_0": 0.0, "units_1": 3}
    row = TINY.space.encode(config | {"rate_1": 0.1, "norm_1": 0.75, "dropout_1": 0.0})
    found = networks.train(KEY[None], TINY, row[None], data, 2)
    assert float(found.final[0, 0]) <= 0.1
    for layer, most in (("first", 0.5), ("last", 0.75)):
        kernel = np.asarray(found.params[layer]["kernel"][0])
        assert np.sqrt((kernel**2).sum(axis=0)).max() <= most * (1 + 1e-5)


def test_the_objective_is_that_of_training_many(data):
    u, keys = points(3), jax.random.split(KEY, 3)
    together = networks.log_error(networks.train(keys, TINY, u, data, 2), 10, 2)
    value = jax.jit(networks.objective(TINY, data, 2))
    np.testing.assert_allclose(
        [value(key, row) for key, row in zip(keys, u, strict=True)], together, atol=1e-6
    )


def test_values_are_finite_whatever_becomes_of_a_network():
    """Guessing among four where it diverged, half a mistake of ten where there was none."""
    found = nets.Result(
        None, None, None, jnp.array([[jnp.nan], [0.0], [0.3]]), None, None, None
    )
    np.testing.assert_allclose(
        np.exp(networks.log_error(found, 10, 4)), [0.75, 0.05, 0.3], rtol=1e-6
    )


def test_wrong_counts_the_rows_of_another_class(data):
    row = points(1)[0]
    found = networks.train(KEY[None], TINY, row[None], data, 2)
    one = found._replace(params=jax.tree.map(lambda leaf: leaf[0], found.params))
    share = networks.wrong(
        TINY, one, row, np.asarray(data.valid_x), np.asarray(data.valid_y), 2
    )
    np.testing.assert_allclose(share, found.final[0, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"units": 25, "step": 10}, "multiple of step"),
        ({"updates": 10, "warm": 6}, "warm <= updates"),
        ({"batch": 0}, "at least 1"),
    ],
)
def test_what_cannot_be_is_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        networks.Layered(**bad)


def test_an_objective_needs_validation_rows():
    with pytest.raises(ValueError, match="validation rows"):
        networks.objective(TINY, nets.examples(np.zeros((4, 3)), np.zeros(4, int)), 2)
