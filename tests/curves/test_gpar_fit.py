"""Fits of a GPAR layer by layer against joint fits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import infer
from bonas.curves import fit_layers, gpar, log_predictive

RNG = np.random.default_rng(1)
X = RNG.uniform(size=(14, 2))
Y = np.stack(
    [np.sin(5.0 * X[:, 0]), np.cos(4.0 * X[:, 1]) + 0.5 * np.sin(5.0 * X[:, 0])], axis=1
) + 0.05 * RNG.normal(size=(14, 2))
Y[11:, 1] = np.nan
DATA = bonas.dataset(X, Y, 16)
KEY = jax.random.key(0)


def joint(model, data):
    @jax.jit
    def fit(data):
        target = model.hyperposterior(data)
        z, _ = infer.maximize(KEY, target.maximizing, target.start, steps=150)
        return target.constrain(jax.tree.map(lambda leaf: leaf[0], z))

    return fit(data)


def layered(model, data):
    return jax.jit(lambda data: fit_layers(KEY, model, data, steps=150))(data)


def log_posterior(model, params):
    target = model.hyperposterior(DATA)
    return float(target.maximizing(target.unconstrain(params)))


@pytest.mark.slow
def test_without_tied_scales_layerwise_and_joint_fits_agree():
    model = gpar(tied=False)
    one, other = joint(model, DATA), layered(model, DATA)
    np.testing.assert_allclose(
        log_posterior(model, one), log_posterior(model, other), atol=1e-4
    )
    np.testing.assert_allclose(
        one["kernel"]["lengthscale"], other["kernel"]["lengthscale"], rtol=0.02
    )


@pytest.mark.slow
def test_tied_scales_are_fitted_by_the_first_layer():
    model = gpar(tied=True)
    found, first = layered(model, DATA), joint(model, bonas.dataset(X, Y[:, :1], 16))
    np.testing.assert_allclose(
        found["kernel"]["lengthscale"], first["kernel"]["lengthscale"], rtol=1e-3
    )
    np.testing.assert_allclose(
        found["kernel"]["variance"][0], first["kernel"]["variance"][0], rtol=1e-3
    )
    assert log_posterior(model, found) < log_posterior(model, joint(model, DATA)) - 1e-3


@pytest.mark.slow
def test_later_layers_do_not_change_earlier_parameters():
    """With replaced data the evidence of the second layer depends on the first layer."""
    model = gpar(tied=False, replace=True)
    found, first = layered(model, DATA), joint(model, bonas.dataset(X, Y[:, :1], 16))
    for name in ("lengthscale", "variance"):
        np.testing.assert_allclose(
            found["kernel"][name][0], first["kernel"][name][0], rtol=1e-3
        )


@pytest.mark.slow
def test_the_predictive_density_is_a_mean_over_samples():
    model, x, y = gpar(), jnp.asarray(X[:3]), jnp.asarray(Y[:3] + 0.1)
    several = [layered(model, DATA), joint(model, DATA)]
    each = [
        model.log_density(model.condition(params, DATA), x, y).sum(axis=1)
        for params in several
    ]
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)
    found = log_predictive(model, both, DATA, x, y)
    np.testing.assert_allclose(
        found, np.log(0.5 * np.exp(each[0]) + 0.5 * np.exp(each[1])), rtol=1e-9
    )
