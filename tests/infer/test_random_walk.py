"""Metropolis and Metropolis-Hastings: detailed balance, the correction of skewed proposals,
acceptance in closed form.

Statistical checks have a tolerance of five Monte-Carlo standard errors, from effective sample
sizes: one fails for about one seed in a million; the seeds are fixed.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from bonas import infer

SAMPLES = 20_000
WEIGHTS = np.array([0.1, 0.4, 0.2, 0.3])  # of four states on a ring
UP = 0.8  # how often the skewed proposal steps up


def _check_mean(draws, expected, std):
    """draws (s,), of a distribution of this standard deviation."""
    size = infer.effective_sample_size(np.asarray(draws, float)[None])
    assert abs(np.mean(draws) - expected) < 5 * std / np.sqrt(size)


def _log_gamma(z):
    """The logarithm of a Gamma(3) variable: skewed, so that a wrong acceptance shows."""
    return jnp.sum(3.0 * z - jnp.exp(z))


@pytest.fixture(scope="module")
def walk():
    run = jax.jit(
        lambda key: infer.metropolis(
            key, _log_gamma, jnp.zeros(1), samples=SAMPLES, burn=100, scale=1.5
        )
    )
    return run(jax.random.key(0))


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_a_random_walk_has_the_right_quantiles(walk, probability):
    cut = np.log(scipy.stats.gamma(3.0).ppf(probability))
    _check_mean(
        walk[0][:, 0] < cut, probability, np.sqrt(probability * (1 - probability))
    )


def test_acceptance_is_reported_for_each_move(walk):
    """A move that stays was accepted with probability below 1, one to a higher density with
    probability 1.
    """
    values, accept = np.asarray(walk[1].log_density), np.asarray(walk[1].accept)
    assert (accept[1:][np.diff(values) > 0] == 1.0).all()
    assert (accept[1:][np.diff(values) == 0] < 1.0).all()
    lower = np.diff(values) < 0
    np.testing.assert_allclose(
        accept[1:][lower], np.exp(np.diff(values)[lower]), rtol=1e-9
    )


def test_info_holds_the_density_at_each_draw(walk):
    expected = scipy.stats.loggamma(3.0).logpdf(walk[0][:, 0]) + np.log(
        2.0
    )  # log Γ(3) is left out of the density
    np.testing.assert_allclose(walk[1].log_density, expected, rtol=1e-9, atol=1e-9)


def test_mean_acceptance_of_a_normal_is_the_closed_form():
    """(2/π) arctan(2/scale) for a standard normal in one dimension."""
    scale = 1.7
    run = jax.jit(
        lambda key: infer.metropolis(
            key, lambda z: -0.5 * z**2, jnp.zeros(()), samples=SAMPLES, scale=scale
        )
    )
    accept = run(jax.random.key(1))[1].accept
    _check_mean(accept, 2 / np.pi * np.arctan(2 / scale), np.std(accept))


def _propose(key, z, correct=True):
    """Up the ring more often than down; the correction is log q(z | z′) − log q(z′ | z)."""
    step = jnp.where(jax.random.uniform(key) < UP, 1.0, -1.0)
    return (z + step) % 4, -step * jnp.log(UP / (1 - UP)) if correct else jnp.zeros(())


def _on_the_ring(z):
    return jnp.log(jnp.asarray(WEIGHTS))[z[0].astype(int)]


def _ring(propose):
    """20,000 states of a chain."""
    run = jax.jit(
        lambda key: infer.metropolis_hastings(
            key, _on_the_ring, jnp.zeros(1), propose, samples=SAMPLES, burn=100
        )
    )
    return np.asarray(run(jax.random.key(2))[0][:, 0]).astype(int)


@pytest.fixture(scope="module")
def ring():
    return _ring(_propose)


@pytest.mark.parametrize("state", range(4))
def test_a_corrected_skewed_proposal_gives_the_target(ring, state):
    _check_mean(
        ring == state, WEIGHTS[state], np.sqrt(WEIGHTS[state] * (1 - WEIGHTS[state]))
    )


def test_flows_between_states_balance_in_detail():
    """40,000 chains start in the target and make one move: p(x) P(x → y) = p(y) P(y → x) for each
    pair, eq. 3.4.
    """
    before = np.random.default_rng(0).choice(4, 40_000, p=WEIGHTS)

    def move(key, state):
        return infer.metropolis_hastings(
            key, _on_the_ring, state[None], _propose, samples=1, burn=0
        )[0][0, 0]

    keys = jax.random.split(jax.random.key(3), len(before))
    after = np.asarray(
        jax.jit(jax.vmap(move))(keys, jnp.asarray(before, float))
    ).astype(int)
    for low in range(4):
        high = (low + 1) % 4
        up = np.sum((before == low) & (after == high))
        down = np.sum((before == high) & (after == low))
        assert min(up, down) > 100
        assert abs(up - down) < 5 * np.sqrt(up + down)


def test_an_uncorrected_skewed_proposal_gives_another_distribution():
    """The stationary distribution of the wrong chain is that of its transition matrix, and not the
    target.
    """
    moves = np.zeros((4, 4))
    for low in range(4):
        for high, share in (((low + 1) % 4, UP), ((low - 1) % 4, 1 - UP)):
            moves[low, high] = share * min(1.0, WEIGHTS[high] / WEIGHTS[low])
        moves[low, low] = 1 - moves[low].sum()
    stationary = np.linalg.matrix_power(moves, 500)[0]
    assert np.abs(stationary - WEIGHTS).max() > 0.05
    chain = _ring(partial(_propose, correct=False))
    for state in range(4):
        _check_mean(
            chain == state,
            stationary[state],
            np.sqrt(stationary[state] * (1 - stationary[state])),
        )


def _half_line(z):
    return jnp.where(z > 0.0, -z, -jnp.inf)


def test_a_start_without_density_is_left_for_good():
    run = jax.jit(
        lambda key: infer.metropolis(
            key, _half_line, jnp.array(-1.0), samples=500, burn=100, scale=1.0
        )
    )
    chain, info = run(jax.random.key(3))
    assert (chain > 0).all()
    assert np.isfinite(info.log_density).all()


def _short(thin, samples):
    scale = jnp.array([0.5, 0.0])
    start = jnp.zeros(2)
    settings = {"samples": samples, "burn": 4, "thin": thin, "scale": scale}
    return jax.jit(
        lambda: infer.metropolis(
            jax.random.key(4), lambda z: -0.5 * z @ z, start, **settings
        )
    )()


@pytest.fixture(scope="module")
def short():
    return _short(1, 12)


def test_thinning_keeps_every_third_move(short):
    np.testing.assert_allclose(_short(3, 4)[0], short[0][2::3], rtol=1e-12)


def test_scales_can_be_given_one_a_coordinate(short):
    np.testing.assert_array_equal(short[1].scale, [0.5, 0.0])
    moved = np.ptp(short[0], axis=0) > 0
    np.testing.assert_array_equal(moved, [True, False])


def test_evaluations_are_the_start_burn_in_and_every_move(short):
    assert short[1].evaluations == 1 + 4 + 12
