"""Regression through inducing points, compared with exact regression and dense formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp

N, M, D = 40, 15, 2
NOISE = 0.02
RNG = np.random.default_rng(0)
X = RNG.random((N, D))
Y = np.sin(4.0 * X.sum(axis=1)) + 0.1 * RNG.standard_normal(N)
DATA = bonas.dataset(X, Y, capacity=50)
POINTS = jnp.asarray(RNG.random((7, D)))
KERNEL = gp.matern52()
PARAMS = {"variance": jnp.asarray(1.3), "lengthscale": jnp.array([0.5, 0.8])}
ROWS = jnp.asarray(np.sort(RNG.permutation(N)[:M]))
KEY = jax.random.key(0)


def large(data=DATA, rows=ROWS, **settings):
    return gp.condition_large(
        KERNEL, PARAMS, data, rows, **({"noise": NOISE} | settings)
    )


def covariances(a, b):
    return np.asarray(gp.gram(KERNEL, PARAMS, jnp.asarray(a), jnp.asarray(b)))


def dense(noise=NOISE):
    """Return mean, covariance at POINTS and log evidence by matrices of all rows."""
    z = X[np.asarray(ROWS)]
    inverse = np.linalg.inv(covariances(z, z))
    through = covariances(X, z) @ inverse @ covariances(z, X)
    cov = through + np.diag(np.diag(covariances(X, X) - through) + noise)
    cross = covariances(POINTS, z) @ inverse @ covariances(z, X)
    mean = cross @ np.linalg.solve(cov, Y)
    rest = covariances(POINTS, POINTS) - cross @ np.linalg.solve(cov, cross.T)
    _, log_det = np.linalg.slogdet(2.0 * np.pi * cov)
    return mean, rest, -0.5 * (Y @ np.linalg.solve(cov, Y) + log_det)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [NOISE, np.linspace(0.01, 0.3, 50)])
def test_it_agrees_with_dense_matrices(noise):
    mean, cov, evidence = dense(np.broadcast_to(noise, 50)[:N])
    posterior = large(noise=jnp.asarray(noise))
    found = gp.predict_large(posterior, POINTS)
    # the inducing values have a share of 1e-5 of the noise
    np.testing.assert_allclose(found.mean, mean, atol=1e-4)
    np.testing.assert_allclose(found.std, np.sqrt(np.diag(cov)), atol=1e-4)
    np.testing.assert_allclose(
        gp.covariance_large(posterior, POINTS, POINTS[:3]), cov[:, :3], atol=1e-4
    )
    np.testing.assert_allclose(posterior.log_evidence, evidence, atol=1e-2)
    assert posterior.jitter == 0.0


def test_with_all_rows_it_agrees_with_exact_regression():
    posterior = large(rows=jnp.arange(50))
    exact = gp.condition(KERNEL, PARAMS, DATA, noise=NOISE)
    for found, expected in zip(
        gp.predict_large(posterior, POINTS), gp.predict(exact, POINTS), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(
        posterior.log_evidence,
        gp.log_evidence(KERNEL, PARAMS, DATA, noise=NOISE),
        atol=1e-3,
    )


def test_an_exact_posterior_gives_the_same_numbers():
    exact = gp.condition(KERNEL, PARAMS, DATA, noise=NOISE)
    posterior = gp.as_large(exact)
    assert posterior.is_exact
    np.testing.assert_array_equal(
        gp.predict_large(posterior, POINTS), gp.predict(exact, POINTS)
    )
    np.testing.assert_array_equal(
        gp.covariance_large(posterior, POINTS, POINTS),
        gp.covariance(exact, POINTS, POINTS),
    )
    np.testing.assert_array_equal(
        gp.sample_large(KEY, posterior, POINTS, 3), gp.sample(KEY, exact, POINTS, 3)
    )


@pytest.mark.parametrize("rubbish", [np.nan, 1e6])
def test_masked_rows_and_padding_change_nothing(rubbish):
    unused = jnp.arange(50)[:, None] >= N
    dirty = DATA._replace(
        x=jnp.where(unused, rubbish, DATA.x), y=jnp.where(unused, rubbish, DATA.y)
    )
    more = jnp.concatenate([ROWS, jnp.array([N, N + 3])])  # masked inducing rows
    expected = gp.predict_large(large(), POINTS)
    for posterior in (large(dirty), large(bonas.dataset(X, Y)), large(dirty, more)):
        found = gp.predict_large(posterior, POINTS)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            posterior.log_evidence, large().log_evidence, rtol=1e-12
        )


@pytest.mark.slow
def test_rows_in_several_blocks_are_all_used():
    """2,000 rows with much noise at 5 places determine the mean like 5 rows with little."""
    places = RNG.random((5, D))
    x, y = np.tile(places, (500, 1)), np.tile(np.arange(5.0), 500)
    many = bonas.dataset(x, y, capacity=2600)
    few = gp.condition(KERNEL, PARAMS, bonas.dataset(places, y[:5]), noise=1.0 / 500)
    found = gp.predict_large(large(many, jnp.arange(5), noise=1.0), POINTS)
    np.testing.assert_allclose(found, gp.predict(few, POINTS), atol=1e-3)


@pytest.mark.slow
def test_it_can_be_jitted_and_vectorized():
    def mean(variance, data):
        params = {**PARAMS, "variance": variance}
        posterior = gp.condition_large(KERNEL, params, data, ROWS, noise=NOISE)
        return gp.predict_large(posterior, POINTS).mean

    variances = jnp.array([0.5, 1.3])
    found = jax.jit(jax.vmap(mean, (0, None)))(variances, DATA)
    for one, variance in zip(found, variances, strict=True):
        np.testing.assert_allclose(one, mean(variance, DATA), rtol=1e-10)


def test_gradients_are_finite_at_the_data():
    posterior = large(noise=1e-8)
    slope = jax.grad(lambda x: sum(f.sum() for f in gp.predict_large(posterior, x)))
    assert jnp.isfinite(slope(DATA.x[:N])).all()


def test_draws_have_the_moments_of_the_prediction():
    """4000 draws; tolerance: five standard errors."""
    posterior = large()
    draws = np.asarray(gp.sample_large(KEY, posterior, POINTS, 4000))
    mean, std = (np.asarray(field) for field in gp.predict_large(posterior, POINTS))
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * std / np.sqrt(4000)).all()
    cov = np.asarray(gp.covariance_large(posterior, POINTS, POINTS))
    bound = 5 * 2 * std[:, None] * std[None, :] / np.sqrt(4000)
    assert (np.abs(np.cov(draws.T) - cov) < bound).all()


def test_too_many_inducing_rows_are_an_error():
    with pytest.raises(ValueError, match="between 1 and 50 inducing rows"):
        large(rows=jnp.arange(51))
