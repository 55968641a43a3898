"""The first mistakes of a newcomer are told in words, not by what breaks behind them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

import bonas
from bonas import gp, surrogates
from bonas.problems import functions
from bonas.search import random

CAMEL = functions.six_hump_camel
KEY = jax.random.key(0)
MODEL = surrogates.linear()


def first_suggestion(surrogate):
    """Trace a search up to its first fit."""
    search = bonas.bayes(CAMEL.space, surrogate=surrogate, initial=2, output="plain")
    jax.eval_shape(lambda: bonas.run(search, CAMEL.objective, KEY, 3))


def test_a_kernel_is_not_a_surrogate():
    with pytest.raises(ValueError, match=r"write surrogate=surrogates.gp\(kernel\)"):
        bonas.bayes(CAMEL.space, surrogate=gp.matern52())


@pytest.mark.parametrize("given", ["gp", surrogates.gp, 0], ids=["name", "function", "zero"])
def test_a_name_or_a_function_is_not_a_surrogate(given):
    with pytest.raises(ValueError, match=r"expected a surrogate, such as surrogates.gp\(\); got"):
        bonas.bayes(CAMEL.space, surrogate=given)


@pytest.mark.parametrize("given", ["random", bonas.bayes, random], ids=["name", "bayes", "random"])
def test_a_name_or_a_function_is_not_a_search(given, tmp_path):
    words = r"expected a search, such as bonas.bayes\(space\)"
    with pytest.raises(ValueError, match=words):
        bonas.minimise(lambda config: 0.0, CAMEL.space, search=given)
    with pytest.raises(ValueError, match=words):
        bonas.run(given, CAMEL.objective, KEY, 3)
    with pytest.raises(ValueError, match=words):
        bonas.run_many(given, CAMEL.objective, KEY[None], 3)
    with pytest.raises(ValueError, match=words):
        bonas.Study(tmp_path / "runs.db", CAMEL.space, search=given)
    assert not (tmp_path / "runs.db").exists()


def test_a_number_is_not_a_key():
    search = random(CAMEL.space)
    for call in (bonas.run, bonas.run_many):
        with pytest.raises(ValueError, match=r"expected a key, such as jax.random.key\(0\); got 5"):
            call(search, CAMEL.objective, 5, 3)


def test_keys_of_the_old_kind_still_run():
    assert bonas.run(random(CAMEL.space), CAMEL.objective, jax.random.PRNGKey(0), 3).y.shape == (3,)


@pytest.mark.parametrize(
    "predict",
    [
        lambda state, x: MODEL.predict(state, x).mean,
        lambda state, x: gp.Prediction(jnp.zeros(len(x)), jnp.ones(len(x))),
        lambda state, x: gp.Prediction(jnp.zeros((1, len(x))), jnp.ones((2, len(x)))),
    ],
    ids=["no prediction", "one axis", "unequal"],
)
def test_predictions_of_another_shape_are_refused(predict):
    with pytest.raises(ValueError, match=r"a surrogate predicts gp.Prediction\(mean, std\), each of shape \(s, 3\)"):
        first_suggestion(replace(MODEL, predict=predict, adapt=None))


def test_a_fit_that_changes_the_shape_of_its_state_is_refused():
    def fit(key, data, state):
        return jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]) if jnp.ndim(leaf) else leaf, state), None

    with pytest.raises(ValueError, match=r"a surrogate's fit must return a state as its init does: .* was .* and became"):
        first_suggestion(replace(MODEL, fit=fit, adapt=None))


def test_a_fit_that_returns_another_kind_of_state_is_refused():
    with pytest.raises(ValueError, match="a surrogate's fit must return a state as its init does"):
        first_suggestion(replace(MODEL, fit=lambda key, data, state: ((1.0, 2.0), None), adapt=None))
