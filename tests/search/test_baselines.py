"""Random, Sobol, grid and regularized evolution."""

import itertools
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import bonas
from bonas.problems import functions
from bonas.search import Observation
from bonas.search.baselines import grid, random, sobol
from bonas.search.regularized_evolution import evolution, mutate

MAKERS = {"random": random, "sobol": sobol, "grid": grid, "evolution": evolution}
SETTINGS = {"grid": {"levels": 6}, "evolution": {"population": 3, "tournament": 2}}
KEYS = jax.random.split(jax.random.key(0), 100)
# Seven points: b matters for one of two options only.
SMALL = bonas.Space(a=bonas.Choice("x", "y"), b=bonas.Int(1, 6, when={"a": "x"}))
SEVEN = {("y",), *(("x", b) for b in range(1, 7))}
STEPS = 14
LAYERED, CAPACITY = functions.layered.space, 20
BOX = functions.mccormick.space


def make(name, space, **more):
    return MAKERS[name](space, **SETTINGS.get(name, {}), **more)


def trial(x, y, ok=True):
    return Observation(
        x=x,
        y=jnp.asarray(y),
        step=jnp.asarray(0),
        cost=jnp.asarray(1.0),
        ok=jnp.asarray(ok),
    )


def fails_at_two(key, u):
    values = SMALL.values(u)
    return jnp.where((values["a"] == 0) & (values["b"] == 2), jnp.nan, u.sum())


# Properties of all baselines: complete runs on a small space, batches on an infinite one, both
# with conditional parameters.


@cache
def runs(name):
    """Two evaluations per point of the space."""
    return bonas.run_many(make(name, SMALL), fails_at_two, KEYS, STEPS)


@pytest.fixture(scope="module", params=list(MAKERS))
def name(request):
    return request.param


@pytest.mark.typed
def test_growing_keeps_observations_and_counts_them_in_the_new_plan(name):
    search = make(name, SMALL)
    state = search.init(KEYS[0], 4)
    points = jnp.unique(state.plan, axis=0)[:3]
    for x in points:
        state = search.tell(state, trial(x, 1.0))
    fresh = search.init(KEYS[0], 8)
    grown = search.grow(state, fresh)
    assert jax.tree.map(jnp.shape, grown) == jax.tree.map(jnp.shape, fresh)
    np.testing.assert_array_equal(grown.observations.data.x[:3], points)
    assert grown.observations.data.size == 3
    np.testing.assert_array_equal(grown.plan, fresh.plan)
    known = (grown.plan[:, None, :] == points[None, :, :]).all(axis=2).any(axis=1)
    np.testing.assert_array_equal(grown.times, known.astype(int))


@pytest.fixture(scope="module")
def histories(name):
    return runs(name)


@pytest.fixture(scope="module")
def batches(name):
    """(ask, tell, start) of a search that asks for three points at a time, compiled."""
    search = make(name, LAYERED, batch=3)
    return (
        jax.jit(search.ask),
        jax.jit(search.tell),
        jax.jit(search.init, static_argnums=1)(KEYS[0], CAPACITY),
    )


def asked_often(batches, times):
    """Return the points of several asks without observations, and the final state."""
    ask, _, state = batches
    points = []
    for i in range(times):
        x, state, _ = ask(jax.random.fold_in(KEYS[0], i), state)
        points.append(x)
    return np.concatenate(points), state


@pytest.mark.slow
def test_a_run_is_what_a_loop_of_ask_and_tell_is(name, histories):
    search = make(name, SMALL)
    init_key, run_key = jax.random.split(KEYS[1])
    ask, tell = (
        jax.jit(search.ask),
        jax.jit(lambda state, trial: search.tell(state, trial)),
    )
    state = jax.jit(search.init, static_argnums=1)(init_key, STEPS)
    for i in range(STEPS):
        ask_key, _ = jax.random.split(jax.random.fold_in(run_key, i))
        x, state, _ = ask(ask_key, state)
        np.testing.assert_allclose(x[0], histories.x[1, i], atol=1e-12)
        state = tell(state, trial(x[0], histories.y[1, i]))
    assert ask._cache_size() == tell._cache_size() == 1


