"""The networks by HMC and NUTS and the regression on a last layer, behind the interface that searches know."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.surrogates.bayesian import _condition, hmc_network
from bonas.surrogates.last_layer import last_layer

MODELS = {
    "hmc": hmc_network((12,), chains=4, samples=100, first=200),
    "nuts": hmc_network((12,), chains=2, samples=40, first=60, method="nuts", target=0.8, depth=5),
    "float32": hmc_network((12,), chains=4, samples=100, first=200, dtype="float32", precisions="joint"),
    "last layer": last_layer((12, 12), steps=300, samples=4),
}
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(8, 2)) * 0.5  # one quarter of the square
Y = np.sin(6.0 * X[:, 0]) + X[:, 1]
DATA = bonas.dataset(X, (Y - Y.mean()) / Y.std(), capacity=12)
POINTS = jnp.asarray(RNG.uniform(size=(30, 2)))


@cache
def _fit(name):
    return jax.jit(lambda key, data, state: MODELS[name].fit(key, data, state))


@cache
def _predict(name):
    return jax.jit(MODELS[name].predict)


@cache
def _fitted(name):
    return _fit(name)(KEY, DATA, MODELS[name].init(12, 2, 1))


@pytest.fixture(params=list(MODELS))
def name(request):
    return request.param


def test_shapes_are_those_of_the_interface(name):
    model, (state, info) = MODELS[name], _fitted(name)
    assert info.finite
    mean, std = _predict(name)(state, POINTS)
    s = len(mean)
    assert mean.shape == std.shape == (s, 30)
    assert s == (4 if name == "last layer" else 1)
    assert (std > 0.0).all()
    assert model.covariance(state, POINTS, POINTS[:3]).shape == (s, 30, 3)
    assert model.sample(KEY, state, POINTS, 7).shape == (7, 30)
    assert mean.dtype == std.dtype == POINTS.dtype


def test_a_state_keeps_its_shapes(name):
    first = MODELS[name].init(12, 2, 1)
    later = [_fitted(name)[0], jax.eval_shape(MODELS[name].update, DATA, _fitted(name)[0])]
    for state in later:
        assert jax.tree.structure(first) == jax.tree.structure(state)
        for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(state), strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)


def test_draws_have_the_moments_of_the_prediction(name):
    """4000 draws: five standard errors of their mean and of their covariance, for values within two of their deviations."""
    state = _fitted(name)[0]
    draws = np.asarray(jax.jit(MODELS[name].sample, static_argnums=3)(KEY, state, POINTS, 4000))
    means, stds = (np.asarray(field) for field in _predict(name)(state, POINTS))
    covariances = np.asarray(MODELS[name].covariance(state, POINTS, POINTS))
    np.testing.assert_allclose(np.diagonal(covariances, axis1=1, axis2=2), stds**2, rtol=1e-4, atol=1e-9)
    centred = means - means.mean(axis=0)
    covariance = covariances.mean(axis=0) + centred.T @ centred / len(means)
    std = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - means.mean(axis=0)) < 5 * std / np.sqrt(4000)).all()
    assert (np.abs(np.cov(draws.T) - covariance) < 5 * 2 * std[:, None] * std[None, :] / np.sqrt(4000)).all()


def test_it_follows_the_data_and_doubts_elsewhere(name):
    """The values have variance 1."""
    mean, std = _predict(name)(_fitted(name)[0], jnp.concatenate([DATA.x[:8], jnp.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])]))
    assert np.sqrt(np.mean((mean.mean(axis=0)[:8] - DATA.y[:8, 0]) ** 2)) < 0.2
    assert std[:, 8:].mean() > 2 * std[:, :8].mean()


@pytest.mark.parametrize("rubbish", [np.nan, 1e6])
def test_masked_rows_change_nothing(rubbish, name):
    rows = jnp.arange(12)[:, None] >= 8
    dirty = DATA._replace(x=jnp.where(rows, rubbish, DATA.x), y=jnp.where(rows, rubbish, DATA.y))
    state, _ = _fit(name)(KEY, dirty, MODELS[name].init(12, 2, 1))
    np.testing.assert_array_equal(_predict(name)(state, POINTS).mean, _predict(name)(_fitted(name)[0], POINTS).mean)


def test_imagined_values_are_learned(name):
    state = _fitted(name)[0]
    corner = jnp.array([[0.9, 0.8]])
    before = _predict(name)(state, corner)
    imagined = bonas.append(DATA, corner[0], before.mean.mean() + 1.0)
    after = _predict(name)(jax.jit(MODELS[name].update)(imagined, state), corner)
    assert 0.5 < after.mean.mean() - before.mean.mean() < 1.2
    assert after.std.mean() < 0.5 * before.std.mean()


def test_gradients_of_the_prediction_are_those_of_differences(name):
    state, x, step = _fitted(name)[0], POINTS[:1], 1e-2 if name in ("float32", "last layer") else 1e-5

    def moments(x):
        return jnp.concatenate([field.ravel() for field in MODELS[name].predict(state, x)])

    gradient = np.asarray(jax.jit(jax.jacobian(moments))(x))[:, 0]
    for i in range(2):
        move = step * jnp.eye(2)[i : i + 1]
        difference = (moments(x + move) - moments(x - move)) / (2 * step)
        np.testing.assert_allclose(gradient[:, i], difference, rtol=1e-4, atol=1e-2 if step > 1e-4 else 1e-6)


def test_equal_models_are_one():
    space = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Choice("x", "y", "z"))
    assert hmc_network([12], chains=4, samples=100, first=200) is MODELS["hmc"]
    assert last_layer([12, 12], steps=300, samples=4) is MODELS["last layer"]
    for model in MODELS.values():
        assert model.adapt(space) is model.adapt(space)


def test_networks_see_options_apart_and_flags():
    """Three options, one number and one flag: what the first layer takes."""
    space = bonas.Space(b=bonas.Choice("x", "y", "z"), a=bonas.Float(0.0, 1.0, when={"b": "x"}))
    assert MODELS["hmc"].adapt(space).init(4, 2, 1).weights.kernels[0].shape == (100, 5, 12)
    assert MODELS["last layer"].adapt(space).init(4, 2, 1).params["first"]["kernel"].shape == (5, 12)


# The network by HMC


def test_later_fits_go_on_from_the_last():
    """A network that has settled needs no burn-in: five trajectories more leave it as good as it was."""
    state, first = _fitted("hmc")
    again, info = _fit("hmc")(jax.random.key(1), DATA, state)
    mean = _predict("hmc")(again, DATA.x[:8]).mean[0]
    assert np.sqrt(np.mean((mean - DATA.y[:8, 0]) ** 2)) < 0.2
    assert abs(info.log_density - first.log_density) < 0.5 * abs(first.log_density)


def test_what_is_not_a_number_is_not_kept():
    """A broken chain leaves the last networks, and says so."""
    state = _fitted("hmc")[0]
    broken = state._replace(chains=jax.tree.map(lambda leaf: leaf * jnp.nan, state.chains))
    kept, info = _fit("hmc")(KEY, DATA, broken)
    assert not info.finite
    np.testing.assert_array_equal(_predict("hmc")(kept, POINTS).mean, _predict("hmc")(state, POINTS).mean)


def test_conditioning_is_that_of_a_gaussian():
    """Against the formulae for a Gaussian with the mean and the covariance of 9 functions at 6 points, 2 of them observed."""
    values, y, noise = RNG.normal(size=(9, 6)), RNG.normal(size=6), 0.3
    new = np.array([False, True, False, False, True, False])
    mixed = np.asarray(_condition(jnp.asarray(values), jnp.asarray(y), jnp.asarray(new), jnp.asarray(noise))) @ values
    mean, covariance = values.mean(axis=0), np.cov(values.T, ddof=0)
    gain = covariance[:, new] @ np.linalg.inv(covariance[np.ix_(new, new)] + noise * np.eye(2))
    np.testing.assert_allclose(mixed.mean(axis=0), mean + gain @ (y - mean)[new], rtol=1e-9)
    np.testing.assert_allclose(np.cov(mixed.T, ddof=0), covariance - gain @ covariance[new], rtol=1e-9, atol=1e-12)


def test_nothing_imagined_changes_nothing():
    state = _fitted("hmc")[0]
    np.testing.assert_allclose(MODELS["hmc"].update(DATA, state).mix, state.mix, atol=1e-12)


# The regression on a last layer


def test_the_last_layer_is_regressed_on_in_closed_form():
    """Against ridge regression on the hidden layer, computed here, under each sample of the two variances."""
    state = _fitted("last layer")[0]
    params = jax.tree.map(np.asarray, state.params)

    def hidden(x):
        h = np.tanh((2.0 * np.asarray(x) - 1.0) @ params["first"]["kernel"] + params["first"]["bias"])
        h = np.tanh(h @ params["hidden"]["kernel"][0] + params["hidden"]["bias"][0])
        return np.column_stack([np.ones(len(h)), h / np.sqrt(12)])

    rows, there = hidden(DATA.x[:8]), hidden(POINTS)
    posterior = state.regression.posterior
    for i, (mean, std) in enumerate(zip(*_predict("last layer")(state, POINTS), strict=True)):
        variance, first_row = float(posterior.params["variance"][i]), float(posterior.lower[i, 0, 0])
        noise = first_row**2 - variance * rows[0] @ rows[0]  # what the covariance has beside that of the function
        covariance = np.linalg.inv(np.eye(13) / variance + rows.T @ rows / noise)
        weights = covariance @ rows.T @ np.asarray(DATA.y[:8, 0]) / noise
        np.testing.assert_allclose(mean, there @ weights, atol=1e-3)
        np.testing.assert_allclose(std, np.sqrt(np.sum(there @ covariance * there, axis=1)), atol=1e-3)


# Searches


@pytest.mark.slow
@pytest.mark.parametrize("model", ["hmc", "last layer"])
def test_a_search_finds_the_minimum_of_a_parabola(model):
    """Within 0.02 of it, 20 evaluations, in the median over 3 seeds; a point in 50 is so near."""
    space = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
    search = bonas.bayes(space, surrogate=MODELS[model])
    objective = lambda key, u: jnp.sum((u - 0.3) ** 2)  # noqa: E731
    history = bonas.run_many(search, objective, jax.random.split(KEY, 3), 20)
    assert np.median(history.best[:, -1]) < 0.02 / np.pi


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(hmc_network, samples=10, chains=3), "a multiple of chains"),
        (partial(hmc_network, method="gibbs"), "expected method in"),
        (partial(hmc_network, floor=0.0), "floor > 0"),
        (partial(hmc_network, activation="swish"), "an activation is one of"),
        (partial(last_layer, widths=()), "a hidden layer"),
    ],
)
def test_models_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make().init(4, 2, 1)


def test_several_outputs_are_refused(name):
    with pytest.raises(ValueError, match="one output; got p = 3"):
        MODELS[name].init(4, 2, 3)
