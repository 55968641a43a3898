"""What the model of a search knew after each step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.search import model_record, posterior, random

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
KEY = jax.random.key(0)
STEPS = 8


def objective(key, u):
    return jnp.where(u[0] > 0.9, jnp.nan, 5.0 + ((u - 0.3) ** 2).sum())


def search(**settings):
    return bonas.bayes(
        SPACE,
        initial=3,
        maximizer=acquire.random_candidates(SPACE, candidates=50),
        **settings,
    )


@pytest.fixture(scope="module")
def run():
    model = search()
    record = model_record(model, direction="maximize")
    history = bonas.run(
        model,
        lambda key, u: -objective(key, u),
        KEY,
        STEPS,
        direction="maximize",
        record=record,
    )
    return model, history


@pytest.mark.slow
def test_recording_changes_no_point(run):
    model, history = run
    plain = bonas.run(
        model, lambda key, u: -objective(key, u), KEY, STEPS, direction="maximize"
    )
    np.testing.assert_array_equal(history.x, plain.x)


@pytest.mark.slow
def test_hyperparameters_of_every_step_are_recorded(run):
    _, history = run
    found = history.record["hyperparameters"]
    assert found["kernel"]["lengthscale"].shape == (STEPS, 2)
    assert found["noise"].shape == (STEPS,)
    assert (found["noise"] > 0.0).all()
    assert len(np.unique(found["noise"][4:])) > 2  # inferred again at every ask
    known = np.isfinite(history.best)  # the first evaluation fails
    assert not known[0]
    np.testing.assert_array_equal(np.isfinite(history.record["log_density"]), known)


@pytest.mark.slow
def test_the_incumbent_is_near_the_best_value_in_its_units(run):
    model, history = run
    found = history.record["incumbent"]
    np.testing.assert_allclose(found[4:], history.best[4:], atol=0.05)
    x = np.asarray(history.x)
    rows = np.asarray(history.record["incumbent_x"][1:])  # the first evaluation fails
    gaps = [abs(x - row).max(axis=1).min() for row in rows]
    np.testing.assert_allclose(gaps, 0.0, atol=1e-12)
    # with all points, it is what the posterior of the run says of this point
    after = posterior(model, history).predict(history.record["incumbent_x"][-1:])
    np.testing.assert_allclose(found[-1], after.mean[0], atol=0.05)


@pytest.mark.slow
def test_nothing_is_known_before_the_first_success():
    model = search(output="plain")
    history = bonas.run(
        model, lambda key, u: jnp.nan, KEY, 2, record=model_record(model)
    )
    assert np.isnan(history.record["incumbent"]).all()
    assert np.isnan(history.record["incumbent_x"]).all()


@pytest.mark.slow
def test_hyperparameters_are_averaged_over_samples():
    model = search(
        output="plain",
        surrogate=surrogates.gp(gp.matern52(), infer="slice", samples=3, noise=1e-4),
    )
    history = bonas.run(model, objective, KEY, 5, record=model_record(model))
    found = history.record["hyperparameters"]
    assert "noise" not in found
    z = jax.tree.map(lambda leaf: leaf[0], history.state.model)
    samples = surrogates.hyperparameters(model.surrogate, z)["kernel"]["lengthscale"]
    assert samples.shape == (3, 2)
    np.testing.assert_allclose(
        found["kernel"]["lengthscale"][-1], samples.mean(axis=0), rtol=1e-12
    )


def test_equal_records_are_equal_and_others_refused():
    assert model_record(search()) == model_record(search())
    with pytest.raises(ValueError, match="RandomSearch, which has no model"):
        model_record(random(SPACE))
    with pytest.raises(ValueError, match="direction must be"):
        model_record(search(), direction="up")
    assert surrogates.hyperparameters(surrogates.ensemble(), None) == {}
