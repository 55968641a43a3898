"""The posterior after a run, in the units of the objective."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.data import empty
from bonas.search import History, invert_scale, posterior, random
from bonas.search.output_scales import OUTPUT_SCALES, plain

SPACE = bonas.Space(
    a=bonas.Float(0.0, 1.0),
    depth=bonas.Int(1, 2),
    b=bonas.Float(0.0, 1.0, when={"depth": (">=", 2)}),
)
MODEL = surrogates.gp(gp.matern52(), noise=1e-6)
KEY = jax.random.key(0)
X = SPACE.sample(jax.random.key(1), 7)


def objective(key, u):
    return 100.0 + 50.0 * jnp.exp(3.0 * u[0]) + 20.0 * u[1] * jnp.sin(3.0 * u[2])


def search(output, **settings):
    return bonas.bayes(SPACE, surrogate=MODEL, output=output, **settings)


@pytest.fixture(scope="module")
def history():
    return bonas.run(random(SPACE), objective, KEY, 12)


@pytest.fixture(
    scope="module", params=["plain", "log", "tails", ("plain", "log")], ids=str
)
def fitted(request, history):
    return posterior(search(request.param), history)


@pytest.mark.slow
def test_the_posterior_knows_the_evaluations(fitted, history):
    mean, std = fitted.predict(history.x)
    np.testing.assert_allclose(mean, history.y, rtol=1e-2)
    assert (std < 0.05 * history.y.std()).all()
    np.testing.assert_allclose(fitted.quantile(history.x, 0.5), history.y, rtol=1e-2)


@pytest.mark.slow
def test_moments_and_quantiles_are_those_of_draws(fitted):
    """50,000 draws; five standard errors."""
    n = 50_000
    draws = np.asarray(fitted.sample(KEY, X, n))
    mean, std = map(np.asarray, fitted.predict(X))
    np.testing.assert_array_less(abs(draws.mean(axis=0) - mean), 5 * std / np.sqrt(n))
    fourth = ((draws - mean) ** 4).mean(axis=0) - std**4
    error = 5 * np.sqrt(fourth / n) / (2 * std)
    np.testing.assert_array_less(abs(draws.std(axis=0) - std), error)
    for q in (0.1, 0.5, 0.975):
        below = (draws < np.asarray(fitted.quantile(X, q))).mean(axis=0)
        assert (abs(below - q) < 5 * np.sqrt(q * (1.0 - q) / n)).all()


@pytest.mark.slow
def test_configurations_are_points(fitted):
    configs = [SPACE.decode(row) for row in X]
    np.testing.assert_allclose(fitted.predict(configs)[0], fitted.predict(X)[0])
    np.testing.assert_array_equal(
        fitted.sample(KEY, configs, 2), fitted.sample(KEY, X, 2)
    )
    inactive = X.at[:, 2].set(jnp.where(X[:, 1] < 0.5, 0.7, X[:, 2]))
    np.testing.assert_allclose(fitted.predict(inactive)[0], fitted.predict(X)[0])


@pytest.mark.slow
def test_on_the_plain_scale_it_is_the_gaussian_process(history):
    """Standardized values, scaled back."""
    fitted = posterior(search("plain"), history)
    mean, std = MODEL.adapt(SPACE).predict(fitted.state, X)
    found = fitted.predict(X)
    np.testing.assert_allclose(
        found.mean, history.y.mean() + history.y.std() * mean[0], rtol=1e-9
    )
    np.testing.assert_allclose(found.std, history.y.std() * std[0], rtol=1e-6)


@pytest.mark.slow
def test_on_the_log_scale_it_is_log_normal(history):
    fitted = posterior(search("log"), history)
    mean, std = (each[0] for each in MODEL.adapt(SPACE).predict(fitted.state, X))
    mean = fitted.mean + fitted.std * mean
    variance = (fitted.std * std) ** 2
    found = fitted.predict(X)
    np.testing.assert_allclose(found.mean, jnp.exp(mean + variance / 2), rtol=1e-8)
    np.testing.assert_allclose(
        found.std, found.mean * jnp.sqrt(jnp.expm1(variance)), rtol=1e-6
    )


@pytest.mark.slow
def test_several_hyperparameter_samples_are_a_mixture(history):
    model = surrogates.gp(gp.matern52(), infer="slice", samples=4)
    fitted = posterior(bonas.bayes(SPACE, surrogate=model, output="plain"), history)
    draws = np.asarray(fitted.sample(KEY, X, 40_000))
    mean, std = map(np.asarray, fitted.predict(X))
    np.testing.assert_array_less(abs(draws.mean(axis=0) - mean), 5 * std / 200)
    below = (draws < np.asarray(fitted.quantile(X, 0.9))).mean(axis=0)
    assert (abs(below - 0.9) < 5 * 0.3 / 200).all()


@pytest.mark.slow
@pytest.mark.slow
def test_a_quantile_of_no_number_is_no_number(history):
    """16 samples at 300 points, where the ends of the bisection lose NaN."""
    model = surrogates.gp(gp.se(), noise=1e-6, infer="slice", burn=0)
    fitted = posterior(bonas.bayes(SPACE, surrogate=model), history)
    whole = fitted.state.posterior
    lost = whole._replace(alpha=whole.alpha.at[0].set(jnp.nan))
    broken = fitted._replace(state=fitted.state._replace(posterior=lost))
    x = SPACE.sample(KEY, 300)
    assert jnp.isfinite(fitted.quantile(x, 0.5)).all()
    assert jnp.isnan(broken.quantile(x, 0.5)).all()


def test_maximized_values_have_their_own_sign():
    settings = {"steps": 12, "direction": "maximize"}
    most = bonas.run(random(SPACE), objective, KEY, **settings)
    least = bonas.run(random(SPACE), lambda key, u: -objective(key, u), KEY, 12)
    both = [posterior(search("tails"), run) for run in (most, least)]
    by_state = posterior(search("tails"), most.state, direction="maximize")
    (mean, std), (negative, same) = (each.predict(X) for each in both)
    np.testing.assert_allclose(mean, -negative, rtol=1e-9)
    np.testing.assert_allclose(std, same, rtol=1e-9)
    np.testing.assert_allclose(by_state.predict(X).mean, mean)
    low, high = (both[0].quantile(X, q) for q in (0.1, 0.9))
    assert (low < high).all()
    np.testing.assert_allclose(low, -both[1].quantile(X, 0.9), rtol=1e-6)


@pytest.mark.slow
def test_all_kinds_of_runs_are_known():
    """A run of the search itself, its result, and a history without a state."""
    own = search("plain", initial=8)
    result = bonas.minimize(
        lambda config: float(objective(KEY, SPACE.encode(config))),
        SPACE,
        trials=8,
        search=own,
        progress=False,
    )
    x = result.state.observations.data.x
    y = result.state.observations.data.y[:, 0]
    alone = History(x=x, y=y, best=y, info=None, state=None)
    means = [
        posterior(own, run).predict(X).mean for run in (result, result.state, alone)
    ]
    np.testing.assert_allclose(means[0], means[1])
    np.testing.assert_allclose(means[0], means[2], rtol=1e-3)


def test_the_finished_trials_of_a_study_are_known(tmp_path):
    def evaluate(config):
        if config["depth"] == 2:
            raise ValueError("too deep")
        return float(objective(KEY, SPACE.encode(config))), 7.0

    model = bonas.bayes(SPACE, surrogate=surrogates.linear(), failures="model")
    path = tmp_path / "runs.db"
    with bonas.Study(path, SPACE, search=random(SPACE), direction="maximize") as study:
        with pytest.raises(ValueError, match="study with finished trials; got none"):
            posterior(model, study)
        study.optimize(evaluate, trials=5, progress=False)
        study.ask()
        fitted = posterior(model, study)
        finished = study.trials[:5]
    failed = [trial.value is None for trial in finished]
    assert 0 < sum(failed) < 5
    np.testing.assert_array_equal(~fitted.data.mask[:, 0], failed)
    np.testing.assert_allclose(fitted.data.x, [trial.u for trial in finished])
    losses = [0.0 if trial.value is None else -trial.value for trial in finished]
    np.testing.assert_allclose(fitted.data.y[:, 0], losses)
    # in the units of the objective, which is maximized
    assert (fitted.predict(X).mean > 0.0).all()


@pytest.mark.slow
def test_many_runs_by_vmap():
    keys = jax.random.split(KEY, 2)
    many = bonas.run_many(random(SPACE), objective, keys, 8)
    model = search("plain")
    means = jax.vmap(lambda run: posterior(model, run).predict(X).mean)(many)
    for i in range(2):
        one = posterior(model, jax.tree.map(lambda leaf: leaf[i], many))
        np.testing.assert_allclose(means[i], one.predict(X).mean, rtol=1e-6)
    with pytest.raises(ValueError, match=r"use jax\.vmap"):
        posterior(model, many)


def test_runs_and_points_that_do_not_fit_are_refused(history):
    with pytest.raises(ValueError, match="expected a Bayesian search"):
        posterior(random(SPACE), history)
    other = bonas.bayes(bonas.Space(a=bonas.Float(0.0, 1.0)))
    with pytest.raises(ValueError, match=r"points of 3 columns; the space .* has 1"):
        posterior(other, history)
    with pytest.raises(ValueError, match="expected a History, a Result"):
        posterior(search("plain"), 3)
    failed = bonas.run(random(SPACE), lambda key, u: jnp.nan, KEY, 3)
    with pytest.raises(ValueError, match="at least one successful evaluation"):
        posterior(search("plain"), failed)


def halved(data):
    """An output scale of our own."""
    return data._replace(y=data.y / 2.0), jnp.log(0.5) * data.mask.sum()


@pytest.mark.slow
def test_an_own_scale_needs_an_inverse(history):
    with pytest.raises(ValueError, match=r"halved has no inverse: set halved\.inverse"):
        posterior(search(halved), history)
    halved.inverse = lambda data: lambda values: 2.0 * values
    expected = posterior(search("plain"), history).predict(X)
    found = posterior(search(halved), history).predict(X)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-6)


@pytest.mark.parametrize("name", OUTPUT_SCALES)
def test_inverses_of_scales(name):
    y = np.exp(np.random.default_rng(0).normal(0.0, 2.0, 20))
    data = bonas.dataset(np.zeros((20, 1)), y, 25)
    scaled, _ = OUTPUT_SCALES[name](data)
    inverse = invert_scale(OUTPUT_SCALES[name], data)
    np.testing.assert_allclose(inverse(scaled.y[:20, 0]), y, rtol=1e-12)
    assert np.isfinite(inverse(jnp.array([-1e300, 1e300]))).all()
    beyond = jnp.linspace(-3.0, 3.0, 50) * float(scaled.y.max())
    assert (jnp.diff(inverse(beyond)) > 0).all()


def test_a_scale_of_no_data_has_an_inverse():
    assert invert_scale(plain, empty(3, 1))(2.0) == 2.0
