"""Stepped searches propose the points of plain loops, before their model is compiled."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.search import make_observation, random, stepped_search
from bonas.search.stepped_search import SteppedSearch

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
    compile_now = stepped_search.in_background

    def wait_and_call(function):
        return compile_now(lambda: start.wait(60.0) and function())

    monkeypatch.setattr(stepped_search, "in_background", wait_and_call)
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
    monkeypatch.setattr(stepped_search, "in_background", pytest.fail)
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
        stepped_search.in_background(
            lambda: precision.append(jnp.zeros(()).dtype)
        ).result()
    assert precision == [jnp.float32]
