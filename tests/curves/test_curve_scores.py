"""Scores of networks from drawn curves, against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas.curves.curve_scores import (
    ACQUISITIONS,
    LOG_ACQUISITIONS,
    checkpoint_score,
    final_score,
    rate_score,
)

STEPS = (10, 30, 90)
RNG = np.random.default_rng(0)


def test_the_score_per_step_prefers_nearly_complete_networks():
    """For two networks with equal draws, scores differ by the ratio of the steps left."""
    draws = jnp.broadcast_to(
        jax.random.normal(jax.random.key(0), (200, 1, 3)), (200, 2, 3)
    )
    score = rate_score(
        LOG_ACQUISITIONS["ei"],
        draws,
        jnp.asarray(0.0),
        jnp.array([0, 2]),
        jnp.asarray(STEPS),
    )
    np.testing.assert_allclose(score[1] - score[0], np.log(90.0 / 60.0), rtol=1e-12)


@pytest.mark.typed
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.999])
def test_the_score_of_a_checkpoint_follows_its_correlation_with_the_end(rho):
    """Compare with λ found by SciPy from draws; it is never less than without a stop."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    normal = np.random.default_rng(1).normal(size=(20_000, 2))
    early, final = (
        normal[:, 0],
        rho * normal[:, 0] + np.sqrt(1.0 - rho**2) * normal[:, 1],
    )
    draws = jnp.asarray(np.stack([early, final], axis=1)[:, None, :])
    best, steps = -0.5, np.array([10, 100])
    shown, left = (
        rho * np.random.default_rng(2).normal(size=200_000),
        np.sqrt(1.0 - rho**2),
    )
    z = (best - shown) / left
    gain = left * (norm.pdf(z) + z * norm.cdf(z))
    index = brentq(
        lambda rate: np.maximum(gain - rate * 90.0, 0.0).mean() - rate * 10.0, 1e-6, 1.0
    )
    index = max(index, gain.mean() / 100.0)
    score = jax.jit(checkpoint_score, static_argnums=0)(
        LOG_ACQUISITIONS["ei"],
        draws,
        jnp.asarray(best),
        jnp.array([0]),
        jnp.asarray(steps),
    )
    np.testing.assert_allclose(np.exp(score[0]), index, rtol=0.05)


@pytest.mark.typed
def test_acquisitions_use_the_moments_of_final_values():
    """In the units of the values, with κ = 1 for the confidence bound."""
    from scipy.stats import norm

    draws, best = RNG.normal(size=(50, 4, 3)), -0.3
    mean, std = draws[:, :, -1].mean(axis=0), draws[:, :, -1].std(axis=0)
    z = (best - mean) / std
    expected = {
        "ei": std * (norm.pdf(z) + z * norm.cdf(z)),
        "pi": norm.cdf(z),
        "ucb": std - mean,
    }
    assert set(expected) == set(ACQUISITIONS)
    for name, scores in expected.items():
        np.testing.assert_allclose(
            final_score(ACQUISITIONS[name], jnp.asarray(draws), jnp.asarray(best)),
            scores,
            rtol=1e-9,
        )
