"""Test functions against reference optima, values by hand from the published formulas, and searches
by scipy.
"""

import itertools
import math
import subprocess
import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from bonas.problems import Problem, functions

KEY = jax.random.key(0)
PROBLEMS = [
    functions.forrester,
    functions.rosenbrock,
    functions.mccormick,
    functions.six_hump_camel,
    functions.branin,
    functions.hartmann3,
    functions.hartmann6,
    functions.ackley(2),
    functions.ackley(5),
    functions.levy(1),
    functions.levy(4),
    functions.layered,
]
every_problem = pytest.mark.parametrize(
    "problem", PROBLEMS, ids=lambda problem: problem.name
)


@cache
def compiled(problem: Problem):
    return jax.jit(jax.vmap(problem.objective, in_axes=(None, 0)))


@cache
def samples(problem: Problem) -> jax.Array:
    return jax.jit(problem.space.sample, static_argnums=1)(jax.random.key(1), 20_000)


def evaluate(problem: Problem, rows) -> np.ndarray:
    return np.asarray(compiled(problem)(KEY, rows))


def best_rows(problem: Problem):
    return jnp.stack(
        [problem.space.encode(config) for config in problem.configurations]
    )


def scipy_minimum(problem: Problem, starts, bounds=None):
    """The least value that L-BFGS finds from some rows of the unit cube."""
    value_and_gradient = jax.jit(jax.value_and_grad(problem.objective, argnums=1))

    def host(u):
        value, gradient = value_and_gradient(KEY, jnp.asarray(u))
        return float(value), np.asarray(gradient)

    options = {"ftol": 1e-15, "gtol": 1e-10}
    found = [
        minimize(
            host,
            np.asarray(start),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds or [(0, 1)] * len(start),
            options=options,
        )
        for start in starts
    ]
    return min(found, key=lambda result: result.fun)


# Optima


@every_problem
def test_minimizers_reach_the_optimum(problem):
    values = evaluate(problem, best_rows(problem))
    np.testing.assert_allclose(
        values,
        np.full(len(problem.minimizers), problem.optimum),
        rtol=1e-13,
        atol=1e-13,
    )


@every_problem
def test_no_sampled_point_is_below_the_optimum(problem):
    assert evaluate(problem, samples(problem)).min() >= problem.optimum


@every_problem
def test_gradient_is_zero_at_minimizers(problem):
    gradients = jax.jit(
        jax.vmap(jax.grad(problem.objective, argnums=1), in_axes=(None, 0))
    )(KEY, best_rows(problem))
    np.testing.assert_allclose(gradients, np.zeros_like(gradients), atol=1e-11)


@pytest.mark.parametrize(
    "name", ["forrester", "mccormick", "six_hump_camel", "rosenbrock"]
)
def test_optimum_equals_reference(reference, name):
    expected = reference("test_functions")[name]
    problem = getattr(functions, name)
    np.testing.assert_allclose(
        problem.optimum, float(expected["f"]), rtol=1e-15, atol=0
    )
    np.testing.assert_allclose(
        problem.minimizers[0], np.atleast_1d(np.array(expected["x"], float)), rtol=1e-15
    )


@pytest.mark.typed
def test_forrester_has_the_reference_local_minimum(reference):
    expected = reference("test_functions")["forrester"]
    row = functions.forrester.space.encode({"x1": float(expected["local_min_x"])})
    value, slope = jax.value_and_grad(functions.forrester.objective, argnums=1)(
        KEY, row
    )
    np.testing.assert_allclose(
        [value, slope[0]], [float(expected["local_min_f"]), 0.0], atol=1e-11
    )


def test_rosenbrocks_space_is_the_reference_domain(reference):
    low, high = reference("test_functions")["rosenbrock"]["domain"]
    assert [
        (p.low, p.high) for p in functions.rosenbrock.space.parameters.values()
    ] == [(low, high)] * 2


# Published optima, to the digits that are published.
PUBLISHED = [
    (functions.branin, 0.39788735772973816, 1e-15),
    (functions.hartmann3, -3.86278214782076, 1e-14),
    (functions.hartmann6, -3.32236801141551, 1e-14),
]


@pytest.mark.parametrize(
    ("problem", "expected", "digits"),
    PUBLISHED,
    ids=lambda item: getattr(item, "name", ""),
)
def test_optimum_equals_the_published_one(problem, expected, digits):
    np.testing.assert_allclose(problem.optimum, expected, rtol=2 * digits)


@pytest.mark.parametrize(
    "problem",
    [functions.branin, functions.hartmann3, functions.hartmann6],
    ids=lambda p: p.name,
)
def test_scipy_finds_the_optimum_and_nothing_lower(problem):
    starts = np.asarray(samples(problem))[
        np.argsort(evaluate(problem, samples(problem)))[:8]
    ]
    found = scipy_minimum(problem, starts)
    np.testing.assert_allclose(found.fun, problem.optimum, rtol=1e-12)
    nearest = np.abs(np.asarray(best_rows(problem)) - found.x).max(axis=1).min()
    assert nearest < 1e-6


# Values away from the optimum, so that a formula that only keeps its minimum is caught


