"""Host loops minimize Python functions, and propose points before their model is compiled."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.search import host_loop, make_observation, random
from bonas.search.host_loop import SteppedSearch

SPACE = bonas.Space(
    depth=bonas.Int(1, 4),
    rate=bonas.Float(1e-4, 1.0, log=True),
    kind=bonas.Choice("x", "y"),
    width=bonas.Int(1, 64, when={"depth": (">=", 2)}),
)
BY_CHANCE = random(SPACE)


def loss(config):
    return (
        (np.log10(config["rate"]) + 2.0) ** 2
        + (config["kind"] == "x")
        + abs(config["depth"] - 2)
    )


def quickly(objective, trials=8, **settings):
    return bonas.minimize(
        objective,
        SPACE,
        **{"trials": trials, "search": BY_CHANCE, "progress": False} | settings,
    )


def test_the_best_evaluation_is_returned_with_all_of_them():
    result = quickly(loss)
    values = [loss(each.config) for each in result.evaluations]
    assert [each.value for each in result.evaluations] == values
    assert result.value == min(values)
    assert result.config == result.evaluations[int(np.argmin(values))].config


def test_configurations_hold_what_is_active_and_nothing_else():
    for each in quickly(loss).evaluations:
        assert ("width" in each.config) == (each.config["depth"] >= 2)


def test_the_seed_decides_the_search():
    first, again, other = (quickly(loss, seed=seed).evaluations for seed in (1, 1, 2))
    assert [each.config for each in first] == [each.config for each in again]
    assert [each.config for each in first] != [each.config for each in other]


@pytest.mark.parametrize(
    "seed", [-1, 2**63, 99999999999999999999, 1.0, "1", None, True]
)
def test_other_seeds_than_integers_from_0_to_2_63_are_refused(seed):
    with pytest.raises(
        ValueError, match=r"seed must be an integer from 0 to 2\^63 - 1"
    ):
        quickly(loss, seed=seed)


@pytest.mark.parametrize("seed", [0, 2**63 - 1, np.int64(7), jnp.asarray(7)])
def test_integers_of_any_type_are_seeds(seed):
    result = quickly(loss, trials=1, seed=seed)
    assert result.evaluations[0].config == quickly(loss, 1, seed=int(seed)).config


@pytest.mark.parametrize("cost", [1.0, 1e300])
@pytest.mark.filterwarnings("error")
def test_observations_have_the_precision_of_the_point_without_a_warning(cost):
    x = jnp.zeros(2, jnp.float32)
    fits, too_large = (make_observation(x, y, cost, ok=True) for y in (3e38, -1e300))
    assert {leaf.dtype for leaf in (fits.x, fits.y, fits.cost)} == {x.dtype}
    assert fits.y == jnp.float32(3e38)
    assert jnp.isnan(too_large.y)
    assert jnp.isfinite(too_large.cost)


def test_exceptions_to_catch_are_failures_and_the_rest_is_raised():
    def breaks(config):
        if config["depth"] > 2:
            raise MemoryError("too deep")
        return loss(config)

    result = quickly(breaks, catch=(MemoryError,))
    failed = [each for each in result.evaluations if each.config["depth"] > 2]
    assert failed
    assert all(
        each.error == "MemoryError: too deep" and np.isnan(each.value)
        for each in failed
    )
    assert result.config["depth"] <= 2
    assert int(result.state.observations.failed.sum()) == len(failed)
    assert f"{len(failed)} of them failed" in str(result)
    with pytest.raises(MemoryError):
        quickly(breaks)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_where_everything_fails_there_is_no_best(value):
    result = quickly(lambda config: value)
    assert result.config is None
    assert result.value == float("inf")
    assert all("the value was" in each.error for each in result.evaluations)


def test_an_interrupt_returns_what_was_found():
    calls = []

    def interrupted(config):
        calls.append(config)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return loss(config)

    assert len(quickly(interrupted).evaluations) == 3


def test_the_bar_shows_the_best_so_far(capsys):
    result = quickly(loss, progress=True)
    shown = capsys.readouterr().out
    assert "8/8" in shown
    assert f"best {result.value:.6g}" in shown


def test_seconds_are_the_cost_of_a_trial():
    result = quickly(loss)
    np.testing.assert_allclose(
        result.state.observations.cost,
        [each.seconds for each in result.evaluations],
        rtol=1e-12,
    )


def test_an_objective_cannot_change_the_configuration_it_was_given():
    def greedy(config):
        config.clear()
        return 1.0

    assert all(each.config for each in quickly(greedy).evaluations)


@pytest.mark.slow
def test_the_default_finds_the_best_of_a_conditional_space():
    result = bonas.minimize(loss, SPACE, trials=20, progress=False)
    assert result.config["depth"] == 2
    assert result.config["kind"] == "y"
    assert result.value < 0.05


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="trials must be an integer of at least 1"):
        quickly(loss, trials=0)
    with pytest.raises(
        ValueError, match=r"expected a search of the space .*; got one of"
    ):
        quickly(loss, search=random(bonas.Space(a=bonas.Int(0, 1))))
    with pytest.raises(TypeError):
        quickly(lambda config: jnp.zeros(2))


def test_a_search_in_the_place_of_the_space_is_refused():
    with pytest.raises(ValueError, match="search as search="):
        bonas.minimize(
            lambda config: 0.0,
            bonas.search.random(bonas.Space(x=bonas.Float(0.0, 1.0))),
            progress=False,
        )


def test_an_objective_without_a_return_value_is_refused():
    space = bonas.Space(x=bonas.Float(0.0, 1.0))
    with pytest.raises(TypeError, match="the objective must return a number; got None"):
        bonas.minimize(
            lambda config: None,
            space,
            trials=1,
            search=bonas.search.random(space),
            progress=False,
        )


def test_a_group_of_exceptions_is_a_failure_if_each_is():
    def breaks(config):
        raise BaseExceptionGroup("two", problems)

    problems = [MemoryError("much"), ExceptionGroup("one", [OSError("lost")])]
    result = quickly(breaks, catch=(MemoryError, OSError))
    assert "two" in result.evaluations[0].error
    with pytest.raises(BaseExceptionGroup, match="two"):
        quickly(breaks, catch=(MemoryError,))
    problems.append(KeyboardInterrupt())
    with pytest.raises(BaseExceptionGroup, match="two"):
        quickly(breaks, catch=(Exception,))


def test_an_objective_may_return_its_cost():
    result = quickly(lambda config: (loss(config), 3.0 + config["depth"]))
    costs = [3.0 + each.config["depth"] for each in result.evaluations]
    assert [each.cost for each in result.evaluations] == costs
    np.testing.assert_array_equal(result.state.observations.cost, costs)
    assert [each.value for each in result.evaluations] == [
        loss(each.config) for each in result.evaluations
    ]


@pytest.mark.parametrize("cost", [-1.0, np.inf])
def test_a_cost_is_finite_and_not_negative(cost):
    with pytest.raises(ValueError, match="must be finite and not negative; got"):
        quickly(lambda config: (0.0, cost))
    failed = quickly(lambda config: (0.0, cost), catch=(ValueError,))
    assert all("not negative" in each.error for each in failed.evaluations)


# Searches in steps

MIXED = bonas.Space(
    depth=bonas.Int(1, 3),
    rate=bonas.Float(1e-4, 1.0, log=True),
    kind=bonas.Choice("x", "y", "z"),
    width=bonas.Int(1, 64, when={"depth": (">=", 2)}),
)
FLAT = bonas.Space(x=bonas.Float(0.0, 1.0), y=bonas.Float(-1.0, 2.0))
SMALL = bonas.Space(x=bonas.Int(1, 2), y=bonas.Int(1, 2))
INIT, RUN = jax.random.split(jax.random.key(3))
CHEAP = surrogates.gp(gp.matern52(), steps=2)


def told(x, i):
    value = float(np.sin(5.0 * np.asarray(x)).sum())
    return make_observation(x, value, 1.0, ok=i % 4 != 1)


def plain_loop(search, asks, evaluations):
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    state = jax.jit(search.init, static_argnums=1)(INIT, evaluations)
    found = []
    for i in range(asks):
        key = jax.random.split(jax.random.fold_in(RUN, i))[0]
        points, state, info = ask(key, state)
        for x in points:
            state = tell(state, told(x, len(found)))
            found.append((x, info))
    return found, state


def stepped_loop(search, asks, evaluations):
    stepped = SteppedSearch(search, INIT, RUN, evaluations)
    found = []
    for _ in range(asks):
        points, info = stepped.ask()
        stepped.prepare()
        for x in points:
            stepped.tell(told(x, len(found)))
            found.append((x, info))
    return found, stepped.state


def assert_equal(found, expected):
    same = jax.tree.map(
        lambda a, b: np.array_equal(a, b, equal_nan=True), found, expected
    )
    assert all(jax.tree.leaves(same))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "asks", "evaluations"),
    [
        (bonas.bayes(FLAT), 7, 8),
        (bonas.bayes(FLAT), 3, 8),
        (bonas.bayes(MIXED, surrogate=surrogates.gp(steps=2)), 7, 7),
        (bonas.bayes(SMALL, surrogate=CHEAP, initial=4), 4, 4),
        (bonas.bayes(FLAT, surrogate=CHEAP, batch=2), 4, 8),
        (bonas.bayes(FLAT, surrogate=CHEAP, initial=[[0.1, 0.2], [0.5, 0.4]]), 3, 3),
        (random(MIXED), 3, 3),
    ],
)
def test_points_reports_and_the_state_are_those_of_a_plain_loop(
    search, asks, evaluations
):
    found = stepped_loop(search, asks, evaluations)
    assert_equal(found, plain_loop(search, asks, evaluations))


@pytest.fixture
def compiler(monkeypatch):
    """A compiler that starts when it is told to."""
    start = threading.Event()
    compile_now = host_loop.in_background

    def wait_and_call(function):
        return compile_now(lambda: start.wait(60.0) and function())

    monkeypatch.setattr(host_loop, "in_background", wait_and_call)
    yield start
    start.set()


@pytest.mark.slow
def test_initial_points_are_evaluated_before_the_model_is_compiled(compiler):
    seen = []

    def loss(config):
        seen.append(compiler.is_set())
        if len(seen) == 5:
            compiler.set()
        return config["x"]

    search = bonas.bayes(FLAT, surrogate=CHEAP)
    result = bonas.minimize(loss, FLAT, trials=6, search=search)
    assert seen == [False] * 5 + [True]
    assert [bool(each.info.random) for each in result.evaluations] == [True] * 5 + [
        False
    ]


@pytest.mark.slow
def test_an_ask_that_waits_for_the_compiler_says_so(compiler):
    stepped = SteppedSearch(bonas.bayes(FLAT, surrogate=CHEAP), INIT, RUN, 6)
    waits = []
    for i in range(6):
        compiler.set() if i == 5 else None
        points, _ = stepped.ask(lambda i=i: waits.append(i))
        stepped.prepare()
        stepped.tell(told(points[0], i))
    assert waits == [5]


def test_searches_without_initial_points_wait_for_the_compiler_once():
    stepped = SteppedSearch(random(FLAT), INIT, RUN, 3)
    waits = []
    for i in range(3):
        points, _ = stepped.ask(lambda i=i: waits.append(i))
        stepped.tell(told(points[0], i))
    assert waits == [0]


def test_an_interrupt_does_not_wait_for_the_compiler(compiler):
    def loss(config):
        if loss.calls == 2:
            raise KeyboardInterrupt
        loss.calls += 1
        return config["x"]

    loss.calls = 0
    result = bonas.minimize(
        loss, FLAT, trials=9, search=bonas.bayes(FLAT, surrogate=CHEAP), progress=False
    )
    assert not compiler.is_set()
    observations = result.state.observations
    assert len(result.evaluations) == 2
    assert (int(observations.data.mask.sum()), int(observations.pending.sum())) == (
        2,
        1,
    )


def test_runs_of_initial_points_alone_compile_no_model(monkeypatch):
    monkeypatch.setattr(host_loop, "in_background", pytest.fail)
    result = bonas.minimize(lambda config: config["x"], FLAT, trials=5, progress=False)
    assert len(result.evaluations) == 5


def test_an_error_of_the_model_is_raised():
    def broken(params, a, b):
        raise ArithmeticError("no such kernel")

    kernel = gp.Kernel(lambda d: {"scale": gp.priors.log_normal_noise()}, broken)
    with pytest.raises(ArithmeticError, match="no such kernel"):
        bonas.minimize(
            lambda config: config["x"],
            FLAT,
            trials=6,
            search=bonas.bayes(FLAT, surrogate=surrogates.gp(kernel)),
            progress=False,
        )


def test_the_thread_compiles_in_the_precision_of_the_search():
    precision = []
    with jax.enable_x64(False):
        host_loop.in_background(lambda: precision.append(jnp.zeros(()).dtype)).result()
    assert precision == [jnp.float32]
