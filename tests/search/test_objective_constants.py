"""Large arrays that an objective closes over are reported; arguments are not."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.search import objectives, random

SEARCH = random(bonas.Space(x=bonas.Float(0.0, 1.0)))
KEY = jax.random.key(0)
TABLE = jnp.arange(3000.0)


@pytest.fixture(autouse=True)
def _low_limit(monkeypatch):
    monkeypatch.setattr(objectives, "_LARGE_CONSTANT", 10_000)


def look_up(key, u, table):
    return jnp.asarray(table)[(100 * u[0]).astype(int)]


def over_numpy(key, u):
    return look_up(key, u, np.arange(3000.0))


def in_a_loop(key, u):
    def add(total, i):
        return total + look_up(key, u, TABLE), None

    return jax.lax.scan(add, 0.0, jnp.arange(3))[0]


@pytest.mark.parametrize(
    "objective",
    [
        lambda key, u: look_up(key, u, TABLE),
        over_numpy,
        in_a_loop,
        jax.jit(lambda key, u: look_up(key, u, TABLE)),
    ],
    ids=["array", "numpy", "loop", "jit"],
)
def test_a_large_constant_of_an_objective_is_reported(objective):
    words = r"shape \(3000,\) and 0 MB is a constant .* run\(search, objective, key"
    with pytest.warns(UserWarning, match=words):
        bonas.run(SEARCH, objective, KEY, 2)
    with pytest.warns(UserWarning, match=words):
        bonas.run_many(SEARCH, objective, KEY[None], 2)
    with pytest.warns(UserWarning, match=words):
        jax.vmap(lambda key: bonas.run(SEARCH, objective, key, 2))(KEY[None])


def test_arguments_and_small_constants_are_not_reported():
    small = TABLE[:100]

    def scaled(key, u, table):
        return look_up(key, u, table) * small.sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bonas.run(SEARCH, scaled, KEY, 2, TABLE)
        bonas.run_many(SEARCH, look_up, KEY[None], 2, TABLE)
        jax.vmap(lambda table: bonas.run(SEARCH, look_up, KEY, 2, table))(TABLE[None])


def test_the_objective_is_traced_once():
    calls = []

    def counted(key, u):
        calls.append(u)
        return u[0]

    bonas.run(SEARCH, counted, KEY, 2)
    assert len(calls) == 1
