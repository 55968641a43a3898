"""Diagnostics: effective sample size, R-hat, summaries and the export to ArviZ."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

from bonas import infer

CHAINS, SAMPLES = 4, 5000


def _noise(seed, *shape):
    return np.random.default_rng(seed).normal(size=(CHAINS, SAMPLES, *shape))


def _autoregressive(rho, *shape):
    """z_t = ρ z_{t−1} + noise, from its stationary distribution on."""
    noise = _noise(1, *shape)
    noise[:, 0] /= np.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], noise, axis=1)


def _info(diverging):
    shape = diverging.shape
    return infer.Info(
        log_density=jnp.arange(float(np.prod(shape))).reshape(shape),
        accept=jnp.full(shape, 0.8),
        diverging=jnp.asarray(diverging),
        scale=jnp.full(shape[0], 0.1),
        evaluations=jnp.full(shape[0], 100),
    )


def test_r_hat_of_independent_draws_is_one():
    """It exceeds 1 by the order of 1/samples: a hundredth is fifty times that."""
    hats = infer.r_hat({"a": _noise(0), "b": {"c": _noise(2, 3)}})
    assert abs(hats["a"] - 1.0) < 0.01
    assert hats["b"]["c"].shape == (3,)
    assert (np.abs(hats["b"]["c"] - 1.0) < 0.01).all()


def test_r_hat_tells_chains_that_disagree():
    """Two of four chains a standard deviation off: eight halves with means of variance 8/7 · 1/4,
    variance 1 within.

    The sampling error of R-hat is below 0.01; the tolerance is five times that.
    """
    draws = _noise(0) + np.array([0.0, 0.0, 1.0, 1.0])[:, None]
    np.testing.assert_allclose(infer.r_hat(draws), np.sqrt(1 + 2 / 7), atol=0.05)


def test_r_hat_tells_a_chain_that_drifts():
    """Halves that differ count as chains: a trend in all chains alike is seen."""
    assert infer.r_hat(_noise(0) + np.linspace(0.0, 3.0, SAMPLES)[None]) > 1.1


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.6, 0.9])
def test_effective_size_of_an_autoregressive_chain_is_the_closed_form(rho):
    """n (1 − ρ)/(1 + ρ), averaged over sixteen parameters.

    Estimates of one vary by up to 9% (ρ = 0.9) and are up to 2% low: 15% is more than five standard
    errors.
    """
    sizes = infer.effective_sample_size({"a": _autoregressive(rho, 16)})["a"]
    np.testing.assert_allclose(
        sizes.mean(), CHAINS * SAMPLES * (1 - rho) / (1 + rho), rtol=0.15
    )


@pytest.mark.parametrize("diagnose", [infer.r_hat, infer.effective_sample_size])
@pytest.mark.parametrize("shape", [(), (100,), (4, 3)])
def test_leaves_without_chains_or_samples_are_refused(diagnose, shape):
    with pytest.raises(ValueError, match=r"\(chains, samples, ...\)"):
        diagnose({"a": np.zeros(shape)})


@pytest.fixture(scope="module")
def table():
    chains = {
        "noise": 2.0 + _noise(0),
        "kernel": {"lengthscale": _autoregressive(0.6, 2)},
    }
    diverging = np.zeros((CHAINS, SAMPLES), bool)
    diverging[0, :7] = True
    return infer.summary(chains, _info(diverging)).splitlines()


def test_the_summary_has_a_row_for_each_number(table):
    assert [row.split()[0] for row in table[1:-1]] == [
        "kernel.lengthscale[0]",
        "kernel.lengthscale[1]",
        "noise",
    ]


def test_the_summary_has_mean_spread_and_diagnostics(table):
    mean, std, ess, r_hat = map(float, table[3].split()[1:])
    draws = 2.0 + _noise(0)
    np.testing.assert_allclose([mean, std], [draws.mean(), draws.std()], rtol=1e-3)
    np.testing.assert_allclose(
        [ess, r_hat],
        [infer.effective_sample_size(draws), infer.r_hat(draws)],
        rtol=1e-3,
    )


def test_the_summary_counts_divergences(table):
    assert table[-1] == f"divergences: 7 of {CHAINS * SAMPLES}"


def test_the_summary_names_a_bare_array():
    assert infer.summary(_noise(0)).splitlines()[1].split()[0] == "z"


@pytest.fixture(scope="module")
def inference_data():
    pytest.importorskip("arviz")
    chains = {"noise": _noise(0), "kernel": {"lengthscale": _autoregressive(0.6, 2)}}
    diverging = np.zeros((CHAINS, SAMPLES), bool)
    diverging[2, 5] = True
    return chains, _info(diverging), infer.to_arviz(chains, _info(diverging))


def test_arviz_gets_the_chains_under_dotted_names(inference_data):
    chains, _, data = inference_data
    np.testing.assert_array_equal(data.posterior["noise"].values, chains["noise"])
    np.testing.assert_array_equal(
        data.posterior["kernel.lengthscale"].values, chains["kernel"]["lengthscale"]
    )


def test_arviz_gets_what_the_run_reported(inference_data):
    _, info, data = inference_data
    np.testing.assert_array_equal(data.sample_stats["lp"].values, info.log_density)
    np.testing.assert_array_equal(data.sample_stats["diverging"].values, info.diverging)
    np.testing.assert_array_equal(
        data.sample_stats["acceptance_rate"].values, info.accept
    )


def test_r_hat_agrees_with_that_of_arviz(inference_data):
    import arviz

    chains, _, data = inference_data
    theirs = arviz.rhat(data, method="split")
    np.testing.assert_allclose(
        infer.r_hat(chains)["noise"], theirs["noise"].values, rtol=1e-9
    )
