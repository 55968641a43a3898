"""Regularized evolution of the rows of a table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.search import evolution

FULL = bonas.Space(
    depth=bonas.Int(1, 2),
    a=bonas.Float(0.0, 1.0),
    b=bonas.Float(0.0, 1.0, when={"depth": 2}),
)
TABLE = bonas.TableSpace(FULL, FULL.sample(jax.random.key(0), 200))
ROWS = TABLE.rows
STEPS, POPULATION = 40, 8
KEYS = jax.random.split(jax.random.key(1), 20)
SEARCH = evolution(TABLE, population=POPULATION, tournament=4, step=0.1)


def height(rows):
    """A bowl whose least value is in the deeper half; shallow rows are all higher."""
    return (rows[:, 1] - 0.3) ** 2 + jnp.where(
        rows[:, 0] > 0.5, (rows[:, 2] - 0.6) ** 2, 0.4
    )


VALUES = height(jnp.asarray(ROWS))


def look_up(key, u):
    return VALUES[TABLE.row(u)]


@pytest.fixture(scope="module")
def histories():
    return bonas.run_many(SEARCH, look_up, KEYS, STEPS)


def test_no_row_is_asked_twice(histories):
    for x in histories.x:
        assert len(np.unique(TABLE.row(x))) == STEPS


def test_only_the_first_population_is_random(histories):
    np.testing.assert_array_equal(
        histories.info.random,
        jnp.broadcast_to(jnp.arange(STEPS) < POPULATION, (len(KEYS), STEPS)),
    )


def test_children_are_better_than_chance(histories):
    """By chance half of 640 children would be below the median row, with deviation 0.02."""
    assert (histories.y[:, POPULATION:] < jnp.median(VALUES)).mean() > 0.6


@pytest.mark.slow
def test_a_child_is_the_nearest_row_that_was_not_tried():
    """With one member and a tiny step the child is its parent's nearest neighbor at its depth."""
    alone = evolution(TABLE, population=1, tournament=1, step=1e-9)
    x = bonas.run(alone, look_up, jax.random.key(2), 12).x
    rows, same_depth = np.asarray(TABLE.row(x)), 0
    for i in range(1, len(rows)):
        if x[i, 0] == x[i - 1, 0]:
            gaps = np.asarray(TABLE.distances(x[i - 1])).copy()
            gaps[rows[:i]] = np.inf
            assert rows[i] == gaps.argmin()
            same_depth += 1
    assert same_depth >= 3


@pytest.mark.slow
def test_the_whole_table_can_be_searched():
    small = bonas.TableSpace(FULL, ROWS[:12])
    history = bonas.run(
        evolution(small, population=3),
        lambda key, u: small.row(u).astype(float),
        jax.random.key(0),
        14,
    )
    assert len(np.unique(small.row(history.x[:12]))) == 12
    np.testing.assert_array_equal(history.info.exhausted, np.arange(14) >= 12)


@pytest.mark.parametrize("wrong", [{"population": 0}, {"tournament": 0}, {"step": 0.0}])
def test_settings_must_be_positive(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=rf"{name} (must|to) be .*; got 0"):
        evolution(TABLE, **wrong)
