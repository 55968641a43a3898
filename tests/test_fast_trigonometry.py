"""Sine and cosine as polynomials, against NumPy's."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads

from bonas.fast_trigonometry import sine_and_cosine


def test_values_equal_numpys():
    """Doubling an angle twice loses up to 8 units of rounding, and 4 between −π and π."""
    for most, units in ((np.pi, 4), (2 * np.pi, 8)):
        angle = np.linspace(-most, most, 20_001)
        sine, cosine = sine_and_cosine(jnp.asarray(angle))
        np.testing.assert_allclose(
            sine, np.sin(angle), rtol=0, atol=units * np.finfo(float).eps
        )
        np.testing.assert_allclose(
            cosine, np.cos(angle), rtol=0, atol=units * np.finfo(float).eps
        )


def test_derivatives_are_cosine_and_minus_sine():
    angle = jnp.linspace(-3.0, 3.0, 101)
    _, (sine, cosine) = jax.jvp(sine_and_cosine, (angle,), (jnp.full(101, 2.0),))
    np.testing.assert_allclose(sine, 2 * np.cos(angle), atol=1e-14)
    np.testing.assert_allclose(cosine, -2 * np.sin(angle), atol=1e-14)
    check_grads(sine_and_cosine, (angle,), order=2)
