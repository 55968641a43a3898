import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import sklearn.gaussian_process.kernels as sk
from cases import PLAIN, SPACE, draw

import bonas
from bonas import gp

gram = jax.jit(gp.gram)  # compiled once a kernel


@jax.jit
def gradient_of_the_total(kernel, params, x):
    return jax.grad(lambda params, x: gp.gram(kernel, params, x, x).sum(), (0, 1))(
        params, x
    )


def params_of(kernel, seed, d=SPACE.dim):
    return draw(kernel.prior(d), jax.random.key(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_gram_equals_value_at_every_pair(kernel, seed):
    params, points = params_of(kernel, seed), SPACE.sample(jax.random.key(seed), 30)
    slow = gram(gp.Kernel(kernel.prior, kernel.value), params, points, points)
    np.testing.assert_allclose(
        gram(kernel, params, points, points), slow, rtol=1e-9, atol=1e-12
    )


def test_the_diagonal_is_the_covariance_of_each_point_with_itself(kernel):
    params, points = params_of(kernel, 3), SPACE.sample(jax.random.key(3), 10)
    found = jax.jit(type(kernel).diagonal)(kernel, params, points)
    each = jax.vmap(lambda x: kernel.value(params, x, x))(points)
    np.testing.assert_allclose(found, each, rtol=1e-12)


def test_a_conditional_kernel_of_any_base_has_its_own_diagonal():
    kernel = gp.arc(SPACE, gp.matern52() + gp.Kernel({}, lambda params, a, b: a @ b))
    params, points = params_of(kernel, 0), SPACE.sample(jax.random.key(0), 10)
    each = jax.vmap(lambda x: kernel.value(params, x, x))(points)
    np.testing.assert_allclose(kernel.diagonal(params, points), each, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_gram_matrices_are_symmetric_and_positive_semidefinite(kernel, seed):
    points = SPACE.sample(jax.random.key(seed), 30)
    matrix = np.asarray(gram(kernel, params_of(kernel, seed + 10), points, points))
    np.testing.assert_allclose(
        matrix, matrix.T, rtol=1e-10, atol=1e-12 * np.abs(matrix).max()
    )
    assert np.linalg.eigvalsh(matrix).min() > -1e-10 * np.abs(matrix).max()


@pytest.mark.slow
def test_gradients_are_finite_also_at_coincident_points(kernel):
    points = SPACE.sample(jax.random.key(0), 8)
    twice = jnp.concatenate([points, points])
    for gradient in jax.tree.leaves(
        gradient_of_the_total(kernel, params_of(kernel, 0), twice)
    ):
        assert jnp.isfinite(gradient).all()


def test_kernels_are_equal_by_value():
    assert gp.matern52() == gp.matern52()
    assert gp.arc(SPACE.active) == gp.arc(SPACE.active)
    assert gp.add(gp.se(), gp.linear()) == gp.add(gp.se(), gp.linear())
    assert gp.on_columns([0, 2], gp.rq()) == gp.on_columns((0, 2), gp.rq())
    assert len({gp.se(), gp.se(), gp.matern52()}) == 2


@pytest.mark.parametrize("prior", [{"variance": 1.0}, [1.0], np.ones(3)])
@pytest.mark.parametrize("make", [gp.se, gp.matern12, gp.matern52, gp.rq, gp.blend])
def test_a_prior_must_be_a_function(make, prior):
    with pytest.raises(
        TypeError, match="prior must be a function of the number of columns"
    ):
        make(prior)


@pytest.mark.typed
def test_a_subclass_is_a_kernel_and_keeps_its_overrides():
    @dataclasses.dataclass(frozen=True)
    class Doubled(gp.Kernel):
        base: gp.Kernel

        def prior(self, d):
            return self.base.prior(d)

        def value(self, params, a, b):
            return 2.0 * self.base.value(params, a, b)

    assert Doubled(gp.se()) == Doubled(gp.se())
    params, points = params_of(gp.se(), 0), SPACE.sample(jax.random.key(0), 3)
    expected = 2.0 * gp.gram(gp.se(), params, points, points)
    np.testing.assert_allclose(
        gram(Doubled(gp.se()), params, points, points), expected, rtol=1e-12
    )


def overlap(params, a, b):
    return params["scale"] ** 2 * jnp.exp(-(a != b).sum())


OVERLAP = gp.Kernel(prior={"scale": dist.HalfNormal(1.0)}, value=overlap)


@dataclasses.dataclass(frozen=True)
class Written(gp.Kernel):
    """A kernel as a user writes it: as a subclass."""

    def prior(self, d):
        return {"scale": dist.HalfNormal(1.0)}

    def value(self, params, a, b):
        return overlap(params, a, b)


@pytest.mark.parametrize(
    "make",
    [
        lambda kernel: kernel,
        lambda kernel: gp.additive([range(7)], kernel),
        lambda kernel: gp.tied(kernel, [(3, 4)]),
    ],
)
@pytest.mark.parametrize("kernel", [OVERLAP, Written(), gp.basis(lambda x: x[:2])])
def test_a_kernel_that_a_user_wrote_gets_the_columns_of_the_space(kernel, make):
    kernel = make(kernel)
    assert gp.with_categories(kernel, SPACE.categories) is kernel


def test_a_written_kernel_keeps_its_columns_next_to_a_built_in_one():
    first, second = gp.with_categories(OVERLAP + gp.se(), SPACE.categories).kernels
    assert first is OVERLAP
    assert second == gp.one_hot(SPACE.categories, gp.se())


def test_a_written_kernel_may_ask_for_one_hot_columns():
    kernel = gp.Kernel(OVERLAP.prior, overlap, one_hot=True)
    expected = gp.one_hot(SPACE.categories, kernel)
    assert gp.with_categories(kernel, SPACE.categories) == expected


def test_a_search_passes_the_columns_of_the_space_to_a_written_kernel():
    seen = set()

    def value(params, a, b):
        seen.add(a.shape)
        return overlap(params, a, b)

    options = {f"option_{i}": bonas.Choice(*"abcde") for i in range(6)}
    space = bonas.Space(**options, rate=bonas.Float(1e-4, 1.0, log=True))
    kernel = gp.Kernel({"scale": dist.HalfNormal(1.0)}, value)
    search = bonas.bayes(space, surrogate=bonas.surrogates.gp(kernel))
    jax.eval_shape(lambda key: search.init(key, 8), jax.random.key(0))
    assert seen == {(7,)}


def test_a_kernel_is_a_plain_argument_of_jit():
    x = jnp.linspace(0.0, 1.0, 4)[:, None]
    params = {"variance": 1.0, "lengthscale": jnp.ones(1)}
    np.testing.assert_allclose(
        jax.jit(gp.gram)(gp.se(), params, x, x),
        gp.gram(gp.se(), params, x, x),
        rtol=1e-14,
    )


LENGTHSCALE, VARIANCE = np.array([0.4, 0.9, 2.0]), 1.7
SKLEARN = {
    "se": sk.RBF(LENGTHSCALE),
    "matern12": sk.Matern(LENGTHSCALE, nu=0.5),
    "matern32": sk.Matern(LENGTHSCALE, nu=1.5),
    "matern52": sk.Matern(LENGTHSCALE, nu=2.5),
}


@pytest.mark.parametrize("name", SKLEARN)
def test_agrees_with_scikit_learn(name, small):
    x, _ = small
    params = {"variance": VARIANCE, "lengthscale": jnp.asarray(LENGTHSCALE)}
    ours = gp.gram(PLAIN[name], params, jnp.asarray(x), jnp.asarray(x[:5]))
    np.testing.assert_allclose(ours, VARIANCE * SKLEARN[name](x, x[:5]), rtol=1e-12)


def test_rq_agrees_with_scikit_learn_on_scaled_columns(small):
    x, _ = small
    params = {
        "variance": VARIANCE,
        "lengthscale": jnp.asarray(LENGTHSCALE),
        "alpha": 0.8,
    }
    expected = VARIANCE * sk.RationalQuadratic(1.0, alpha=0.8)(x / LENGTHSCALE)
    np.testing.assert_allclose(
        gp.gram(gp.rq(), params, jnp.asarray(x), jnp.asarray(x)), expected, rtol=1e-12
    )


def test_linear_agrees_with_scikit_learn(small):
    x, _ = small
    params = {"bias": 0.7, "slope": jnp.ones(3), "center": jnp.zeros(3)}
    np.testing.assert_allclose(
        gp.gram(gp.linear(), params, jnp.asarray(x), jnp.asarray(x)),
        sk.DotProduct(0.7)(x),
        rtol=1e-12,
    )


def test_linear_by_hand():
    # Hutchinson eq. 2.32: 0.5² + 2²(3 − 1)(4 − 1) = 24.25
    params = {"bias": 0.5, "slope": jnp.array([2.0]), "center": jnp.array([1.0])}
    assert gp.linear().value(params, jnp.array([3.0]), jnp.array([4.0])) == 24.25


def test_matern52_has_the_square_that_wiltons_equation_8_misplaces():
    """With the bracket as printed, 1 + √(5r² + 5/3 r²), the correlation is another one."""
    r = 0.7
    value = gp.matern52().value(
        {"variance": 1.0, "lengthscale": jnp.ones(1)}, jnp.zeros(1), jnp.array([r])
    )
    right = (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r)
    printed = (1 + np.sqrt(5 * r**2 + 5 / 3 * r**2)) * np.exp(-np.sqrt(5) * r)
    np.testing.assert_allclose(value, right, rtol=1e-14)
    assert abs(value - printed) > 0.01


def test_functions_cross_zero_as_often_as_the_length_scale_says():
    """Hutchinson 2019, eq. 2.31, prints exp(−r²/l²), without the ½.

    With the ½ functions cross zero 1/(πl) times per unit (Rice's formula), the usual meaning of a
    length scale; as printed √2 times as often. 4000 draws: the tolerance is five standard errors.
    """
    scale, x = (
        0.5,
        np.linspace(0.0, 4.0, 161),
    )  # steps of a twentieth of it: fewer than 1 in 1000 crossings are missed

    def crossings(cov):
        values, vectors = np.linalg.eigh(cov)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = np.random.default_rng(0).standard_normal((4000, len(x))) @ root.T
        counts = (np.diff(np.sign(draws), axis=1) != 0).sum(axis=1)
        return counts.mean(), counts.std() / np.sqrt(len(counts))

    stated = 4.0 / (np.pi * scale)
    points, params = (
        jnp.asarray(x[:, None]),
        {"variance": 1.0, "lengthscale": jnp.full(1, scale)},
    )
    mean, error = crossings(np.asarray(gp.gram(gp.se(), params, points, points)))
    assert abs(mean - stated) < 5.0 * error
    mean, error = crossings(np.exp(-((x[:, None] - x[None, :]) ** 2) / scale**2))
    assert mean - stated > 20.0 * error
    assert abs(mean - np.sqrt(2.0) * stated) < 5.0 * error


@pytest.mark.parametrize(
    ("name", "curvature"),
    [("se", 1.0), ("matern32", 3.0), ("matern52", 5 / 3), ("rq", 1.0)],
)
def test_second_derivative_at_coincident_points(name, curvature):
    """−k''(0) is known in closed form; a guarded square root would give 0 for the Matérns."""
    params = {"variance": 1.0, "lengthscale": jnp.ones(1), "alpha": 0.8}
    slope = jax.grad(lambda a, b: PLAIN[name].value(params, a, b)[()], 0)
    mixed = jax.jacfwd(lambda b: slope(jnp.array([0.3]), b))(jnp.array([0.3]))
    np.testing.assert_allclose(mixed[0, 0], curvature, rtol=1e-12)


def test_sums_products_and_columns_nest_their_parameters():
    points = SPACE.sample(jax.random.key(0), 2)
    kernel = gp.add(
        gp.multiply(gp.se(), gp.linear()), gp.on_columns([1, 3], gp.matern12())
    )
    params = params_of(kernel, 0)
    assert set(params) == {"0", "1"}
    assert set(params["0"]) == {"0", "1"}
    assert params["1"]["lengthscale"].shape == (2,)
    a, b = points[0], points[1]
    product = gp.se().value(params["0"]["0"], a, b) * gp.linear().value(
        params["0"]["1"], a, b
    )
    columns = jnp.array([1, 3])
    expected = product + gp.matern12().value(params["1"], a[columns], b[columns])
    np.testing.assert_allclose(kernel.value(params, a, b), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "make",
    [
        lambda: gp.add(),
        lambda: gp.on_columns([], gp.se()),
        lambda: gp.on_columns([1, 1], gp.se()),
    ],
)
def test_impossible_combinations_are_refused(make):
    with pytest.raises(ValueError, match=r"at least one|columns must be one or more"):
        make()


def test_columns_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="expected points of at least"):
        gp.on_columns([5], gp.se()).prior(3)


CHOICE = bonas.Space(
    option=bonas.Choice("a", "b", "c", "d"), number=bonas.Float(0.0, 1.0)
)


@pytest.mark.parametrize(
    "kernel",
    [
        *[
            form(CHOICE.active, categories=CHOICE.categories, product=p)
            for form in (gp.arc, gp.box, gp.wedge)
            for p in (False, True)
        ],
        *[gp.one_hot(CHOICE.categories, base) for base in PLAIN.values()],
    ],
)
def test_a_choice_has_no_order(kernel):
    """With equal parameters, all pairs of different options are equally similar."""
    params = jax.tree.map(
        lambda leaf: jnp.full_like(leaf, 0.6), params_of(kernel, 0, d=2)
    )
    rows = jnp.stack(
        [CHOICE.encode({"option": option, "number": 0.4}) for option in "abcd"]
    )
    matrix = np.asarray(gram(kernel, params, rows, rows))
    np.testing.assert_allclose(matrix[~np.eye(4, dtype=bool)], matrix[0, 1], rtol=1e-12)
    assert matrix[0, 1] < matrix[0, 0]


def test_an_ordinary_kernel_would_impose_a_false_order():
    rows = jnp.stack(
        [CHOICE.encode({"option": option, "number": 0.4}) for option in "abd"]
    )
    matrix = gram(gp.se(), {"variance": 1.0, "lengthscale": jnp.ones(2)}, rows, rows)
    assert matrix[0, 1] > matrix[0, 2] + 0.1


def test_every_kernel_can_be_made_to_take_a_choice_for_what_it_is(kernel):
    """With equal parameters, swapping two options changes no similarity."""
    if kernel.categories == ():
        with pytest.raises(ValueError, match="was made for none"):
            gp.with_categories(kernel, SPACE.categories)
        return
    if kernel.categories is None and not kernel.one_hot:
        kernel = gp.one_hot(SPACE.categories, kernel)
    fair = gp.with_categories(kernel, SPACE.categories)
    assert fair.categories == SPACE.categories
    params = jax.tree.map(lambda leaf: jnp.full_like(leaf, 0.6), params_of(fair, 0))
    base = SPACE.encode({"depth": 0, "lr": 0.1, "activation": "tanh"})
    column = SPACE.names.index("activation")
    rows = jnp.stack([base.at[column].set(position) for position in (0.0, 0.5, 1.0)])
    matrix = np.asarray(gram(fair, params, rows, rows))
    np.testing.assert_allclose(matrix[1, 0], matrix[2, 0], atol=1e-12)


def test_a_space_without_choices_leaves_kernels_alone():
    assert gp.with_categories(gp.arc(SPACE.active), (0, 0, 0)) == gp.arc(SPACE.active)