@pytest.mark.slow
def test_vmap_agrees_with_run_many(name, histories):
    vmapped = jax.jit(
        jax.vmap(lambda key: bonas.run(make(name, SMALL), fails_at_two, key, STEPS))
    )(KEYS[:4])
    np.testing.assert_allclose(vmapped.x, histories.x[:4], atol=1e-12)


def test_keys_make_a_difference(histories):
    assert not np.allclose(histories.x[0], histories.x[1])


def test_a_finite_space_is_tried_without_repeats(histories):
    rows = np.round(np.asarray(histories.x[:, :7]), 9)
    assert {len(np.unique(run, axis=0)) for run in rows} == {7}
    assert {tuple(SMALL.decode(row).values()) for row in rows[0]} == SEVEN


def test_exhaustion_is_reported_once_all_is_tried(histories):
    np.testing.assert_array_equal(
        histories.info.exhausted, [[False] * 7 + [True] * 7] * len(KEYS)
    )


def test_points_asked_again_are_told_again(histories):
    """Fourteen evaluations of seven points fill fourteen rows."""
    np.testing.assert_array_equal(histories.state.observations.data.size, STEPS)
    assert not histories.state.observations.pending.any()


def test_failed_evaluations_are_recorded_and_masked(histories):
    failed = np.isnan(histories.y)
    assert failed.any()
    np.testing.assert_array_equal(histories.state.observations.failed, failed)
    np.testing.assert_array_equal(
        histories.state.observations.data.mask[:, :, 0], ~failed
    )


@pytest.mark.slow
def test_points_asked_before_any_is_told_are_distinct(batches):
    points, state = asked_often(batches, 4)
    assert len(np.unique(np.round(points, 6), axis=0)) == 12
    assert state.observations.pending.sum() == 12


def test_only_points_that_exist_are_asked(batches):
    points, _ = asked_often(batches, 4)
    np.testing.assert_allclose(LAYERED.snap(points), points, atol=1e-12)


def test_the_order_of_telling_makes_no_difference(batches):
    ask, tell, start = batches
    ends = []
    for order in (1, -1):
        state = start
        for i in range(3):
            x, state, _ = ask(jax.random.fold_in(KEYS[0], i), state)
            for row in x[::order]:
                state = tell(state, trial(row, row.sum()))
        ends.append(state)
    assert not ends[0].observations.pending.any()
    jax.tree.map(np.testing.assert_array_equal, ends[0], ends[1])


def test_every_value_is_at_its_point(batches):
    ask, tell, state = batches
    x, state, _ = ask(KEYS[0], state)
    for row in x[jnp.array([1, 2, 0])]:
        state = tell(state, trial(row, row.sum()))
    np.testing.assert_allclose(
        state.observations.data.y[:3, 0], x.sum(axis=1), rtol=1e-12
    )


def test_a_point_told_without_being_asked_is_not_asked(batches):
    ask, tell, start = batches
    x, _, _ = ask(KEYS[0], start)
    again, state, _ = ask(KEYS[0], tell(start, trial(x[0], 1.0)))
    assert (jnp.abs(again - x[0][None, :]).max(axis=1) > 1e-6).all()
    assert state.observations.data.y[0, 0] == 1.0


def test_past_the_capacity_no_row_is_overwritten(batches):
    _, before = asked_often(batches, 6)
    _, after = asked_often(batches, 8)
    np.testing.assert_array_equal(
        after.observations.data.x[:18], before.observations.data.x[:18]
    )
    assert after.observations.data.size == 24 > CAPACITY


def test_a_full_search_says_so(name, batches):
    _, state = asked_often(batches, 6)
    with pytest.raises(
        ValueError, match="the search is full: its capacity is 20 points"
    ):
        make(name, LAYERED, batch=3).ask(KEYS[0], state)


def test_equal_searches_share_what_is_compiled(name):
    same = bonas.Space(a=bonas.Choice("x", "y"), b=bonas.Int(1, 6, when={"a": "x"}))
    assert make(name, SMALL) == make(name, same)


