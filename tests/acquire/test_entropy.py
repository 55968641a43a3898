import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from bonas.acquire import max_value_entropy
from bonas.acquire.entropy import draw_minima, information
from bonas.gp import Prediction


@pytest.mark.typed
def test_information_is_the_entropy_that_truncation_removes():
    mean, std = np.array([[0.3, -1.0, 4.0]]), np.array([[1.0, 0.5, 2.0]])
    for least in (-2.0, -0.5, 0.2):
        truncated = [
            scipy.stats.truncnorm((least - m) / s, 50.0, m, s).entropy()
            for m, s in zip(mean[0], std[0], strict=True)
        ]
        found = information(
            Prediction(jnp.asarray(mean), jnp.asarray(std)), jnp.full((1, 1), least)
        )
        np.testing.assert_allclose(
            found, scipy.stats.norm(mean[0], std[0]).entropy() - truncated, rtol=1e-9
        )


def test_information_and_its_gradient_are_finite_far_below_the_minimum():
    def score(mean):
        return information(Prediction(mean, jnp.ones((1, 2))), jnp.zeros((1, 3))).sum()

    value, slope = jax.value_and_grad(score)(jnp.array([[-30.0, 30.0]]))
    assert jnp.isfinite(value)
    assert jnp.isfinite(slope).all()


@pytest.mark.typed
def test_draws_of_the_minimum_have_the_quartiles_of_independent_candidates():
    """Compare quantiles of 40,000 draws; the tolerance is five standard errors."""
    random = np.random.default_rng(0)
    mean, std = random.normal(size=(2, 50)), random.uniform(0.2, 1.0, (2, 50))
    draws = np.asarray(
        draw_minima(
            jax.random.key(0), Prediction(jnp.asarray(mean), jnp.asarray(std)), 40_000
        )
    )
    for row in range(2):
        for share in (0.25, 0.5, 0.75):
            t = np.quantile(draws[row], share)
            survival = np.prod(scipy.stats.norm.cdf((mean[row] - t) / std[row]))
            error = np.sqrt(share * (1 - share) / 40_000)
            # the fit meets the outer quartiles' distance and the median; the outer quartiles
            # themselves to a hundredth
            assert abs((1 - survival) - share) < 5 * error + (
                0.0 if share == 0.5 else 0.01
            )


@pytest.mark.slow
def test_no_minimum_is_drawn_above_the_incumbent(make_context, points):
    """Draws are cut off at the incumbent, so scores are finite and positive."""
    context = make_context()
    function, _ = max_value_entropy(4).score(jax.random.key(0), context, ())
    assert jnp.isfinite(function(points)).all()
    assert (function(points) > 0.0).all()
