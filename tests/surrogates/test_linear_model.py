"""Bayesian linear regression as a surrogate, against its closed form in the space of weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from surrogates.quarter import DATA, POINTS

import bonas
from bonas import surrogates

PHI = {
    "linear": lambda x: np.concatenate([np.ones((len(x), 1)), x], axis=1),
    "quadratic": lambda x: np.concatenate([np.ones((len(x), 1)), x, x**2], axis=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("features", PHI)
def test_it_is_the_regression_on_the_weights(features):
    """Twist, after eq. 25: w is normal with precision I / variance + ΦᵀΦ / noise."""
    model = surrogates.linear(features)
    state, _ = jax.jit(model.fit)(jax.random.key(0), DATA, model.init(12, 2, 1))
    variance, noise = (
        float(jnp.exp(z[0])) for z in (state.z["kernel"]["variance"], state.z["noise"])
    )
    rows, at = PHI[features](np.asarray(DATA.x[:8])), PHI[features](np.asarray(POINTS))
    cov = np.linalg.inv(np.eye(rows.shape[1]) / variance + rows.T @ rows / noise)
    found = model.predict(state, POINTS)
    np.testing.assert_allclose(
        found.mean[0],
        at @ cov @ rows.T @ np.asarray(DATA.y[:8, 0]) / noise,
        rtol=1e-6,
        atol=1e-9,
    )
    np.testing.assert_allclose(
        found.std[0], np.sqrt(np.einsum("mi,ij,mj->m", at, cov, at)), rtol=1e-6
    )


def test_features_may_be_a_function():
    def waves(x):
        return jnp.sin(6.0 * x)

    model = surrogates.linear(waves)
    state, _ = model.fit(jax.random.key(0), DATA, model.init(12, 2, 1))
    np.testing.assert_allclose(
        model.predict(state, jnp.zeros((1, 2))).mean, 0.0, atol=1e-12
    )


def test_unknown_features_are_refused():
    with pytest.raises(
        ValueError,
        match="one of linear, quadratic, or a function of a point; got 'cubic'",
    ):
        surrogates.linear("cubic")


def test_options_have_no_order():
    """Three options, the middle one high: a line through their positions could not say so."""
    space = bonas.Space(kind=bonas.Choice("a", "b", "c"))
    model = surrogates.linear().adapt(space)
    x = np.array([[0.0], [0.5], [1.0]] * 3)
    state, _ = model.fit(
        jax.random.key(0), bonas.dataset(x, [-0.7, 1.4, -0.7] * 3), model.init(9, 1, 1)
    )
    a, b, c = model.predict(state, jnp.asarray(x[:3])).mean[0]
    assert b > max(a, c) + 1.0
