"""Searches and objectives that are no longer used are freed."""

import gc
import weakref

import jax
import jax.numpy as jnp
import pytest

import bonas
from bonas import acquire, gp, surrogates

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
