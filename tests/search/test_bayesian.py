import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from cases import brownian
from numpyro.distributions import HalfNormal

import bonas
from bonas import acquire, gp, surrogates
from bonas.problems import functions
from bonas.search import FALLBACKS, Observation

CAMEL = functions.six_hump_camel
SEARCH = bonas.bayes(CAMEL.space)
QUICK = {
    "maximizer": acquire.random_candidates(CAMEL.space, candidates=100),
    "output": "plain",
}  # compiles faster
KEY, CAPACITY = jax.random.key(0), 20
ask, tell = (
    jax.jit(SEARCH.ask),
    jax.jit(SEARCH.tell),
)  # one program for all tests that use the default search


def trial(x, y, ok=True):
    return Observation(
        x=x,
        y=jnp.asarray(y),
        step=jnp.asarray(0),
        cost=jnp.asarray(1.0),
        ok=jnp.asarray(ok),
    )


def drive(objective, steps, ask=ask, tell=tell, search=SEARCH, key=KEY):
    """A host loop of ask and tell with the keys of `run`: points, values, reports, state."""
    init_key, run_key = jax.random.split(key)
    state, rows = search.init(init_key, CAPACITY), []
    for i in range(steps):
        ask_key, eval_key = jax.random.split(jax.random.fold_in(run_key, i))
        x, state, info = ask(ask_key, state)
        y = objective(eval_key, x[0])
        state = tell(state, trial(x[0], y))
        rows.append((x[0], y, info))
    x, y, infos = zip(*rows, strict=True)
    return (
        np.stack(x),
        np.stack(y),
        jax.tree.map(lambda *leaves: np.stack(leaves), *infos),
        state,
    )


@pytest.fixture(scope="module")
def histories():
    return bonas.run_many(
        SEARCH, CAMEL.objective, jax.random.split(KEY, 3), steps=CAPACITY
    )


@pytest.mark.slow
def test_a_run_is_what_a_loop_of_ask_and_tell_is(histories):
    x, _, _, _ = drive(CAMEL.objective, CAPACITY, key=jax.random.split(KEY, 3)[1])
    np.testing.assert_allclose(x, histories.x[1], atol=1e-6)


def test_asking_compiles_once():
    drive(CAMEL.objective, 7)
    assert ask._cache_size() == 1
    assert tell._cache_size() == 1


@pytest.mark.slow
def test_vmap_agrees_with_run_many(histories):
    vmapped = jax.jit(
        jax.vmap(lambda key: bonas.run(SEARCH, CAMEL.objective, key, CAPACITY))
    )(jax.random.split(KEY, 3))
    np.testing.assert_allclose(vmapped.x, histories.x, atol=1e-6)


def test_best_is_the_running_minimum(histories):
    np.testing.assert_array_equal(
        histories.best, np.minimum.accumulate(np.asarray(histories.y), axis=1)
    )


def test_info_tells_the_design_from_the_search(histories):
    np.testing.assert_array_equal(histories.info.random[0], [True] * 5 + [False] * 15)
    assert jnp.isfinite(histories.info.acquisition[:, 5:]).all()
    assert (histories.info.fallback == 0).all()


def test_equal_settings_are_one_search():
    assert bonas.bayes(CAMEL.space, batch=2) == bonas.bayes(CAMEL.space, batch=2)
    points = np.full((3, 2), 0.25)
    assert bonas.bayes(CAMEL.space, initial=points) == bonas.bayes(
        CAMEL.space, initial=points.copy()
    )


@pytest.mark.slow
def test_given_initial_points_come_first():
    first = CAMEL.space.sample(jax.random.key(5), 4)
    search = bonas.bayes(CAMEL.space, initial=first)
    x, _, _, _ = drive(CAMEL.objective, 4, search=search)
    np.testing.assert_array_equal(x, first)


