"""Layer by layer against the joint fit, and covariances of the last output against draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, infer

RNG = np.random.default_rng(1)
X = RNG.uniform(size=(14, 2))
Y = np.stack([np.sin(5.0 * X[:, 0]), np.cos(4.0 * X[:, 1]) + 0.5 * np.sin(5.0 * X[:, 0])], axis=1) + 0.05 * RNG.normal(
    size=(14, 2)
)
Y[11:, 1] = np.nan
DATA = bonas.dataset(X, Y, 16)
KEY = jax.random.key(0)


def joint(model, data):
    @jax.jit
    def fit(data):
        target = model.hyperposterior(data)
        z, _ = infer.maximise(KEY, target.maximising, target.start, steps=150)
        return target.constrain(jax.tree.map(lambda leaf: leaf[0], z))

    return fit(data)


def layered(model, data):
    return jax.jit(lambda data: gp.fit_layers(KEY, model, data, steps=150))(data)


def log_posterior(model, params):
    target = model.hyperposterior(DATA)
    return float(target.maximising(target.unconstrain(params)))


@pytest.mark.slow
def test_without_ties_a_joint_fit_is_a_fit_of_each_layer():
    model = gp.gpar(tied=False)
    one, other = joint(model, DATA), layered(model, DATA)
    np.testing.assert_allclose(log_posterior(model, one), log_posterior(model, other), atol=1e-4)
    np.testing.assert_allclose(one["kernel"]["lengthscale"], other["kernel"]["lengthscale"], rtol=0.02)


@pytest.mark.slow
def test_scales_that_are_tied_are_those_of_the_first_layer():
    model = gp.gpar(tied=True)
    found, first = layered(model, DATA), joint(model, bonas.dataset(X, Y[:, :1], 16))
    np.testing.assert_allclose(found["kernel"]["lengthscale"], first["kernel"]["lengthscale"], rtol=1e-3)
    np.testing.assert_allclose(found["kernel"]["variance"][0], first["kernel"]["variance"][0], rtol=1e-3)
    assert log_posterior(model, found) < log_posterior(model, joint(model, DATA)) - 1e-3


@pytest.mark.slow
def test_what_was_found_of_a_layer_is_kept():
    """With replaced data the second layer's evidence depends on the first's parameters, which stay those of the first."""
    model = gp.gpar(tied=False, replace=True)
    found, first = layered(model, DATA), joint(model, bonas.dataset(X, Y[:, :1], 16))
    for name in ("lengthscale", "variance"):
        np.testing.assert_allclose(found["kernel"][name][0], first["kernel"][name][0], rtol=1e-3)


@pytest.mark.slow
def test_a_predictive_density_is_a_mean_over_samples():
    model, x, y = gp.gpar(), jnp.asarray(X[:3]), jnp.asarray(Y[:3] + 0.1)
    several = [layered(model, DATA), joint(model, DATA)]
    alone = [model.log_density(model.condition(params, DATA), x, y).sum(axis=1) for params in several]
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)
    found = gp.log_predictive(model, both, DATA, x, y)
    np.testing.assert_allclose(found, np.log(0.5 * np.exp(alone[0]) + 0.5 * np.exp(alone[1])), rtol=1e-9)


# Covariances


@pytest.fixture(scope="module")
def curves():
    return gp.gpar().condition(
        {
            "kernel": {"variance": jnp.array([1.0, 0.2]), "lengthscale": jnp.array([0.4, 0.6]), "slope": jnp.full((2, 2), 0.9)},
            "noise": jnp.array([0.05, 0.01]),
        },
        DATA,
    )


@pytest.mark.slow
def test_covariances_are_those_of_draws(curves):
    """4000 draws, and 2000 of the first layer inside: five standard errors of both, for correlations up to 1."""
    at = RNG.uniform(size=(5, 2))
    found = np.asarray(gp.last_covariance(gp.gpar(), curves, jnp.asarray(at[:3]), jnp.asarray(at[3:]), draws=2000))
    drawn = np.asarray(gp.gpar().sample(KEY, curves, at, 4000))[:, :, 1]
    expected, std = np.cov(drawn.T)[:3, 3:], drawn.std(axis=0)
    error = np.sqrt(2.0) * (1 / np.sqrt(4000) + 1 / np.sqrt(2000)) * std[:3, None] * std[None, 3:]
    assert (np.abs(found - expected) < 5.0 * error).all()
    assert np.abs(found).max() > 5.0 * error.max()  # there is something to find


@pytest.mark.slow
@pytest.mark.parametrize("draws", [64, 20])
def test_points_that_are_equal_are_one_network(curves, draws):
    at = jnp.asarray(RNG.uniform(size=(3, 2)))
    model = gp.gpar()
    found = gp.last_covariance(model, curves, at, at[::-1], draws=draws)
    np.testing.assert_allclose(np.diagonal(found[:, ::-1]), model.predict(curves, at, draws=draws).std[:, 1] ** 2, rtol=1e-6)
    np.testing.assert_allclose(found[:, ::-1], found[:, ::-1].T, rtol=1e-9)
    assert np.linalg.eigvalsh(found[:, ::-1]).min() > 0.0
