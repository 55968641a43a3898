"""Searches and objectives that are no longer used are freed."""

import gc
import weakref

import jax
import jax.numpy as jnp
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.search import ProgramCache

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
KEYS = jax.random.split(jax.random.key(0), 2)


def trace_runs(number):
    """Trace runs of a new search of a new objective; return weak references to both."""
    search = bonas.bayes(
        SPACE,
        surrogate=surrogates.gp(gp.se(), steps=1),
        acquisition=lambda mean, std, best: number * std - mean,
        maximizer=acquire.random_candidates(SPACE, candidates=8),
        initial=1,
        output="plain",
    )

    def objective(key, u):
        return number * jnp.sum(u)

    jax.eval_shape(lambda keys: bonas.run_many(search, objective, keys, 2), KEYS)
    return [weakref.ref(each) for each in (search, search.acquisition, objective)]


def minimize_once(number):
    """Minimize a new objective with a new search; return weak references."""

    def objective(config):
        return number * config["a"]

    search = bonas.search.evolution(SPACE, step=1.0 / (1 + number), population=1)
    bonas.minimize(objective, SPACE, trials=2, search=search, progress=False)
    return [weakref.ref(each) for each in (search, objective)]


def assert_freed(references):
    jax.clear_caches()
    gc.collect()
    assert [each() for each in references if each() is not None] == []


@pytest.mark.slow
def test_searches_with_functions_of_their_own_are_freed_with_the_caches_of_jax():
    assert_freed([each for number in range(10) for each in trace_runs(number)])


@pytest.mark.slow
def test_searches_of_python_functions_are_freed():
    assert_freed([each for number in range(5) for each in minimize_once(number)])


def program_count():
    gc.collect()
    return len(jax.devices()[0].client.live_executables())


def cell(runner, number):
    """Define an objective as a notebook cell does, and run a search of it."""
    keys = KEYS[0] if runner is bonas.run else KEYS
    search = bonas.search.random(SPACE)
    return runner(search, lambda key, u: number * jnp.sum(u), keys, 2)


@pytest.mark.slow
@pytest.mark.parametrize("runner", [bonas.run, bonas.run_many])
def test_running_a_cell_again_keeps_a_few_programs(runner):
    counts = []
    for number in range(6):
        cell(runner, number)
        counts.append(program_count())
    assert counts[-1] == counts[2]


def total(key, u):
    return jnp.sum(u)


def query_posterior(number):
    """Define a kernel as a notebook cell does, and query the posterior after a run."""
    kernel = gp.Kernel({}, lambda params, a, b: jnp.exp(-number * (a - b) @ (a - b)))
    model = surrogates.gp(kernel, steps=1)
    history = bonas.run(bonas.search.random(SPACE), total, KEYS[0], 2)
    search = bonas.bayes(SPACE, surrogate=model, output="plain")
    posterior = bonas.search.posterior(search, history)
    posterior.recommend()
    posterior.predict(history.x)
    posterior.quantile(history.x, 0.5)
    posterior.sample(KEYS[0], history.x, 3)


@pytest.mark.slow
def test_querying_the_posterior_of_a_kernel_again_keeps_a_few_programs():
    counts = []
    for number in range(1, 7):
        query_posterior(number)
        counts.append(program_count())
    assert counts[-1] == counts[2], counts


def sum_of(scale, x):
    return scale * jnp.sum(x)


def test_programs_of_equal_settings_are_shared():
    programs = ProgramCache(sum_of)
    assert programs(2) is programs(2)
    assert programs(2)(jnp.ones(3)) == 6.0
    assert programs(3)(jnp.ones(3)) == 9.0


def test_the_latest_programs_are_kept():
    programs = ProgramCache(sum_of, programs=2)
    first, second = programs(1), programs(2)
    assert programs(1) is first
    programs(3)
    assert programs(1) is first
    assert programs(2) is not second


def test_functions_defined_again_do_not_displace_others():
    programs = ProgramCache(sum_of, same_name=2)
    other = programs("other")
    functions = [lambda: 1 for _ in range(4)]
    kept = [programs(each) for each in functions]
    assert programs("other") is other
    assert programs(functions[3]) is kept[3]
    assert programs(functions[2]) is kept[2]
    assert programs(functions[0]) is not kept[0]


def test_settings_that_cannot_be_compared_are_not_kept():
    programs = ProgramCache(lambda scale, x: scale[0] * x)
    assert programs([2])(3.0) == 6.0


def test_programs_with_tracers_are_not_kept():
    programs = ProgramCache(lambda function, x: function(x))
    reference = []

    @jax.jit
    def outer(scale):
        def function(x):
            return scale * x

        reference.append(weakref.ref(function))
        return programs(function)(3.0)

    assert outer(2.0) == 6.0
    jax.clear_caches()
    gc.collect()
    assert reference[0]() is None
