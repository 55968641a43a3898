"""Bayesian networks by HMC: the posterior against closed forms and quadrature.

Statistical checks have a tolerance of five Monte-Carlo standard errors, from effective sample
sizes; the seeds are fixed.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import bonas
from bonas import infer
from bonas.infer import Chain, hmc_within_gibbs
from bonas.nets import bnn as model
from bonas.nets import bnn_hmc
from bonas.nets.bnn import BNN, Precisions

KEY = jax.random.key(0)
_begin = jax.jit(bnn_hmc.init_chains, static_argnums=(1, 2))
_prior = jax.jit(bnn_hmc.prior, static_argnums=(1, 2))


LINE = BNN(2, (), scaled=False, shared=True)
ROWS = np.random.default_rng(3).normal(size=(12, 2))
VALUES = (
    ROWS @ np.array([1.0, -0.5]) + 0.3 + 0.4 * np.random.default_rng(4).normal(size=12)
)
DATA = bonas.dataset(ROWS, VALUES, capacity=15)


def _check_mean(draws, expected, std):
    """draws (chains, s), of a distribution of this mean and standard deviation."""
    size = infer.effective_sample_size(np.asarray(draws, float))
    assert abs(np.mean(draws) - expected) < 5 * std / np.sqrt(size)


@pytest.mark.parametrize("method", ["hmc", "nuts"])
def test_a_network_without_hidden_layers_is_bayesian_linear_regression(method):
    """At fixed precisions the posterior is normal: means and covariances of all three weights."""
    precisions = Precisions(jnp.array([0.5]), jnp.asarray(4.0))
    design = np.column_stack([ROWS, np.ones(12)])
    covariance = np.linalg.inv(0.5 * np.eye(3) + 4.0 * design.T @ design)
    mean = 4.0 * covariance @ design.T @ VALUES

    @jax.jit
    def run(key):
        start_key, run_key = jax.random.split(key)
        chains = bnn_hmc.init_chains(start_key, LINE, 2, precisions=precisions)
        settings = {
            "samples": 1500,
            "burn": 300,
            "steps": 7,
            "method": method,
            "precisions": "fixed",
            "target": 0.8,
        }
        return bnn_hmc.sample(run_key, LINE, DATA, chains, **settings)[0]

    draws = run(KEY)
    found = np.concatenate(
        [draws.weights.kernels[0][..., 0], draws.weights.biases[0]], axis=-1
    )  # (2, 1500, 3)
    np.testing.assert_array_equal(draws.precisions.noise, 4.0)
    for i in range(3):
        _check_mean(found[..., i], mean[i], np.sqrt(covariance[i, i]))
        for j in range(i + 1):
            products = (found[..., i] - mean[i]) * (found[..., j] - mean[j])
            _check_mean(
                products,
                covariance[i, j],
                np.sqrt(covariance[i, i] * covariance[j, j] + covariance[i, j] ** 2),
            )


@pytest.fixture(scope="module")
def by_quadrature():
    """Mean and deviation of log τ_p and log τ_n of LINE, whose evidence at given precisions is
    normal.
    """
    prior = lambda logs, a, b: a * logs - b * np.exp(logs)  # noqa: E731
    p, n = np.meshgrid(np.linspace(-6, 5, 120), np.linspace(-4, 6, 120), indexing="ij")
    design = np.column_stack([ROWS, np.ones(12)])
    values, vectors = np.linalg.eigh(design @ design.T)
    spectrum = values[:, None, None] * np.exp(-p) + np.exp(-n)
    logs = -0.5 * (
        np.log(spectrum) + (vectors.T @ VALUES)[:, None, None] ** 2 / spectrum
    ).sum(axis=0)
    logs = logs + prior(p, *LINE.weight_prior) + prior(n, *LINE.noise_prior)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    moments = []
    for grid in (p, n):
        mean = (weight * grid).sum()
        moments.append((mean, np.sqrt((weight * (grid - mean) ** 2).sum())))
    return moments


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precisions", "whitened"),
    [("gibbs", True), ("gibbs", False), ("joint", True), ("joint", False)],
)
def test_the_precisions_of_linear_regression_are_right(
    precisions, whitened, by_quadrature
):
    line = BNN(2, (), scaled=False, shared=True, whitened=whitened)

    @jax.jit
    def run(key):
        start_key, run_key = jax.random.split(key)
        chains = bnn_hmc.init_chains(start_key, line, 2)
        settings = {"samples": 2000, "burn": 300, "steps": 10, "precisions": precisions}
        return bnn_hmc.sample(run_key, line, DATA, chains, **settings)[0].precisions

    found = run(KEY)
    for draws, (mean, std) in zip(
        (found.weights[..., 0], found.noise), by_quadrature, strict=True
    ):
        _check_mean(np.log(draws), mean, std)


def test_a_cauchy_prior_has_the_right_precision_under_gibbs():
    """One weight without data: its scale keeps its prior, whatever the weight does in between."""
    bnn = BNN(1, (), index=1.0, shared=True, weight_prior=(3.0, 2.0))
    nothing = bonas.empty(2, 1)

    @jax.jit
    def run(key):
        chains = bnn_hmc.init_chains(key, bnn, 2)
        return bnn_hmc.sample(
            key, bnn, nothing, chains, samples=3000, burn=100, steps=10
        )[0].precisions.weights[..., 0]

    logs, law = np.log(run(KEY)), scipy.stats.loggamma(3.0, loc=-np.log(2.0))
    _check_mean(logs, law.mean(), law.std())
    _check_mean(
        (logs - law.mean()) ** 2,
        law.var(),
        np.sqrt(law.var() ** 2 * (2.0 + law.stats("k"))),
    )


SMALL = BNN(1, (3,), weight_prior=(3.0, 3.0), noise_prior=(3.0, 0.3))
_sample = jax.jit(partial(bnn_hmc.sample, samples=30, steps=5), static_argnums=1)


def _run(data, chains, burn=40, gibbs_delay=0):
    """Compiled once: how long burn-in is may be traced."""
    return _sample(
        KEY,
        SMALL,
        data,
        chains,
        burn=jnp.asarray(burn),
        gibbs_delay=jnp.asarray(gibbs_delay),
    )


@pytest.mark.slow
@pytest.mark.parametrize("rubbish", [jnp.nan, 1e6])
def test_masked_rows_change_nothing(rubbish):
    data = bonas.dataset(ROWS[:6, :1], VALUES[:6], capacity=9)
    dirty = jnp.arange(9)[:, None] >= 6
    other = data._replace(
        x=jnp.where(dirty, rubbish, data.x), y=jnp.where(dirty, rubbish, data.y)
    )
    chains = _begin(KEY, SMALL, 2)
    for a, b in zip(
        *(jax.tree.leaves(_run(rows, chains)[0]) for rows in (data, other)), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_chains_go_on_where_they_were_and_traced_burn_in_is_burn_in():
    data = bonas.dataset(ROWS[:6, :1], VALUES[:6], capacity=9)
    chains = _begin(KEY, SMALL, 2)
    draws, last, info = _run(data, chains, burn=40)
    for place, weights in zip(
        jax.tree.leaves(
            jax.vmap(partial(model.weights_at, SMALL))(last.position, last.gibbs_values)
        ),
        jax.tree.leaves(draws.weights),
        strict=True,
    ):
        np.testing.assert_allclose(place, weights[:, -1], rtol=1e-12)
    np.testing.assert_array_equal(info.scale, last.step_size)
    assert (
        info.evaluations == 70 * 6
    ).all()  # five leapfrog steps, and one evaluation after each draw
    still, _, _ = _run(data, last, burn=0)
    first, end = (
        np.asarray(jax.tree.leaves(which.weights)[0]) for which in (still, draws)
    )
    assert np.abs(first[:, 0] - end[:, -1]).max() < np.abs(end[:, -1]).max()


def test_held_precisions_wait():
    data = bonas.dataset(ROWS[:6, :1], VALUES[:6], capacity=9)
    chains = _begin(KEY, SMALL, 2)
    noise = np.asarray(_run(data, chains, burn=0, gibbs_delay=10)[0].precisions.noise)
    assert (noise[:, :10] == np.asarray(chains.gibbs_values.noise)[:, None]).all()
    assert (np.diff(noise[:, 9:], axis=1) != 0.0).all()


def test_within_gibbs_without_draws_is_hmc():
    """The same target and settings, other random numbers: both sample a standard normal; see
    `infer.hmc`.
    """

    def log_density(z, aside):
        return -0.5 * jnp.sum(z**2)

    @jax.jit
    def run(key):
        start = Chain(jnp.zeros(2), (), jnp.asarray(0.2))
        return hmc_within_gibbs(
            key, log_density, None, start, samples=1000, burn=50, thin=2, steps=8
        )

    trace, _, info = run(KEY)
    for i in range(2):
        _check_mean(trace.position[None, :, i], 0.0, 1.0)
        _check_mean(trace.position[None, :, i] ** 2, 1.0, np.sqrt(2.0))
    assert info.evaluations == 2050 * 8 + 1


@pytest.mark.slow
@pytest.mark.parametrize("output", bnn_hmc.OUTPUT_LAYER)
@pytest.mark.parametrize("precisions", ["gibbs", "joint"])
def test_simulation_based_calibration_of_the_precisions(precisions, output):
    """Talts et al.

    2018: the rank of a prior draw among posterior ones, given data made with it, is uniform;
    200 data sets.
    """
    x = jnp.linspace(-1.0, 1.0, 8)[:, None]

    def rank(key):
        truth_key, noise_key, start_key, run_key = jax.random.split(key, 4)
        truth = jax.tree.map(
            lambda leaf: leaf[0], bnn_hmc.init_chains(truth_key, SMALL, 1)
        )
        mean = model.apply(
            SMALL, model.weights_at(SMALL, truth.position, truth.gibbs_values), x
        )
        y = mean + jax.random.normal(noise_key, mean.shape) / jnp.sqrt(
            truth.gibbs_values.noise
        )
        data = bonas.Dataset(x, y, jnp.ones(y.shape, bool), jnp.asarray(8))
        settings = {
            "samples": 39,
            "burn": 400,
            "thin": 20,
            "steps": 10,
            "precisions": precisions,
            "output": output,
        }
        draws, _, _ = bnn_hmc.sample(
            run_key, SMALL, data, bnn_hmc.init_chains(start_key, SMALL, 1), **settings
        )
        below = jax.tree.map(
            lambda drawn, true: (drawn[0] < true[None]).sum(axis=0),
            draws.precisions,
            truth.gibbs_values,
        )
        return jnp.append(below.weights, below.noise)

    ranks = np.asarray(
        jax.jit(lambda keys: jax.lax.map(rank, keys))(jax.random.split(KEY, 200))
    )
    for column in ranks.T:
        # 8 bins of 5 ranks
        counts = np.histogram(column, bins=np.arange(0, 41, 5) - 0.5)[0]
        assert scipy.stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(
    ("index", "settings", "message"),
    [
        (2.0, {"precisions": "integrated"}, "one of gibbs, joint, fixed"),
        (1.5, {}, "no conditional"),
        (2.0, {"method": "slice"}, "one of hmc, nuts"),
        (2.0, {"samples": 0}, "samples must be an integer of at least 1; got 0"),
        (2.0, {"method": "nuts", "burn": jnp.asarray(3)}, "got a traced value"),
    ],
)
def test_runs_that_make_no_sense_are_refused(index, settings, message):
    bnn = BNN(1, (3,), index=index)
    with pytest.raises(ValueError, match=message):
        bnn_hmc.sample(KEY, bnn, bonas.empty(2, 1), _begin(KEY, SMALL, 2), **settings)
