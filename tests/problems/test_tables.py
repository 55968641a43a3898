"""Tables of learning curves: what is looked up, checkpoints and repeated runs, the synthetic one
against its own law.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.problems import tables

SPACE = bonas.Space(depth=bonas.Int(1, 3), width=bonas.Int(1, 100, log=True))
CONFIGS = [
    {"depth": 1, "width": 10},
    {"depth": 3, "width": 100},
    {"depth": 2, "width": 1},
]
ROWS = np.stack([SPACE.encode(config) for config in CONFIGS])
STEPS = (10, 20, 40, 80)
VALUES = np.arange(24.0).reshape(
    3, 2, 4
)  # the value says which network, run and checkpoint it is of
VALUES[1, 1, 2:] = np.nan


@pytest.fixture(scope="module")
def made():
    return tables.table(bonas.TableSpace(SPACE, ROWS), STEPS, VALUES)


# Looking values up


@pytest.mark.slow
def test_every_value_is_found_where_it_was_put(made):
    """Over keys both runs are met, and no value of another network or checkpoint."""
    look_up = jax.jit(tables.objective(made))
    keys = jax.random.split(jax.random.key(0), 20)
    for i, x in enumerate(made.x):
        for step in range(4):
            found = {
                float(value)
                for value in jax.vmap(
                    lambda key, x=x, step=step: look_up(key, x, step)
                )(keys)
            }
            expected = {value for value in VALUES[i, :, step] if not np.isnan(value)}
            assert {value for value in found if not np.isnan(value)} == expected
            assert (
                any(np.isnan(value) for value in found)
                == np.isnan(VALUES[i, :, step]).any()
            )


def test_a_key_goes_along_one_run(made):
    look_up = tables.objective(made)
    for seed in range(8):
        curve = [
            float(look_up(jax.random.key(seed), made.x[0], step)) for step in range(4)
        ]
        assert curve in VALUES[0].tolist()


@pytest.mark.slow
def test_runs_are_drawn_evenly(made):
    """400 keys, two runs: five standard errors are 50."""
    keys = jax.random.split(jax.random.key(1), 400)
    found = jax.vmap(lambda key: tables.objective(made)(key, made.x[2], 0))(keys)
    assert abs(int((found == VALUES[2, 0, 0]).sum()) - 200) < 50


def test_rows_are_those_of_the_space(made):
    assert made.space.decode(made.x[1]) == CONFIGS[1]
    np.testing.assert_allclose(made.x, ROWS)


@pytest.mark.parametrize("step", [-1, 4])
def test_what_is_no_checkpoint_is_no_number(made, step):
    assert jnp.isnan(tables.objective(made)(jax.random.key(0), made.x[0], step))


# Fewer checkpoints


def test_checkpoints_are_kept_by_their_steps(made):
    fewer = tables.checkpoints(made, (20, 80))
    assert fewer.steps.tolist() == [20, 80]
    np.testing.assert_array_equal(fewer.values, VALUES[:, :, [1, 3]])


def test_a_checkpoint_may_be_the_mean_of_those_before_it(made):
    fewer = tables.checkpoints(made, (20, 80), average=2)
    np.testing.assert_allclose(fewer.values[0], [[0.5, 2.5], [4.5, 6.5]])
    assert np.isnan(fewer.values[1, 1, 1])
    assert fewer.values[1, 1, 0] == 12.5


@pytest.mark.parametrize(
    ("steps", "average", "message"),
    [
        ((20, 50), 1, "no checkpoint at step 50; the table has steps 10, 20, 40, 80"),
        ((80, 20), 1, "steps must be increasing"),
        (
            (20, 80),
            3,
            "between 1 and 2, the number of checkpoints up to step 20; got 3",
        ),
        ((20, 80), 0, "got 0"),
    ],
)
def test_checkpoints_that_are_not_there_are_refused(made, steps, average, message):
    with pytest.raises(ValueError, match=message):
        tables.checkpoints(made, steps, average=average)


# Networks that were trained more than once


def test_equal_rows_are_runs_of_one_network():
    curves = np.arange(6.0)[:, None] + np.array([[0.0, 0.5]])
    found = tables.table_from_runs(SPACE, ROWS[[1, 0, 1, 2, 1, 0]], (1, 2), curves)
    np.testing.assert_allclose(found.x, ROWS[[1, 0, 2]])
    assert found.values[:, :, 0].tolist() == [
        [0.0, 2.0, 4.0],
        [1.0, 5.0, 1.0],
        [3.0, 3.0, 3.0],
    ]
    np.testing.assert_array_equal(found.values[:, :, 1], found.values[:, :, 0] + 0.5)


# What is refused


BAD = {
    "steps out of order": (
        STEPS[::-1],
        VALUES,
        r"steps must be increasing .*got \[80, 40, 20, 10\]",
    ),
    "a step twice": ((10, 10, 20, 40), VALUES, "steps must be increasing"),
    "a broken step": ((0.5, 1.0, 2.0, 4.0), VALUES, "increasing integers"),
    "no steps": ((), VALUES, "increasing integers"),
    "another number of checkpoints": (
        STEPS[:3],
        VALUES,
        r"shape \(3, runs, 3\).*got \(3, 2, 4\)",
    ),
    "another number of networks": (
        STEPS,
        VALUES[:2],
        r"shape \(3, runs, 4\).*got \(2, 2, 4\)",
    ),
    "no run": (STEPS, VALUES[:, :0], r"got \(3, 0, 4\)"),
    "one number": (STEPS, 1.0, r"got \(\)"),
    "alive again": (
        STEPS,
        np.where(VALUES == 17.0, np.nan, VALUES),
        "row 2, run 0 has a number after a NaN",
    ),
    "infinite": (
        STEPS,
        np.where(VALUES == 5.0, np.inf, VALUES),
        "row 0, run 1 has an infinite value",
    ),
}


@pytest.mark.parametrize(("steps", "values", "message"), BAD.values(), ids=BAD)
def test_what_is_no_table_is_refused(steps, values, message):
    with pytest.raises(ValueError, match=message):
        tables.table(bonas.TableSpace(SPACE, ROWS), steps, values)


def test_rows_that_are_no_points_are_refused():
    with pytest.raises(ValueError, match="row 1 is not a point of the space"):
        tables.table_from_runs(
            SPACE, ROWS + np.array([[0.0], [0.1], [0.0]]), STEPS, VALUES[:, 0]
        )


def test_a_curve_for_each_row_is_needed():
    with pytest.raises(
        ValueError, match=r"shape \(3, c\), one curve per row; got shape \(2, 4\)"
    ):
        tables.table_from_runs(SPACE, ROWS, STEPS, VALUES[:2, 0])


# The synthetic table


def whitened(y, before, places, slope, noise):
    """Return yᵀ (K + noise I)⁻¹ y of one layer, in NumPy: chi-square with one degree per value.

    The kernel is that of the synthetic search in Hutchinson's published code.
    """
    gaps = (places[:, None] - places[None]) / np.array([2.0, 0.5])
    cov = (
        np.exp(-0.5 * (gaps**2).sum(-1))
        + slope**2 * before @ before.T
        + noise * np.eye(len(y))
    )
    return y @ np.linalg.solve(cov, y)


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.1, 1.0])
def test_the_synthetic_table_follows_its_law(slope):
    """Two runs of 225 networks: 450 degrees of freedom, whose statistic has standard deviation 30;
    five of them.
    """
    found = tables.gpar_prior(jax.random.key(3), runs=2, slope=slope)
    assert found.values.shape == (225, 2, 3)
    configs = [found.space.decode(x) for x in np.asarray(found.x)]
    assert {config["depth"] for config in configs} == {1, 2, 3, 4, 5}
    assert sorted({config["width"] for config in configs}) == [
        *range(1, 10),
        *range(10, 100, 5),
        *range(100, 1000, 50),
    ]
    places = np.repeat(
        [[config["depth"], np.log10(config["width"])] for config in configs], 2, axis=0
    )
    y = np.asarray(found.values).reshape(450, 3)
    for i in range(3):
        assert abs(whitened(y[:, i], y[:, :i], places, slope, 0.01) - 450.0) < 150.0
    if slope == 1.0:  # and what came before matters
        assert whitened(y[:, 2], y[:, :0], places, 0.0, 0.01) > 600.0


def test_runs_of_the_synthetic_table_differ_by_noise_alone():
    """225 differences of the first checkpoint, variance 2 · 0.04: five standard errors of it are
    0.038.
    """
    found = tables.gpar_prior(jax.random.key(0), runs=2, noise=0.04)
    difference = found.values[:, 0, 0] - found.values[:, 1, 0]
    assert abs(float((difference**2).mean()) - 0.08) < 0.038
