"""Observations with known noise variances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.checked_data import grow
from bonas.data import standardize
from bonas.search import output_scales, posterior, random
from bonas.search.bayesian import Bayes
from bonas.search.known_noise import scale_noise

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0))
KEY = jax.random.key(0)
X = jnp.linspace(0.0, 1.0, 6)[:, None]
Y = jnp.sin(6.0 * X[:, 0])
NOISE = jnp.array([0.1, 0.0, 0.5, 1.0, 0.2, 0.3])
KERNEL = gp.matern52()
PARAMS = {"variance": jnp.asarray(1.0), "lengthscale": jnp.asarray([0.3])}


def make_search(**settings):
    return bonas.bayes(
        SPACE,
        **{
            "surrogate": surrogates.gp(KERNEL, noise=1e-4),
            "maximizer": acquire.random_candidates(SPACE, candidates=20),
            "initial": 2,
            "output": "plain",
            "known_noise": True,
            **settings,
        },
    )


def objective(key, u):
    return (u[0] - 0.3) ** 2, 2.0, 0.1 + u[0]


# The model


def test_it_is_added_to_the_noise_of_the_model():
    data = bonas.dataset(X, Y, 8, noise=NOISE)
    plain = bonas.dataset(X, Y, 8)
    total = 0.01 + jnp.pad(NOISE, (0, 2))
    found = gp.predict(gp.condition(KERNEL, PARAMS, data, noise=0.01), X + 0.05)
    expected = gp.predict(gp.condition(KERNEL, PARAMS, plain, noise=total), X + 0.05)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(
        gp.log_evidence(KERNEL, PARAMS, data, noise=0.01),
        gp.log_evidence(KERNEL, PARAMS, plain, noise=total),
        rtol=1e-12,
    )


def test_noise_of_masked_rows_has_no_effect():
    data = bonas.dataset(X, Y, 8, noise=NOISE)
    data = data._replace(mask=data.mask.at[2].set(False))

    def evidence(noise, column):
        return gp.log_evidence(KERNEL, PARAMS, data._replace(noise=column), noise=noise)

    column = data.noise
    for value in (7.0, jnp.inf, jnp.nan):
        other = column.at[jnp.array([2, 6, 7])].set(value)
        for function in (evidence, jax.grad(evidence)):
            np.testing.assert_array_equal(function(0.1, column), function(0.1, other))


@pytest.mark.parametrize(
    "make",
    [
        surrogates.gp,
        pytest.param(surrogates.additive, marks=pytest.mark.slow),
        pytest.param(surrogates.linear, marks=pytest.mark.slow),
    ],
)
def test_surrogates_on_half_of_the_rows_use_it(make):
    """Fits with a capacity of 32 run on half of the rows; the model is that of a capacity of 8."""
    model = make()
    means = []
    for capacity in (8, 32):
        data = bonas.dataset(X, Y, capacity, noise=NOISE)
        fitted, _ = model.fit(KEY, data, model.init(capacity, 1, 1))
        means.append(model.predict(fitted, X).mean)
    np.testing.assert_allclose(means[0], means[1], rtol=1e-6, atol=1e-8)
    quiet = model.update(data._replace(noise=None), fitted)
    assert not np.allclose(model.predict(quiet, X).mean, means[1], atol=1e-3)


def test_standardizing_divides_by_the_squared_scale_and_growing_adds_zeros():
    data = bonas.dataset(X, 10.0 * Y, noise=NOISE)
    scaled, _, scale = standardize(data)
    np.testing.assert_allclose(scaled.noise, NOISE / scale**2)
    np.testing.assert_array_equal(grow(data, 8).noise, jnp.pad(NOISE, (0, 2)))


@pytest.mark.parametrize("name", ["plain", "log", "tails"])
def test_scales_multiply_it_by_their_squared_slope(name):
    """Of values between, above and below the median, which does not move with them."""
    y = jnp.array([1.0, 2.0, 3.0, 4.0, 9.0, 20.0])
    noise = jnp.full(6, 0.5)
    data = bonas.dataset(X, y, 8, noise=noise)
    scale = output_scales.OUTPUT_SCALES[name]
    found = scale_noise(scale, data, scale(data)[0]).noise
    step = 1e-6
    rows = [1, 4, 5]  # neither the minimum nor next to the median
    for row in rows:
        ends = [
            scale(data._replace(y=data.y.at[row].add(move)))[0].y[row, 0]
            for move in (-step, step)
        ]
        slope = (ends[1] - ends[0]) / (2 * step)
        np.testing.assert_allclose(found[row], 0.5 * slope**2, rtol=1e-5)
    np.testing.assert_array_equal(found[6:], 0.0)


# Searches


@pytest.mark.parametrize(
    "output",
    [("plain", "tails"), pytest.param("log", marks=pytest.mark.slow)],
    ids=str,
)
def test_a_search_weights_precise_observations_more(output):
    """Two values at one point: the prediction is close to the precise one."""
    search = make_search(output=output)
    x = jnp.array([[0.0], [0.5], [0.5], [1.0]])
    y = jnp.array([2.0, 1.0, 3.0, 2.5])

    def prediction(noise):
        state = search.init(KEY, 6)
        for row in zip(x, y, noise, strict=True):
            state = search.tell(state, bonas.Observation(row[0], row[1], noise=row[2]))
        return posterior(search, state).predict(jnp.array([[0.5]])).mean[0]

    small, large = 1e-4, 4.0
    assert abs(prediction([small, small, large, small]) - 1.0) < 0.2
    assert abs(prediction([small, large, small, small]) - 3.0) < 0.2


def test_runs_store_it_and_resume_and_are_saved(tmp_path):
    search = make_search()
    whole = bonas.run(search, objective, KEY, 5)
    data = whole.state.observations.data
    np.testing.assert_allclose(data.noise, 0.1 + whole.x[:, 0])
    first = bonas.run(search, objective, KEY, 3)
    first.save(tmp_path / "run.npz")
    loaded = bonas.search.History.load(tmp_path / "run.npz", search)
    second = bonas.run(search, objective, KEY, 2, state=loaded.state)
    np.testing.assert_allclose(first.followed_by(second).x, whole.x, atol=1e-9)
    np.testing.assert_array_equal(whole.cost, 2.0)


def test_several_runs_of_batches_start_from_known_noise():
    found = bonas.run_many(
        make_search(batch=2),
        objective,
        jax.random.split(KEY, 2),
        2,
        data=(X[:3], Y[:3], None, NOISE[:3]),
        direction="maximize",
    )
    noise = found.state.observations.data.noise
    np.testing.assert_allclose(noise[:, :3], np.tile(NOISE[:3], (2, 1)))
    np.testing.assert_allclose(noise[:, 3:], 0.1 + found.x[:, :, 0])


def test_minimize_accepts_a_cost_and_a_noise(tmp_path):
    def value(config):
        return config["a"], 3.0, 0.25

    search = make_search()
    found = bonas.minimize(value, SPACE, trials=3, search=search, progress=False)
    np.testing.assert_array_equal(found.state.observations.data.noise, 0.25)
    np.testing.assert_array_equal(found.state.observations.cost, 3.0)
    found.save(tmp_path / "result.npz")
    loaded = bonas.search.Result.load(tmp_path / "result.npz", search)
    assert [(each.cost, each.noise) for each in loaded.evaluations] == [(3.0, 0.25)] * 3


def test_pending_and_failed_points_have_none():
    search = make_search()
    state = search.init(KEY, 4)
    state = search.tell(state, bonas.Observation(X[0], 1.0, noise=0.5))
    state = search.tell(state, bonas.Observation(X[1], jnp.nan, noise=0.5))
    x, state, _ = search.ask(KEY, state)
    np.testing.assert_array_equal(state.observations.data.noise, [0.5, 0.0, 0.0, 0.0])
    state = search.tell(state, bonas.Observation(x[0], 1.0, noise=0.7))
    np.testing.assert_array_equal(state.observations.data.noise, [0.5, 0.0, 0.7, 0.0])


@pytest.mark.parametrize("noise", [-1.0, np.nan, np.inf])
def test_an_observation_with_an_impossible_variance_has_failed(noise):
    search = make_search()
    state = search.tell(search.init(KEY, 2), bonas.Observation(X[0], 1.0, noise=noise))
    assert state.observations.failed[0]
    assert state.observations.data.noise[0] == 0.0


def test_other_states_have_no_column():
    search = make_search(known_noise=False)
    assert search.init(KEY, 2).observations.data.noise is None
    assert type(search) is Bayes


# Errors


def test_a_search_without_it_refuses_noise_and_a_baseline_ignores_it():
    with pytest.raises(ValueError, match="known_noise=True"):
        bonas.run(make_search(known_noise=False), objective, KEY, 3)
    assert bonas.run(random(SPACE), objective, KEY, 3).y.shape == (3,)


def test_a_missing_variance_is_an_error():
    """It is never taken for 0, which must be passed."""
    search = make_search()
    missing = (
        "expected a noise variance for every observation.*0.0 if a value has no noise"
    )
    with pytest.raises(ValueError, match=missing):
        search.tell(search.init(KEY, 2), bonas.Observation(X[0], 1.0))
    with pytest.raises(ValueError, match=missing):
        bonas.run(search, lambda key, u: u[0], KEY, 2)
    for known in ((X, Y), (X, Y, NOISE)):
        with pytest.raises(ValueError, match=missing):
            bonas.run(search, objective, KEY, 2, data=known)
    with pytest.raises(ValueError, match=missing):
        bonas.minimize(
            lambda config: 1.0, SPACE, trials=2, search=search, progress=False
        )
    state = search.init(KEY, 2)
    state = search.tell(state, bonas.Observation(X[0], 1.0, noise=0.0))
    assert state.observations.data.mask[0]


def test_failed_evaluations_of_minimize_need_none():
    def fail(config):
        raise RuntimeError

    search = make_search()
    settings = {"search": search, "catch": (RuntimeError,), "progress": False}
    found = bonas.minimize(fail, SPACE, trials=2, **settings)
    assert found.state.observations.failed.all()


def test_a_surrogate_that_cannot_use_it_is_an_error():
    with pytest.raises(ValueError, match="cannot use the noise of each observation"):
        make_search(surrogate=surrogates.ensemble())


def test_shapes_are_checked():
    search = make_search()
    with pytest.raises(ValueError, match="expected one noise variance"):
        search.tell(search.init(KEY, 2), bonas.Observation(X[0], 1.0, noise=NOISE))
    with pytest.raises(ValueError, match="expected one noise variance for each"):
        bonas.run(search, objective, KEY, 2, data=(X, Y, None, NOISE[:2]))
    with pytest.raises(ValueError, match="got a tuple of 4"):
        bonas.run(search, lambda key, u: (u[0], 1.0, 1.0, 1.0), KEY, 2)
    with pytest.raises(
        ValueError, match=r"noise must be finite and at least 0; got -.* in row 0"
    ):
        bonas.dataset(X, Y, noise=-NOISE)
    with pytest.raises(
        ValueError, match=r"noise must have shape \(6,\), .*got shape \(2,\)"
    ):
        bonas.dataset(X, Y, noise=NOISE[:2])
