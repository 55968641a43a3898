"""Runs of searches that ask for several points at a time."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire
from bonas.search import Observation, Search, ask_info, random, sobol

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
KEY = jax.random.key(0)


def objective(key, u):
    """A value, of which a quarter is missing, and its cost."""
    return jnp.where(u[0] < 0.25, jnp.nan, u.sum()), 1.0 + u[1]


@dataclass(frozen=True)
class Pairs(Search):
    """Two random points per ask, counting the observations it receives; it has no field `batch`."""

    space: bonas.Space

    def init(self, key, capacity):
        return jnp.asarray(0)

    def ask(self, key, state):
        x = self.space.sample(key, 2)
        return x, state, ask_info(x[0], duplicates=state)

    def tell(self, state, observation):
        return state + 1


@dataclass(frozen=True)
class Wrong(Pairs):
    """A search that proposes another number of points than its field `batch`."""

    batch: int = 3


@pytest.mark.slow
def test_a_plan_is_the_same_in_any_batches():
    alone, in_fours = (
        bonas.run(sobol(SPACE, batch=batch), objective, KEY, 12) for batch in (1, 4)
    )
    for field in ("x", "y", "best", "cost"):
        np.testing.assert_array_equal(getattr(alone, field), getattr(in_fours, field))
    before, after = (each.state.observations for each in (alone, in_fours))
    assert jax.tree.all(jax.tree.map(np.array_equal, before, after))


def test_every_point_has_its_own_value_and_the_report_of_its_ask():
    history = bonas.run(Pairs(SPACE), objective, KEY, 6)
    values, costs = jax.vmap(objective, (None, 0))(KEY, history.x)
    np.testing.assert_array_equal(history.y, values)
    np.testing.assert_array_equal(history.cost, costs)
    np.testing.assert_array_equal(history.info.duplicates, [0, 0, 2, 2, 4, 4])
    assert int(history.state) == 6
    assert int(history.best_index) == int(np.nanargmin(values))


def test_the_points_of_a_batch_have_different_keys():
    noise = bonas.run(
        random(SPACE, batch=4), lambda key, u: jax.random.normal(key), KEY, 8
    )
    assert len(np.unique(noise.y)) == 8


@pytest.mark.slow
def test_many_runs_of_batches_leave_no_point_pending():
    search = bonas.bayes(
        SPACE,
        batch=2,
        initial=3,
        output="plain",
        maximizer=acquire.random_candidates(SPACE, candidates=40),
    )
    keys = jax.random.split(KEY, 2)
    many = bonas.run_many(search, objective, keys, 8)
    assert many.x.shape == (2, 8, 2)
    for run in range(2):
        assert len(np.unique(many.x[run], axis=0)) == 8
    observations = many.state.observations
    assert not observations.pending.any()
    np.testing.assert_array_equal(observations.failed, np.isnan(many.y))
    np.testing.assert_array_equal(observations.data.x, many.x)


def test_minimize_evaluates_batches():
    search = sobol(SPACE, batch=3)
    result = bonas.minimize(
        lambda config: config["a"], SPACE, trials=6, search=search, progress=False
    )
    plan = search.init(jax.random.split(jax.random.key(0))[0], 6).plan
    expected = [SPACE.decode(row) for row in plan[:6]]
    assert [each.config for each in result.evaluations] == expected
    assert not result.state.observations.pending.any()


@pytest.mark.parametrize("steps", [3, 5])
def test_numbers_of_evaluations_that_batches_do_not_divide_are_refused(steps):
    message = f"multiple of 2, the batch size of this search; got {steps}"
    with pytest.raises(ValueError, match=message):
        bonas.run(Pairs(SPACE), objective, KEY, steps)
    with pytest.raises(ValueError, match=message):
        bonas.run_many(random(SPACE, batch=2), objective, KEY[None], steps)
    with pytest.raises(ValueError, match=message):
        bonas.minimize(
            lambda config: 0.0,
            SPACE,
            trials=steps,
            search=random(SPACE, batch=2),
            progress=False,
        )


def test_a_search_that_asks_for_other_points_than_it_says_is_refused():
    with pytest.raises(ValueError, match="has batch=3, but its ask returned 2 points"):
        bonas.run(Wrong(SPACE), objective, KEY, 6)


# Observations


def test_a_point_and_its_value_are_an_observation():
    x = jnp.zeros(2)
    assert Observation(x, 2.0)[1:] == (2.0, 0, 1.0, True, None)
    assert not Observation(x, float("nan")).ok
    assert not Observation(x, jnp.inf, cost=3.0).ok
    assert not Observation(x, 2.0, ok=False).ok
    assert Observation(x, 2.0, 1)._replace(y=jnp.nan).ok


def test_an_observation_can_be_told_as_it_is():
    search = random(SPACE)
    points, state, _ = search.ask(KEY, search.init(KEY, 2))
    short = jax.jit(search.tell)(state, Observation(points[0], 2.0))
    rest = {"step": jnp.asarray(0), "cost": jnp.asarray(1.0), "ok": jnp.asarray(True)}
    full = search.tell(state, Observation(points[0], jnp.asarray(2.0), **rest))
    assert jax.tree.all(jax.tree.map(np.array_equal, short, full))


def test_the_tree_of_an_observation_without_noise_has_always_five_leaves():
    given = Observation(jnp.zeros(2), jnp.asarray(jnp.nan))
    leaves, tree = jax.tree.flatten(given)
    assert len(leaves) == 5
    assert tree == jax.tree.structure(Observation(0, 0, 0, 0, 0))
    nothing = jax.tree.map(lambda leaf: None, given)
    assert nothing == (None,) * 6
    traced = jax.jit(lambda observation: observation)(given)
    assert isinstance(traced, Observation)
    assert not traced.ok
