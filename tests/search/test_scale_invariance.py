"""A search proposes the same points for s f(x) as for f(x), for huge and for tiny s."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.data import standardize
from bonas.extreme_values import range_factor
from bonas.search import invert_scale, posterior, random
from bonas.search.output_scales import tails

KEY = jax.random.key(0)
SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
VALUES = np.array([3.0, -1.0, 0.5, 60.0, 2.0, 900.0, 7.0])
# Powers of two up to 1e300 in float64 and 1e30 in float32, and powers of ten.
POWERS = {64: (-1015, -996, -330, 330, 996, 1010), 32: (-118, -100, -50, 50, 100, 116)}
TENS = {64: (1e-300, 1e-155, 1e155, 1e300), 32: (1e-30, 1e-19, 1e19, 1e30)}
PRECISIONS = pytest.mark.parametrize("bits", [64, 32])


def data(values):
    x = np.random.default_rng(0).random((len(values), 2))
    return bonas.dataset(jnp.asarray(x), jnp.asarray(values), capacity=9)


@PRECISIONS
def test_standardized_values_do_not_depend_on_the_unit(bits):
    with jax.enable_x64(bits == 64):
        expected, mean, std = standardize(data(VALUES))
        for power in POWERS[bits]:
            scaled, center, spread = standardize(data(VALUES * 2.0**power))
            np.testing.assert_array_equal(scaled.y, expected.y)
            assert center == mean * 2.0**power
            assert spread == std * 2.0**power
        for unit in TENS[bits]:
            scaled, center, spread = standardize(data(VALUES * unit))
            np.testing.assert_allclose(scaled.y, expected.y, atol=1e-5)
            np.testing.assert_allclose(
                (center, spread), (mean * unit, std * unit), rtol=1e-5
            )


@PRECISIONS
def test_the_largest_numbers_have_a_finite_mean_and_scale(bits):
    with jax.enable_x64(bits == 64):
        info = jnp.finfo(jnp.result_type(float))
        for end in (info.max, info.tiny):
            values = np.array([-end, end, end, 0.0], info.dtype)
            scaled, mean, std = standardize(data(values))
            np.testing.assert_allclose(scaled.y[:4, 0].std(), 1.0, rtol=1e-5)
            assert jnp.isfinite(mean)
            assert 0.0 < std < jnp.inf
        assert standardize(data(np.full(3, info.max)))[2] == 1.0


def test_ordinary_values_are_not_multiplied():
    for unit in (1e-90, 1e-9, 1.0, 1e9, 1e90):
        ordinary = data(VALUES * unit)
        assert range_factor(ordinary.y, ordinary.mask) == 1.0


@PRECISIONS
def test_tails_and_their_inverse_do_not_depend_on_the_unit(bits):
    with jax.enable_x64(bits == 64):
        expected, slope = tails(data(VALUES))
        for power in POWERS[bits]:
            unit = 2.0**power
            raw = data(VALUES * unit)
            warped, log_slope = tails(raw)
            np.testing.assert_array_equal(warped.y, expected.y * unit)
            assert log_slope == slope
            back = invert_scale(tails, raw)(warped.y)
            np.testing.assert_allclose(back / unit, raw.y / unit, rtol=1e-5)


def test_tails_compress_differences_beyond_the_largest_number():
    largest = float(jnp.finfo(float).max)
    warped, slope = tails(data(largest * np.array([-1.0, -0.9, 1.0])))
    assert jnp.isfinite(warped.y).all()
    assert jnp.isfinite(slope)


@pytest.mark.slow
@PRECISIONS
def test_a_search_does_not_depend_on_the_unit(bits):
    """Exactly for powers of two; other factors round the values."""

    def objective(u):
        return (u[0] - 0.3) ** 2 + 0.5 * jnp.sin(4.0 * u[1]) + 0.1

    with jax.enable_x64(bits == 64):
        search = bonas.bayes(SPACE, surrogate=surrogates.gp(gp.se(), steps=3))
        run = jax.jit(
            lambda unit, key: bonas.run(
                search, lambda _, u: unit * objective(u), key, 10
            )
        )
        key = jax.random.key(0)
        expected = run(jnp.ones(()), key)
        for unit in [2.0**power for power in POWERS[bits]] + list(TENS[bits]):
            history = run(jnp.asarray(unit, float), key)
            is_exact = unit not in TENS[bits]
            tolerance = 0.0 if is_exact else 1e-6 if bits == 64 else 0.1
            np.testing.assert_allclose(history.x, expected.x, atol=tolerance, rtol=0.0)
            assert not history.info.flat.any()
            assert not history.info.fallback.any()


@pytest.mark.slow
def test_a_posterior_does_not_depend_on_the_unit():
    history = bonas.run(random(SPACE), lambda _, u: jnp.exp(3 * u[0]), KEY, 8)
    search = bonas.bayes(SPACE, surrogate=surrogates.gp(gp.se(), noise=1e-6))
    x = SPACE.sample(jax.random.key(1), 5)
    mean, std = posterior(search, history).predict(x)
    unit = 2.0**1000
    state = history.state
    observations = state.observations
    scaled = observations.data._replace(y=unit * observations.data.y)
    huge = state._replace(observations=observations._replace(data=scaled))
    found = posterior(search, huge).predict(x)
    np.testing.assert_allclose(found.mean / unit, mean, rtol=1e-6)
    np.testing.assert_allclose(found.std / unit, std, rtol=1e-6)
