"""Searches on learning curves, whole runs of them, and what they have to beat."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.search import (
    FALLBACKS,
    curves,
    evolution,
    hyperband,
    random,
    run_curves,
    run_curves_many,
    successive_halving,
    top_k,
    whole,
)
from bonas.search.curves import CurveState, _pool
from bonas.search.looks import LOGS, PLAIN, final_score, look_score, rate_score
from bonas.search.networks import asked, complete, none_begun, told
from bonas.search.types import Trial
from bonas.surrogates import CurveModel, FitInfo, freeze_thaw, power_law

STEPS = (10, 30, 90)
BUDGET = 18 * STEPS[-1]  # enough for everything
SOME = 8 * STEPS[-1]
BOX = bonas.Space(depth=bonas.Int(1, 3), width=bonas.Int(1, 6))
SPACE = bonas.Listed(BOX, np.asarray(BOX.points()))  # 18 networks
RNG = np.random.default_rng(0)


def table_of(space, bad=()):
    """Curves (n, c) whose ends are smooth in the rows, and which fall to them; some diverge at a checkpoint."""
    rows = np.asarray(space.points())
    ends = np.sin(3.0 * rows[:, 0]) + (rows[:, 1] - 0.6) ** 2
    falls = 1.0 + 0.3 * RNG.uniform(size=len(rows))
    y = ends[:, None] + falls[:, None] * np.array([0.8, 0.3, 0.0])[None, :]
    for row, step in bad:
        y[row, step:] = np.nan
    return jnp.asarray(y)


TABLE = table_of(SPACE)
BAD = table_of(SPACE, bad=[(i, i % 3) for i in range(0, 18, 2)])


@partial(jax.jit, static_argnames=("search", "budget", "seeds"))
def run(search, table, budget=BUDGET, seeds=8):
    """Eight runs: all tests share them, because each search takes long to compile."""

    def objective(key, x, step):
        return table[SPACE.row(x), step]

    keys = jax.random.split(jax.random.key(1), seeds)
    return jax.lax.map(lambda key: run_curves(search, objective, STEPS, key, budget), keys)


SEARCHES = {
    "default": curves(SPACE, STEPS, initial=3, draws=32),
    "published": curves(SPACE, STEPS, initial=3, batch=4, draws=3, variant="published"),
    "random": whole(random(SPACE), STEPS),
    "side by side": whole(random(SPACE), STEPS, batch=3),
    "halving": successive_halving(SPACE, STEPS),
    "hyperband": hyperband(SPACE, STEPS),
    "top_k": top_k(SPACE, STEPS, width=6, k=2),
}
OTHERS = {  # of which two runs do
    "pi": curves(SPACE, STEPS, initial=3, draws=16, acquisition="pi"),
    "rate": curves(SPACE, STEPS, initial=3, draws=16, variant="rate"),
    "published pi": curves(SPACE, STEPS, initial=3, draws=16, variant="published", acquisition="pi"),
    "published ucb": curves(SPACE, STEPS, initial=3, draws=16, variant="published", acquisition="ucb"),
    "one set": curves(SPACE, STEPS, initial=3, batch=4, draws=16, variant="published", disjoint=False),
    "freeze_thaw": curves(SPACE, STEPS, initial=3, draws=16, model=freeze_thaw(steps=2)),
    "power_law": curves(SPACE, STEPS, initial=3, draws=16, model=power_law(steps=2)),
}
LEFT = {"published": 3, "one set": 3, "side by side": 2}  # networks of a last batch that is not full


def check_rules(history, table, budget):
    """Checkpoints in order, never beyond the end or a failure; the budget kept; the best among what is complete."""
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
@pytest.mark.parametrize("table", [TABLE, BAD], ids=["fine", "diverging"])
@pytest.mark.parametrize("search", [*SEARCHES, *OTHERS])
def test_the_rules_of_every_run(search, table):
    """And with a budget for everything, everything is done: but for a last batch that is not full."""
    found = run(SEARCHES[search], table) if search in SEARCHES else run(OTHERS[search], table, seeds=2)
    history = jax.tree.map(np.asarray, found._replace(state=None))
    for i in range(2):
        done = check_rules(jax.tree.map(lambda leaf, i=i: leaf[i], history), table, BUDGET)
        left = 18 - sum(step in (3, "failed") for step in done.values())
        assert left <= LEFT.get(search, 0)


@pytest.mark.parametrize("search", ["random", "halving"])
def test_a_budget_is_used_and_never_exceeded(search):
    history = jax.tree.map(np.asarray, run(SEARCHES[search], TABLE, SOME - 1)._replace(state=None))
    for i in range(8):
        check_rules(jax.tree.map(lambda leaf, i=i: leaf[i], history), TABLE, SOME - 1)
        assert 0 < SOME - history.spent[i, -1] <= 60  # no advance costs more


def test_the_same_key_gives_the_same_run():
    first, again = (run(SEARCHES["default"], TABLE) for _ in range(2))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.x[0], first.x[1])


def test_many_runs_are_single_runs():
    def objective(key, x, step):
        return TABLE[SPACE.row(x), step] + jax.random.normal(key)

    search, keys = SEARCHES["random"], jax.random.split(jax.random.key(0), 3)
    many = run_curves_many(search, objective, STEPS, keys, SOME)
    one = jax.jit(lambda key: run_curves(search, objective, STEPS, key, SOME))(keys[1])
    np.testing.assert_array_equal(many.y[1], one.y)


def test_a_network_has_one_key_and_another_network_another():
    def objective(key, x, step):
        return jax.random.uniform(key)

    history = jax.jit(lambda key: run_curves(SEARCHES["random"], objective, STEPS, key, SOME))(jax.random.key(0))
    found = np.asarray(history.y[:24]).reshape(8, 3)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    np.testing.assert_array_equal(found[:, 0], found[:, 2])
    assert len(np.unique(found[:, 0])) == 8


@pytest.mark.slow
@pytest.mark.parametrize("search", ["random", "halving", "default"])
def test_a_run_says_how_many_networks_it_began_and_whether_there_was_room_for_no_more(search):
    """Room for 5 of 18 networks is used up, and they are trained to the end; room for all is never too little."""

    def objective(key, x, step):
        return TABLE[SPACE.row(x), step]

    def counted(budget, networks=None):
        found = run_curves(SEARCHES[search], objective, STEPS, jax.random.key(0), budget, networks=networks)
        assert found.begun == (found.step == 0).sum()
        return int(found.begun), bool(found.full), int(found.spent[-1])

    assert counted(BUDGET, 5) == (5, True, 5 * STEPS[-1])
    if search == "random":
        assert counted(BUDGET) == (18, False, BUDGET)
        assert counted(2 * STEPS[-1], 5) == (2, False, 2 * STEPS[-1])


# Asking and telling


def drive(search, table, turns, seed=0):
    """What each ask named, (turns, q) rows of the table, by the host; and the state."""
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    state, done, named = search.init(jax.random.key(seed), 18), np.zeros(18, int), []
    for turn in range(turns):
        x, state, info = ask(jax.random.fold_in(jax.random.key(seed), turn), state)
        rows = [int(SPACE.row(point)) for point in x]
        named.append(rows)
        for row, point in zip(rows, x, strict=True):
            y = table[row, done[row]]
            state = tell(state, Trial(point, y, jnp.asarray(done[row]), jnp.asarray(1.0), jnp.isfinite(y)))
            done[row] += 1
    return named, state, info


def says(value):
    """A model that draws nothing but one value."""

    def fit(key, data, state):
        return state, FitInfo(jnp.zeros(()), jnp.asarray(True), jnp.asarray(True), jnp.zeros(()))

    return CurveModel(
        init=lambda capacity, d, times: jnp.zeros(()),
        fit=fit,
        sample=lambda key, state, x, known, k: jnp.full((k, *known.y.shape), value),
    )


def test_a_batch_is_of_distinct_networks_and_the_design_comes_first():
    history = run(SEARCHES["published"], TABLE)
    for i in range(8):
        rows = np.asarray(SPACE.row(history.x[i]))[np.asarray(history.step[i]) >= 0].reshape(-1, 4)
        assert all(len(set(batch)) == 4 for batch in rows)
        first = rows[0, :3]  # three initial networks, and one more to fill the batch
        assert all(np.array_equal(batch[:3], first) for batch in rows[:3])


@pytest.mark.slow
def test_of_a_design_that_is_halved_the_better_go_on():
    """Of six networks three see the second checkpoint and two the last: the best of the checkpoint before."""
    search = curves(SPACE, STEPS, initial=6, draws=32)
    named, state, _ = drive(search, TABLE, 11)
    rows = [batch[0] for batch in named]
    first, second, third = rows[:6], rows[6:9], rows[9:]
    assert len(set(first)) == 6
    assert second == sorted(first, key=lambda row: TABLE[row, 0])[:3]
    assert third == sorted(second, key=lambda row: TABLE[row, 1])[:2]
    assert complete(state.networks).sum() == 2


def test_a_design_that_is_halved_goes_on_without_those_that_diverge():
    """Half of the networks diverge; whatever the first ones do, a complete one is found."""
    search = curves(SPACE, STEPS, initial=6, draws=32)
    for seed in range(3):
        _, state, _ = drive(search, BAD, 18, seed)
        assert complete(state.networks).any()


def test_a_diverged_network_keeps_what_was_seen_and_never_goes_on():
    networks, x = none_begun(4, 2, 3), jnp.array([0.5, 0.0])
    yes = jnp.asarray(True)
    networks = told(networks, Trial(x, jnp.asarray(2.0), jnp.asarray(0), jnp.asarray(1.0), yes))
    networks = told(networks, Trial(x, jnp.asarray(jnp.nan), jnp.asarray(1), jnp.asarray(1.0), yes))
    np.testing.assert_array_equal(networks.data.mask[0], [True, False, False])
    np.testing.assert_array_equal(networks.failed, [True, False, False, False])
    again = told(networks, Trial(x, jnp.asarray(1.0), jnp.asarray(0), jnp.asarray(1.0), yes))
    np.testing.assert_array_equal(again.data.mask[:2, 0], [True, True])  # as a new network


@pytest.mark.slow
def test_networks_that_are_pending_complete_or_failed_are_no_candidates():
    x, yes = SPACE.points(), jnp.asarray(True)
    networks = asked(none_begun(18, 2, 3), x[4])
    for row, values in ((7, (3.0, 2.0, 1.0)), (9, (3.0, jnp.inf)), (11, (3.0,))):
        for step, y in enumerate(values):
            networks = told(networks, Trial(x[row], jnp.asarray(y), jnp.asarray(step), jnp.asarray(1.0), yes))
    pool = _pool(SPACE, True, 0, jax.random.key(0), CurveState(networks, x[:2], None))
    assert set(np.flatnonzero(~np.asarray(pool.open))) == {4, 7, 9}
    np.testing.assert_array_equal(pool.at[jnp.array([4, 7, 9, 11])], [0, 3, 1, 1])
    np.testing.assert_array_equal(pool.known.y[7], [3.0, 2.0, 1.0])
    np.testing.assert_array_equal(pool.rank[:4], [0, 1, 2, 2])


@pytest.mark.slow
def test_a_space_without_end_is_searched_among_fresh_candidates():
    space = bonas.Space(rate=bonas.Float(0.0, 1.0), kind=bonas.Choice("a", "b", "c"))

    def objective(key, x, step):
        return (x[0] - 0.3) ** 2 + 0.1 * x[1] + jnp.array([0.5, 0.1, 0.0])[step]

    search = curves(space, STEPS, variant="look", initial=3, draws=32, candidates=40)
    history = jax.jit(lambda key: run_curves(search, objective, STEPS, key, SOME, networks=18))(jax.random.key(0))
    assert history.best[-1] < 0.02
    assert len(np.unique(np.asarray(history.x)[np.asarray(history.step) == 0], axis=0)) == (history.step == 0).sum()


# What is chosen


def test_a_score_per_step_prefers_what_is_nearly_done():
    """Two networks alike but for how far they are: per step to the end, the ratio is that of what is left."""
    draws = jnp.broadcast_to(jax.random.normal(jax.random.key(0), (200, 1, 3)), (200, 2, 3))
    score = rate_score(LOGS["ei"], draws, jnp.asarray(0.0), jnp.array([0, 2]), jnp.asarray(STEPS))
    np.testing.assert_allclose(score[1] - score[0], np.log(90.0 / 60.0), rtol=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.999])
def test_a_look_is_worth_what_it_tells(rho):
    """Against λ found by SciPy from draws of what the look shows; it is never less than without a look."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    normal = np.random.default_rng(1).normal(size=(20_000, 2))
    early, final = normal[:, 0], rho * normal[:, 0] + np.sqrt(1.0 - rho**2) * normal[:, 1]
    draws = jnp.asarray(np.stack([early, final], axis=1)[:, None, :])
    best, steps = -0.5, np.array([10, 100])
    shown, left = rho * np.random.default_rng(2).normal(size=200_000), np.sqrt(1.0 - rho**2)
    z = (best - shown) / left
    gain = left * (norm.pdf(z) + z * norm.cdf(z))
    index = brentq(lambda rate: np.maximum(gain - rate * 90.0, 0.0).mean() - rate * 10.0, 1e-6, 1.0)
    index = max(index, gain.mean() / 100.0)
    score = jax.jit(look_score, static_argnums=0)(LOGS["ei"], draws, jnp.asarray(best), jnp.array([0]), jnp.asarray(steps))
    np.testing.assert_allclose(np.exp(score[0]), index, rtol=0.05)


