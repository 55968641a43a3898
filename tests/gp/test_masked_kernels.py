import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
from cases import SPACE, draw

import bonas
from bonas import gp

# always there; depth 1; depth 2; dropout_2; slope
GROUPS = ((0, 1, 2), (3,), (4,), (5,), (6,))
NUMBERS = bonas.Space(
    depth=bonas.Int(1, 3),
    lr=bonas.Float(0.0, 1.0),
    width_2=bonas.Float(0.0, 1.0, when={"depth": (">=", 2)}),
    width_3=bonas.Float(0.0, 1.0, when={"depth": (">=", 3)}),
)
KERNELS = {
    "masked": gp.masked(SPACE),
    "masked blend": gp.masked(SPACE, gp.blend()),
    "blocks": gp.blocks(SPACE, GROUPS),
    "blocks se": gp.blocks(SPACE, GROUPS[1:], gp.se()),
}
gram = jax.jit(gp.gram)
POINTS = [SPACE.sample(jax.random.key(seed), 30) for seed in range(2)]


@pytest.fixture(params=list(KERNELS))
def kernel(request):
    return KERNELS[request.param]


def params_of(kernel, seed, d=SPACE.dim):
    return draw(kernel.prior(d), jax.random.key(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_gram_equals_value_at_every_pair(kernel, seed):
    params, points = params_of(kernel, seed), POINTS[seed]
    slow = gram(gp.Kernel(kernel.prior, kernel.value), params, points, points)
    np.testing.assert_allclose(
        gram(kernel, params, points, points), slow, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("seed", range(2))
def test_gram_matrices_are_positive_semidefinite(kernel, seed):
    points = POINTS[seed]
    matrix = np.asarray(gram(kernel, params_of(kernel, seed + 10), points, points))
    assert np.linalg.eigvalsh(matrix).min() > -1e-10 * np.abs(matrix).max()


def test_gradients_are_finite_also_at_coincident_points(kernel):
    points = POINTS[0][:8]
    twice = jnp.concatenate([points, points])
    total = jax.jit(
        jax.grad(lambda params, x: gp.gram(kernel, params, x, x).sum(), (0, 1))
    )
    assert all(
        jnp.isfinite(leaf).all()
        for leaf in jax.tree.leaves(total(params_of(kernel, 0), twice))
    )


@pytest.mark.parametrize("seed", range(2))
def test_the_value_of_an_inactive_parameter_changes_nothing(kernel, seed):
    """Swersky et al. 2014, eqs. 1 and 2."""
    params, points = params_of(kernel, seed), POINTS[seed]
    elsewhere = jnp.where(
        SPACE.active(points),
        points,
        jax.random.uniform(jax.random.key(9), points.shape),
    )
    np.testing.assert_allclose(
        gram(kernel, params, elsewhere, points),
        gram(kernel, params, points, points),
        rtol=1e-12,
        atol=1e-14,
    )


def test_masked_is_what_smac3_computes():
    """Inactive columns hold −1; covariances of different patterns are multiplied by 0."""
    points = np.asarray(NUMBERS.sample(jax.random.key(0), 40))
    params = params_of(gp.masked(NUMBERS), 1, NUMBERS.dim)
    imputed = np.where(NUMBERS.active(points), points, -1.0)
    same = ((imputed[:, None] <= -1.0) == (imputed[None] <= -1.0)).all(axis=2)
    assert 0.2 < same.mean() < 0.8  # both cases are there
    expected = (
        float(params["variance"])
        * sk.Matern(np.asarray(params["lengthscale"]), nu=2.5)(imputed)
        * same
    )
    np.testing.assert_allclose(
        gram(gp.masked(NUMBERS), params, points, points), expected, rtol=1e-10
    )


@pytest.mark.slow
def test_masked_is_a_separate_process_for_each_pattern():
    """Predictions at one depth do not depend on what was seen at the others."""
    kernel, points = gp.masked(NUMBERS), NUMBERS.sample(jax.random.key(0), 40)
    params, values = (
        params_of(kernel, 1, NUMBERS.dim),
        jnp.sin(5.0 * points.sum(axis=1)),
    )
    same = (NUMBERS.active(points) == NUMBERS.active(points[0])[None]).all(axis=1)
    together = gp.condition(kernel, params, bonas.dataset(points, values), noise=0.1)
    alone = gp.condition(
        gp.matern52(), params, bonas.dataset(points[same], values[same]), noise=0.1
    )
    there = NUMBERS.snap(
        jnp.concatenate(
            [points[:1, :1], jax.random.uniform(jax.random.key(2), (1, 3))], axis=1
        )
    )
    np.testing.assert_allclose(
        gp.predict(together, there), gp.predict(alone, there), rtol=1e-9
    )


def test_blocks_add_up_what_both_points_have():
    """Both points have the first two groups, only one has the third."""
    kernel = gp.blocks(NUMBERS, ((0, 1), (2,), (3,)), gp.se())
    own = [
        {"variance": 0.7 + i, "lengthscale": jnp.full(width, 0.5)}
        for i, width in enumerate((2, 1, 1))
    ]
    which = {"variance": 0.3, "lengthscale": jnp.array([1.0, 1.0, 0.8])}
    params = {**{str(i): part for i, part in enumerate(own)}, "which": which}
    a, b = jnp.array([0.5, 0.1, 0.4, 0.0]), jnp.array([1.0, 0.3, 0.9, 0.6])
    pattern = 0.3 * sk.Matern(0.8, nu=2.5)([[0.0]], [[1.0]])[0, 0]
    first = 0.7 * np.exp(-0.5 * (0.5**2 + 0.2**2) / 0.5**2)
    second = 1.7 * np.exp(-0.5 * 0.5**2 / 0.5**2)
    np.testing.assert_allclose(
        kernel.value(params, a, b), pattern + first + second, rtol=1e-12
    )


@pytest.mark.parametrize(
    "make",
    [gp.masked, lambda space: gp.blocks(space, ((0, 1), (2,)))],
    ids=["masked", "blocks"],
)
def test_options_have_no_order(make):
    """With equal length scales any two of three options are equally similar."""
    space = bonas.Space(
        activation=bonas.Choice("relu", "tanh", "sigmoid"),
        lr=bonas.Float(0, 1),
        slope=bonas.Float(0, 1, when={"lr": (">", 2)}),
    )
    kernel = make(space)
    params = jax.tree.map(jnp.ones_like, params_of(kernel, 0, space.dim))
    points = [jnp.array([option, 0.3, 0.0]) for option in (0.0, 0.5, 1.0)]
    values = [
        float(kernel.value(params, points[i], points[j]))
        for i, j in ((0, 1), (0, 2), (1, 2), (0, 0))
    ]
    np.testing.assert_allclose(values[:3], values[0], rtol=1e-12)
    assert values[0] < values[3]


def test_a_kernel_of_numbers_is_adapted_to_options():
    adapted = gp.with_categories(gp.masked(SPACE.active), SPACE.categories)
    params, points = params_of(gp.masked(SPACE), 0), POINTS[0]
    np.testing.assert_array_equal(
        gram(adapted, params, points, points),
        gram(gp.masked(SPACE), params, points, points),
    )


def test_equal_calls_are_equal():
    assert gp.masked(SPACE.active) == gp.masked(SPACE.active)
    assert gp.blocks(SPACE, GROUPS) == gp.blocks(
        SPACE, [list(group) for group in GROUPS]
    )


@pytest.mark.parametrize(
    "groups", [(), ((),), ((0, 1), (1,))], ids=["none", "empty", "twice"]
)
def test_invalid_groups_are_refused(groups):
    with pytest.raises(ValueError, match="each column in at most one group"):
        gp.blocks(SPACE, groups)


def test_columns_that_do_not_exist_are_refused():
    with pytest.raises(
        ValueError,
        match=r"expected points of at least 10 columns, for the columns \(9,\); got 7",
    ):
        gp.blocks(SPACE.active, ((0,), (9,))).prior(SPACE.dim)


def test_active_must_be_a_space_or_a_function():
    with pytest.raises(ValueError, match="expected a Space, or a function"):
        gp.masked([True, False])
