"""Spaces of which only listed rows exist: what is nearest, fair shares, and searches that work on
them as on any space.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import Choice, Float, Int, Space, TableSpace
from bonas.acquire import random_shift, sobol
from bonas.search import evolution, random

FULL = Space(
    depth=Int(1, 3),
    kind=Choice("a", "b", "c"),
    rate=Float(0.0, 1.0),
    width=Float(0.0, 1.0, when={"depth": (">=", 2)}),
    more=Choice("x", "y", when={"depth": 3}),
)
ROWS = np.unique(np.asarray(FULL.sample(jax.random.key(0), 60)), axis=0)
LISTED = TableSpace(FULL, ROWS)
M = len(ROWS)
# all of a kind at once: one compiled function serves every test
snap, spread = jax.jit(Space.snap), jax.jit(Space.spread)


def distance(a, b):
    """The squared distance as the words of `TableSpace.distances` have it, column by column."""
    on = [np.asarray(FULL.active(jnp.asarray(row))) for row in (a, b)]
    total = 0.0
    for column in range(FULL.dim):
        if on[0][column] and on[1][column]:
            gap = abs(a[column] - b[column])
            total += float(gap > 1e-6) if FULL.categories[column] else gap**2
        elif on[0][column] or on[1][column]:
            total += 1.0
    return total


# What exists


def test_its_points_are_the_rows_in_their_order():
    backwards = TableSpace(FULL, ROWS[::-1])
    np.testing.assert_array_equal(LISTED.points(), ROWS)
    np.testing.assert_array_equal(backwards.points(), ROWS[::-1])
    assert (LISTED.size, backwards.size) == (M, M)


def test_a_listed_row_is_itself():
    np.testing.assert_array_equal(snap(LISTED, jnp.asarray(ROWS)), ROWS)
    np.testing.assert_array_equal(LISTED.row(ROWS), np.arange(M))
    assert LISTED.row(ROWS[7]) == 7


def test_anything_else_goes_to_the_nearest_row():
    others = np.asarray(FULL.sample(jax.random.key(1), 8))
    by_hand = [[distance(u, row) for row in ROWS] for u in others]
    np.testing.assert_allclose(LISTED.distances(others), by_hand, atol=1e-12)
    np.testing.assert_array_equal(
        snap(LISTED, jnp.asarray(others)), ROWS[np.argmin(by_hand, axis=1)]
    )


def test_what_inactive_columns_hold_makes_no_difference():
    shallow = np.asarray(FULL.encode({"depth": 1, "kind": "a", "rate": 0.3}))
    other = shallow + np.array([0.0, 0.0, 0.0, 0.7, 1.0])
    np.testing.assert_array_equal(LISTED.distances(other), LISTED.distances(shallow))


def test_draws_are_shared_out_evenly():
    """m·k evenly spaced draws of the first column, whatever the others are, give each row k times."""  # noqa: E501
    u = (
        jax.random.uniform(jax.random.key(2), (5 * M, FULL.dim))
        .at[:, 0]
        .set((jnp.arange(5 * M) + 0.5) / (5 * M))
    )
    np.testing.assert_array_equal(
        np.bincount(LISTED.row(spread(LISTED, u)), minlength=M), 5
    )


def test_samples_are_rows_in_fair_shares():
    """The chance of each row is 1/m: with 100 draws expected of each, a χ² of m − 1 degrees is
    within 6 deviations.
    """
    counts = np.bincount(
        LISTED.row(LISTED.sample(jax.random.key(3), 100 * M)), minlength=M
    )
    assert ((counts - 100.0) ** 2 / 100.0).sum() < M - 1 + 6.0 * np.sqrt(2.0 * (M - 1))
    assert LISTED.sample(jax.random.key(3), 4).shape == (4, FULL.dim)


@pytest.mark.parametrize("seed", range(20))
def test_a_shifted_sobol_design_repeats_no_row(seed):
    design = spread(LISTED, random_shift(jax.random.key(seed), sobol(32, FULL.dim)))
    assert M >= 32
    assert len(np.unique(LISTED.row(design))) == 32


def test_the_ends_of_the_cube_are_rows():
    np.testing.assert_array_equal(
        LISTED.row(spread(LISTED, jnp.array([[0.0] * 5, [1.0] * 5]))), [0, M - 1]
    )


def test_there_are_no_neighbors():
    assert LISTED.neighbors(ROWS[0]).shape == (0, FULL.dim)


# Configurations


def test_configurations_are_those_of_the_space():
    for row in ROWS[:5]:
        assert LISTED.decode(row) == FULL.decode(row)
        np.testing.assert_array_equal(LISTED.encode(FULL.decode(row)), row)


def test_a_configuration_that_is_not_listed_is_refused():
    with pytest.raises(
        ValueError, match=r"'rate': 0.123.* is not in the table; the nearest row is"
    ):
        LISTED.encode({"depth": 1, "kind": "a", "rate": 0.123})


def test_conditions_are_those_of_the_space():
    np.testing.assert_array_equal(LISTED.active(ROWS), FULL.active(ROWS))


def test_without_conditions_only_what_had_no_meaning_is_new():
    plain, again = (LISTED.without_conditions(jax.random.key(0)) for _ in range(2))
    on = np.asarray(LISTED.active(ROWS))
    assert np.asarray(plain.active(plain.rows)).all()
    np.testing.assert_array_equal(plain.rows[on], ROWS[on])
    assert (
        len(np.unique(plain.rows[~on[:, 3], 3])) == (~on[:, 3]).sum() > 10
    )  # of a real number: no two alike
    assert set(plain.rows[~on[:, 4], 4]) == {0.0, 1.0}
    assert plain == again
    assert plain != LISTED.without_conditions(jax.random.key(1))


# Equality, and what is refused


def test_equal_tables_are_equal_and_others_are_not():
    same, fewer = TableSpace(FULL, ROWS.copy()), TableSpace(FULL, ROWS[1:])
    assert (same, hash(same)) == (LISTED, hash(LISTED))
    assert LISTED not in (FULL, fewer, TableSpace(FULL, ROWS[::-1]))
    assert FULL != LISTED


def test_equal_tables_share_what_is_compiled():
    calls = []

    @jax.jit
    def first(space, u):
        calls.append(None)
        return space.snap(u)

    for space in (LISTED, TableSpace(FULL, ROWS.copy())):
        first(space, jnp.asarray(ROWS[0]))
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [(3, 0, 0.4), (0, 2, np.nan), (5, 2, 1.5)],
    ids=["off the grid", "NaN", "outside"],
)
def test_what_is_no_point_of_the_space_is_refused(row, column, value):
    rows = ROWS.copy()
    rows[row, column] = value
    with pytest.raises(ValueError, match=f"row {row} is not a point of the space"):
        TableSpace(FULL, rows)


def test_a_value_in_an_inactive_column_is_refused():
    rows = ROWS.copy()
    row = int((~np.asarray(FULL.active(rows))[:, 3]).argmax())
    rows[row, 3] = 0.5
    with pytest.raises(ValueError, match=f"row {row} is not a point of the space"):
        TableSpace(FULL, rows)


def test_repeated_rows_are_refused():
    with pytest.raises(ValueError, match=rf"rows 4 and {M} are the same point"):
        TableSpace(FULL, np.concatenate([ROWS, ROWS[4:5] + 1e-9]))


@pytest.mark.parametrize(
    "rows",
    [np.zeros((0, 5)), np.zeros(5), np.zeros((2, 4))],
    ids=["none", "one row", "too narrow"],
)
def test_rows_of_another_shape_are_refused(rows):
    with pytest.raises(
        ValueError, match=r"expected rows \(m, 5\), at least one; got shape"
    ):
        TableSpace(FULL, rows)


def test_rows_cannot_be_changed_afterwards():
    with pytest.raises(ValueError, match="read-only"):
        LISTED.rows[0, 0] = 1.0


# Searches


VALUES = jnp.asarray(np.random.default_rng(0).permutation(M), float)
SEARCHES = {
    "bayes": bonas.bayes(LISTED, output="plain"),
    "random": random(LISTED),
    "evolution": evolution(LISTED, population=5),
}


def value_of(key, u):
    return VALUES[LISTED.row(u)]


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_goes_through_all_rows_and_repeats_none(name):
    history = bonas.run(SEARCHES[name], value_of, jax.random.key(0), M)
    np.testing.assert_array_equal(np.sort(LISTED.row(history.x)), np.arange(M))
    assert history.best[-1] == 0.0
    assert not history.info.exhausted.any()