@pytest.mark.slow
@pytest.mark.parametrize("infer", ["slice", "hmc", "nuts"])
def test_sampled_hyperparameters_beat_random_search(infer):
    """A smooth function, 20 evaluations, 6 seeds: always better than random, mostly by far."""
    problem = functions.mccormick
    quick = {
        "maximizer": acquire.random_candidates(problem.space, candidates=300),
        "output": "plain",
    }
    search = bonas.bayes(
        problem.space,
        surrogate=surrogates.gp(gp.matern52(), infer=infer, samples=4),
        **quick,
    )
    keys = jax.random.split(jax.random.key(1), 6)
    found = (
        bonas.run_many(search, problem.objective, keys, steps=20).best[:, -1]
        - problem.optimum
    )
    draws = jax.vmap(lambda key: problem.space.sample(key, 20))(keys)
    values = jax.vmap(jax.vmap(lambda u: problem.objective(KEY, u)))(draws)
    random = values.min(axis=1) - problem.optimum
    assert (found < random).all()
    assert jnp.median(found) < 0.1 * jnp.median(random)


@pytest.mark.slow
def test_a_conditional_space_is_searched():
    problem = functions.layered
    history = jax.jit(
        lambda key: bonas.run(bonas.bayes(problem.space), problem.objective, key, 25)
    )(KEY)
    np.testing.assert_array_equal(problem.space.snap(history.x), history.x)
    assert history.best[-1] < history.best[4]


@pytest.mark.slow
def test_a_kernel_from_a_notebook_cell_searches():
    mine = gp.Kernel(prior={"scale": HalfNormal(1.0)}, value=brownian)
    search = bonas.bayes(
        CAMEL.space,
        surrogate=surrogates.gp(mine, infer="slice", samples=4),
        acquisition=bonas.log_ei,
        **QUICK,
    )
    _, y, _, _ = drive(CAMEL.objective, 8, ask=jax.jit(search.ask), search=search)
    assert np.isfinite(y).all()


def test_a_kernel_of_numbers_does_not_order_options():
    """For any surrogate, permuting the options of a Choice only permutes the predictions."""
    space = bonas.Space(a=bonas.Float(0.0, 1.0), kind=bonas.Choice("x", "y", "z"))
    model = surrogates.gp(gp.matern52()).adapt(space)
    x = jnp.stack([space.encode({"a": 0.3, "kind": kind}) for kind in ("x", "y", "z")])
    state = model.update(bonas.dataset(x[:1], jnp.ones(1)), model.init(1, 2, 1))
    mean, _ = model.predict(state, x)
    np.testing.assert_allclose(mean[0, 1], mean[0, 2], rtol=1e-12)


def test_a_kernel_that_was_told_of_other_categories_is_refused():
    space = bonas.Space(a=bonas.Float(0.0, 1.0), kind=bonas.Choice("x", "y", "z"))
    with pytest.raises(ValueError, match="categories"):
        bonas.bayes(space, surrogate=surrogates.gp(gp.arc(space.active)))


def fails_on_the_left(key, u):
    return jnp.where(u[0] < 0.4, jnp.nan, CAMEL.objective(key, u))


def test_failed_evaluations_are_recorded_masked_and_never_best():
    _, y, _, state = drive(fails_on_the_left, CAPACITY)
    failed = np.isnan(y)
    assert failed.any()
    np.testing.assert_array_equal(state.observations.failed, failed)
    np.testing.assert_array_equal(state.observations.data.mask[:, 0], ~failed)
    assert failed[-8:].mean() < 0.5  # it learns to stay away


@pytest.mark.slow
def test_where_evaluations_fail_can_be_learned():
    search = bonas.bayes(CAMEL.space, failures="model", **QUICK)
    _, y, _, _ = drive(
        fails_on_the_left, CAPACITY, ask=jax.jit(search.ask), search=search
    )
    assert np.isnan(y).any()
    assert np.isnan(y)[-8:].mean() < 0.5


def test_nothing_but_failures_ends_in_random_points_and_says_so():
    x, _, info, _ = drive(lambda key, u: jnp.nan, 8)
    assert info.random.all()
    np.testing.assert_array_equal(info.fallback, [0] * 5 + [1] * 3)
    assert "no evaluation has succeeded" in FALLBACKS[1]
    assert len(np.unique(x, axis=0)) == 8


