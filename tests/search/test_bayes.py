import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from cases import brownian
from numpyro.distributions import HalfNormal

import bonas
from bonas import gp, surrogates
from bonas.problems import functions
from bonas.search import Trial

CAMEL = functions.six_hump_camel
SEARCH = bonas.bayes(CAMEL.space)


def trial(x, y, ok=True):
    return Trial(x=x, y=jnp.asarray(y), step=jnp.asarray(0), cost=jnp.asarray(1.0), ok=jnp.asarray(ok))


@pytest.fixture(scope="module")
def histories():
    return bonas.run_many(SEARCH, CAMEL.objective, jax.random.split(jax.random.key(0), 3), steps=12)


def test_a_run_is_what_a_loop_of_ask_and_tell_is(histories):
    init_key, run_key = jax.random.split(jax.random.split(jax.random.key(0), 3)[1])
    ask, tell = jax.jit(SEARCH.ask), jax.jit(SEARCH.tell)
    state = SEARCH.init(init_key, 12)
    for i in range(12):
        ask_key, eval_key = jax.random.split(jax.random.fold_in(run_key, i))
        x, state, _ = ask(ask_key, state)
        np.testing.assert_allclose(x[0], histories.x[1, i], atol=1e-6)
        state = tell(state, trial(x[0], CAMEL.objective(eval_key, x[0])))
    assert ask._cache_size() == tell._cache_size() == 1


def test_vmap_agrees_with_run_many(histories):
    keys = jax.random.split(jax.random.key(0), 3)
    vmapped = jax.jit(jax.vmap(lambda key: bonas.run(SEARCH, CAMEL.objective, key, 12)))(keys)
    np.testing.assert_allclose(vmapped.x, histories.x, atol=1e-6)


def test_best_is_the_running_minimum(histories):
    np.testing.assert_array_equal(histories.best, np.minimum.accumulate(np.asarray(histories.y), axis=1))


def test_info_tells_the_design_from_the_search(histories):
    np.testing.assert_array_equal(histories.info.random[0], [True] * 5 + [False] * 7)
    assert jnp.isfinite(histories.info.acquisition[:, 5:]).all()


def test_given_initial_points_come_first():
    first = CAMEL.space.sample(jax.random.key(5), 4)
    search = bonas.bayes(CAMEL.space, initial=first)
    history = bonas.run(search, CAMEL.objective, jax.random.key(0), steps=4)
    np.testing.assert_array_equal(history.x, first)


@pytest.mark.slow
@pytest.mark.parametrize("infer", ["map", "slice"])
def test_it_beats_random_search(infer):
    """A smooth function, 25 evaluations, 10 seeds: better than as many random points in every one, and far better in most."""
    problem = functions.mccormick
    search = bonas.bayes(problem.space, surrogate=surrogates.gp(gp.matern52(), infer=infer, samples=4))
    keys = jax.random.split(jax.random.key(1), 10)
    found = bonas.run_many(search, problem.objective, keys, steps=25).best[:, -1] - problem.optimum
    draws = jax.vmap(lambda key: problem.space.sample(key, 25))(keys)
    values = jax.vmap(jax.vmap(lambda u: problem.objective(keys[0], u)))(draws)
    random = values.min(axis=1) - problem.optimum
    assert (found < random).all()
    assert jnp.median(found) < 0.01 * jnp.median(random)


@pytest.mark.slow
def test_a_conditional_space_is_searched():
    problem = functions.layered
    search = bonas.bayes(problem.space)
    history = jax.jit(lambda key: bonas.run(search, problem.objective, key, 25))(jax.random.key(0))
    np.testing.assert_array_equal(problem.space.snap(history.x), history.x)
    assert history.best[-1] < history.best[4]


def test_a_kernel_from_a_notebook_cell_searches():
    mine = gp.Kernel(prior={"scale": HalfNormal(1.0)}, value=brownian)
    search = bonas.bayes(CAMEL.space, surrogate=surrogates.gp(mine, infer="slice", samples=4), acquisition=bonas.log_ei)
    history = jax.jit(lambda key: bonas.run(search, CAMEL.objective, key, 8))(jax.random.key(0))
    assert jnp.isfinite(history.y).all()


