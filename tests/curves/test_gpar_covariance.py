"""Covariances of the last output of a GPAR against draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.curves import gpar, last_covariance

RNG = np.random.default_rng(1)
X = RNG.uniform(size=(14, 2))
Y = np.stack(
    [np.sin(5.0 * X[:, 0]), np.cos(4.0 * X[:, 1]) + 0.5 * np.sin(5.0 * X[:, 0])], axis=1
) + 0.05 * RNG.normal(size=(14, 2))
Y[11:, 1] = np.nan
DATA = bonas.dataset(X, Y, 16)
KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def posterior():
    return gpar().condition(
        {
            "kernel": {
                "variance": jnp.array([1.0, 0.2]),
                "lengthscale": jnp.array([0.4, 0.6]),
                "slope": jnp.full((2, 2), 0.9),
            },
            "noise": jnp.array([0.05, 0.01]),
        },
        DATA,
    )


@pytest.mark.slow
def test_covariances_match_draws(posterior):
    """Five standard errors of 4000 draws, and of 2000 draws of the first layer."""
    at = RNG.uniform(size=(5, 2))
    found = np.asarray(
        last_covariance(
            gpar(), posterior, jnp.asarray(at[:3]), jnp.asarray(at[3:]), draws=2000
        )
    )
    drawn = np.asarray(gpar().sample(KEY, posterior, at, 4000))[:, :, 1]
    expected, std = np.cov(drawn.T)[:3, 3:], drawn.std(axis=0)
    error = (
        np.sqrt(2.0)
        * (1 / np.sqrt(4000) + 1 / np.sqrt(2000))
        * std[:3, None]
        * std[None, 3:]
    )
    assert (np.abs(found - expected) < 5.0 * error).all()
    assert np.abs(found).max() > 5.0 * error.max()  # some covariance is significant


@pytest.mark.slow
@pytest.mark.parametrize("draws", [64, 20])
def test_equal_points_are_one_network(posterior, draws):
    at = jnp.asarray(RNG.uniform(size=(3, 2)))
    model = gpar()
    found = last_covariance(model, posterior, at, at[::-1], draws=draws)
    np.testing.assert_allclose(
        np.diagonal(found[:, ::-1]),
        model.predict(posterior, at, draws=draws).std[:, 1] ** 2,
        rtol=1e-6,
    )
    np.testing.assert_allclose(found[:, ::-1], found[:, ::-1].T, rtol=1e-9)
    assert np.linalg.eigvalsh(found[:, ::-1]).min() > 0.0