def test_logarithms_of_values_that_have_none_are_failures():
    search = bonas.bayes(CAMEL.space, output="log")
    state = search.tell(search.init(KEY, 3), trial(jnp.array([0.2, 0.3]), -1.0))
    assert state.observations.failed[0]
    state = search.tell(state, trial(jnp.array([0.4, 0.3]), 1.0))
    assert not state.observations.failed[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "pending",
    [acquire.believer, acquire.constant_liar("worst"), acquire.posterior_sample],
)
def test_batches_are_distinct_and_told_in_any_order(pending):
    search = bonas.bayes(CAMEL.space, batch=3, initial=3, pending=pending, **QUICK)
    ask = jax.jit(search.ask)
    state = search.init(KEY, 12)
    for i in range(3):
        x, state, _ = ask(jax.random.fold_in(jax.random.key(1), i), state)
        assert state.observations.pending.sum() == 3
        gaps = jnp.abs(x[:, None, :] - x[None, :, :]).max(-1) + jnp.eye(3)
        assert gaps.min() > 1e-4
        for row in x[::-1]:
            state = search.tell(state, trial(row, CAMEL.objective(KEY, row)))
    assert not state.observations.pending.any()
    assert state.observations.data.size == 9
    expected = jax.vmap(lambda u: CAMEL.objective(KEY, u))(
        state.observations.data.x[:9]
    )
    np.testing.assert_allclose(state.observations.data.y[:9, 0], expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["batch_ei", "thompson", "under_sampled"])
def test_acquisitions_for_batches_give_distinct_points(acquisition):
    made = getattr(acquire, acquisition)()
    search = bonas.bayes(CAMEL.space, batch=4, initial=4, acquisition=made, **QUICK)
    ask, state = jax.jit(search.ask), search.init(KEY, 12)
    for i in range(2):
        x, state, _ = ask(jax.random.key(i), state)
        for row in x:
            state = search.tell(state, trial(row, CAMEL.objective(KEY, row)))
    assert len(np.unique(np.asarray(x), axis=0)) == 4


def test_a_trial_that_was_never_asked_is_learned_from():
    state = tell(SEARCH.init(KEY, CAPACITY), trial(jnp.array([0.2, 0.3]), 1.5))
    assert state.observations.data.size == 1
    assert state.observations.data.y[0, 0] == 1.5


@pytest.mark.slow
def test_a_finite_space_is_tried_without_repeats_and_its_end_is_reported():
    space = bonas.Space(a=bonas.Int(0, 3), b=bonas.Choice("x", "y"))
    search = bonas.bayes(space, initial=2)
    x, _, info, _ = drive(
        lambda key, u: (u[0] - 0.4) ** 2 + u[1],
        9,
        ask=jax.jit(search.ask),
        search=search,
    )
    rows = np.round(x, 6)
    assert len(np.unique(rows[2:8], axis=0)) == 6
    assert bool(info.exhausted[-1]) == (len(np.unique(rows[:8], axis=0)) == 8)


@pytest.mark.slow
def test_a_run_can_be_exported_for_accelerators():
    program = jax.jit(
        lambda key: (
            bonas.run(SEARCH, CAMEL.objective, jax.random.wrap_key_data(key), 8).best
        )
    )
    shape = jax.ShapeDtypeStruct((2,), jnp.uint32)
    exported = jax.export.export(program, platforms=["cuda", "tpu"])(shape)
    assert set(exported.platforms) == {"cuda", "tpu"}


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"initial": 0}, "initial must be an integer of at least 1; got 0"),
        ({"initial": np.zeros((3, 5))}, r"initial points of shape \(k, 2\)"),
        ({"batch": 0}, "batch must be an integer of at least 1; got 0"),
        ({"failures": "ignore"}, 'failures must be "worst" or "model"'),
        ({"output": "root"}, "output must be one of"),
        ({"acquisition": "ei"}, "expected an acquisition"),
    ],
)
def test_wrong_settings_are_refused(settings, match):
    with pytest.raises(ValueError, match=match):
        bonas.bayes(CAMEL.space, **settings)


@pytest.mark.slow
def test_wrong_inference_and_batches_in_a_run_are_refused():
    with pytest.raises(ValueError, match="infer must be one of"):
        surrogates.gp(infer="guess")
    with pytest.raises(ValueError, match="positive multiple of 2"):
        bonas.run(bonas.bayes(CAMEL.space, batch=2), CAMEL.objective, KEY, 5)
