import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, surrogates
from bonas.problems import functions
from bonas.search import random
from bonas.surrogates.features import features

MODEL = surrogates.ensemble(4, (20, 20))
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(8, 2)) * 0.5  # one quarter of the square
Y = np.sin(6.0 * X[:, 0]) + X[:, 1]
DATA = bonas.dataset(X, (Y - Y.mean()) / Y.std(), capacity=12)
POINTS = jnp.asarray(RNG.uniform(size=(30, 2)))

fit = jax.jit(lambda key, data, state: MODEL.fit(key, data, state))
predict = jax.jit(MODEL.predict)


@pytest.fixture(scope="module")
def fitted():
    state, info = fit(KEY, DATA, MODEL.init(12, 2, 1))
    assert info.finite
    assert info.converged
    return state


# The contract


def test_shapes_are_those_of_the_interface(fitted):
    mean, std = predict(fitted, POINTS)
    assert mean.shape == std.shape == (1, 30)
    assert (std > 0.0).all()
    assert MODEL.covariance(fitted, POINTS, POINTS[:3]).shape == (1, 30, 3)
    assert MODEL.sample(KEY, fitted, POINTS, 7).shape == (7, 30)
    assert mean.dtype == std.dtype == POINTS.dtype


def test_a_state_keeps_its_shapes(fitted):
    first = MODEL.init(12, 2, 1)
    assert jax.tree.structure(first) == jax.tree.structure(fitted)
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(fitted), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)


def test_draws_have_the_moments_of_the_prediction(fitted):
    """5000 draws: five standard errors of their mean and of their covariance, for values within two of their deviations."""
    draws = np.asarray(jax.jit(MODEL.sample, static_argnums=3)(KEY, fitted, POINTS, 5000))
    mean, std = (np.asarray(field)[0] for field in predict(fitted, POINTS))
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * std / np.sqrt(5000)).all()
    covariance = np.asarray(MODEL.covariance(fitted, POINTS, POINTS))[0]
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-5)
    scale = std[:, None] * std[None, :]
    assert (np.abs(np.cov(draws.T) - covariance) < 5 * 2 * scale / np.sqrt(5000)).all()


def test_it_follows_the_data_and_doubts_elsewhere(fitted):
    """The values have variance 1."""
    mean, std = predict(fitted, DATA.x[:8])
    assert np.sqrt(np.mean((mean[0] - DATA.y[:8, 0]) ** 2)) < 0.2
    away = predict(fitted, jnp.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])).std
    assert away.min() > 2 * std.max()


@pytest.mark.parametrize("rubbish", [np.nan, 1e6])
def test_masked_rows_change_nothing(rubbish, fitted):
    rows = jnp.arange(12)[:, None] >= 8
    dirty = DATA._replace(x=jnp.where(rows, rubbish, DATA.x), y=jnp.where(rows, rubbish, DATA.y))
    state, _ = fit(KEY, dirty, MODEL.init(12, 2, 1))
    np.testing.assert_array_equal(predict(state, POINTS).mean, predict(fitted, POINTS).mean)


def test_imagined_values_are_learned(fitted):
    before = predict(fitted, POINTS[:1]).mean[0, 0]
    imagined = bonas.append(DATA, POINTS[0], before + 1.0)
    after = predict(jax.jit(MODEL.update)(imagined, fitted), POINTS[:1]).mean[0, 0]
    assert 0.5 < after - before < 1.2


def test_a_warm_start_goes_on_from_the_last_fit():
    """One step of a new start cannot be as good as one more of what was trained."""
    warm = surrogates.ensemble(4, (20, 20), steps=50, warm=True)
    again = jax.jit(warm.fit)
    state, first = again(KEY, DATA, warm.init(12, 2, 1))
    for seed in range(1, 5):
        state, last = again(jax.random.key(seed), DATA, state)
    assert -last.log_density < 0.1 * -first.log_density


def test_equal_ensembles_are_one():
    assert surrogates.ensemble(4, [20, 20]) is MODEL
    space = functions.branin.space
    assert MODEL.adapt(space) is MODEL.adapt(space)


# Spaces


def test_options_have_no_order_and_what_is_not_there_is_told_apart():
    space = bonas.Space(
        kind=bonas.Choice("a", "b", "c"), rate=bonas.Float(0.0, 1.0), extra=bonas.Float(0.0, 1.0, when={"kind": "c"})
    )
    rows = jnp.stack(
        [
            space.encode({"kind": "a", "rate": 0.2}),
            space.encode({"kind": "c", "rate": 0.4, "extra": 0.0}),
            space.encode({"kind": "b", "rate": 0.2}),
        ]
    )
    expected = [[1, 0, 0, 0.2, 0, 0], [0, 0, 1, 0.4, 0, 1], [0, 1, 0, 0.2, 0, 0]]
    np.testing.assert_allclose(features(space, rows), expected, atol=1e-12)


# Searches


@pytest.mark.slow
def test_it_beats_random_search():
    """After 25 evaluations of a smooth function of two variables, in the median over 10 seeds; random search has 20."""
    problem, steps = functions.branin, 25
    box = acquire.uniform(problem.space, candidates=500)  # compiles faster than one that climbs
    search = bonas.bayes(problem.space, surrogate=MODEL, maximiser=box)
    keys = jax.random.split(KEY, 20)
    found = bonas.run_many(search, problem.objective, keys[:10], steps).best[:, -1]
    by_chance = bonas.run_many(random(problem.space), problem.objective, keys, steps).best[:, -1]
    assert np.median(found) - problem.optimum < 0.5 * (np.median(by_chance) - problem.optimum)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": 1}, "members >= 2"),
        ({"floor": 0.0}, "floor > 0"),
        ({"widths": ()}, "a hidden layer"),
        ({"activation": "swish"}, "an activation is one of"),
    ],
)
def test_ensembles_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        surrogates.ensemble(**change).init(4, 2, 1)


def test_several_outputs_are_refused():
    with pytest.raises(ValueError, match="one output; got p = 3"):
        MODEL.init(4, 2, 3)
