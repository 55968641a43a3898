"""GPAR as a surrogate: what is particular to it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(10, 1))
START = np.sin(6.0 * X[:, 0])
CURVES = np.stack([START, START + 0.3 * X[:, 0], START + 0.6 * X[:, 0]], axis=1)
DATA = bonas.dataset(X, CURVES, 12)
AT = jnp.asarray(RNG.uniform(size=(4, 1)))
MODEL = surrogates.gpar()
KEY = jax.random.key(0)
FIT = jax.jit(MODEL.fit)


@pytest.fixture(scope="module")
def fitted():
    return FIT(KEY, DATA, MODEL.init(12, 1, 3))


@pytest.mark.slow
def test_a_single_output_is_a_gaussian_process():
    data = bonas.dataset(X, 3.0 + 2.0 * START)
    state, _ = FIT(KEY, data, MODEL.init(10, 1, 1))
    params = jax.tree.map(lambda leaf: jnp.exp(leaf[0]), state.z)  # all are positive
    kernel = {"variance": params["kernel"]["variance"][0], "lengthscale": params["kernel"]["lengthscale"]}
    plain, mean, scale = bonas.standardise(data)
    expected = gp.predict(gp.condition(gp.se(), kernel, plain, noise=params["noise"][0]), AT)
    found = MODEL.predict(state, AT)
    np.testing.assert_allclose(found.mean[0], mean + scale * expected.mean, rtol=1e-9)
    np.testing.assert_allclose(found.std[0], scale * expected.std, rtol=1e-7)


@pytest.mark.slow
def test_it_speaks_of_the_last_output(fitted):
    found = MODEL.predict(fitted[0], DATA.x[:10])
    np.testing.assert_allclose(found.mean[0], CURVES[:, 2], atol=0.15)
    assert np.abs(CURVES[:, 2] - CURVES[:, 0]).max() > 0.4


@pytest.mark.slow
def test_draws_of_the_last_output_have_its_moments(fitted):
    """Five standard errors of 2000 draws are 0.11 standard deviations; the 64 of the prediction, in pairs, add little."""
    draws = jax.jit(MODEL.sample, static_argnums=3)(KEY, fitted[0], AT, 2000)
    mean, std = (field[0] for field in MODEL.predict(fitted[0], AT))
    assert (jnp.abs(draws.mean(axis=0) - mean) < 0.12 * std).all()
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.25)
    np.testing.assert_allclose(jnp.diagonal(MODEL.covariance(fitted[0], AT, AT)[0]), std**2, rtol=1e-6)


def test_a_curve_that_has_only_begun_says_something(fitted):
    there = jnp.array([[1.4]])  # away from all others
    before = MODEL.predict(fitted[0], there)
    begun = bonas.append(DATA, there[0], jnp.array([2.0, 0.0, 0.0]), jnp.array([True, False, False]))
    after = MODEL.predict(MODEL.update(begun, fitted[0]), there)
    assert after.mean[0, 0] > before.mean[0, 0] + 0.5 * before.std[0, 0]
    assert after.std[0, 0] < before.std[0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("infer", ["map", "slice"])
def test_a_fit_and_the_same_parameters_given_the_same_data_report_one_density(infer):
    model = surrogates.gpar(infer=infer, samples=2)
    state, info = jax.jit(model.fit)(KEY, DATA, model.init(12, 1, 3))
    np.testing.assert_allclose(model.refresh(DATA, state)[1].log_density, info.log_density, rtol=1e-8)


def test_the_density_is_in_the_units_of_the_data(fitted):
    """30 values, ten times as large, are each ten times less dense."""
    state, info = FIT(KEY, DATA._replace(y=10.0 * DATA.y), MODEL.init(12, 1, 3))
    np.testing.assert_allclose(info.log_density, fitted[1].log_density - 30 * np.log(10.0), rtol=1e-9)
    np.testing.assert_allclose(MODEL.predict(state, AT).mean, 10.0 * MODEL.predict(fitted[0], AT).mean, rtol=1e-6)


@pytest.mark.slow
def test_a_fit_to_curves_with_holes_says_that_it_is_none(fitted):
    """Under `jit`, where nothing can be raised; a model that imputes has none."""
    holes = DATA._replace(mask=DATA.mask.at[3, 0].set(False))
    state, info = FIT(KEY, holes, MODEL.init(12, 1, 3))
    assert not info.finite
    assert not info.converged
    assert not jax.jit(MODEL.refresh)(holes, fitted[0])[1].finite
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.z))  # where it began
    assert fitted[1].finite
    imputing = surrogates.gpar(gp.gpar(impute=True))
    assert jax.jit(imputing.fit)(KEY, holes, imputing.init(12, 1, 3))[1].finite


def test_options_without_order_are_refused():
    with pytest.raises(ValueError, match="parameter 'kind' is a Choice of 3 options"):
        MODEL.adapt(bonas.Space(kind=bonas.Choice("a", "b", "c"), width=bonas.Int(1, 9)))
    assert MODEL.adapt(bonas.Space(kind=bonas.Choice("a", "b"), width=bonas.Int(1, 9))) is MODEL


def test_an_unknown_inference_is_refused():
    with pytest.raises(ValueError, match="infer is one of map, slice; got 'hmc'"):
        surrogates.gpar(infer="hmc")


def test_an_odd_number_of_draws_is_refused():
    for draws in (1, 63):
        with pytest.raises(ValueError, match=f"an even number of at least 2; got {draws}"):
            surrogates.gpar(draws=draws)


@pytest.mark.slow
def test_a_search_runs_with_it():
    space = bonas.Space(x=bonas.Float(0.0, 1.0))
    search = bonas.bayes(space, surrogate=MODEL, initial=3)
    history = bonas.run(search, lambda key, u: (u[0] - 0.3) ** 2, KEY, 8)
    assert history.best[-1] < 1e-3
