"""The linear kernel on a sphere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import draw

import bonas
from bonas import gp

D = 6
X = jax.random.uniform(jax.random.key(0), (30, D))
KERNEL = gp.spherical_linear()
EQUAL = {"variance": 2.0, "level": 0.25, "reach": 1.0, "lengthscale": jnp.full(D, 0.7)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_gram_is_made_of_values_and_positive_semidefinite(seed):
    params = draw(KERNEL.prior(D), jax.random.key(seed))
    matrix = np.asarray(gp.gram(KERNEL, params, X, X))
    np.testing.assert_allclose(
        matrix[2, 5], KERNEL.value(params, X[2], X[5]), rtol=1e-10
    )
    assert np.linalg.eigvalsh(matrix).min() > -1e-12 * matrix.max()
    np.testing.assert_allclose(
        np.diag(matrix), np.full(30, params["variance"]), rtol=1e-10
    )  # points of a sphere


def test_the_center_is_the_pole_and_corners_are_the_equator():
    """At reach 1 opposite corners are opposite on the equator, and the center is the pole."""
    center, corner = jnp.full(D, 0.5), jnp.array([0.0, 1.0, 0.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(
        KERNEL.value(EQUAL, corner, 1.0 - corner), 2.0 * (0.25 - 0.75), atol=1e-12
    )
    np.testing.assert_allclose(
        KERNEL.value(EQUAL, corner, center), 2.0 * 0.25, atol=1e-12
    )


def test_a_common_factor_of_the_length_scales_has_no_effect():
    longer = {**EQUAL, "lengthscale": 3.0 * EQUAL["lengthscale"]}
    np.testing.assert_allclose(
        gp.gram(KERNEL, EQUAL, X, X), gp.gram(KERNEL, longer, X, X), rtol=1e-12
    )


@pytest.mark.slow
def test_a_minimum_inside_is_found_where_a_linear_function_has_none():
    """For a bowl around the center the mean is lowest there; a linear one is lowest in a corner."""
    data = bonas.dataset(X, jnp.sum((X - 0.5) ** 2, axis=1))
    line = {"bias": 1.0, "slope": jnp.ones(D), "center": jnp.full(D, 0.5)}
    # the center and corners
    points = jnp.concatenate([jnp.full((1, D), 0.5), jnp.round(X)])
    round_mean = gp.predict(gp.condition(KERNEL, EQUAL, data, noise=1e-4), points).mean
    flat_mean = gp.predict(
        gp.condition(gp.linear(), line, data, noise=1e-4), points
    ).mean
    assert jnp.argmin(round_mean) == 0
    assert jnp.argmin(flat_mean) != 0


@pytest.mark.slow
def test_gradients_are_finite_also_at_the_pole():
    rows = jnp.concatenate([jnp.full((2, D), 0.5), X[:3]])
    params = draw(KERNEL.prior(D), jax.random.key(7))
    slopes = jax.grad(lambda params, x: gp.gram(KERNEL, params, x, x).sum(), (0, 1))(
        params, rows
    )
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))
