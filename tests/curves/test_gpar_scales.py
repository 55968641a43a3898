"""Units of curves if only the better ones continue: those that all curves would have had."""

import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.curves.gpar_scales import scale_outputs

RNG = np.random.default_rng(3)
FIRST = RNG.normal(size=400)
ALL = np.stack([FIRST, 3.0 + 2.0 * FIRST], axis=1)
BETTER = np.where(
    np.stack([np.inf < FIRST, np.median(FIRST) < FIRST], axis=1), np.nan, ALL
)
X = RNG.uniform(size=(400, 1))


def test_without_carry_every_output_has_its_own_mean_and_deviation():
    data, level, scale = scale_outputs(bonas.dataset(X, BETTER))
    np.testing.assert_allclose(level, np.nanmean(BETTER, axis=0))
    np.testing.assert_allclose(scale, np.nanstd(BETTER, axis=0))
    np.testing.assert_allclose(data.y.sum(axis=0), 0.0, atol=1e-9)


def test_the_units_of_all_curves_are_recovered_from_the_better_half():
    """Exact but for one pseudo-curve in 400; the mean of the better half is off by 1.6."""
    _, level, scale = scale_outputs(bonas.dataset(X, BETTER), prior_slope=1.0)
    np.testing.assert_allclose(level, ALL.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(scale, ALL.std(axis=0), rtol=0.02)


def test_if_all_curves_continue_the_level_is_their_mean():
    for prior_slope in (0.3, 0.9):
        _, level, _ = scale_outputs(bonas.dataset(X, ALL), prior_slope=prior_slope)
        np.testing.assert_allclose(level, ALL.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("seen", [0, 1, 2])
def test_a_checkpoint_with_few_values_has_the_scale_of_the_one_before(seen):
    y = np.where(np.arange(400)[:, None] >= np.array([400, seen])[None, :], np.nan, ALL)
    data, level, scale = scale_outputs(bonas.dataset(X, y, 410), prior_slope=0.9)
    assert np.isfinite(data.y).all()
    assert (scale[1] == scale[0]) == (seen < 2)
    assert (level[1] == level[0]) == (seen == 0)


@pytest.mark.typed
def test_masked_values_change_nothing():
    data = bonas.dataset(X, BETTER, 420)
    other = data._replace(y=jnp.where(data.mask, data.y, 1e6))
    for one, same in zip(
        scale_outputs(data, 0.9)[1:], scale_outputs(other, 0.9)[1:], strict=True
    ):
        np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("observed", [False, True])
def test_without_spread_the_scale_is_one(observed):
    """Draws from the prior of a GPAR, conditioned on no data, are in its own units."""
    y = np.zeros((3, 2)) if observed else np.full((3, 2), np.nan)
    _, level, scale = scale_outputs(bonas.dataset(np.zeros((3, 1)), y))
    np.testing.assert_array_equal(level, 0.0)
    np.testing.assert_array_equal(scale, 1.0)
