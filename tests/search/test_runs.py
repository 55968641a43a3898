import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire
from bonas.problems import functions
from bonas.search import random

CAMEL = functions.six_hump_camel
SEARCH = random(CAMEL.space)
KEYS = jax.random.split(jax.random.key(0), 7)

# Seven keys over eight devices, so one device is idle, and each run by itself on one device.
SHARDED = """
import jax, numpy as np, bonas
from bonas import acquire
from bonas.problems import functions
bonas.configure()
assert len(jax.devices()) == 8
problem = functions.six_hump_camel
box = acquire.random_candidates(problem.space, candidates=50)
search = bonas.bayes(problem.space, initial=3, maximizer=box, output="plain")
keys = jax.random.split(jax.random.key(0), 7)
many = bonas.run_many(search, problem.objective, keys, 8)
assert len(many.best.sharding.device_set) > 1, many.best.sharding
one = jax.jit(lambda key: bonas.run(search, problem.objective, key, 8))
for i, key in enumerate(keys):
    np.testing.assert_allclose(many.x[i], one(key).x, atol=1e-6)
print("agree")
"""


@pytest.mark.slow
def test_eight_devices_agree_with_one(tmp_path):
    flags = (
        f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    )
    done = subprocess.run(
        [sys.executable, "-c", SHARDED],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "agree" in done.stdout


def test_progress_changes_no_result(capsys):
    shown = bonas.run_many(SEARCH, CAMEL.objective, KEYS, 6, progress=True)
    quiet = bonas.run_many(SEARCH, CAMEL.objective, KEYS, 6)
    assert shown.x.shape == (7, 6, 2)
    np.testing.assert_array_equal(shown.x, quiet.x)
    assert "7/7 runs" in capsys.readouterr().out


@pytest.mark.slow
def test_more_keys_than_parts_are_padded_and_cut_back():
    # parts of three, the last with one of its own
    keys = jax.random.split(jax.random.key(1), 43)
    shown = bonas.run_many(SEARCH, CAMEL.objective, keys, 3, progress=True)
    np.testing.assert_array_equal(
        shown.x, bonas.run_many(SEARCH, CAMEL.objective, keys, 3).x
    )


@pytest.mark.typed
def test_a_second_call_compiles_nothing():
    traced = []

    def objective(key, u):
        traced.append(key)
        return CAMEL.objective(key, u)

    bonas.run_many(SEARCH, objective, KEYS, 6)
    times = len(traced)
    same = random(functions.six_hump_camel.space)
    bonas.run_many(same, objective, KEYS, 6)
    assert len(traced) == times > 0


@pytest.mark.slow
def test_one_key_is_a_run():
    many = bonas.run_many(SEARCH, CAMEL.objective, KEYS[:1], 6)
    np.testing.assert_array_equal(
        many.x[0], bonas.run(SEARCH, CAMEL.objective, KEYS[0], 6).x
    )


def test_an_objective_may_tell_its_cost():
    def priced(key, u):
        return u.sum(), 2.0 + u[0]

    history = bonas.run(SEARCH, priced, KEYS[0], 4)
    np.testing.assert_allclose(
        history.state.observations.cost, 2.0 + history.x[:, 0], rtol=1e-12
    )


@pytest.mark.slow
def test_cheap_regions_are_searched_where_improvement_is_per_second():
    """Costs grow 1000-fold along an irrelevant column: a tenth is spent (median of 8 seeds)."""

    def priced(key, u):
        return (u[1] - 0.3) ** 2, jnp.exp(7.0 * u[0])

    settings = {
        "maximizer": acquire.random_candidates(CAMEL.space, candidates=100),
        "output": "plain",
    }
    keys = jax.random.split(jax.random.key(3), 8)
    spent = [
        np.median(
            bonas.run_many(
                bonas.bayes(CAMEL.space, acquisition=a, **settings), priced, keys, 14
            ).state.observations.cost[:, 5:]
        )
        for a in (acquire.per_second(), acquire.closed_form_acquisition(bonas.log_ei))
    ]
    assert spent[0] < 0.1 * spent[1]


@pytest.mark.parametrize(
    ("objective", "match"),
    [(lambda key, u: u, "one number"), (lambda key, u: (u[0], u), "one number")],
)
def test_an_objective_that_returns_a_row_is_refused(objective, match):
    with pytest.raises(ValueError, match=match):
        bonas.run(SEARCH, objective, KEYS[0], 2)


def test_keys_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"expected keys of shape \(k,\)"):
        bonas.run_many(SEARCH, CAMEL.objective, jax.random.key(0), 2)
