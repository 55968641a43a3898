"""The contract that every surrogate satisfies."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from surrogates.quarter import DATA, KEY, POINTS, programs

import bonas
from bonas import curves, gp, surrogates
from bonas.surrogates import hmc_network

SMALL = {"chains": 2, "samples": 20, "first_burn": 50, "steps": 20}
MODELS = {
    "gp": surrogates.gp(),
    "gp slice": surrogates.gp(gp.matern52(), infer="slice", samples=3),
    "large": surrogates.large_gp(rows=8, fitted=8),
    "large slice": surrogates.large_gp(
        surrogates.gp(gp.matern52(), infer="slice", samples=3), rows=8, fitted=8
    ),
    "saas": surrogates.saas(samples=3, thin=1, burn=30, depth=4),
    "additive": surrogates.additive(((0,), (1,))),
    "linear": surrogates.linear("quadratic"),
    "gpar": curves.gpar_surrogate(),
    "gpar slice": curves.gpar_surrogate(infer="slice", samples=3),
    "hmc": hmc_network((12,), **SMALL),
    "float32": hmc_network((12,), dtype="float32", precisions="gibbs", **SMALL),
    "nuts": hmc_network(
        (12,), **(SMALL | {"method": "nuts", "depth": 4, "first_burn": 30})
    ),
    "metropolis": hmc_network((12,), method="metropolis", **SMALL),
    "sampled": hmc_network(
        (12,),
        output="sampled",
        precisions="gibbs",
        noise_prior=(10.0, 0.02),
        chains=4,
        samples=100,
        first_burn=200,
        steps=20,
    ),
    "ensemble": surrogates.ensemble(4, (20, 20)),
    "last layer": surrogates.last_layer((12, 12), steps=300, samples=4),
    "variational": surrogates.variational_network(
        (12,), members=4, draws=40, steps=600, refit_steps=300, samples=2
    ),
}
SAMPLES = {
    "gp slice": 3,
    "large slice": 3,
    "gpar slice": 3,
    "saas": 3,
    "last layer": 4,
}  # the s of those that have hyperparameter samples
SINGLE = ("float32", "ensemble", "last layer")  # networks in float32
CORNERS = jnp.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])

_fit, _predict, _fitted = programs(MODELS)


@cache
def _update(name):
    return jax.jit(lambda data, state: MODELS[name].update(data, state))


@pytest.fixture(params=list(MODELS))
def name(request):
    return request.param


def _same_shapes(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)


@pytest.mark.slow
def test_shapes_are_those_of_the_interface(name):
    model, (state, info) = MODELS[name], _fitted(name)
    assert info.finite
    assert all(field.shape == () for field in info)
    mean, std = _predict(name)(state, POINTS)
    s = SAMPLES.get(name, 1)
    assert mean.shape == std.shape == (s, 30)
    assert mean.dtype == std.dtype == POINTS.dtype
    assert (std > 0.0).all()
    assert model.covariance(state, POINTS, POINTS[:3]).shape == (s, 30, 3)
    assert model.sample(KEY, state, POINTS, 7).shape == (7, 30)
    assert model.noise_variance(state).shape in ((s,), (1,))
    assert (model.noise_variance(state) >= 0.0).all()
    if name not in ("ensemble", "gpar", "gpar slice"):  # without an estimate
        assert (model.noise_variance(state) > 0.0).all()


@pytest.mark.slow
def test_a_state_keeps_its_shapes(name):
    first = MODELS[name].init(12, 2, 1)
    _same_shapes(first, _fitted(name)[0])
    _same_shapes(first, _update(name)(DATA, _fitted(name)[0]))


@pytest.mark.slow
def test_draws_have_the_moments_of_the_prediction(name):
    """4000 draws; tolerance: five standard errors of their mean and covariance."""
    state = _fitted(name)[0]
    draws = np.asarray(
        jax.jit(MODELS[name].sample, static_argnums=3)(KEY, state, POINTS, 4000)
    )
    means, stds = (np.asarray(field) for field in _predict(name)(state, POINTS))
    covariances = np.asarray(MODELS[name].covariance(state, POINTS, POINTS))
    np.testing.assert_allclose(
        np.diagonal(covariances, axis1=1, axis2=2), stds**2, rtol=1e-4, atol=1e-9
    )
    centered = means - means.mean(axis=0)
    covariance = covariances.mean(axis=0) + centered.T @ centered / len(means)
    std = np.sqrt(np.diag(covariance))
    assert (
        np.abs(draws.mean(axis=0) - means.mean(axis=0)) < 5 * std / np.sqrt(4000)
    ).all()
    assert (
        np.abs(np.cov(draws.T) - covariance)
        < 5 * 2 * std[:, None] * std[None, :] / np.sqrt(4000)
    ).all()


def test_it_follows_the_data_and_doubts_elsewhere(name):
    """The values have mean 0 and variance 1, so that their mean is 1 off."""
    mean, std = _predict(name)(_fitted(name)[0], jnp.concatenate([DATA.x[:8], CORNERS]))
    assert np.sqrt(np.mean((mean.mean(axis=0)[:8] - DATA.y[:8, 0]) ** 2)) < 0.3
    assert std[:, 8:].mean() > 2 * std[:, :8].mean()


@pytest.mark.parametrize("rubbish", [np.nan, 1e6])
def test_masked_rows_change_nothing(rubbish, name):
    rows = jnp.arange(12)[:, None] >= 8
    dirty = DATA._replace(
        x=jnp.where(rows, rubbish, DATA.x), y=jnp.where(rows, rubbish, DATA.y)
    )
    state, _ = _fit(name)(KEY, dirty, MODELS[name].init(12, 2, 1))
    for one, other in zip(
        _predict(name)(state, POINTS),
        _predict(name)(_fitted(name)[0], POINTS),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_the_same_key_gives_the_same_fit(name):
    again, _ = _fit(name)(KEY, DATA, MODELS[name].init(12, 2, 1))
    for one, other in zip(
        jax.tree.leaves(again), jax.tree.leaves(_fitted(name)[0]), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_data_grow_without_compiling(name):
    data, (state, _) = bonas.append(DATA, CORNERS[0], 1.0), _fitted(name)
    before = _predict(name)(state, CORNERS[:1]).mean.mean()
    sizes = _fit(name)._cache_size(), _predict(name)._cache_size()
    state, _ = _fit(name)(jax.random.key(1), data, state)
    assert abs(_predict(name)(state, CORNERS[:1]).mean.mean() - 1.0) < 0.2 + 0.8 * abs(
        before - 1.0
    )
    assert (_fit(name)._cache_size(), _predict(name)._cache_size()) == sizes


def test_imagined_values_are_learned(name):
    state, corner = _fitted(name)[0], jnp.array([[0.9, 0.8]])
    before = _predict(name)(state, corner)
    imagined = bonas.append(DATA, corner[0], before.mean.mean() + 1.0)
    after = _predict(name)(_update(name)(imagined, state), corner)
    assert 0.5 < after.mean.mean() - before.mean.mean() < 1.2
    assert after.std.mean() < 0.5 * before.std.mean()


@pytest.mark.slow
def test_a_fit_with_a_density_of_nan_is_reported(name):
    """A value of NaN makes the density NaN for every parameter."""
    lost = DATA._replace(y=DATA.y.at[0].set(jnp.nan))
    state, info = _fit(name)(KEY, lost, _fitted(name)[0])
    assert not info.finite
    assert not info.converged
    _same_shapes(state, _fitted(name)[0])
    if MODELS[name].has_evidence:
        info = jax.jit(lambda *given: MODELS[name].refresh(*given)[1])(lost, state)
        assert not info.finite
        assert not info.converged


def no_factor(params, a, b):
    return -jnp.exp(-jnp.sum((a - b) ** 2))


def no_gradient(params, a, b):
    """A covariance whose derivative at distance 0 is NaN, for all parameters."""
    distance = jnp.sqrt(jnp.sum((a - b) ** 2) * params["scale"] ** 2)
    return jnp.exp(-distance)


@pytest.mark.slow
@pytest.mark.parametrize("value", [no_factor, no_gradient])
@pytest.mark.parametrize(
    "make",
    [
        surrogates.gp,
        lambda kernel: surrogates.additive(((0,), (1,)), base=kernel),
        lambda kernel: replace(MODELS["saas"], kernel=kernel),
    ],
    ids=["gp", "additive", "saas"],
)
def test_a_kernel_without_a_density_or_gradient_is_reported(make, value):
    model = make(gp.Kernel({"scale": dist.Normal(0.0, 1.0)}, value))
    state, info = jax.jit(model.fit)(KEY, DATA, model.init(12, 2, 1))
    assert bool(info.finite) == bool(jnp.isfinite(info.log_density))
    assert not info.converged
    info = jax.jit(lambda *given: model.refresh(*given)[1])(DATA, state)
    assert bool(info.finite) == bool(jnp.isfinite(info.log_density))
    assert not (info.converged & ~info.finite)


@pytest.mark.slow
def test_gradients_of_the_prediction_are_those_of_differences(name):
    state, x, step = _fitted(name)[0], POINTS[:1], 1e-2 if name in SINGLE else 1e-5

    def moments(x):
        return jnp.concatenate([field.ravel() for field in _predict(name)(state, x)])

    gradient = np.asarray(jax.jit(jax.jacobian(moments))(x))[:, 0]
    for i in range(2):
        move = step * jnp.eye(2)[i : i + 1]
        difference = (moments(x + move) - moments(x - move)) / (2 * step)
        np.testing.assert_allclose(
            gradient[:, i], difference, rtol=1e-4, atol=2e-2 if name in SINGLE else 1e-6
        )


@pytest.mark.slow
def test_gradients_are_finite_at_the_data(name):
    state = _fitted(name)[0]
    slopes = jax.jit(
        jax.grad(lambda x: sum(field.sum() for field in MODELS[name].predict(state, x)))
    )(DATA.x[:8])
    assert jnp.isfinite(slopes).all()
