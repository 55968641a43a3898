"""Runs that continue others, or start from known observations."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import HalfNormal

import bonas
from bonas import acquire, gp, surrogates
from bonas.search import Search, ask_info, evolution, random, sobol
from bonas.search.start_states import start_state

SPACE = bonas.Space(
    depth=bonas.Int(1, 2),
    a=bonas.Float(0.0, 1.0),
    b=bonas.Float(0.0, 1.0, when={"depth": (">=", 2)}),
)
MODEL = bonas.bayes(
    SPACE,
    initial=3,
    output="plain",
    maximizer=acquire.random_candidates(SPACE, candidates=40),
)
KEY = jax.random.key(0)


def objective(key, u):
    return jnp.where(u[1] > 0.8, jnp.nan, ((u - 0.3) ** 2).sum()), 1.0 + u[1]


@dataclass(frozen=True)
class Counter(Search):
    """A search whose state has the same shape for every capacity."""

    space: bonas.Space

    def init(self, key, capacity):
        return jnp.asarray(0)

    def ask(self, key, state):
        x = self.space.sample(key, 1)
        return x, state, ask_info(x[0], duplicates=state)

    def tell(self, state, observation):
        return state + 1


# Continuing


@pytest.mark.parametrize(
    "search",
    [
        random(SPACE),
        sobol(SPACE, batch=2),
        evolution(SPACE, population=3),
        pytest.param(MODEL, marks=pytest.mark.slow),
    ],
    ids=lambda search: type(search).__name__,
)
def test_a_run_in_two_parts_is_one_longer_run(search):
    whole = bonas.run(search, objective, KEY, 10)
    first = bonas.run(search, objective, KEY, 6)
    second = bonas.run(search, objective, KEY, 4, state=first.state)
    assert second.x.shape == (4, 3)
    joined = first.followed_by(second)
    for name in ("x", "y", "best", "cost", "sign"):
        np.testing.assert_allclose(
            getattr(joined, name), getattr(whole, name), atol=1e-6
        )
    for name in ("data", "pending", "failed", "cost"):
        pair = (getattr(run.state.observations, name) for run in (joined, whole))
        assert jax.tree.all(
            jax.tree.map(lambda a, b: np.allclose(a, b, atol=1e-6), *pair)
        )


def test_a_state_without_a_capacity_is_continued():
    first = bonas.run(Counter(SPACE), objective, KEY, 3)
    second = bonas.run(
        Counter(SPACE), objective, jax.random.key(1), 2, state=first.state
    )
    np.testing.assert_array_equal(second.info.duplicates, [3, 4])


def test_what_is_static_in_a_state_comes_from_the_search():
    """A cell that defines a kernel was run again: the new function is not the old one."""

    def search():
        kernel = gp.Kernel({"scale": HalfNormal(1.0)}, lambda p, a, b: p["scale"])
        return bonas.bayes(SPACE, surrogate=surrogates.gp(kernel), output="plain")

    old, new = search(), search()
    assert old != new
    start, known = start_state(new, KEY, 3, state=old.init(KEY, 4), data=None, sign=1.0)
    expected = new.init(KEY, 7)
    assert jax.tree.structure(start) == jax.tree.structure(expected)
    assert int(known) == 0


def test_many_runs_are_continued():
    keys = jax.random.split(KEY, 3)
    search = random(SPACE)
    first = bonas.run_many(search, objective, keys, 4)
    second = bonas.run_many(search, objective, keys, 3, state=first.state)
    whole = bonas.run_many(search, objective, keys, 7)
    joined = first.followed_by(second)
    np.testing.assert_array_equal(joined.x, whole.x)
    np.testing.assert_array_equal(joined.best, whole.best)
    one = jax.tree.map(lambda leaf: leaf[1], first.state)
    alone = bonas.run(search, objective, keys[1], 3, state=one)
    np.testing.assert_array_equal(alone.x, second.x[1])


def test_a_maximizing_run_is_continued():
    first, second = None, None
    settings = {"direction": "maximize"}
    first = bonas.run(random(SPACE), objective, KEY, 4, **settings)
    second = bonas.run(random(SPACE), objective, KEY, 4, state=first.state, **settings)
    joined = first.followed_by(second)
    assert joined.best_value == joined.best[-1] == np.nanmax(joined.y)
    with pytest.raises(ValueError, match="same direction"):
        first.followed_by(bonas.run(random(SPACE), objective, KEY, 2))
    with pytest.raises(ValueError, match="the same `record=`"):
        first.followed_by(second._replace(record=jnp.ones(4)))


def test_a_state_of_another_search_is_refused():
    state = bonas.run(random(SPACE), objective, KEY, 4).state
    with pytest.raises(ValueError, match="does not belong to this search"):
        bonas.run(MODEL, objective, KEY, 2, state=state)
    smaller = random(bonas.Space(a=bonas.Float(0.0, 1.0)))
    with pytest.raises(ValueError, match="does not belong to this search"):
        bonas.run(smaller, lambda key, u: u[0], KEY, 2, state=state)
    keys = jax.random.split(KEY, 3)
    with pytest.raises(ValueError, match="a state of each of the 3 runs"):
        bonas.run_many(random(SPACE), objective, keys, 2, state=state)


# Known observations

KNOWN = SPACE.sample(jax.random.key(5), 4)
VALUES = np.array([0.3, np.nan, 0.1, 0.2])


@pytest.mark.parametrize("form", ["points", "configurations"])
def test_known_observations_are_told_first(form):
    x = KNOWN if form == "points" else [SPACE.decode(row) for row in KNOWN]
    history = bonas.run(random(SPACE), objective, KEY, 5, data=(x, VALUES))
    assert history.y.shape == (5,)
    np.testing.assert_array_equal(history.best[-1], np.nanmin(history.y))
    observations = history.state.observations
    np.testing.assert_allclose(observations.data.x[:4], KNOWN, atol=1e-12)
    np.testing.assert_array_equal(observations.data.x[4:], history.x)
    np.testing.assert_array_equal(observations.data.y[:4, 0], np.nan_to_num(VALUES))
    np.testing.assert_array_equal(observations.failed[:4], np.isnan(VALUES))
    np.testing.assert_array_equal(observations.cost[:4], 1.0)


def test_known_values_are_those_of_the_objective():
    costs = np.arange(4.0)
    settings = {"data": (KNOWN, VALUES, costs), "direction": "maximize"}
    history = bonas.run(random(SPACE), objective, KEY, 2, **settings)
    observations = history.state.observations
    np.testing.assert_array_equal(observations.data.y[:4, 0], -np.nan_to_num(VALUES))
    np.testing.assert_array_equal(observations.cost[:4], costs)


@pytest.mark.slow
def test_known_observations_replace_the_initial_design():
    keys = jax.random.split(KEY, 2)
    history = bonas.run_many(MODEL, objective, keys, 3, data=(KNOWN, VALUES))
    assert not history.info.random.any()
    assert bool(bonas.run(MODEL, objective, KEY, 1).info.random[0])
    more = bonas.run_many(
        MODEL, objective, keys, 2, data=(KNOWN + 0.0, VALUES), state=history.state
    )
    assert (more.state.observations.data.size == 4 + 3 + 4 + 2).all()


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (KNOWN, r"data must be \(x, y\)"),
        ((KNOWN,), r"data must be \(x, y\)"),
        ((KNOWN[:, :2], VALUES), r"known points of shape \(m, 3\); got \(4, 2\)"),
        ((KNOWN, VALUES[:2]), "one value and one cost for each of 4 known points"),
        ((KNOWN + 2.0, VALUES), "known point"),
        (([{"depth": 1, "a": 0.5, "b": 0.5}], [0.0]), "'b'"),
    ],
)
def test_data_that_do_not_fit_are_refused(data, match):
    for runner, keys in ((bonas.run, KEY), (bonas.run_many, KEY[None])):
        with pytest.raises(ValueError, match=match):
            runner(random(SPACE), objective, keys, 2, data=data)


# Records


def summary(state, info):
    return {"size": state.observations.data.size, "random": info.random}


def test_every_point_has_the_record_of_its_ask():
    history = bonas.run(random(SPACE, batch=2), objective, KEY, 6, record=summary)
    np.testing.assert_array_equal(history.record["size"], [2, 2, 4, 4, 6, 6])
    assert history.record["random"].all()
    keys = jax.random.split(KEY, 2)
    many = bonas.run_many(random(SPACE), objective, keys, 3, record=summary)
    np.testing.assert_array_equal(many.record["size"], [[1, 2, 3]] * 2)
    more = bonas.run_many(
        random(SPACE), objective, keys, 2, record=summary, state=many.state
    )
    np.testing.assert_array_equal(
        many.followed_by(more).record["size"], [[1, 2, 3, 4, 5]] * 2
    )