@pytest.mark.parametrize(
    ("maker", "settings", "says"),
    [
        (random, {"batch": 0}, "batch must be an integer of at least 1; got 0"),
        (grid, {"levels": 0}, "levels must be an integer of at least 1; got 0"),
        (evolution, {"population": 0}, "population must be .* at least 1; got 0"),
        (evolution, {"tournament": -1}, "tournament must be .* at least 1; got -1"),
        (evolution, {"step": float("nan")}, "step must be a positive number; got nan"),
    ],
)
def test_wrong_settings_are_refused(maker, settings, says):
    with pytest.raises(ValueError, match=says):
        maker(BOX, **settings)


# Random and Sobol


def first(search, n, key):
    """The first n points that a search in batches of n asks for."""
    return np.asarray(jax.jit(lambda key: search.ask(key, search.init(key, n))[0])(key))


@pytest.fixture(scope="module")
def spreads():
    """The first 64 points of 20 searches: {name: (20, 64, 2)}."""

    def ask(search):
        return jax.jit(jax.vmap(lambda key: search.ask(key, search.init(key, 64))[0]))(
            KEYS[:20]
        )

    return {
        "random": np.asarray(ask(random(BOX, batch=64))),
        "sobol": np.asarray(ask(sobol(BOX, batch=64))),
    }


def test_random_points_are_uniform(spreads):
    """Kolmogorov-Smirnov in each column, 1280 points; a false alarm once in 10⁶."""
    for column in spreads["random"].reshape(-1, 2).T:
        assert scipy.stats.kstest(column, "uniform").pvalue > 1e-6


def test_random_is_fair_to_every_option_under_its_condition():
    """The first point of 100 runs is "y" half the time, though it is one point of seven.

    Tolerance: five standard errors.
    """
    assert abs(np.mean(runs("random").x[:, 0, 0] == 1.0) - 0.5) < 5 * 0.5 / np.sqrt(
        len(KEYS)
    )


def test_random_begins_the_same_with_a_larger_capacity(spreads):
    larger = jax.jit(random(BOX).init, static_argnums=1)(KEYS[0], 128)
    np.testing.assert_array_equal(larger.plan[:64], spreads["random"][0])


def test_sobol_is_the_sequence_moved_around_the_edges(spreads):
    plain = scipy.stats.qmc.Sobol(2, scramble=False).random(64)
    apart = spreads["sobol"][0] - plain
    np.testing.assert_allclose((apart - apart[:1] + 0.5) % 1.0 - 0.5, 0.0, atol=1e-9)


def test_sobol_is_more_even_than_random(spreads):
    """In each of 20 seeds, by the centered discrepancy of 64 points."""
    even, plain = (
        np.array([scipy.stats.qmc.discrepancy(points) for points in spreads[name]])
        for name in ("sobol", "random")
    )
    assert (even < plain).all()


def test_a_space_too_large_to_list_is_searched_without_repeats():
    space = bonas.Space(a=bonas.Int(0, 29_999))
    points = first(
        random(space, batch=1000), 1000, jax.random.key(0)
    )  # of as many plain draws, 16 pairs coincide
    assert len(np.unique(np.round(points * 29_999))) == 1000


# Grid

MIXED = bonas.Space(
    rate=bonas.Float(1e-4, 1.0, log=True),
    width=bonas.Int(0, 100),
    layers=bonas.Int(1, 2),
    kind=bonas.Choice("p", "q", "r", "s"),
    fixed=bonas.Float(3.0, 3.0),
)
COMBINATIONS = set(
    itertools.product([1e-4, 1e-2, 1.0], [0, 50, 100], [1, 2], "pqrs", [3.0])
)


@pytest.fixture(scope="module")
def gridded():
    n = len(COMBINATIONS)
    points = first(grid(MIXED, levels=3, batch=n), n, jax.random.key(0))
    return [MIXED.decode(row) for row in points]


@pytest.mark.slow
def test_a_grid_visits_each_point_exactly_once(gridded):
    visited = [(round(c["rate"], 9), *list(c.values())[1:]) for c in gridded]
    assert len(visited) == len(COMBINATIONS)
    assert set(visited) == COMBINATIONS


def test_a_grid_comes_in_random_order(gridded):
    """Among the first 36 of 72 points each of 3 rates occurs 12 times; in product order 24, 12, 0.

    Tolerance: five standard errors of drawing without replacement,
    sqrt(36 · 1/3 · 2/3 · 36/71) = 2.01.
    """
    rates = np.array([c["rate"] for c in gridded[:36]])
    assert all(
        abs(np.isclose(rates, rate).sum() - 12) < 5 * 2.01 for rate in (1e-4, 1e-2, 1.0)
    )


