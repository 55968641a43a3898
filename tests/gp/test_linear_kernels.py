import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp

X = np.random.default_rng(0).uniform(-1, 1, (8, 2))
Y = 1.0 - X[:, 0] + 2 * X[:, 1] ** 2
NEW = np.array([[0.3, -0.2], [0.9, 0.9]])


def features(function, x):
    return np.stack([np.asarray(function(jnp.asarray(row))) for row in x])


@pytest.mark.parametrize(
    "function", [gp.linear_features, gp.affine_features, gp.quadratic_features]
)
def test_function_space_equals_weight_space(function):
    """Twist, eq. 25: weights N(A⁻¹Φᵀy/σ², A⁻¹), A = ΦᵀΦ/σ² + I/α², predict the same."""
    alpha, sigma = 0.8, 0.25
    phi, new = features(function, X), features(function, NEW)
    precision = phi.T @ phi / sigma**2 + np.eye(phi.shape[1]) / alpha**2
    weights = np.linalg.solve(precision, phi.T @ Y) / sigma**2
    posterior = gp.condition(
        gp.basis(function),
        {"variance": alpha**2},
        bonas.dataset(X, Y, capacity=10),
        noise=sigma**2,
    )
    mean, cov = gp.joint(posterior, jnp.asarray(NEW))
    np.testing.assert_allclose(mean, new @ weights, rtol=1e-10)
    np.testing.assert_allclose(
        cov, new @ np.linalg.solve(precision, new.T), rtol=1e-9, atol=1e-12
    )


def test_twists_printed_posterior_without_the_basis_is_wrong():
    """After eq. 25 the middle matrix prints X Xᵀ where φ(X) φ(X)ᵀ is needed."""
    phi, new = features(gp.quadratic_features, X), features(gp.quadratic_features, NEW)
    right = new @ phi.T @ np.linalg.solve(phi @ phi.T + 0.25**2 * np.eye(8), Y)
    printed = new @ phi.T @ np.linalg.solve(X @ X.T + 0.25**2 * np.eye(8), Y)
    posterior = gp.condition(
        gp.basis(gp.quadratic_features),
        {"variance": 1.0},
        bonas.dataset(X, Y),
        noise=0.25**2,
    )
    np.testing.assert_allclose(
        gp.predict(posterior, jnp.asarray(NEW)).mean, right, rtol=1e-9
    )
    assert np.abs(printed - right).max() > 0.1


@pytest.mark.typed
def test_quadratic_basis_has_2d_plus_1_functions():
    np.testing.assert_array_equal(
        gp.quadratic_features(jnp.array([2.0, 3.0])), [1.0, 2.0, 3.0, 4.0, 9.0]
    )


@pytest.mark.typed
def test_an_appropriate_basis_recovers_a_quadratic():
    x = np.linspace(-1, 1, 30)[:, None]
    y = 0.5 - x[:, 0] + 1.5 * x[:, 0] ** 2
    posterior = gp.condition(
        gp.basis(gp.quadratic_features),
        {"variance": 10.0},
        bonas.dataset(x, y),
        noise=1e-6,
    )
    np.testing.assert_allclose(
        gp.predict(posterior, jnp.array([[0.33]])).mean[0],
        0.5 - 0.33 + 1.5 * 0.33**2,
        atol=1e-4,
    )
