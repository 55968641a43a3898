"""Problems of many columns: their optima to all digits, what is inert, what adds up, along which
directions they change.
"""

import itertools
from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from bonas.problems import functions, high_dimensional

KEY = jax.random.key(0)
PROBLEMS = [
    high_dimensional.few_effective(25),
    high_dimensional.few_effective(100),
    high_dimensional.few_effective(12, base=functions.hartmann6, seed=3),
    high_dimensional.additive(20),
    high_dimensional.additive(6, seed=2),
    high_dimensional.rotated_subspace(50),
    high_dimensional.rotated_subspace(20, base=functions.hartmann6, seed=1),
    high_dimensional.weights(),
    high_dimensional.weights(2, 3, seed=4),
]
every_problem = pytest.mark.parametrize(
    "problem", PROBLEMS, ids=lambda problem: problem.name
)


def rows_of(problem):
    return jnp.stack(
        [problem.space.encode(config) for config in problem.configurations]
    )


def values(problem, rows):
    return np.asarray(
        jax.jit(jax.vmap(problem.objective, in_axes=(None, 0)))(KEY, rows)
    )


@pytest.mark.slow
@every_problem
def test_minimizers_lie_in_the_box_and_reach_the_optimum(problem):
    rows = rows_of(problem)
    assert ((rows >= 0.0) & (rows <= 1.0)).all()
    np.testing.assert_allclose(
        values(problem, rows),
        np.full(len(rows), problem.optimum),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.slow
@every_problem
def test_no_sampled_point_is_below_the_optimum(problem):
    assert (
        values(problem, problem.space.sample(jax.random.key(1), 5000)).min()
        > problem.optimum
    )


@pytest.mark.slow
@every_problem
def test_no_descent_ends_below_the_optimum(problem):
    """L-BFGS from the minimizer moved a little, and from random points, with the gradient of the
    objective.
    """
    slope = jax.jit(jax.value_and_grad(problem.objective, argnums=1))

    def host(u):
        value, gradient = slope(KEY, jnp.asarray(u))
        return float(value), np.asarray(gradient)

    moved = jnp.clip(
        rows_of(problem)[0]
        + 0.02 * jax.random.normal(jax.random.key(2), (problem.space.dim,)),
        0.0,
        1.0,
    )
    starts = jnp.concatenate([moved[None], problem.space.sample(jax.random.key(3), 3)])
    ends = [
        minimize(
            host,
            u,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, 1)] * len(u),
            options={"ftol": 1e-15},
        )
        for u in starts
    ]
    assert min(end.fun for end in ends) >= problem.optimum - 1e-9
    assert ends[0].fun <= problem.optimum + 1e-3 * (
        1.0 + abs(problem.optimum)
    )  # and the one from close by comes back


def test_the_optimum_of_the_sum_is_that_of_its_terms_in_high_precision():
    """Branin's 10/8π, McCormick's −√3/2 − π/3, the camel's at the root of its gradient by Newton's
    method: 40 digits.
    """
    with localcontext() as context:
        context.prec = 40
        pi = Decimal("3.141592653589793238462643383279502884197169")
        x, y = Decimal("0.09"), Decimal("-0.71")
        for _ in range(8):
            a, b = 8 * x - Decimal("8.4") * x**3 + 2 * x**5 + y, x - 8 * y + 16 * y**3
            aa, bb = (
                8 - Decimal("25.2") * x**2 + 10 * x**4,
                48 * y**2 - 8,
            )  # their slopes along x and y; across it is 1
            x, y = x - (bb * a - b) / (aa * bb - 1), y - (aa * b - a) / (aa * bb - 1)
        camel = (
            (4 - Decimal("2.1") * x**2 + x**4 / 3) * x**2
            + x * y
            + (4 * y**2 - 4) * y**2
        )
        terms = (10 / (8 * pi) / 50, (-Decimal(3).sqrt() / 2 - pi / 3) / 8, camel / 26)
        expected = float(sum(terms[i % 3] for i in range(10)))
    assert high_dimensional.additive(20).optimum == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("d", "seed"), [(25, 0), (100, 0), (25, 7)])
def test_only_the_effective_columns_matter(d, seed):
    problem, live = (
        high_dimensional.few_effective(d, seed=seed),
        high_dimensional.effective_columns(d, seed=seed),
    )
    u, other = problem.space.sample(jax.random.key(4), 2)
    inert = u.at[jnp.asarray(live)].set(other[jnp.asarray(live)])
    assert len(set(live)) == 2
    np.testing.assert_array_equal(*values(problem, jnp.stack([inert, other])))
    np.testing.assert_allclose(
        problem.objective(KEY, u), functions.branin.objective(KEY, u[jnp.asarray(live)])
    )


