"""A Gaussian process that is exact for few rows, and uses inducing points for many."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.study import SubsetSurrogate

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = RNG.random((40, 2))
Y = np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.05 * RNG.standard_normal(40)
POINTS = jnp.asarray(RNG.random((9, 2)))
EXACT = surrogates.gp(gp.matern52())


def data(capacity):
    y = (Y - Y.mean()) / Y.std()
    return bonas.dataset(X, y, capacity=capacity)


def fitted(model, capacity):
    given = data(capacity)
    fit = jax.jit(lambda given: model.fit(KEY, given, model.init(capacity, 2, 1)))
    return fit(given)


@pytest.mark.slow
def test_up_to_its_rows_it_is_the_exact_model():
    state, info = fitted(surrogates.large_gp(EXACT, rows=64, fitted=32), 64)
    expected, expected_info = fitted(EXACT, 64)
    np.testing.assert_array_equal(info, expected_info)
    large = surrogates.large_gp(EXACT, rows=64, fitted=32)
    np.testing.assert_array_equal(
        large.predict(state, POINTS), EXACT.predict(expected, POINTS)
    )
    np.testing.assert_array_equal(
        large.sample(KEY, state, POINTS, 4), EXACT.sample(KEY, expected, POINTS, 4)
    )


@pytest.mark.slow
def test_with_all_rows_fitted_and_inducing_it_agrees_with_the_exact_model():
    large = surrogates.large_gp(EXACT, rows=40, fitted=40)
    state, info = fitted(large, 64)
    expected, expected_info = fitted(EXACT, 64)
    for found, exact in zip(
        large.predict(state, POINTS), EXACT.predict(expected, POINTS), strict=True
    ):
        np.testing.assert_allclose(found, exact, atol=1e-4)
    np.testing.assert_allclose(info.log_density, expected_info.log_density, atol=0.1)


@pytest.mark.slow
def test_a_pending_point_reduces_the_uncertainty_there():
    large = surrogates.large_gp(EXACT, rows=16, fitted=16)
    state, _ = fitted(large, 64)
    new = jnp.array([[0.95, 0.05]])
    before = large.predict(state, new)
    assumed = bonas.append(data(64), new[0], before.mean[0, 0])
    after = large.predict(large.update(assumed, state), new)
    assert (after.std < 0.7 * before.std).all()
    np.testing.assert_allclose(after.mean, before.mean, atol=0.2)


@pytest.mark.slow
def test_hyperparameters_have_names():
    large = surrogates.large_gp(EXACT, rows=16, fitted=16)
    found = surrogates.hyperparameters(large, fitted(large, 64)[0])
    assert found["kernel"]["lengthscale"].shape == (1, 2)
    np.testing.assert_array_equal(
        found["noise"], large.noise_variance(fitted(large, 64)[0])
    )


@pytest.mark.slow
def test_known_noise_is_used():
    known = jnp.where(jnp.arange(64) % 2 == 0, 1e-2, 1.0)
    given = data(64)._replace(noise=known)
    large = surrogates.large_gp(EXACT, rows=48, fitted=16)
    found = large.update(given, large.init(64, 2, 1))
    expected = EXACT.update(given, EXACT.init(64, 2, 1))
    np.testing.assert_allclose(
        large.predict(found, POINTS).mean,
        EXACT.predict(expected, POINTS).mean,
        atol=1e-3,
    )


@pytest.mark.slow
def test_searches_of_conditional_spaces_use_it():
    space = bonas.Space(
        kind=bonas.Choice("a", "b", "c"),
        depth=bonas.Int(1, 4),
        rate=bonas.Float(1e-3, 1.0, log=True),
        width=bonas.Float(0.0, 1.0, when={"depth": (">=", 2)}),
    )
    model = surrogates.large_gp(rows=16, fitted=12)
    search = bonas.bayes(space, surrogate=model)

    def objective(key, kind, depth, rate, width):
        return (kind != 1) + 0.1 * depth + (jnp.log10(rate) + 2.0) ** 2 + width

    history = bonas.run(search, objective, KEY, 40)
    assert jnp.isfinite(history.y).all()
    assert not history.info.fallback.any()
    assert history.best[-1] < 0.25


@pytest.mark.slow
def test_a_larger_capacity_continues_the_search_beyond_the_exact_model():
    """The state of an exact model is copied to that of a model with inducing points."""
    space = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
    model = surrogates.large_gp(EXACT, rows=16, fitted=16)
    search = bonas.bayes(space, surrogate=model, initial=4)
    small, large = (search.init(KEY, capacity) for capacity in (16, 32))
    for i in range(16):
        x, small, _ = jax.jit(search.ask)(jax.random.fold_in(KEY, i), small)
        small = search.tell(small, bonas.Observation(x[0], ((x[0] - 0.3) ** 2).sum()))
    grown = search.grow(small, large)
    np.testing.assert_array_equal(
        grown.observations.data.x[:16], small.observations.data.x
    )
    x, grown, info = jax.jit(search.ask)(KEY, grown)
    assert info.fallback == 0
    assert jnp.abs(x - 0.3).max() < 0.15


@pytest.mark.slow
def test_a_small_search_asks_for_the_points_of_the_exact_model():
    space = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))

    def objective(key, u):
        return ((u - 0.3) ** 2).sum()

    found = bonas.run(bonas.bayes(space), objective, KEY, 12)
    for model in (surrogates.large_gp(), SubsetSurrogate(surrogates.gp(), 512)):
        search = bonas.bayes(space, surrogate=model)
        np.testing.assert_array_equal(found.x, bonas.run(search, objective, KEY, 12).x)


def test_settings_survive_adapt():
    space = bonas.Space(a=bonas.Choice("x", "y", "z"), b=bonas.Float(0.0, 1.0))
    model = surrogates.large_gp(surrogates.gp(steps=7), rows=32, fitted=16)
    adapted = model.adapt(space)
    assert adapted.kernel is not None
    assert replace(adapted, kernel=None) == model


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"rows": 4, "fitted": 4}, ValueError, "at least 8 rows"),
        ({"rows": 16, "fitted": 17}, ValueError, "at most `rows` fitted"),
        ({"model": surrogates.saas()}, TypeError, "surrogates.gp"),
        ({"rows": 10.5, "fitted": 8}, (TypeError, ValueError), "rows"),
    ],
)
def test_wrong_settings_are_errors(settings, error, text):
    with pytest.raises(error, match=text):
        surrogates.large_gp(**settings)


def test_a_capacity_below_the_number_of_points_is_an_error():
    space = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
    search = bonas.bayes(space, surrogate=surrogates.large_gp(), initial=2)
    state = search.init(KEY, 2)
    for x in X[:2]:
        state = search.tell(state, bonas.Observation(jnp.asarray(x), 0.0))
    with pytest.raises(ValueError, match="its capacity is 2 points"):
        search.ask(KEY, state)