def test_acquisitions_are_of_the_moments_of_final_values():
    """In the units of the values: κ = 1 for the upper confidence bound of what is gained."""
    from scipy.stats import norm

    draws, best = RNG.normal(size=(50, 4, 3)), -0.3
    mean, std = draws[:, :, -1].mean(axis=0), draws[:, :, -1].std(axis=0)
    z = (best - mean) / std
    expected = {"ei": std * (norm.pdf(z) + z * norm.cdf(z)), "pi": norm.cdf(z), "ucb": std - mean}
    assert set(expected) == set(PLAIN)
    for name, scores in expected.items():
        np.testing.assert_allclose(final_score(PLAIN[name], jnp.asarray(draws), jnp.asarray(best)), scores, rtol=1e-9)


@pytest.mark.parametrize("disjoint", [True, False])
def test_each_of_a_batch_has_draws_of_its_own_where_they_are_disjoint(disjoint):
    """The i-th set of draws is least at network 5 i: three sets give those next to 0, 5 and 10, one gives those next to 0."""
    draws = 10

    def sample(key, state, x, known, k):
        favourite = 5 * (jnp.arange(k) // draws)
        away = jnp.abs(jnp.arange(len(x))[None, :] - favourite[:, None]) + jnp.where(jnp.arange(k) % 2, 0.1, -0.1)[:, None]
        return jnp.broadcast_to(away[:, :, None] - 20.0, (k, *known.y.shape))

    model = replace(says(0.0), sample=sample)
    search = curves(SPACE, STEPS, model=model, variant="published", batch=3, draws=draws, initial=3, disjoint=disjoint)
    named, _, _ = drive(search, TABLE, 4)  # the initial ones, which are trained to the end, and the first that are chosen
    left, expected = [row for row in range(18) if row not in named[0]], []
    for favourite in (0, 5, 10) if disjoint else (0, 0, 0):
        expected.append(min(left, key=lambda row: abs(row - favourite)))
        left.remove(expected[-1])
    assert named[3] == expected


def test_the_best_of_a_rung_go_on():
    """Nine networks, three, one: on a table whose order never changes they are those with the least values."""
    named, state, _ = drive(successive_halving(SPACE, STEPS), TABLE, 13)
    rows = np.ravel(named)
    ends = np.asarray(TABLE)
    first, second, third = rows[:9], rows[9:12], rows[12:]
    assert len(set(first)) == 9
    assert set(second) == set(first[np.argsort(ends[first, 0])[:3]])
    assert set(third) == {second[np.argmin(ends[second, 1])]}
    assert np.asarray(complete(state.networks)).sum() == 1


def test_hyperband_has_brackets_that_halve_later_and_are_smaller():
    """With eta 3 and three checkpoints: (9, 3, 1), (5, 5, 1), (3, 3, 3) networks, then again (Li et al. 2018, Algorithm 1)."""
    rows = np.ravel(drive(hyperband(SPACE, STEPS), TABLE, 13 + 11 + 9)[0])
    counts = [np.sort(np.unique(part, return_counts=True)[1]) for part in (rows[:13], rows[13:24], rows[24:])]
    np.testing.assert_array_equal(counts[0], [1] * 6 + [2] * 2 + [3])
    np.testing.assert_array_equal(counts[1], [2] * 4 + [3])
    np.testing.assert_array_equal(counts[2], [3] * 3)


def test_top_k_finishes_the_k_best_of_the_first_checkpoint():
    rows = np.ravel(drive(top_k(SPACE, STEPS, width=6, k=2), TABLE, 10)[0])
    chosen = rows[:6][np.argsort(np.asarray(TABLE)[rows[:6], 0])[:2]]
    assert set(rows[6:]) == set(chosen)


def test_whole_tells_the_adapted_search_the_final_value_alone():
    """Of ten networks, each told once."""
    inner = evolution(SPACE, population=4)
    _, state, _ = drive(whole(inner, STEPS), TABLE, 30)
    data = state.search.record.data
    np.testing.assert_array_equal(data.y[:10, 0], [TABLE[SPACE.row(x), 2] for x in data.x[:10]])


def test_it_beats_random_search():
    """In the median over 8 seeds, at a budget of 6 of 18 networks."""

    def reached(search):
        history = jax.tree.map(np.asarray, run(SEARCHES[search], TABLE)._replace(state=None))
        last = (history.spent <= 6 * STEPS[-1]).sum(axis=1) - 1
        return history.best[np.arange(8), last]

    assert np.median(reached("default")) < np.median(reached("random"))


# What cannot be modelled


@pytest.mark.parametrize("variant", ["rate", "look", "published"])
def test_a_model_that_gives_no_numbers_is_reported_and_a_network_is_chosen_by_chance(variant):
    search = curves(SPACE, STEPS, model=says(jnp.nan), variant=variant, initial=2, thinning=1)
    chosen = set()
    for seed in range(6):
        named, _, info = drive(search, TABLE, 7, seed)
        assert "scores were not finite: a random network" in FALLBACKS[info.fallback]
        assert info.random
        assert np.isnan(info.acquisition)
        chosen.add(named[6][0])
    assert len(chosen) > 3
    assert drive(search, TABLE, 6)[2].fallback == 0  # the initial networks need no model


# What is refused


@pytest.mark.parametrize("search", SEARCHES)
def test_a_run_has_the_checkpoints_of_its_search(search):
    def objective(key, x, step):
        return x[0]

    for steps in ((10, 90), (10, 30, 91), (5, 10, 30, 90)):
        with pytest.raises(ValueError, match=r"the search is for checkpoints at \(10, 30, 90\) training steps; got a run with"):
            run_curves(SEARCHES[search], objective, steps, jax.random.key(0), BUDGET)
        with pytest.raises(ValueError, match="the search is for checkpoints at"):
            run_curves_many(SEARCHES[search], objective, steps, jax.random.split(jax.random.key(0)), BUDGET)


def test_a_budget_may_be_a_whole_number_of_any_kind():
    def objective(key, x, step):
        return TABLE[SPACE.row(x), step]

    keys = jax.random.split(jax.random.key(0), 2)
    found = [run_curves_many(SEARCHES["random"], objective, np.array(STEPS), keys, budget) for budget in (180, 180.0, 1.8e2)]
    for each in found[1:]:
        np.testing.assert_array_equal(each.y, found[0].y)
    assert (found[0].spent[:, -1] == 180).all()


def test_what_is_refused():
    for steps in ((30, 10), (0, 10), (10, 10), ()):
        with pytest.raises(ValueError, match="steps are"):
            curves(SPACE, steps)
        with pytest.raises(ValueError, match="steps are"):
            whole(random(SPACE), steps)
    with pytest.raises(ValueError, match="does not train one network, which takes 90"):
        run_curves(SEARCHES["random"], lambda key, x, step: x[0], STEPS, jax.random.key(0), 89)
    with pytest.raises(ValueError, match=r"a budget is a whole number of training steps; got 90.5"):
        run_curves(SEARCHES["random"], lambda key, x, step: x[0], STEPS, jax.random.key(0), 90.5)
    with pytest.raises(ValueError, match="this space has 18 networks; got a batch of 19"):
        curves(SPACE, STEPS, batch=19)
    with pytest.raises(ValueError, match="batch lies between 1 and the size of the space, 18; got 19"):
        whole(random(SPACE), STEPS, batch=19)
    with pytest.raises(ValueError, match="acquisition of the variant 'look' is one of ei, pi; got 'ucb'"):
        curves(SPACE, STEPS, variant="look", acquisition="ucb")
    with pytest.raises(ValueError, match="variant is one of"):
        curves(SPACE, STEPS, variant="thawed")
    with pytest.raises(ValueError, match="at least 1"):
        curves(SPACE, STEPS, initial=0)
    with pytest.raises(ValueError, match="eta"):
        successive_halving(SPACE, STEPS, eta=1)
    with pytest.raises(ValueError, match="k lies between 1 and width"):
        top_k(SPACE, STEPS, width=3, k=4)
    search = curves(SPACE, STEPS)
    trial = Trial(SPACE.points()[0], jnp.asarray(1.0), jnp.asarray(1), jnp.asarray(1.0), jnp.asarray(True))
    state = search.init(jax.random.key(0), 4)
    with pytest.raises(ValueError, match="is 0; the trial has 1"):
        search.tell(state, trial)
    search = whole(random(SPACE, batch=2), STEPS)
    state = search.init(jax.random.key(0), 4)
    with pytest.raises(ValueError, match="asks for one network at a time; this one asks for 2"):
        search.ask(jax.random.key(0), state)
