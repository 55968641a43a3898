"""Bayesian optimization that may evaluate points again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.search import model_record

SETTINGS = {
    "surrogate": surrogates.gp(gp.matern52()),
    "initial": 3,
    "output": "plain",
}
SPACE = bonas.Space(arm=bonas.Int(0, 11))
STEPS = 36
BEST = 8


def noisy(key, u):
    arm = jnp.round(u[0] * 11)
    return jnp.abs(arm - BEST) / 2.0 + 0.5 * jax.random.normal(key)


def arms(x):
    return np.round(np.asarray(x)[..., 0] * 11).astype(int)


@pytest.fixture(scope="module")
def search():
    return bonas.bayes(SPACE, repeats=True, **SETTINGS)


@pytest.fixture(scope="module")
def histories(search):
    keys = jax.random.split(jax.random.key(0), 3)
    return bonas.run_many(search, noisy, keys, STEPS, record=model_record(search))


@pytest.mark.slow
def test_good_points_are_repeated_before_all_were_evaluated(histories):
    for run in arms(histories.x):
        visits = np.bincount(run, minlength=12)
        repeated = [i for i in range(STEPS) if run[i] in run[:i]]
        seen = [len(set(run[: i + 1])) for i in range(STEPS)]
        assert seen[repeated[0]] < 12
        near = visits[BEST - 1 : BEST + 2].sum()
        assert near > STEPS / 2
        assert visits[BEST] >= 5


@pytest.mark.slow
def test_the_recommended_point_is_the_best_arm(histories):
    assert (abs(arms(histories.recommended[:, -1]) - BEST) <= 1).all()


@pytest.mark.slow
def test_a_space_whose_points_may_be_repeated_is_not_exhausted(histories):
    assert SPACE.size < STEPS
    assert not histories.info.exhausted.any()
    assert (histories.info.duplicates == 0).all()  # nothing is pending


@pytest.mark.slow
def test_pending_points_are_not_repeated():
    few = bonas.Space(arm=bonas.Int(0, 2))
    search = bonas.bayes(few, batch=2, repeats=True, **SETTINGS)
    state = search.init(jax.random.key(0), 12)
    for row in few.points():
        state = search.tell(state, bonas.Observation(jnp.asarray(row), row.sum()))
    ask = jax.jit(search.ask)
    first, state, info = ask(jax.random.key(1), state)
    assert not info.exhausted
    second, state, info = ask(jax.random.key(2), state)
    proposed = np.concatenate([first, second])[:, 0]
    assert len(set(proposed[:3].tolist())) == 3
    assert info.exhausted  # the fourth point: all three are pending


def test_by_default_points_are_not_repeated(search):
    default = bonas.bayes(SPACE, **SETTINGS)
    assert not default.repeats
    assert default != search
