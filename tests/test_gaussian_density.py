import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from bonas import gaussian_density


def random_covariance(seed, n):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return jnp.asarray(root @ root.T / n + 0.1 * np.eye(n))


EVERY = jnp.ones(7, bool)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 5, 64, 65, 100, 203])
def test_inverse_by_halves_is_the_inverse(n):
    cov = random_covariance(3, n)
    inverse = gaussian_density.inverse_of(jnp.linalg.cholesky(cov))
    np.testing.assert_allclose(inverse @ cov, np.eye(n), atol=1e-11)


def test_log_gaussian_is_scipys():
    cov, residual = random_covariance(4, 7), jnp.linspace(-1.0, 1.0, 7)
    expected = scipy.stats.multivariate_normal(np.zeros(7), np.asarray(cov)).logpdf(
        residual
    )
    np.testing.assert_allclose(
        gaussian_density.log_gaussian(cov, residual, EVERY), expected, rtol=1e-12
    )


@pytest.mark.slow
def test_log_gaussian_derivatives_are_those_of_the_plain_formula():
    def plain(cov, residual):
        lower = jnp.linalg.cholesky(cov)
        white = jax.scipy.linalg.solve_triangular(lower, residual, lower=True)
        return (
            -0.5 * white @ white
            - jnp.log(jnp.diagonal(lower)).sum()
            - 3.5 * jnp.log(2 * jnp.pi)
        )

    def ours(cov, residual):
        return gaussian_density.log_gaussian(cov, residual, EVERY)

    # second derivatives too, along a curve of symmetric matrices
    def along(function, t):
        return function(
            random_covariance(5, 7) + t * random_covariance(6, 7),
            jnp.cos(jnp.arange(7.0)) + t,
        )

    for derivative in (jax.grad, lambda f: jax.grad(jax.grad(f)), jax.jacfwd):
        expected = derivative(lambda t: along(plain, t))(0.3)
        np.testing.assert_allclose(
            derivative(lambda t: along(ours, t))(0.3), expected, rtol=1e-9
        )
