"""The recommended point: the evaluated point with the best posterior mean."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.search import History, model_record, posterior, random

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
STEPS = 9
RUNS = 2
SEARCH = bonas.bayes(
    SPACE,
    surrogate=surrogates.gp(gp.matern52()),
    initial=3,
    maximizer=acquire.random_candidates(SPACE, candidates=50),
    output="plain",
)


def objective(key, u):
    """A noisy bowl, negated."""
    return -5.0 - ((u - 0.3) ** 2).sum() + 0.3 * jax.random.normal(key)


@pytest.fixture(scope="module")
def histories():
    return bonas.run_many(
        SEARCH,
        objective,
        jax.random.split(jax.random.key(3), RUNS),
        STEPS,
        direction="maximize",
        record=model_record(SEARCH),
    )


def matern52(x, z, scales):
    gaps = np.sqrt(5.0 * (((x[:, None] - z[None]) / scales) ** 2).sum(axis=-1))
    return (1.0 + gaps + gaps**2 / 3.0) * np.exp(-gaps)


def means_of(x, y, variance, scales, noise):
    """The posterior mean of a Gaussian process at its own points, by NumPy."""
    values = (y - y.mean()) / y.std()
    gram = variance * matern52(x, x, scales)
    solved = np.linalg.solve(gram + noise * np.eye(len(x)), values)
    return y.mean() + y.std() * gram @ solved


@pytest.mark.slow
@pytest.mark.parametrize("run", range(RUNS))
def test_it_has_the_highest_mean_if_values_are_maximized(histories, run):
    history = jax.tree.map(lambda leaf: np.asarray(leaf)[run], histories)
    found = history.record["hyperparameters"]
    for i in range(1, STEPS):
        x = history.x[: i + 1]
        means = means_of(
            x,
            history.y[: i + 1],
            found["kernel"]["variance"][i],
            found["kernel"]["lengthscale"][i],
            found["noise"][i],
        )
        best = means.argmax()
        np.testing.assert_allclose(history.recommended[i], x[best], atol=1e-12)
        np.testing.assert_allclose(history.recommended_value[i], means[best], rtol=1e-5)


@pytest.mark.slow
def test_noise_improves_the_best_value_and_not_the_recommended_one(histories):
    assert (histories.recommended_value[:, -1] < histories.best_value).all()


@pytest.mark.slow
def test_the_configuration_is_the_last_recommended_point(histories):
    expected = [SPACE.decode(row) for row in histories.recommended[:, -1]]
    assert histories.recommended_config(SPACE) == expected


def test_nothing_is_recommended_before_the_first_success():
    x = jnp.full((2, 3, 2), jnp.nan).at[1, 2].set(0.5)
    record = {"incumbent": x[..., 0], "incumbent_x": x}
    history = History(x, x[..., 0], None, None, None, record=record)
    assert history.recommended_config(SPACE) == [None, {"a": 0.5, "b": 0.5}]


@pytest.mark.parametrize("record", [None, {"other": 1.0}, 2.0])
def test_without_a_record_the_error_says_how_to_get_one(record):
    history = History(None, None, None, None, None, record=record)
    for name in ("recommended", "recommended_value"):
        with pytest.raises(ValueError, match="pass record="):
            getattr(history, name)


def test_a_record_has_the_direction_of_the_run():
    minimizing = model_record(SEARCH, direction="minimize")
    with pytest.raises(ValueError, match="got 'minimize'"):
        bonas.run(
            SEARCH,
            objective,
            jax.random.key(0),
            3,
            direction="maximize",
            record=minimizing,
        )
    assert model_record(SEARCH).with_direction("minimize") == minimizing
    with pytest.raises(ValueError, match="the direction of the run is unknown"):
        model_record(SEARCH)(None, None)


@pytest.mark.slow
def test_another_search_is_recorded_by_a_model_of_its_values():
    baseline = random(SPACE)
    history = bonas.run(
        baseline, objective, jax.random.key(1), 6, record=model_record(SEARCH)
    )
    found = posterior(SEARCH, history).recommend()
    np.testing.assert_allclose(history.recommended[-1], found.x, rtol=1e-12)
    np.testing.assert_allclose(history.recommended_value[-1], found.mean, rtol=1e-6)


def fails_where_best(config):
    return float("nan") if config["a"] > 0.5 else -config["a"]


@pytest.mark.slow
@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_a_result_has_a_recommended_configuration(direction, sign):
    result = bonas.minimize(
        lambda config: sign * fails_where_best(config),
        SPACE,
        trials=6,
        search=random(SPACE),
        direction=direction,
        progress=False,
    )
    fitted = posterior(SEARCH, result)
    found = fitted.recommend()
    successes = [each.config for each in result.evaluations if not each.error]
    assert 0 < len(successes) < 6
    means, stds = fitted.predict(successes)
    best = int(jnp.argmin(sign * means))
    np.testing.assert_allclose(
        list(found.config.values()), list(successes[best].values()), atol=1e-9
    )
    np.testing.assert_allclose(
        [found.mean, found.std], [means[best], stds[best]], rtol=1e-6
    )