@pytest.mark.parametrize(
    ("problem", "x", "expected"),
    [
        (functions.forrester, [0.0], 4.0 * math.sin(-4.0)),
        (functions.rosenbrock, [-1.0, 2.0], 100.0 + 4.0),
        (functions.mccormick, [0.0, 0.0], 1.0),
        (functions.mccormick, [1.0, -1.0], 4.0 - 1.5 - 2.5 + 1.0),
        (functions.six_hump_camel, [1.0, 1.0], 4.0 - 2.1 + 1.0 / 3.0 + 1.0),
        (functions.branin, [0.0, 0.0], 36.0 + 10.0 * (1.0 - 0.125 / math.pi) + 10.0),
        (functions.ackley(2), [1.0, 1.0], 20.0 - 20.0 * math.exp(-0.2)),
        (
            functions.ackley(2),
            [0.5, -0.5],
            20.0 - 20.0 * math.exp(-0.1) + math.e - math.exp(-1.0),
        ),
        (functions.levy(2), [-3.0, -3.0], 1.0 + 10.0 * math.sin(1.0) ** 2 + 1.0),
        (functions.levy(1), [3.0], 1.0 + 0.25),
    ],
    ids=lambda item: getattr(item, "name", None),
)
def test_value_by_hand(problem, x, expected):
    row = problem.space.encode(dict(zip(problem.space.names, x, strict=True)))
    np.testing.assert_allclose(problem.objective(KEY, row), expected, rtol=1e-12)


HARTMANN3 = """
    1.0   3.0 10 30   0.3689  0.1170 0.2673
    1.2   0.1 10 35   0.4699  0.4387 0.7470
    3.0   3.0 10 30   0.1091  0.8732 0.5547
    3.2   0.1 10 35   0.03815 0.5743 0.8828
"""
HARTMANN6 = """
    1.0   10   3   17   3.5 1.7 8    0.1312 0.1696 0.5569 0.0124 0.8283 0.5886
    1.2   0.05 10  17   0.1 8   14   0.2329 0.4135 0.8307 0.3736 0.1004 0.9991
    3.0   3    3.5 1.7  10  17  8    0.2348 0.1451 0.3522 0.2883 0.3047 0.6650
    3.2   17   8   0.05 10  0.1 14   0.4047 0.8828 0.8732 0.5743 0.1091 0.0381
"""


@pytest.mark.parametrize(
    ("problem", "table"),
    [(functions.hartmann3, HARTMANN3), (functions.hartmann6, HARTMANN6)],
    ids=["hartmann3", "hartmann6"],
)
def test_hartmann_equals_the_published_sum(problem, table):
    d = problem.space.dim
    wells = np.array(table.split(), float).reshape(4, 2 * d + 1)
    x = np.random.default_rng(0).uniform(size=(50, d))
    expected = -sum(
        well[0] * np.exp(-((x - well[d + 1 :]) ** 2 @ well[1 : d + 1]))
        for well in wells
    )
    np.testing.assert_allclose(evaluate(problem, jnp.asarray(x)), expected, rtol=1e-12)


# The conditional function


def layered_value(depth, activation, x):
    """The same function written as a Python loop."""
    floor = {
        (1, 0): 0.5,
        (1, 1): 0.6,
        (2, 0): 0.4,
        (2, 1): 0.25,
        (3, 0): 0.3,
        (3, 1): 0.0,
    }[depth, activation]
    total = 0.0
    for layer in range(depth):
        total += (x[layer] - [0.2, 0.7, 0.45][layer]) ** 2
    return floor + 4.0 ** (depth - 1) * total


def test_layered_equals_a_python_loop():
    rows = np.asarray(samples(functions.layered)[:200])
    expected = [layered_value(1 + round(2 * u[0]), round(u[1]), u[2:]) for u in rows]
    np.testing.assert_allclose(evaluate(functions.layered, rows), expected, rtol=1e-12)


@pytest.mark.slow
def test_layered_optimum_by_exhaustion():
    """Every depth and activation, a fine grid of every active layer, and scipy from the best of
    each.
    """
    grid = np.linspace(0.0, 1.0, 21)
    least = {}
    for depth, activation in itertools.product(range(3), range(2)):
        layers = itertools.product(
            *[grid if layer <= depth else [0.0] for layer in range(3)]
        )
        rows = jnp.asarray([[depth / 2, activation, *x] for x in layers])
        start = np.asarray(rows)[evaluate(functions.layered, rows).argmin()]
        bounds = [(start[0], start[0]), (start[1], start[1])] + [(0, 1)] * 3
        least[depth, activation] = scipy_minimum(functions.layered, [start], bounds).fun
    others = [value for combination, value in least.items() if combination != (2, 1)]
    np.testing.assert_allclose(least[2, 1], functions.layered.optimum, atol=1e-12)
    np.testing.assert_allclose(sorted(others), [0.25, 0.3, 0.4, 0.5, 0.6], rtol=1e-12)


