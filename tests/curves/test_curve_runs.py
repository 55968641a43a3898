"""Whole runs on learning curves: rules that hold for every search, budgets and keys."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from curves.curve_table import (
    BUDGET,
    DIVERGING,
    SEARCHES,
    SMALL_BUDGET,
    SPACE,
    STEPS,
    TABLE,
    run,
)

import bonas
from bonas import configuration
from bonas.curves import (
    curve_search,
    freeze_thaw,
    full_training,
    power_law,
    run_curves,
    run_curves_many,
)
from bonas.search import ModelWarning, Search, ask_info, random

# Two runs of each are enough.
OTHERS = {
    "pi": curve_search(SPACE, STEPS, initial=3, draws=16, acquisition="pi"),
    "rate": curve_search(SPACE, STEPS, initial=3, draws=16, variant="rate"),
    "published pi": curve_search(
        SPACE, STEPS, initial=3, draws=16, variant="published", acquisition="pi"
    ),
    "published ucb": curve_search(
        SPACE, STEPS, initial=3, draws=16, variant="published", acquisition="ucb"
    ),
    "one set": curve_search(
        SPACE, STEPS, initial=3, batch=4, draws=16, variant="published", disjoint=False
    ),
    "freeze_thaw": curve_search(
        SPACE, STEPS, initial=3, draws=16, model=freeze_thaw(steps=2)
    ),
    "power_law": curve_search(
        SPACE, STEPS, initial=3, draws=16, model=power_law(steps=2)
    ),
}
# Networks that are left when the last batch would not be full.
LEFT = {"published": 3, "one set": 3, "side by side": 2}


def check_rules(history, table, budget):
    """Check the order of checkpoints, the budget, and the best of the complete networks."""
    values, costs = np.asarray(table), np.diff(STEPS, prepend=0)
    steps, spent, done, best = history.step, 0, {}, np.inf
    rows = np.asarray(SPACE.row(history.x))
    for k in range((steps >= 0).sum()):
        row, step = rows[k], steps[k]
        assert step == done.get(row, 0)
        spent += costs[step]
        np.testing.assert_equal(history.y[k], values[row, step])
        done[row] = "failed" if np.isnan(values[row, step]) else step + 1
        best = min(best, values[row, 2]) if done[row] == 3 else best
        assert (history.spent[k], history.best[k]) == (spent, best)
    assert spent <= budget
    over = steps < 0
    assert not history.cost[over].any()
    assert np.isnan(history.y[over]).all()
    return done


@pytest.mark.slow
@pytest.mark.parametrize("table", [TABLE, DIVERGING], ids=["fine", "diverging"])
@pytest.mark.parametrize("search", [*SEARCHES, *OTHERS])
def test_every_run_follows_the_rules(search, table):
    """With enough budget, all networks are completed, except for an incomplete last batch."""
    found = (
        run(SEARCHES[search], table)
        if search in SEARCHES
        else run(OTHERS[search], table, seeds=2)
    )
    history = jax.tree.map(np.asarray, found._replace(state=None))
    for i in range(2):
        done = check_rules(
            jax.tree.map(lambda leaf, i=i: leaf[i], history), table, BUDGET
        )
        left = 18 - sum(step in (3, "failed") for step in done.values())
        assert left <= LEFT.get(search, 0)


@pytest.mark.parametrize("search", ["random", "halving"])
def test_a_budget_is_used_and_never_exceeded(search):
    history = jax.tree.map(
        np.asarray, run(SEARCHES[search], TABLE, SMALL_BUDGET - 1)._replace(state=None)
    )
    for i in range(8):
        check_rules(
            jax.tree.map(lambda leaf, i=i: leaf[i], history), TABLE, SMALL_BUDGET - 1
        )
        assert 0 < SMALL_BUDGET - history.spent[i, -1] <= 60  # no advance costs more


def test_the_same_key_gives_the_same_run():
    first, again = (run(SEARCHES["default"], TABLE) for _ in range(2))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.x[0], first.x[1])


def test_bayesian_curves_beat_random_search():
    """The median over 8 seeds, at a budget of 6 of 18 networks."""

    def reached(search):
        history = jax.tree.map(
            np.asarray, run(SEARCHES[search], TABLE)._replace(state=None)
        )
        last = (history.spent <= 6 * STEPS[-1]).sum(axis=1) - 1
        return history.best[np.arange(8), last]

    assert np.median(reached("default")) < np.median(reached("random"))


def test_many_runs_equal_single_runs():
    def objective(key, x, step):
        return TABLE[SPACE.row(x), step] + jax.random.normal(key)

    search, keys = SEARCHES["random"], jax.random.split(jax.random.key(0), 3)
    many = run_curves_many(search, objective, STEPS, keys, SMALL_BUDGET)
    one = jax.jit(lambda key: run_curves(search, objective, STEPS, key, SMALL_BUDGET))(
        keys[1]
    )
    np.testing.assert_array_equal(many.y[1], one.y)


def lookup(key, x, step):
    return TABLE[SPACE.row(x), step]


@dataclass(frozen=True)
class BrokenModel(Search):
    """A search that reports at every ask that its model is not finite."""

    space: bonas.Space

    def init(self, key, capacity):
        return jnp.zeros((), int)

    def ask(self, key, state):
        x = SPACE.points()[state][None, :]
        return x, state + 1, ask_info(x, fallback=4, random=True)

    def tell(self, state, observation):
        return state


def test_a_broken_model_is_reported_and_one_warning_counts_its_asks():
    """Two networks are trained to the end: one ask of the model for each."""
    broken = full_training(BrokenModel(SPACE), STEPS)
    budget = 2 * STEPS[-1]
    with pytest.warns(
        ModelWarning, match="in 2 asks, its fit or predictions were not"
    ) as found:
        history = run_curves(broken, lookup, STEPS, jax.random.key(0), budget)
    assert [each.filename for each in found] == [__file__]
    used = history.step >= 0
    assert used.sum() == 6
    np.testing.assert_array_equal(history.info.fallback[used], [4, 0, 0] * 2)
    assert not history.info.fallback[~used].any()
    keys = jax.random.split(jax.random.key(0), 3)
    with pytest.warns(
        ModelWarning, match="in 6 asks, its fit or predictions were not"
    ) as found:
        run_curves_many(broken, lookup, STEPS, keys, budget)
    assert [each.filename for each in found] == [__file__]


def test_a_search_in_float32_warns(monkeypatch):
    monkeypatch.setattr(configuration, "_is_configured", False)
    with jax.enable_x64(False):
        space = bonas.Space(a=bonas.Int(1, 3))
        search = full_training(random(space), STEPS)
        arguments = lambda key, x, step: x[0], STEPS, jax.random.key(0), BUDGET
        with pytest.warns(UserWarning, match="this search runs in float32") as found:
            run_curves(search, *arguments)
    assert [each.filename for each in found] == [__file__]


def test_only_searches_can_be_run():
    with pytest.raises(ValueError, match="expected a search"):
        run_curves(SPACE, lookup, STEPS, jax.random.key(0), BUDGET)


@pytest.mark.parametrize(
    "search", ["random", "halving", pytest.param("default", marks=pytest.mark.slow)]
)
def test_maximizing_is_minimizing_the_negative(search):
    def negative(key, x, step):
        return -lookup(key, x, step)

    keys = jax.random.split(jax.random.key(0), 2)
    arguments = STEPS, keys, SMALL_BUDGET
    low = run_curves_many(SEARCHES[search], lookup, *arguments)
    high = run_curves_many(SEARCHES[search], negative, *arguments, direction="maximize")
    np.testing.assert_array_equal(high.x, low.x)
    np.testing.assert_array_equal(high.y, -low.y)
    np.testing.assert_array_equal(high.best, -low.best)
    with pytest.raises(ValueError, match="direction must be"):
        run_curves_many(SEARCHES[search], lookup, *arguments, direction="up")


def test_every_network_has_its_own_key_at_all_checkpoints():
    def objective(key, x, step):
        return jax.random.uniform(key)

    history = jax.jit(
        lambda key: run_curves(SEARCHES["random"], objective, STEPS, key, SMALL_BUDGET)
    )(jax.random.key(0))
    found = np.asarray(history.y[:24]).reshape(8, 3)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    np.testing.assert_array_equal(found[:, 0], found[:, 2])
    assert len(np.unique(found[:, 0])) == 8


@pytest.mark.slow
@pytest.mark.parametrize("search", ["random", "halving", "default"])
def test_a_run_reports_started_networks_and_a_full_record(search):
    """A capacity of 5 networks of 18 is used, and all 5 are trained to the end."""

    def objective(key, x, step):
        return TABLE[SPACE.row(x), step]

    def counted(budget, networks=None):
        found = run_curves(
            SEARCHES[search],
            objective,
            STEPS,
            jax.random.key(0),
            budget,
            networks=networks,
        )
        assert found.started == (found.step == 0).sum()
        return int(found.started), bool(found.capacity_reached), int(found.spent[-1])

    assert counted(BUDGET, 5) == (5, True, 5 * STEPS[-1])
    if search == "random":
        assert counted(BUDGET) == (18, False, BUDGET)
        assert counted(2 * STEPS[-1], 5) == (2, False, 2 * STEPS[-1])


@pytest.mark.parametrize("search", SEARCHES)
def test_other_checkpoints_than_those_of_the_search_are_refused(search):
    def objective(key, x, step):
        return x[0]

    for steps in ((10, 90), (10, 30, 91), (5, 10, 30, 90)):
        with pytest.raises(
            ValueError,
            match=r"steps must equal the checkpoints of the search, \(10, 30, 90\); got",
        ):
            run_curves(SEARCHES[search], objective, steps, jax.random.key(0), BUDGET)
        with pytest.raises(ValueError, match="steps must equal the checkpoints"):
            run_curves_many(
                SEARCHES[search],
                objective,
                steps,
                jax.random.split(jax.random.key(0)),
                BUDGET,
            )


def test_a_budget_may_be_any_integer_value():
    def objective(key, x, step):
        return TABLE[SPACE.row(x), step]

    keys = jax.random.split(jax.random.key(0), 2)
    found = [
        run_curves_many(SEARCHES["random"], objective, np.array(STEPS), keys, budget)
        for budget in (180, 180.0, 1.8e2)
    ]
    for each in found[1:]:
        np.testing.assert_array_equal(each.y, found[0].y)
    assert (found[0].spent[:, -1] == 180).all()


def test_invalid_budgets_are_refused():
    def objective(key, x, step):
        return x[0]

    search = SEARCHES["random"]
    key = jax.random.key(0)
    with pytest.raises(
        ValueError, match="train at least one network, 90 training steps; got 89"
    ):
        run_curves(search, objective, STEPS, key, 89)
    with pytest.raises(ValueError, match=r"integer number of training steps; got 90.5"):
        run_curves(search, objective, STEPS, key, 90.5)