def test_a_grid_of_a_conditional_space_has_each_point_that_exists_once():
    space = functions.layered.space
    every = itertools.product([1, 2, 3], ["relu", "tanh"], *[[0.0, 0.5, 1.0]] * 3)
    exist = {(depth, kind, *x[:depth]) for depth, kind, *x in every}
    points = first(
        grid(space, levels=3, batch=len(exist)), len(exist), jax.random.key(0)
    )
    visited = [tuple(space.decode(row).values()) for row in points]
    assert len(exist) == 2 * (3 + 9 + 27)
    assert set(visited) == exist


def test_a_grid_of_one_level_is_the_middle():
    space = bonas.Space(
        x=bonas.Float(0.0, 8.0), y=bonas.Float(1.0, 100.0, log=True), n=bonas.Int(0, 10)
    )
    assert space.decode(first(grid(space, levels=1), 1, KEYS[0])[0]) == pytest.approx(
        {"x": 4.0, "y": 10.0, "n": 5}
    )


def test_a_grid_starts_again_in_the_same_order():
    np.testing.assert_array_equal(runs("grid").x[:, 7:], runs("grid").x[:, :7])


def test_a_grid_starts_again_in_the_same_order_whatever_has_been_told():
    search = grid(BOX, levels=2, batch=4)
    ask = jax.jit(search.ask)
    x, state, _ = ask(KEYS[0], jax.jit(search.init, static_argnums=1)(KEYS[0], 8))
    for row in x[2:]:
        state = jax.jit(search.tell)(state, trial(row, 1.0))
    np.testing.assert_array_equal(ask(KEYS[0], state)[0], x)


def test_too_large_a_grid_is_refused_with_its_size():
    with pytest.raises(
        ValueError, match="a grid of 46656 combinations exceeds the maximum"
    ):
        grid(functions.hartmann6.space, levels=6)


# Evolution: who is changed

YOUNGEST = 5
PLAIN = bonas.Space(
    a=bonas.Choice(*"wxyz"),
    n=bonas.Int(0, 10),
    r=bonas.Float(0.0, 1.0),
    fixed=bonas.Int(2, 2),
)


@pytest.fixture(scope="module")
def lottery():
    """lottery(share): a run whose values are chance and of which that share fails, 60 evaluations.

    Two hundred draws miss one of five members less than once in 10¹⁹.
    """
    search = evolution(PLAIN, population=YOUNGEST, tournament=200)

    def run(share):
        def chance(key, u):
            value = jax.random.uniform(key)
            return jnp.where(value < share, jnp.nan, value)

        return bonas.run(search, chance, jax.random.key(0), 60)

    return jax.jit(run)


def test_children_are_the_best_of_the_youngest_changed_in_one_parameter(lottery):
    history = lottery(1 / 3)
    x, y = np.asarray(history.x), np.asarray(history.y)
    old = 0
    for i in range(YOUNGEST, len(x)):
        succeeded = np.flatnonzero(np.isfinite(y[:i]))
        members = succeeded[-YOUNGEST:]
        parent = x[members[np.argmin(y[members])]]
        assert np.sum(np.abs(x[i] - parent) > 1e-9) == 1
        old += np.argmin(y[succeeded]) < len(succeeded) - YOUNGEST
    assert old > 20  # most of the time the best of all was too old to be a parent


def test_info_tells_children_from_random_points(lottery):
    np.testing.assert_array_equal(
        lottery(1 / 3).info.random, [True] * YOUNGEST + [False] * (60 - YOUNGEST)
    )


def test_nothing_but_failures_ends_in_random_points_and_is_reported(lottery):
    history = lottery(2.0)
    assert history.info.random.all()
    np.testing.assert_array_equal(
        history.info.fallback, [0] * YOUNGEST + [1] * (60 - YOUNGEST)
    )
    assert len(np.unique(np.asarray(history.x), axis=0)) == 60


def test_the_first_points_of_evolution_are_those_of_random_search():
    np.testing.assert_array_equal(runs("evolution").x[:, :3], runs("random").x[:, :3])