@pytest.mark.typed
def test_layered_ignores_inactive_layers():
    shallow = jnp.array([0.0, 1.0, 0.3, 0.0, 0.0])
    changed = shallow.at[3:].set(jnp.array([0.9, jnp.nan]))
    value = jax.value_and_grad(functions.layered.objective, argnums=1)
    np.testing.assert_array_equal(
        jnp.hstack(value(KEY, shallow)), jnp.hstack(value(KEY, changed))
    )


def test_layered_is_better_on_average_where_it_is_shallow():
    """Averages by integration over the cube: floor + steepness · Σ (1/12 + (1/2 − center)²). Six
    standard errors.
    """
    moment = 1.0 / 12.0 + (0.5 - np.array([0.2, 0.7, 0.45])) ** 2
    rows = samples(functions.layered)
    values, depths = (
        evaluate(functions.layered, rows),
        np.round(2 * np.asarray(rows[:, 0])).astype(int),
    )
    for depth, floor in enumerate([0.55, 0.325, 0.15]):
        mine = values[depths == depth]
        expected = floor + 4.0**depth * moment[: depth + 1].sum()
        assert abs(mine.mean() - expected) < 6.0 * mine.std() / math.sqrt(len(mine))


def test_layered_configuration_is_a_configuration_of_its_space():
    assert functions.layered.configurations == [
        {"depth": 3, "activation": "tanh", "x1": 0.2, "x2": 0.7, "x3": 0.45}
    ]


# Tracing


@every_problem
def test_jit_and_vmap_change_nothing(problem):
    rows = samples(problem)[:3]
    np.testing.assert_allclose(
        evaluate(problem, rows),
        [problem.objective(KEY, row) for row in rows],
        rtol=1e-12,
    )


@every_problem
def test_float32_stays_float32(problem):
    row = jnp.full(problem.space.dim, 0.3, jnp.float32)
    assert jax.eval_shape(problem.objective, KEY, row).dtype == jnp.float32


@every_problem
def test_key_is_ignored_without_noise(problem):
    rows = samples(problem)[:3]
    np.testing.assert_array_equal(
        compiled(problem)(jax.random.key(8), rows),
        compiled(problem)(jax.random.key(9), rows),
    )


def test_problem_passes_through_jit():
    value = jax.jit(lambda problem, u: problem.objective(KEY, u))(
        functions.rosenbrock, jnp.array([0.5, 0.5])
    )
    np.testing.assert_allclose(value, 1.0, rtol=1e-14)  # at x = (0, 0)


@pytest.mark.parametrize("make", [functions.ackley, functions.levy])
def test_equal_calls_give_the_same_problem(make):
    assert make(3) == make(3)
    assert make(3).space.dim == 3


# Noise


def test_noise_has_the_given_moments():
    """Mean and standard deviation of 40000 draws, each within six standard errors."""
    n, std = 40_000, 0.7
    row = jnp.array([0.3])
    draws = jax.jit(
        jax.vmap(
            functions.add_noise(functions.forrester, std).objective, in_axes=(0, None)
        )
    )(jax.random.split(KEY, n), row)
    noise = np.asarray(draws - functions.forrester.objective(KEY, row))
    assert abs(noise.mean()) < 6.0 * std / math.sqrt(n)
    assert abs(noise.std() - std) < 6.0 * std / math.sqrt(2 * n)


def test_noise_upon_noise_is_independent():
    """Two equal noises add to a variance of 2 std², not 4; six standard errors of a variance."""
    n = 40_000
    twice = functions.add_noise(functions.add_noise(functions.forrester, 1.0), 1.0)
    draws = jax.jit(jax.vmap(twice.objective, in_axes=(0, None)))(
        jax.random.split(KEY, n), jnp.array([0.3])
    )
    assert abs(np.var(draws) - 2.0) < 6.0 * 2.0 * math.sqrt(2.0 / n)


def test_no_noise_changes_nothing():
    row = jnp.array([0.3, 0.6])
    assert functions.add_noise(functions.branin, 0.0).objective(
        KEY, row
    ) == functions.branin.objective(KEY, row)


def test_noise_keeps_the_answer():
    noisy = functions.add_noise(functions.branin, 0.1)
    assert (noisy.space, noisy.optimum, noisy.minimizers) == (
        functions.branin.space,
        functions.branin.optimum,
        functions.branin.minimizers,
    )


def test_noise_must_not_be_negative():
    with pytest.raises(ValueError, match="std"):
        functions.add_noise(functions.branin, -1.0)


def test_importing_starts_no_backend():
    program = "from bonas.problems import functions; from jax._src import xla_bridge as x; print(x.backends_are_initialized())"  # noqa: E501
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_columns_keep_their_order_beyond_nine():
    """Levy's last column is unlike the others; among names, x10 comes before x2."""
    twelve = functions.levy(12)
    x = np.ones(12)
    x[-1] = 3.0
    u = (x + 10.0) / 20.0
    w = 1.0 + (3.0 - 1.0) / 4.0
    last = (w - 1.0) ** 2 * (1.0 + np.sin(2.0 * np.pi * w) ** 2)
    np.testing.assert_allclose(
        twelve.objective(jax.random.key(0), jnp.asarray(u)), last, rtol=1e-9
    )
