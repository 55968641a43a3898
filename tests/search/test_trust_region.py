"""TuRBO-1: how the box grows, shrinks and starts again, what lies in it, and that it searches."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.acquire import sobol
from bonas.problems import functions
from bonas.search import Observation, random
from bonas.search.observations import add_observation, add_pending, empty_observations
from bonas.search.trust_region import (
    FIRST_LENGTH,
    MAX_LENGTH,
    MIN_LENGTH,
    SUCCESSES,
    TrustState,
    update_length,
)
from bonas.search.trust_region_box import sample_box, side_ratios

KEY = jax.random.key(0)
PROBLEM = functions.levy(6)
SETTINGS = {"initial": 6, "candidates": 100}
SEARCH = bonas.turbo(PROBLEM.space, **SETTINGS)
CAPACITY = 40
ask, tell = (
    jax.jit(SEARCH.ask),
    jax.jit(SEARCH.tell),
)  # one program for all tests that use this search


def trial(x, y, ok=True):
    return Observation(
        x=x,
        y=jnp.asarray(y),
        step=jnp.asarray(0),
        cost=jnp.asarray(1.0),
        ok=jnp.asarray(ok),
    )


def drive(objective, steps, key=KEY, state=None, ask=ask, tell=tell, search=SEARCH):
    """A host loop with the keys of `run`: points, reports, state."""
    init_key, run_key = jax.random.split(key)
    state, rows = search.init(init_key, CAPACITY) if state is None else state, []
    for i in range(steps):
        ask_key, eval_key = jax.random.split(jax.random.fold_in(run_key, i))
        x, state, info = ask(ask_key, state)
        state = tell(state, trial(x[0], objective(eval_key, x[0])))
        rows.append((x[0], info))
    x, infos = zip(*rows, strict=True)
    return np.stack(x), jax.tree.map(lambda *leaves: np.stack(leaves), *infos), state


@pytest.fixture(scope="module")
def histories():
    return bonas.run_many(
        SEARCH, PROBLEM.objective, jax.random.split(KEY, 8), steps=CAPACITY
    )


# How the length changes


def counted(values, initial=2, patience=4, judge_each=1):
    """Return the lengths after each ask of a run with these values; NaN is a failure.

    Each ask sees `judge_each` new observations.
    """
    zero = jnp.zeros((), int)
    record = empty_observations(len(values), 1)
    state = TrustState(
        record,
        jnp.zeros((initial, 1)),
        (),
        (),
        jnp.asarray(FIRST_LENGTH),
        zero,
        zero,
        zero,
        jnp.zeros(len(values), bool),
        zero,
    )
    lengths = []
    for i, value in enumerate(values):
        x = jnp.asarray([i / len(values)])
        record = add_observation(
            add_pending(state.observations, x),
            trial(x, 0.0 if np.isnan(value) else value, ok=not np.isnan(value)),
        )
        state = state._replace(observations=record)
        if (i + 1) % judge_each == 0:
            state = update_length(state, initial, patience)
            lengths.append(float(state.length))
    return lengths, state


@pytest.mark.slow
def test_three_successes_in_a_row_double_the_box_up_to_the_longest():
    lengths, state = counted([10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0])
    assert (
        lengths == [FIRST_LENGTH] * 4 + [MAX_LENGTH] * 4
    )  # two initial points and three successes; then at most 1.6
    assert SUCCESSES == 3
    assert int(state.successes) == 0


def test_failures_in_a_row_halve_the_box():
    lengths, state = counted([1.0, 2.0] + [3.0] * 8)
    assert lengths == [FIRST_LENGTH] * 5 + [FIRST_LENGTH / 2] * 4 + [FIRST_LENGTH / 4]
    assert int(state.failures) == 0


def test_a_success_between_failures_starts_the_count_again():
    lengths, _ = counted([1.0, 2.0, 3.0, 3.0, 3.0, 0.5, 3.0, 3.0, 3.0, 3.0])
    assert lengths == [FIRST_LENGTH] * 9 + [FIRST_LENGTH / 2]


def test_a_gain_below_a_thousandth_is_no_success():
    assert counted([100.0, 100.0, 99.95, 99.9, 99.85, 99.8])[0][-1] == FIRST_LENGTH / 2
    assert counted([100.0, 100.0, 99.8, 99.6, 99.4])[0][-1] == MAX_LENGTH
    assert counted([-100.0, -100.0, -100.2, -100.4, -100.6])[0][-1] == MAX_LENGTH


def test_initial_points_count_for_nothing():
    _, state = counted([5.0, 4.0, 3.0, 2.0, 1.0], initial=5)
    assert (int(state.successes), int(state.failures)) == (0, 0)


def test_a_failed_evaluation_is_a_failure():
    assert counted([1.0, 2.0] + [np.nan] * 4)[0][-1] == FIRST_LENGTH / 2


def test_after_failed_initial_points_any_value_is_a_success():
    _, state = counted([np.nan, np.nan, 7.0])
    assert (int(state.successes), int(state.failures)) == (1, 0)


def test_what_one_ask_brings_is_one_success_or_one_failure():
    """Batches of two: three batches with one gain each double the box, as three single gains do."""
    lengths, _ = counted([9.0, 9.0, 8.0, 20.0, 20.0, 7.0, 6.0, 5.0], judge_each=2)
    assert lengths == [FIRST_LENGTH] * 3 + [MAX_LENGTH]


def test_nothing_told_changes_nothing():
    _, state = counted([1.0, 2.0, 3.0])
    same = update_length(state, 2, 4)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(same), strict=True)
    )


# Where candidates lie


@pytest.mark.slow
def test_candidates_lie_in_the_box_and_fill_it():
    space, center, half = (
        PROBLEM.space,
        jnp.full(6, 0.3).at[0].set(0.95),
        jnp.asarray([0.2, 0.2, 0.1, 0.1, 0.05, 0.01]),
    )
    points = sample_box(KEY, space, center, half, grid=sobol(512, 6))
    gap = np.asarray(jnp.abs(points - center[None, :]).max(axis=0))
    assert (points >= 0.0).all()
    assert (points <= 1.0).all()
    assert (gap <= half + 1e-12).all()
    assert (gap > 0.98 * half).all()


@pytest.mark.slow
def test_the_next_point_lies_in_the_box_around_the_best_one(histories):
    """The center has the least posterior mean; length scales stretch the sides."""
    _, _, state = drive(PROBLEM.objective, 12)
    x, after, _ = ask(jax.random.key(5), state._replace(length=jnp.asarray(0.1)))
    fitted = jax.tree.map(lambda leaf: leaf[0], after.model)
    data = state.observations.data
    means = surrogates.gp(gp.matern52()).predict(fitted, data.x).mean[0]
    center = data.x[jnp.argmin(jnp.where(data.mask[:, 0], means, jnp.inf))]
    assert (jnp.abs(x[0] - center) <= 0.05 * side_ratios(fitted, 6) + 1e-12).all()


def test_sides_are_length_scales_over_their_geometric_mean():
    model = surrogates.gp(gp.matern52())
    state = model.init(4, 3, 1)
    scales = jnp.asarray([[0.1, 0.4, 1.6]])
    params = {**state.posterior.params, "lengthscale": scales}
    stretched = side_ratios(
        state._replace(posterior=state.posterior._replace(params=params)), 3
    )
    np.testing.assert_allclose(stretched, [0.25, 1.0, 4.0])
    np.testing.assert_array_equal(
        side_ratios(surrogates.gp(gp.linear()).init(4, 3, 1), 3), np.ones(3)
    )
    np.testing.assert_array_equal(side_ratios("some other model", 3), np.ones(3))


@pytest.mark.slow
@pytest.mark.parametrize(("d", "share"), [(6, 1.0), (60, 1 / 3), (80, 0.25)])
def test_few_coordinates_move_in_many_dimensions(d, share):
    """Each with probability min(1, 20/d), at least one: 500 candidates, five standard errors."""
    space = bonas.Space(**{f"x{i}": bonas.Float(0.0, 1.0) for i in range(d)})
    points = sample_box(
        KEY, space, jnp.full(d, 0.5), jnp.full(d, 0.1), grid=sobol(500, d)
    )
    moved = np.asarray(points != 0.5)
    assert moved.any(axis=1).all()
    assert (
        abs(moved.mean() - share)
        <= 5.0 * np.sqrt(share * (1.0 - share) / (500 * d)) + 1e-9
    )


@pytest.mark.slow
def test_whole_numbers_reach_their_neighbors_however_small_the_box():
    space = bonas.Space(
        a=bonas.Int(1, 9), b=bonas.Int(1, 64, log=True), c=bonas.Int(0, 4)
    )

    def objective(key, u):
        return jnp.sum((u - 0.5) ** 2)

    search = bonas.turbo(space, initial=4, candidates=64)
    history = bonas.run_many(search, objective, KEY[None], 24)
    np.testing.assert_allclose(space.snap(history.x[0]), history.x[0], atol=1e-12)
    assert len(np.unique(np.round(history.x[0], 9), axis=0)) == 24  # no point twice


# Restarts


def test_a_box_that_collapsed_starts_again_from_an_empty_model():
    """Shapes stay, new initial points come first, and the model ignores the last run."""
    x, _, state = drive(PROBLEM.objective, 10)
    small = state._replace(length=jnp.asarray(0.9 * MIN_LENGTH))
    later, infos, after = drive(
        PROBLEM.objective, 8, key=jax.random.key(7), state=small
    )
    assert int(after.restarts) == 1
    assert int(after.run_start) == 10
    assert float(after.length) == FIRST_LENGTH
    np.testing.assert_array_equal(infos.random, [True] * 6 + [False] * 2)
    assert not np.isclose(later[:6], x[:6]).all(axis=1).any()
    model = jax.tree.map(lambda leaf: leaf[0, 0], after.model.posterior)
    np.testing.assert_array_equal(
        np.flatnonzero(model.data.mask[:, 0]), np.arange(10, 17)
    )
    assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)


@pytest.mark.slow
def test_a_function_without_gains_restarts_and_goes_on():
    """d = 1: 4 failures halve the box; 7 halvings, 28 asks, take it from 0.8 below 2⁻⁷."""
    space = bonas.Space(a=bonas.Float(0.0, 1.0))
    search = bonas.turbo(space, initial=2, candidates=32)
    history = bonas.run_many(search, lambda key, u: 0.0 * u[0] + 1.0, KEY[None], 40)
    assert int(history.state.restarts[0]) == 1
    assert int(history.state.run_start[0]) == 30
    np.testing.assert_array_equal(
        np.flatnonzero(history.info.random[0]), [0, 1, 30, 31]
    )


# As every search


def test_a_run_is_what_a_loop_of_ask_and_tell_is(histories):
    x, _, _ = drive(PROBLEM.objective, CAPACITY, key=jax.random.split(KEY, 8)[1])
    np.testing.assert_allclose(x, histories.x[1], atol=1e-6)


@pytest.mark.slow
def test_vmap_agrees_with_run_many(histories):
    keys = jax.random.split(KEY, 8)[:2]
    vmapped = jax.jit(
        jax.vmap(lambda key: bonas.run(SEARCH, PROBLEM.objective, key, CAPACITY))
    )(keys)
    np.testing.assert_allclose(vmapped.x, histories.x[:2], atol=1e-6)


def test_asking_compiles_once():
    drive(PROBLEM.objective, 9)
    assert ask._cache_size() == 1
    assert tell._cache_size() == 1


def test_it_beats_random_search(histories):
    chance = bonas.run_many(
        random(PROBLEM.space),
        PROBLEM.objective,
        jax.random.split(KEY, 8),
        steps=CAPACITY,
    )
    assert np.median(histories.best[:, -1]) < 0.5 * np.median(chance.best[:, -1])


@pytest.mark.slow
def test_it_begins_with_the_points_of_bayes(histories):
    init_key, _ = jax.random.split(jax.random.split(KEY, 8)[0])
    np.testing.assert_array_equal(
        bonas.bayes(PROBLEM.space, initial=6).init(init_key, 8).design,
        histories.x[0, :6],
    )


def test_all_failed_is_a_random_point_and_says_so():
    _, infos, _ = drive(lambda key, u: jnp.nan, 8)
    np.testing.assert_array_equal(infos.fallback, [0] * 6 + [1] * 2)


@pytest.mark.slow
def test_a_batch_is_of_different_points_within_one_ask():
    search = bonas.turbo(
        PROBLEM.space, acquisition=bonas.log_ei, batch=3, initial=3, candidates=50
    )
    state = search.init(KEY, 12)
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    for i in range(4):
        x, state, info = ask(jax.random.fold_in(KEY, i), state)
        for row in x[::-1]:  # add_observation in any order
            state = tell(state, trial(row, PROBLEM.objective(KEY, row)))
    assert x.shape == (3, 6)
    assert len(np.unique(state.observations.data.x, axis=0)) == 12
    assert (
        int(state.successes) + int(state.failures) <= 2
    )  # the second and the third ask were judged; the last is not yet
    assert jnp.isfinite(info.acquisition)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            partial(
                bonas.turbo,
                bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Choice("x", "y")),
            ),
            "numbers without conditions",
        ),
        (partial(bonas.turbo, functions.layered.space), "numbers without conditions"),
        (partial(bonas.turbo, PROBLEM.space, initial=0), "at least 1"),
        (partial(bonas.turbo, PROBLEM.space, batch=0), "at least 1"),
        (partial(bonas.turbo, PROBLEM.space, candidates=0), "at least 1"),
        (partial(bonas.turbo, PROBLEM.space, output="loud"), "output must be one of"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_equal_settings_are_equal_searches():
    again = bonas.turbo(PROBLEM.space, **SETTINGS)
    assert again == SEARCH
    assert hash(again) == hash(SEARCH)