@pytest.mark.slow
def test_evolution_beats_random_search():
    """A smooth function of six parameters, 100 evaluations, 100 seeds, compared in pairs.

    Better by more than five standard errors.
    """
    problem, keys = functions.hartmann6, KEYS
    searches = random(problem.space), evolution(problem.space)
    plain, evolved = (
        bonas.run_many(search, problem.objective, keys, 100).best[:, -1]
        for search in searches
    )
    gain = np.asarray(plain - evolved)
    assert gain.mean() > 5 * gain.std(ddof=1) / np.sqrt(len(gain))


# Evolution: how it is changed


MUTATE = jax.jit(jax.vmap(mutate, (None, None, 1, 1)))


def children(space, parent, step):
    """3000 mutations (3000, d) of one row."""
    chances = jax.random.uniform(jax.random.key(0), (2 * space.dim, 3000))
    return np.asarray(
        MUTATE(
            space,
            parent,
            chances,
            step * jax.random.normal(jax.random.key(1), (space.dim, 3000)),
        )
    )


PARENT = jnp.array([1 / 3, 0.5, 0.5, 0.0])


@pytest.fixture(scope="module")
def family():
    return children(PLAIN, PARENT, 0.01)


def test_every_parameter_that_can_change_does_so_equally_often(family):
    """A third each, within five standard errors: sqrt(3000 · 1/3 · 2/3) = 25.8."""
    changed = np.abs(family - PARENT[None, :]) > 1e-12
    np.testing.assert_array_equal(changed.sum(axis=1), 1)
    assert (np.abs(changed[:, :3].sum(axis=0) - 1000) < 5 * 25.8).all()


def test_an_option_becomes_any_other_equally_often(family):
    """Each of three others, within five standard errors."""
    counts = np.bincount(np.round(family[:, 0] * 3).astype(int), minlength=4)[[0, 2, 3]]
    assert (np.abs(counts - counts.mean()) < 5 * np.sqrt(counts.sum() * 2 / 9)).all()


def test_an_integer_moves_by_at_least_one(family):
    """Steps of 0.01 of a range of 10 round to nothing: one up or down instead."""
    assert set(np.round(family[:, 1] * 10)) == {4.0, 5.0, 6.0}


@pytest.mark.parametrize(("end", "inside"), [(0.0, 1.0), (1.0, 9.0)])
def test_an_integer_at_the_end_of_its_range_moves_inwards(end, inside):
    parent = PARENT.at[1].set(end)
    rows = children(PLAIN, parent, 0.01)
    assert set(np.round(rows[:, 1] * 10)) == {10 * end, inside}
    np.testing.assert_array_equal(
        (np.abs(rows - parent[None, :]) > 1e-12).sum(axis=1), 1
    )  # never nowhere


def test_a_real_number_takes_gaussian_steps_of_the_stated_size(family):
    """By Kolmogorov-Smirnov; a false alarm once in 10⁶."""
    steps = family[:, 2] - 0.5
    assert scipy.stats.kstest(steps[steps != 0.0] / 0.01, "norm").pvalue > 1e-6


def test_real_numbers_are_reflected_at_the_bounds():
    """From 0.1, a step of −0.3 leads to 0.2, of 1.1 to 0.8 and of −1.4 to 0.7."""
    space = bonas.Space(r=bonas.Float(0.0, 1.0))
    rows = MUTATE(
        space, jnp.array([0.1]), jnp.full((2, 3), 0.5), jnp.array([[-0.3, 1.1, -1.4]])
    )
    np.testing.assert_allclose(rows[:, 0], [0.2, 0.8, 0.7], atol=1e-12)


def test_parameters_that_become_active_are_drawn_at_random():
    """x2 and x3, once depth is 3, are uniform by Kolmogorov-Smirnov (false alarm rate 1e-6)."""
    shallow = jnp.array([0.0, 1.0, 0.5, 0.0, 0.0])
    rows = children(LAYERED, shallow, 1.0)
    grown = rows[rows[:, 0] == 1.0]
    assert len(grown) > 100
    for column in (3, 4):
        assert scipy.stats.kstest(grown[:, column], "uniform").pvalue > 1e-6
