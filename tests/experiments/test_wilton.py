from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import bonas
from bonas import nets
from bonas.nets import ensemble
from bonas.search.observations import SAME_POINT
from experiments.wilton import system as wilton

SMALL = replace(
    wilton.PIECES,
    rows=20,
    depth=2,
    width=4,
    members=3,
    candidates=130,
    max_epochs=15,
    min_epochs=5,
)
DATA = SMALL.data(jax.random.key(0), test=9)
KEY = jax.random.key(1)
ROW = SMALL.space.encode({"depth": 2, "width": 3, "members": 2, "density": 0.9})
SAMPLES = 6


@jax.jit
def value(key, u):
    return wilton.objective(SMALL, DATA)(key, u)


# Published settings


def test_the_spaces_are_those_stated():
    assert wilton.PIECES.space == bonas.Space(
        depth=bonas.Int(1, 5),
        width=bonas.Int(1, 15),
        members=bonas.Int(1, 30),
        density=bonas.Float(0.0, 1.0),
    )
    assert wilton.CUBIC.space == bonas.Space(
        depth=bonas.Int(1, 10),
        width=bonas.Int(1, 10),
        members=bonas.Int(1, 30),
        density=bonas.Float(0.0, 1.0),
    )
    assert (wilton.PIECES.candidates, wilton.CUBIC.candidates) == (2000, 1000)


@pytest.mark.parametrize(
    ("experiment", "most"), [(wilton.PIECES, 5000), (wilton.CUBIC, 2000)]
)
def test_training_is_as_stated(experiment, most):
    settings = experiment.settings
    assert (settings.optimizer, settings.batch, settings.loss) == (
        "adadelta",
        None,
        "squared_error",
    )
    assert (settings.min_epochs, settings.max_epochs, settings.tolerance) == (
        1000,
        most,
        1e-4,
    )


@pytest.mark.parametrize(
    ("experiment", "rows"), [(wilton.PIECES, 150), (wilton.CUBIC, 100)]
)
def test_there_are_as_many_rows_as_stated(experiment, rows):
    data = experiment.data(KEY)
    assert data.x.shape == data.y.shape == data.valid_x.shape == (rows, 1)
    assert (data.x != data.valid_x).all()
    assert experiment.low <= data.x.min() <= data.x.max() <= experiment.high
    residual = np.asarray(data.y) - experiment.truth(np.asarray(data.x))
    np.testing.assert_allclose(
        residual.std(), 5.0, rtol=5 / np.sqrt(2 * rows)
    )  # five standard errors


@pytest.mark.parametrize("experiment", wilton.EXPERIMENTS)
def test_the_published_design_is_in_the_space(experiment):
    config = dict(zip(experiment.space.names, experiment.published, strict=True))
    u = experiment.space.encode(config)
    assert experiment.space.decode(u) == pytest.approx(config)
    design = experiment.design(u)
    np.testing.assert_allclose(
        [design.depth, design.width, design.members, design.density],
        experiment.published,
    )


def test_the_jumps_are_where_the_function_jumps():
    for experiment in wilton.EXPERIMENTS:
        x = np.linspace(experiment.low, experiment.high, 100_001)
        far = np.abs(np.diff(experiment.truth(x))) > 1.0
        assert {round(place) for place in x[1:][far]} == set(experiment.jumps)


# The objective


@pytest.mark.slow
def test_the_objective_is_a_euclidean_distance_on_the_test_rows():
    trained = wilton.train(SMALL, KEY, SMALL.design(ROW), DATA)
    members = np.asarray(ensemble.member_outputs(trained, DATA.valid_x))[
        np.asarray(trained.included)
    ]
    expected = np.linalg.norm(members.mean(axis=0) - np.asarray(DATA.valid_y))
    np.testing.assert_allclose(value(KEY, ROW), expected, rtol=1e-5)


