"""Priors and likelihoods as log densities of unconstrained parameters: the Jacobian where it
belongs, and only there.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
from jax.flatten_util import ravel_pytree

from bonas import infer
from bonas.gp import priors
from bonas.infer.posterior import flat

PRIORS = {
    "log_normal": (
        dist.LogNormal(0.3, 0.8),
        scipy.stats.lognorm(0.8, scale=np.exp(0.3)),
    ),
    "half_cauchy": (dist.HalfCauchy(2.0), scipy.stats.halfcauchy(scale=2.0)),
    "uniform": (dist.Uniform(-1.0, 3.0), scipy.stats.uniform(-1.0, 4.0)),
    "normal": (dist.Normal(1.0, 2.0), scipy.stats.norm(1.0, 2.0)),
    "beta": (dist.Beta(2.0, 3.0), scipy.stats.beta(2.0, 3.0)),
}
NESTED = {
    "slope": dist.Normal(0.0, 1.0),
    "kernel": {
        "lengthscale": dist.LogNormal(0.0, 1.0).expand([3]),
        "share": dist.Uniform(-1.0, 2.0),
    },
    "noise": dist.HalfCauchy(1.0),
}
each_prior = pytest.mark.parametrize("name", list(PRIORS))


def _nothing(params):
    return jnp.zeros(())


def _log_jacobian(constrain, z) -> float:
    """log |det dθ/dz| by central differences, whose error here is about 1e-9."""
    vector, unflatten = ravel_pytree(z)
    moves = 1e-5 * np.eye(len(vector))
    theta = jax.jit(
        jax.vmap(lambda move: ravel_pytree(constrain(unflatten(vector + move)))[0])
    )
    return np.linalg.slogdet(
        (np.asarray(theta(moves)) - np.asarray(theta(-moves))) / 2e-5
    )[1]


@each_prior
@pytest.mark.parametrize("z", [-1.5, 1.1])
def test_sampling_exceeds_maximizing_by_the_log_jacobian(name, z):
    t = infer.target({"theta": PRIORS[name][0]}, lambda p: -(p["theta"] ** 2))
    point = {"theta": jnp.asarray(z)}
    difference = jax.jit(lambda z: t.sampling(z) - t.maximizing(z))(point)
    np.testing.assert_allclose(difference, _log_jacobian(t.constrain, point), atol=1e-7)


def test_log_jacobians_of_nested_and_vector_parameters_add_up():
    t = infer.target(NESTED, _nothing)
    point = jax.tree.map(lambda leaf: leaf + 0.7, t.start)
    difference = jax.jit(lambda z: t.sampling(z) - t.maximizing(z))(point)
    np.testing.assert_allclose(difference, _log_jacobian(t.constrain, point), atol=1e-7)


@each_prior
def test_maximizing_is_log_prior_plus_log_likelihood(name):
    distribution, known = PRIORS[name]
    t = infer.target({"theta": distribution}, lambda p: jnp.sin(p["theta"]))
    z = {"theta": jnp.asarray(0.7)}
    theta = float(t.constrain(z)["theta"])
    np.testing.assert_allclose(
        jax.jit(t.maximizing)(z), known.logpdf(theta) + np.sin(theta), rtol=1e-10
    )


def test_constrained_values_lie_in_the_support():
    t = infer.target(NESTED, _nothing)
    params = t.constrain(jax.tree.map(lambda leaf: leaf - 7.0, t.start))
    assert (params["kernel"]["lengthscale"] > 0).all()
    assert -1.0 < params["kernel"]["share"] < 2.0
    assert params["noise"] > 0


def test_unconstrain_inverts_constrain():
    t = infer.target(
        {"all": {name: d for name, (d, _) in PRIORS.items()}, "nested": NESTED},
        _nothing,
    )
    z = jax.tree.map(lambda leaf: leaf + 0.7, t.start)
    back = jax.jit(lambda z: t.unconstrain(t.constrain(z)))(z)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), back, z)


def test_constrain_inverts_unconstrain():
    params = {
        "slope": -0.4,
        "kernel": {"lengthscale": np.array([0.1, 1.0, 30.0]), "share": 1.9},
        "noise": 1e-4,
    }
    t = infer.target(NESTED, _nothing)
    back = t.constrain(t.unconstrain(jax.tree.map(jnp.asarray, params)))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), back, params
    )


@pytest.mark.parametrize("name", ["log_normal", "half_cauchy", "uniform", "normal"])
def test_draws_follow_the_prior(name):
    """The share of 4000 draws below five quantiles, each within five standard errors: fails for one
    seed in 300,000.
    """
    distribution, known = PRIORS[name]
    t = infer.target({"theta": distribution}, _nothing)
    keys = jax.random.split(jax.random.key(1), 4000)
    draws = jax.jit(jax.vmap(lambda key: t.constrain(t.draw(key))))(keys)["theta"]
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    shares = np.mean(np.asarray(draws)[:, None] < known.ppf(levels), axis=0)
    np.testing.assert_array_less(
        np.abs(shares - levels), 5 * np.sqrt(levels * (1 - levels) / len(keys))
    )


def test_parameters_are_drawn_independently():
    """The correlation of 4000 pairs of equal priors is within five standard errors of 0."""
    t = infer.target({"a": dist.Normal(0.0, 1.0), "b": dist.Normal(0.0, 1.0)}, _nothing)
    draws = jax.jit(jax.vmap(t.draw))(jax.random.split(jax.random.key(2), 4000))
    assert abs(np.corrcoef(draws["a"], draws["b"])[0, 1]) < 5 / np.sqrt(4000)


def test_the_most_probable_value_does_not_depend_on_the_parametrization():
    t = infer.target({"theta": dist.LogNormal(0.3, 0.8)}, _nothing)
    z, _ = jax.jit(
        lambda: infer.maximize(jax.random.key(0), t.maximizing, t.start, steps=20)
    )()
    np.testing.assert_allclose(
        t.constrain(z)["theta"][0], np.exp(0.3 - 0.8**2), rtol=1e-6
    )


def test_maximizing_with_the_jacobian_finds_another_value():
    t = infer.target({"theta": dist.LogNormal(0.3, 0.8)}, _nothing)
    z, _ = jax.jit(
        lambda: infer.maximize(jax.random.key(0), t.sampling, t.start, steps=20)
    )()
    np.testing.assert_allclose(t.constrain(z)["theta"][0], np.exp(0.3), rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "with_jacobian", "center"),
    [
        (infer.slice_sample, True, 0.3),
        (infer.slice_sample, False, 0.3 - 1.0**2),
        pytest.param(infer.nuts, True, 0.3, marks=pytest.mark.slow),
    ],
    ids=["with the jacobian", "without the jacobian", "nuts"],
)
def test_samples_follow_the_prior_with_the_jacobian_alone(
    method, with_jacobian, center
):
    """Draws of θ ~ LogNormal(0.3, 1): without the Jacobian, log θ is centered on 0.3 − 1² instead.

    Half of the draws lie below the median within five Monte-Carlo standard errors: fails for one
    seed in a million.
    """
    t = infer.target({"theta": dist.LogNormal(0.3, 1.0)}, _nothing)
    density = t.sampling if with_jacobian else t.maximizing
    z, _ = jax.jit(lambda key: method(key, density, t.start, samples=2000, burn=200))(
        jax.random.key(4)
    )
    below = np.asarray(t.constrain(z)["theta"] < np.exp(center))[None]
    error = np.sqrt(0.25 / infer.effective_sample_size(below.astype(float)))
    # the two centers are 0.34 apart in probability: this tells them apart
    assert 5 * error < 0.2
    assert abs(below.mean() - 0.5) < 5 * error


STARTS = {
    "log_normal": priors.log_normal(3),
    "half_cauchy": priors.half_cauchy(3),
    "spearmint": priors.spearmint(3),
    "log_normal_noise": priors.log_normal_noise(),
    "half_cauchy_noise": priors.half_cauchy_noise(),
    "spearmint_noise": priors.spearmint_noise(),
    "no quantiles in NumPyro": dist.Gamma(2.0, 1.0),
    "nor a mean": dist.InverseGamma(0.5, 1.0),
    "a simplex": dist.Dirichlet(jnp.ones(3)),
    "an event": dist.HalfCauchy(jnp.ones(2)).to_event(1),
}


@pytest.mark.slow
@pytest.mark.parametrize("prior", list(STARTS.values()), ids=list(STARTS))
def test_the_start_has_a_finite_density_and_gradient(prior):
    t = infer.target(prior, _nothing)
    value, gradient = jax.jit(jax.value_and_grad(t.sampling))(t.start)
    assert all(
        np.isfinite(leaf).all() for leaf in jax.tree.leaves((t.start, value, gradient))
    )


@pytest.mark.parametrize(
    "distribution",
    [
        dist.LogNormal(0.3, 2.0),
        dist.LogNormal(0.3, 2.0).expand([3]),
        dist.LogNormal(0.3 * jnp.ones(3), 2.0),
    ],
)
def test_the_start_is_the_median(distribution):
    start = infer.target({"theta": distribution}, _nothing).start["theta"]
    np.testing.assert_allclose(start, np.full(distribution.shape(), 0.3), rtol=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [1.0, "normal", dist.Normal, lambda d: dist.Normal(0.0, 1.0), dist.Poisson(2.0)],
)
def test_what_is_no_continuous_distribution_is_refused(wrong):
    with pytest.raises(ValueError, match="continuous NumPyro distributions"):
        infer.target(
            {"good": dist.Normal(0.0, 1.0), "nested": {"bad": wrong}}, _nothing
        )


@pytest.mark.typed
def test_a_density_alone_does_not_compute_the_start():
    """A quantile function would add hundreds of operations to every program with the density."""

    class Counted(dist.Normal):
        calls = 0

        def icdf(self, q):
            Counted.calls += 1
            return super().icdf(q)

    made = infer.target({"a": Counted(0.0, 1.0)}, _nothing)
    made.maximizing({"a": jnp.zeros(())})
    assert Counted.calls == 0
    assert made.start == {"a": 0.0}
    assert Counted.calls == 1


def test_nan_becomes_impossible():
    density, vector, _ = flat(lambda z: jnp.log(z["a"]), {"a": jnp.asarray(-1.0)})
    assert density(vector) == -jnp.inf


def test_a_density_that_is_not_one_number_is_refused():
    density, vector, _ = flat(lambda z: -(z**2), jnp.zeros(3))
    with pytest.raises(ValueError, match=r"one number; got shape \(3,\)"):
        density(vector)