def test_seeds_choose_other_columns():
    assert (
        len({high_dimensional.effective_columns(100, seed=seed) for seed in range(5)})
        == 5
    )
    assert len({high_dimensional.pairs(20, seed=seed) for seed in range(5)}) == 5


def test_pairs_are_all_columns():
    assert sorted(
        column for pair in high_dimensional.pairs(20) for column in pair
    ) == list(range(20))


@pytest.mark.typed
@pytest.mark.slow
def test_groups_add_up():
    """The mixed difference f(a, b) − f(a', b) − f(a, b') + f(a', b') vanishes across pairs, and not
    within one.
    """
    problem, groups = high_dimensional.additive(20), high_dimensional.pairs(20)
    here, there = problem.space.sample(jax.random.key(5), 2)

    def mixed(first, second):
        def at(*changed):
            return here.at[jnp.asarray(changed, int)].set(
                there[jnp.asarray(changed, int)]
            )

        f = values(problem, jnp.stack([at(), at(first), at(second), at(first, second)]))
        return f[0] - f[1] - f[2] + f[3]

    for (a, b), (c, _) in itertools.pairwise(groups):
        assert abs(mixed(a, b)) > 1e-4
        assert abs(mixed(b, c)) < 1e-12


def test_the_rotated_one_changes_along_its_directions_alone():
    problem, basis = (
        high_dimensional.rotated_subspace(50),
        high_dimensional.directions(50),
    )
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-14)
    x = 0.2 * np.random.default_rng(0).normal(size=50)
    aside = x + 0.1 * (np.eye(50) - basis @ basis.T) @ np.random.default_rng(1).normal(
        size=50
    )
    along = x + 0.5 * basis[:, 0]
    f = values(
        problem, 0.5 + 0.5 * jnp.stack([jnp.asarray(row) for row in (x, aside, along)])
    )
    assert f[1] == pytest.approx(f[0], abs=1e-12)
    assert abs(f[2] - f[0]) > 1e-3
    assert (np.abs(basis) > 1e-6).all()  # no column is inert


def test_a_minimizer_out_of_the_box_is_refused():
    with pytest.raises(ValueError, match="outside the box"):
        high_dimensional.rotated_subspace(3)


def test_the_best_constant_has_value_one():
    """All weights 0 but the bias, which is the mean of the teacher's outputs."""
    problem = high_dimensional.weights()
    chance = np.random.default_rng(0)
    x = chance.normal(size=(100, 4))
    mean = high_dimensional.outputs(chance.uniform(-1.5, 1.5, size=61), x).mean()
    flat = jnp.full(61, 0.5).at[-1].set((mean + 2.0) / 4.0)
    assert float(problem.objective(KEY, flat)) == pytest.approx(1.0, rel=1e-12)


def test_a_network_by_hand():
    w = np.array([0.5, -1.0, 0.25, 2.0, 0.1, -0.2, 1.5, -0.7, 0.3])  # u (2, 2), a, v, b
    first, second = (
        np.tanh(0.1 + 0.5 * 2.0 + 0.25 * 3.0),
        np.tanh(-0.2 - 1.0 * 2.0 + 2.0 * 3.0),
    )
    np.testing.assert_allclose(
        high_dimensional.outputs(w, np.array([[2.0, 3.0]])),
        [0.3 + 1.5 * first - 0.7 * second],
    )


def test_units_may_be_swapped_and_their_signs_changed():
    problem = high_dimensional.weights(2, 3, seed=4)
    (teacher,) = problem.minimizers
    w = np.array(teacher)
    u, a, v = w[:6].reshape(2, 3), w[6:9], w[9:12]
    order, sign = [2, 0, 1], np.array([1.0, -1.0, 1.0])
    twin = np.concatenate(
        [(u[:, order] * sign).ravel(), a[order] * sign, v[order] * sign, w[-1:]]
    )
    assert float(
        problem.objective(KEY, jnp.asarray((twin + 2.0) / 4.0))
    ) == pytest.approx(0.0, abs=1e-28)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: high_dimensional.few_effective(1), "has 2 columns; got only d = 1"),
        (lambda: high_dimensional.additive(7), "must be even"),
        (lambda: high_dimensional.directions(2), "at least the number of directions"),
        (
            lambda: high_dimensional.few_effective(25).objective(KEY, jnp.zeros(24)),
            r"row of shape \(25,\)",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_equal_calls_are_one_problem():
    assert high_dimensional.few_effective(25) == high_dimensional.few_effective(25)
    assert high_dimensional.weights() == high_dimensional.weights()