def test_test_rows_are_not_trained_on():
    other = DATA._replace(valid_x=DATA.valid_x + 1.0, valid_y=DATA.valid_y - 3.0)
    one, two = (
        wilton.train(SMALL, KEY, SMALL.design(ROW), data).params
        for data in (DATA, other)
    )
    for leaf, same in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(leaf, same)


def test_all_designs_share_one_program():
    value(KEY, ROW)
    before = value._cache_size()
    losses = [
        value(jax.random.key(i), u) for i, u in enumerate(SMALL.space.sample(KEY, 5))
    ]
    assert np.isfinite(losses).all()
    assert value._cache_size() == before


# The search


@pytest.fixture(scope="module")
def history():
    search = wilton.search(SMALL, samples=SAMPLES, initial=3)
    return jax.jit(
        lambda key: bonas.run(search, wilton.objective(SMALL, DATA), key, 6)
    )(KEY)


@pytest.mark.slow
def test_a_search_is_one_program_from_the_first_design_to_the_last(history):
    assert np.isfinite(history.y).all()
    assert (np.diff(history.best) <= 0.0).all()
    np.testing.assert_array_equal(
        np.isneginf(history.info.acquisition), [True, True, True, False, False, False]
    )
    np.testing.assert_array_equal(history.info.fallback, 0)


def test_designs_are_not_tried_twice(history):
    gaps = np.abs(history.x[:, None] - history.x[None, :]).max(axis=2)
    assert (gaps[~np.eye(6, dtype=bool)] > SAME_POINT).all()


def test_the_score_is_the_average_improvement_on_the_least_loss_observed(history):
    """Eqs. 10 and 11 with the mean of eq. 7, from the model of the last ask with five losses."""
    model = jax.tree.map(lambda leaf: leaf[0], history.state.model)
    known = np.asarray(history.y[:5])
    y = (known - known.mean()) / known.std()
    surrogate = wilton.surrogate(SAMPLES)
    mean, std = (
        np.asarray(field)[:, 0] for field in surrogate.predict(model, history.x[5:6])
    )
    assert mean.shape == (SAMPLES,)
    z = (y.min() - mean) / std
    expected = np.log(np.mean(std * (z * norm.cdf(z) + norm.pdf(z))))
    np.testing.assert_allclose(history.info.acquisition[5], expected, rtol=1e-6)
    far = surrogate.predict(
        model, jnp.full((1, 4), 1e6)
    ).mean  # where nothing is known the mean is the prior's
    np.testing.assert_allclose(far, y.min() + 0.5 * (y.mean() - y.min()), rtol=1e-6)


def test_views_are_passed_on():
    """Bootstrap members differ from those that see everything, and from the same key."""
    plain, resampled = (
        wilton.train(SMALL, KEY, SMALL.design(ROW), DATA, seen)
        for seen in (nets.member_data.all_data, nets.member_data.bootstrap)
    )
    assert (np.asarray(plain.loss[:2]) != np.asarray(resampled.loss[:2])).all()


def test_one_lucky_loss_is_not_recommended():
    """On a noisy bowl the model discounts one slightly lower loss in the worst corner."""
    rng = np.random.default_rng(0)
    x = np.vstack(
        [rng.uniform(size=(20, 4)) * [1.0, 0.01, 0.01, 0.01], [[0.98, 0.0, 0.0, 0.0]]]
    )
    y = np.append((x[:20, 0] - 0.3) ** 2 + 0.02 * rng.normal(size=20), np.nan)
    y[-1] = np.nanmin(y) - 0.01
    chosen = wilton.recommend(KEY, x, y, samples=30)
    assert abs(x[chosen, 0] - 0.3) < 0.25
    y[chosen] = np.nan
    assert wilton.recommend(KEY, x, y, samples=30) != chosen


def test_there_is_no_recommendation_of_nothing():
    with pytest.raises(ValueError, match="at least one successful evaluation"):
        wilton.recommend(KEY, np.zeros((2, 4)), [np.nan, np.inf])
