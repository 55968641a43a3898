import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
from cases import SPACE, brownian

import bonas
from bonas import gp, infer

METHODS = {
    "maximize": lambda key, target: infer.maximize(
        key, target.maximizing, target.start, draw=target.draw, restarts=2
    ),
    "slice": lambda key, target: infer.slice_sample(
        key, target.sampling, target.start, samples=40, burn=10
    ),
    "metropolis": lambda key, target: infer.metropolis(
        key, target.sampling, target.start, samples=40, burn=200
    ),
    "hmc": lambda key, target: infer.hmc(
        key, target.sampling, target.start, samples=40, burn=60
    ),
    "nuts": lambda key, target: infer.nuts(
        key, target.sampling, target.start, samples=40, burn=60
    ),
}


def paths(n, scale, noise, seed):
    """Brownian motion of a known scale, observed with noise."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random((n, 1)), axis=0)
    y = scale * np.cumsum(rng.normal(size=n) * np.sqrt(np.diff(x[:, 0], prepend=0.0)))
    return bonas.dataset(x, y + noise**0.5 * rng.normal(size=n), capacity=n + 8)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_kernel_from_a_notebook_cell_works_with_every_method(method):
    """A kernel made of functions: its scale, 2, is recovered from 60 points to a factor."""
    mine = gp.Kernel(prior={"scale": dist.HalfNormal(1.0)}, value=brownian)
    data = paths(60, scale=2.0, noise=1e-2, seed=0)
    target = gp.hyperposterior(mine, data)
    samples, info = jax.jit(lambda key: METHODS[method](key, target))(jax.random.key(0))
    params = target.constrain(samples)
    assert jnp.isfinite(info.log_density).all()
    assert 1.4 < params["kernel"]["scale"].mean() < 2.6
    posterior = gp.condition_all(mine, params, data)
    mean, std = jax.vmap(gp.predict, (0, None))(posterior, data.x[:5])
    assert mean.shape == std.shape == (len(params["noise"]), 5)
    assert jnp.isfinite(mean).all()
    assert jnp.isfinite(std).all()


@pytest.mark.slow
def test_the_log_density_is_prior_plus_evidence():
    data = paths(12, scale=1.0, noise=1e-2, seed=1)
    target = gp.hyperposterior(
        gp.se(gp.priors.half_cauchy), data, noise=gp.priors.half_cauchy_noise
    )
    params = {
        "kernel": {"variance": jnp.array(0.7), "lengthscale": jnp.array([0.3])},
        "noise": jnp.array(0.02),
        "mean": {},
    }
    cov = 0.7 * np.exp(
        -0.5 * (data.x[:12] - data.x[:12].T) ** 2 / 0.3**2
    ) + 0.02 * np.eye(12)
    evidence = scipy.stats.multivariate_normal(np.zeros(12), cov).logpdf(data.y[:12, 0])
    prior = scipy.stats.halfcauchy.logpdf([0.7, 0.3, 0.02]).sum()
    np.testing.assert_allclose(
        target.maximizing(target.unconstrain(params)), evidence + prior, rtol=1e-10
    )


def test_known_noise_is_not_inferred():
    data = paths(12, scale=1.0, noise=1e-2, seed=1)
    target = gp.hyperposterior(gp.se(), data, noise=1e-2)
    assert "noise" not in target.start
    posterior = gp.condition_all(
        gp.se(),
        jax.tree.map(lambda z: z[None], target.constrain(target.start)),
        data,
        noise=1e-2,
    )
    assert posterior.alpha.shape == (1, 20)


@pytest.mark.slow
def test_a_learned_constant_is_inferred():
    rng = np.random.default_rng(0)
    x = rng.random((25, 1))
    data = bonas.dataset(x, 1.5 + 0.01 * rng.normal(size=25))
    target = gp.hyperposterior(gp.se(), data, mean=gp.learned_constant(scale=2.0))
    best, _ = infer.maximize(jax.random.key(0), target.maximizing, target.start)
    np.testing.assert_allclose(
        target.constrain(best)["mean"]["constant"], 1.5, atol=0.1
    )


@pytest.mark.slow
def test_inference_compiles_once_while_data_arrive():
    kernel = gp.arc(SPACE.active, categories=SPACE.categories)

    @jax.jit
    def fit(key, data, start):
        target = gp.hyperposterior(kernel, data)
        return infer.slice_sample(key, target.sampling, start, samples=2, burn=1)[0]

    u = SPACE.sample(jax.random.key(0), 40)
    data = bonas.dataset(u[:8], u[:8, 1], capacity=40)
    start = gp.hyperposterior(kernel, data).start
    for row in u[8:12]:
        samples = fit(jax.random.key(1), data, start)
        start = jax.tree.map(lambda leaf: leaf[-1], samples)
        data = bonas.append(data, row, row[1])
    assert fit._cache_size() == 1


@pytest.mark.slow
def test_hyperparameters_inferred_on_padded_data_are_those_of_the_data_alone():
    data = paths(15, scale=1.0, noise=1e-2, seed=2)
    alone = bonas.dataset(data.x[:15], data.y[:15, 0])
    fits = []
    for part in (alone, data._replace(x=data.x.at[15:].set(jnp.nan))):
        target = gp.hyperposterior(gp.matern52(), part)
        fits.append(
            target.constrain(
                infer.maximize(jax.random.key(0), target.maximizing, target.start)[0]
            )
        )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), *fits)
