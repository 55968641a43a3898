"""The best evaluation of a history, whatever failed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.search import History, random
from bonas.search.search import ask_info

NAN, INF = float("nan"), float("inf")
SPACE = bonas.Space(
    depth=bonas.Int(1, 2), width=bonas.Int(1, 9, when={"depth": (">=", 2)})
)
ROWS = SPACE.sample(jax.random.key(0), 4)


def history(values):
    y = jnp.asarray(values)
    x = jnp.broadcast_to(ROWS, (*y.shape, SPACE.dim))
    return History(x=x, y=y, best=None, info=ask_info(ROWS), state=None)


@pytest.mark.parametrize(
    ("values", "index", "value"),
    [
        ([NAN, 3.0, 1.0, 2.0], 2, 1.0),
        ([3.0, NAN, 1.0, 1.0], 2, 1.0),
        ([-INF, 3.0, INF, 2.0], 3, 2.0),
        ([NAN, INF, -INF, NAN], 0, INF),
    ],
)
def test_a_failed_evaluation_is_never_the_best(values, index, value):
    found = history(values)
    assert int(found.best_index) == index
    assert float(found.best_value) == value
    expected = SPACE.decode(ROWS[index]) if value < INF else None
    assert found.best_config(SPACE) == expected


def test_every_run_has_its_best():
    many = history([[NAN, 3.0, 1.0, 2.0], [NAN, NAN, NAN, NAN], [0.0, NAN, 1.0, 2.0]])
    np.testing.assert_array_equal(many.best_index, [2, 0, 0])
    np.testing.assert_array_equal(many.best_value, [1.0, INF, 0.0])
    best = [SPACE.decode(ROWS[2]), None, SPACE.decode(ROWS[0])]
    assert many.best_config(SPACE) == best
    twice = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), many)
    np.testing.assert_array_equal(twice.best_index, [[2, 0, 0]] * 2)
    assert twice.best_config(SPACE) == [best, best]


def test_the_best_of_a_run_that_fails_often():
    def fails(key, u):
        return jnp.where(jax.random.bernoulli(key), jnp.nan, u.sum())

    keys = jax.random.split(jax.random.key(1), 3)
    many = bonas.run_many(random(SPACE), fails, keys, 8)
    assert np.isnan(many.y).any()
    np.testing.assert_array_equal(many.best_value, many.best[:, -1])
    np.testing.assert_array_equal(many.best_value, np.nanmin(many.y, axis=1))
    one = jax.jit(lambda key: bonas.run(random(SPACE), fails, key, 8).best_index)
    assert int(one(keys[0])) == int(np.nanargmin(many.y[0]))
