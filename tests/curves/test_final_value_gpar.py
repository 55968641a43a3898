"""GPAR as a surrogate: its own properties, beside the contract of surrogates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import curves, gp

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(10, 1))
START = np.sin(6.0 * X[:, 0])
CURVES = np.stack([START, START + 0.3 * X[:, 0], START + 0.6 * X[:, 0]], axis=1)
DATA = bonas.dataset(X, CURVES, 12)
AT = jnp.asarray(RNG.uniform(size=(4, 1)))
MODEL = curves.gpar_surrogate()
KEY = jax.random.key(0)
FIT = jax.jit(MODEL.fit)


@pytest.fixture(scope="module")
def fitted():
    return FIT(KEY, DATA, MODEL.init(12, 1, 3))


@pytest.mark.slow
def test_a_single_output_is_a_plain_gaussian_process():
    data = bonas.dataset(X, 3.0 + 2.0 * START)
    state, _ = FIT(KEY, data, MODEL.init(10, 1, 1))
    params = jax.tree.map(lambda leaf: jnp.exp(leaf[0]), state.z)  # all are positive
    kernel = {
        "variance": params["kernel"]["variance"][0],
        "lengthscale": params["kernel"]["lengthscale"],
    }
    plain, mean, scale = bonas.standardize(data)
    expected = gp.predict(
        gp.condition(gp.se(), kernel, plain, noise=params["noise"][0]), AT
    )
    found = MODEL.predict(state, AT)
    np.testing.assert_allclose(found.mean[0], mean + scale * expected.mean, rtol=1e-9)
    np.testing.assert_allclose(found.std[0], scale * expected.std, rtol=1e-7)


@pytest.mark.slow
def test_it_predicts_the_last_output(fitted):
    found = MODEL.predict(fitted[0], DATA.x[:10])
    np.testing.assert_allclose(found.mean[0], CURVES[:, 2], atol=0.15)
    assert np.abs(CURVES[:, 2] - CURVES[:, 0]).max() > 0.4


@pytest.mark.slow
def test_draws_of_the_last_output_have_its_moments(fitted):
    """Five standard errors of 2000 draws are 0.11 standard deviations."""
    draws = jax.jit(MODEL.sample, static_argnums=3)(KEY, fitted[0], AT, 2000)
    mean, std = (field[0] for field in MODEL.predict(fitted[0], AT))
    assert (jnp.abs(draws.mean(axis=0) - mean) < 0.12 * std).all()
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.25)
    np.testing.assert_allclose(
        jnp.diagonal(MODEL.covariance(fitted[0], AT, AT)[0]), std**2, rtol=1e-6
    )


def test_an_unfinished_curve_is_informative(fitted):
    point = jnp.array([[1.4]])  # away from all others
    before = MODEL.predict(fitted[0], point)
    unfinished = bonas.append(
        DATA, point[0], jnp.array([2.0, 0.0, 0.0]), jnp.array([True, False, False])
    )
    after = MODEL.predict(MODEL.update(unfinished, fitted[0]), point)
    assert after.mean[0, 0] > before.mean[0, 0] + 0.5 * before.std[0, 0]
    assert after.std[0, 0] < before.std[0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("infer", ["map", "slice"])
def test_fit_and_refresh_report_the_same_density(infer):
    model = curves.gpar_surrogate(infer=infer, samples=2)
    state, info = jax.jit(model.fit)(KEY, DATA, model.init(12, 1, 3))
    np.testing.assert_allclose(
        model.refresh(DATA, state)[1].log_density, info.log_density, rtol=1e-8
    )


def test_the_density_is_in_the_units_of_the_data(fitted):
    """Ten times larger values have a tenth of the density, each of 30."""
    state, info = FIT(KEY, DATA._replace(y=10.0 * DATA.y), MODEL.init(12, 1, 3))
    np.testing.assert_allclose(
        info.log_density, fitted[1].log_density - 30 * np.log(10.0), rtol=1e-9
    )
    np.testing.assert_allclose(
        MODEL.predict(state, AT).mean,
        10.0 * MODEL.predict(fitted[0], AT).mean,
        rtol=1e-6,
    )


@pytest.mark.slow
def test_a_fit_to_curves_with_holes_reports_that_it_is_not_finite(fitted):
    """Under `jit`, where no error can be raised; a model that imputes is fine."""
    holes = DATA._replace(mask=DATA.mask.at[3, 0].set(False))
    state, info = FIT(KEY, holes, MODEL.init(12, 1, 3))
    assert not info.finite
    assert not info.converged
    assert not jax.jit(MODEL.refresh)(holes, fitted[0])[1].finite
    # the last parameters are kept
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.z))
    assert fitted[1].finite
    imputing = curves.gpar_surrogate(curves.gpar(impute=True))
    assert jax.jit(imputing.fit)(KEY, holes, imputing.init(12, 1, 3))[1].finite


def test_options_without_order_are_refused():
    with pytest.raises(ValueError, match="parameter 'kind' is a Choice of 3 options"):
        MODEL.adapt(
            bonas.Space(kind=bonas.Choice("a", "b", "c"), width=bonas.Int(1, 9))
        )
    assert (
        MODEL.adapt(bonas.Space(kind=bonas.Choice("a", "b"), width=bonas.Int(1, 9)))
        is MODEL
    )


def test_an_unknown_inference_is_refused():
    with pytest.raises(ValueError, match="infer must be one of map, slice; got 'hmc'"):
        curves.gpar_surrogate(infer="hmc")


def test_an_odd_number_of_draws_is_refused():
    for draws in (1, 63):
        with pytest.raises(
            ValueError,
            match=f"draws must be an even number of at least 2, .*; got {draws}",
        ):
            curves.gpar_surrogate(draws=draws)


@pytest.mark.slow
def test_a_search_runs_with_this_surrogate():
    space = bonas.Space(x=bonas.Float(0.0, 1.0))
    search = bonas.bayes(space, surrogate=MODEL, initial=3)
    history = bonas.run(search, lambda key, u: (u[0] - 0.3) ** 2, KEY, 8)
    assert history.best[-1] < 1e-3
