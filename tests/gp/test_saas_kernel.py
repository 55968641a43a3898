"""The kernel under whose prior few columns matter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import gp

X = jax.random.uniform(jax.random.key(0), (8, 4))
PARAMS = {"variance": 1.3, "tau": 0.2, "local": jnp.array([3.0, 1e-6, 40.0, 0.5])}


def test_it_is_a_matern_kernel_of_inverse_squared_length_scales():
    plain = {"variance": 1.3, "lengthscale": 1.0 / jnp.sqrt(0.2 * PARAMS["local"])}
    np.testing.assert_allclose(
        gp.gram(gp.saas(), PARAMS, X, X),
        gp.gram(gp.matern52(), plain, X, X),
        rtol=1e-11,
    )
    np.testing.assert_allclose(
        gp.inverse_squared_lengthscales(PARAMS),
        plain["lengthscale"] ** -2.0,
        rtol=1e-12,
    )


def test_its_scales_are_half_cauchy():
    """2 scale / (π (scale² + v²)): 0.1 for all columns together, 1 for each."""
    prior, v = gp.saas().prior(3), jnp.array([0.05, 1.0, 30.0])
    np.testing.assert_allclose(
        prior["tau"].log_prob(v), np.log(0.2 / (np.pi * (0.01 + v**2))), rtol=1e-9
    )
    np.testing.assert_allclose(
        prior["local"].log_prob(v), np.log(2.0 / (np.pi * (1.0 + v**2))), rtol=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("tau", [1e-300, 1e-8, 1.0, 1e8])
def test_gradients_are_finite_for_every_scale(tau):
    def total(log_tau, x):
        return gp.gram(gp.saas(), {**PARAMS, "tau": jnp.exp(log_tau)}, x, x).sum()

    slopes = jax.grad(total, (0, 1))(jnp.log(tau), jnp.concatenate([X, X]))
    assert all(jnp.isfinite(leaf).all() for leaf in slopes)


def test_alpha_is_positive():
    with pytest.raises(ValueError, match="alpha must be positive"):
        gp.saas(0.0)