def test_failed_evaluations_are_recorded_masked_and_never_best():
    def fails_on_the_left(key, u):
        return jnp.where(u[0] < 0.4, jnp.nan, CAMEL.objective(key, u))

    history = jax.jit(lambda key: bonas.run(SEARCH, fails_on_the_left, key, 20))(jax.random.key(0))
    failed = np.asarray(jnp.isnan(history.y))
    assert failed.any()
    np.testing.assert_array_equal(history.state.record.failed, failed)
    np.testing.assert_array_equal(history.state.record.data.mask[:, 0], ~failed)
    assert jnp.isfinite(history.best[-1])
    assert failed[-8:].mean() < 0.5  # it learns to stay away


def test_nothing_but_failures_ends_in_random_points():
    history = jax.jit(lambda key: bonas.run(SEARCH, lambda key, u: jnp.nan, key, 8))(jax.random.key(0))
    assert history.info.random.all()
    assert len(np.unique(np.asarray(history.x), axis=0)) == 8
    assert jnp.isinf(history.best).all()


def test_batches_are_distinct_and_told_in_any_order():
    search = bonas.bayes(CAMEL.space, batch=3, initial=3)
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    state = search.init(jax.random.key(0), 12)
    for i in range(3):
        x, state, _ = ask(jax.random.fold_in(jax.random.key(1), i), state)
        assert state.record.pending.sum() == 3
        gaps = jnp.abs(x[:, None, :] - x[None, :, :]).max(-1) + jnp.eye(3)
        assert gaps.min() > 1e-4
        for row in x[::-1]:
            state = tell(state, trial(row, CAMEL.objective(jax.random.key(0), row)))
    assert not state.record.pending.any()
    assert state.record.data.size == 9
    expected = jax.vmap(lambda u: CAMEL.objective(jax.random.key(0), u))(state.record.data.x[:9])
    np.testing.assert_allclose(state.record.data.y[:9, 0], expected, rtol=1e-12)


def test_a_trial_that_was_never_asked_is_learned_from():
    state = SEARCH.init(jax.random.key(0), 4)
    state = SEARCH.tell(state, trial(jnp.array([0.2, 0.3]), 1.5))
    assert state.record.data.size == 1
    assert state.record.data.y[0, 0] == 1.5


def test_a_finite_space_is_tried_without_repeats_and_its_end_is_reported():
    space = bonas.Space(a=bonas.Int(0, 3), b=bonas.Choice("x", "y"))
    search = bonas.bayes(space, initial=2)
    history = jax.jit(lambda key: bonas.run(search, lambda key, u: (u[0] - 0.4) ** 2 + u[1], key, 9))(jax.random.key(0))
    rows = np.round(np.asarray(history.x), 6)
    assert len(np.unique(rows[2:8], axis=0)) == 6
    assert bool(history.info.exhausted[-1]) == (len(np.unique(rows[:8], axis=0)) == 8)


@pytest.mark.slow
def test_a_run_can_be_exported_for_accelerators():
    program = jax.jit(lambda key: bonas.run(SEARCH, CAMEL.objective, jax.random.wrap_key_data(key), 8).best)
    shape = jax.ShapeDtypeStruct((2,), jnp.uint32)
    exported = jax.export.export(program, platforms=["cuda", "tpu"])(shape)
    assert set(exported.platforms) == {"cuda", "tpu"}


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="initial must be at least 1"):
        bonas.bayes(CAMEL.space, initial=0)
    with pytest.raises(ValueError, match="infer is one of"):
        surrogates.gp(infer="guess")
    with pytest.raises(ValueError, match="one point at a time"):
        bonas.run(bonas.bayes(CAMEL.space, batch=2), CAMEL.objective, jax.random.key(0), 4)
