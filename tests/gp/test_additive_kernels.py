"""Sums of functions of few columns: the kernel, its terms, and which columns go together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import bonas
from bonas import gp
from bonas.gp.additive_kernels import (
    ORDER,
    check_groups,
    even_sizes,
    grouped,
    groups_of,
    owners,
)

GROUPS = ((0, 3), (1,), (2, 4))
X = jax.random.uniform(jax.random.key(0), (9, 5))
AT = jax.random.uniform(jax.random.key(1), (6, 5))
PARAMS = {"variance": 1.7, "lengthscale": jnp.array([0.3, 0.4, 0.5, 0.6, 0.7])}
NOISE = 0.01


def term(group, a, b, kernel=None, params=PARAMS):
    """A third of the kernel on the columns of one group, by the kernel itself."""
    columns = np.array(group)
    own = {
        name: leaf[columns] if jnp.ndim(leaf) else leaf for name, leaf in params.items()
    }
    return gp.gram(kernel or gp.matern52(), own, a[:, columns], b[:, columns]) / len(
        GROUPS
    )


def posterior(kernel=None, params=PARAMS, capacity=9):
    y = jnp.sin(6.0 * X[:, 0] * X[:, 3]) + X[:, 1] ** 2 - X[:, 2]
    return gp.condition(
        kernel or gp.additive(GROUPS),
        params,
        bonas.dataset(X, y, capacity),
        noise=NOISE,
    )


# The kernel


@pytest.mark.slow
@pytest.mark.parametrize("base", [gp.matern52(), gp.se(), gp.matern12()])
def test_the_gram_is_the_sum_of_those_of_the_groups(base):
    expected = sum(term(group, X, AT, base) for group in GROUPS)
    np.testing.assert_allclose(
        gp.gram(gp.additive(GROUPS, base), PARAMS, X, AT), expected, rtol=1e-12
    )


def test_any_kernel_may_be_a_term():
    params = {
        "bias": 0.4,
        "slope": PARAMS["lengthscale"],
        "center": jnp.linspace(0.0, 1.0, 5),
    }
    expected = sum(term(group, X, AT, gp.linear(), params) for group in GROUPS)
    np.testing.assert_allclose(
        gp.gram(gp.additive(GROUPS, gp.linear()), params, X, AT), expected, rtol=1e-12
    )


def test_the_value_is_an_entry_of_the_gram():
    kernel = gp.additive(GROUPS)
    np.testing.assert_allclose(
        kernel.value(PARAMS, X[2], AT[3]),
        gp.gram(kernel, PARAMS, X, AT)[2, 3],
        rtol=1e-12,
    )


def test_the_variance_is_that_of_the_sum():
    kernel = gp.additive(GROUPS)
    np.testing.assert_allclose(
        jnp.diagonal(gp.gram(kernel, PARAMS, X, X)), np.full(9, 1.7), rtol=1e-12
    )


def test_a_column_has_the_prior_that_it_has_in_its_group_alone():
    prior, points = gp.additive(GROUPS).prior(5), np.array([0.1, 0.5, 1.0, 2.0, 7.0])
    assert prior["lengthscale"].shape() == (5,)
    expected = scipy.stats.lognorm(1.0, scale=0.5 * np.sqrt(2.0)).logpdf(
        points
    )  # the prior of two columns
    np.testing.assert_allclose(
        prior["lengthscale"].log_prob(jnp.asarray(points)), expected, rtol=1e-10
    )


def test_equal_calls_are_one_object():
    assert gp.additive([[0, 3], [1], [2, 4]]) == gp.additive(GROUPS)


@pytest.mark.slow
def test_gradients_are_finite_also_at_coincident_points():
    twice = jnp.concatenate([X, X])
    kernel = gp.additive(GROUPS)
    slopes = jax.grad(lambda params, x: gp.gram(kernel, params, x, x).sum(), (0, 1))(
        PARAMS, twice
    )
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


@pytest.mark.slow
def test_options_of_a_choice_have_no_order():
    """Column 1 has three options at equal distances; one_hot by hand gives the same numbers."""
    kernel = gp.with_categories(gp.additive([(0, 1), (2,)]), (0, 3, 0))
    params = {"variance": 1.0, "lengthscale": jnp.array([0.5, 0.6, 0.6, 0.6, 0.8])}
    rows = jnp.array([[0.2, option, 0.7] for option in (0.0, 0.5, 1.0)])
    matrix = np.asarray(gp.gram(kernel, params, rows, rows))
    np.testing.assert_allclose(matrix[0, 1], matrix[0, 2], rtol=1e-12)
    np.testing.assert_allclose(matrix[1, 2], matrix[0, 2], rtol=1e-12)
    assert matrix[0, 1] < 0.99
    moved = rows.at[:, 2].set(0.1)  # the third column is a group of its own
    half = gp.gram(
        gp.matern52(),
        {"variance": 0.5, "lengthscale": jnp.array([0.8])},
        rows[:1, 2:],
        moved[:1, 2:],
    )
    np.testing.assert_allclose(
        gp.gram(kernel, params, rows, moved)[0, 0], 0.5 + half[0, 0], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([(0, 1), (1, 2)], "column 1 is in more than one"),
        ([(0, 1), (3,)], "got column 3"),
        ([(-1, 0)], "got column -1"),
        ([], "one or more groups"),
        ([(0,), ()], "one or more columns"),
    ],
)
def test_groups_that_are_no_partition_are_refused(groups, said):
    with pytest.raises(ValueError, match=said):
        gp.additive(groups)


def test_a_column_that_is_missing_is_named():
    with pytest.raises(ValueError, match="column 2 is not in"):
        check_groups(((0, 1), (3,)), 4)


def test_points_of_another_width_are_refused():
    with pytest.raises(
        ValueError, match="expected points of 5 columns, as in the groups; got 4"
    ):
        gp.gram(gp.additive(GROUPS), PARAMS, X[:, :4], X[:, :4])


# The terms of a posterior


def test_the_means_of_the_terms_add_up_to_the_mean():
    given = posterior()
    np.testing.assert_allclose(
        gp.predict_parts(given, AT).mean.sum(axis=0),
        gp.predict(given, AT).mean,
        atol=1e-12,
    )


@pytest.mark.slow
def test_mean_and_variance_of_a_term_agree_with_the_dense_formula():
    """Compare with mean_j = k_j(x, X) (K + noise I)⁻¹ y and its variance, in NumPy."""
    given = posterior(capacity=12)
    mean, std = gp.predict_parts(given, AT)
    full = np.asarray(sum(term(group, X, X) for group in GROUPS)) + NOISE * np.eye(9)
    y = np.asarray(given.data.y[:9, 0])
    by_size = sorted(GROUPS, key=len, reverse=True)  # the order of the parts
    for j, group in enumerate(by_size):
        cross = np.asarray(term(group, AT, X))
        np.testing.assert_allclose(mean[j], cross @ np.linalg.solve(full, y), rtol=1e-9)
        variance = np.diag(
            np.asarray(term(group, AT, AT)) - cross @ np.linalg.solve(full, cross.T)
        )
        np.testing.assert_allclose(std[j] ** 2, variance, rtol=1e-8)


def test_a_term_sees_its_own_columns_alone():
    given = posterior()
    moved = gp.predict_parts(given, AT.at[:, 1].set(0.123))
    for field, other in zip(gp.predict_parts(given, AT), moved, strict=True):
        # the groups of two columns
        np.testing.assert_allclose(field[:2], other[:2], rtol=1e-9)
        assert np.abs(field[2] - other[2]).max() > 1e-3


def test_masked_rows_change_nothing():
    data = bonas.dataset(X, jnp.sin(6.0 * X[:, 0]), 12)
    spoilt = data._replace(x=data.x.at[9:].set(jnp.nan), y=data.y.at[9:].set(jnp.nan))
    kernel = gp.additive(GROUPS)
    one, other = (
        gp.predict_parts(gp.condition(kernel, PARAMS, each, noise=NOISE), AT)
        for each in (data, spoilt)
    )
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.std, other.std)


def test_another_kernel_has_no_parts():
    with pytest.raises(
        ValueError, match="expected the posterior of a kernel made by gp"
    ):
        gp.predict_parts(posterior(gp.matern52()), AT)


# Which columns go together


def test_an_order_is_a_grouping():
    """Every order of five columns gives the kernel of its groups, in one compilation."""
    kernel = grouped((2, 2, 1), gp.matern52())
    gram = jax.jit(gp.gram)
    for seed in range(4):
        order = jax.random.permutation(jax.random.key(seed), 5)
        groups = groups_of(order, (2, 2, 1))
        expected = gp.gram(gp.additive(groups), PARAMS, X, AT)
        np.testing.assert_allclose(
            gram(kernel, {**PARAMS, ORDER: order}, X, AT), expected, rtol=1e-12
        )
        which = np.asarray(owners(order, (2, 2, 1)))
        assert sorted(tuple(np.flatnonzero(which == j)) for j in range(3)) == list(
            groups
        )
    assert gram._cache_size() == 1


@pytest.mark.parametrize(
    ("d", "size", "sizes"),
    [(6, 2, (2, 2, 2)), (7, 3, (3, 3, 1)), (2, 2, (2,)), (3, 1, (1, 1, 1))],
)
def test_sizes_of_even_groups(d, size, sizes):
    assert even_sizes(d, size) == sizes


@pytest.mark.parametrize("sizes", [(), (1, 2), (2, 0)])
def test_sizes_that_are_none_are_refused(sizes):
    with pytest.raises(ValueError, match="in descending order; got"):
        grouped(sizes, gp.matern52())


TRUE = jnp.array([4, 0, 6, 1, 3, 7, 5, 2])
SIZES = (2, 2, 2, 2)


def pairs_in_common(order):
    """Return the number of true pairs of an order; there are 105 groupings."""
    mine, true = owners(order, SIZES), owners(TRUE, SIZES)
    together, really = mine[:, None] == mine[None, :], true[:, None] == true[None, :]
    return 3.0 * (jnp.sum(together & really) - 8.0) / 2.0


def test_the_most_probable_grouping_is_found():
    find = jax.jit(
        lambda key: gp.regroup(
            key, pairs_in_common, jnp.arange(8), SIZES, draws=4, moves=100
        )
    )
    for seed in range(5):
        order, value = find(jax.random.key(seed))
        assert groups_of(order, SIZES) == groups_of(TRUE, SIZES)
        np.testing.assert_allclose(value, 12.0)


def test_a_grouping_is_never_left_for_a_worse_one():
    order, value = gp.regroup(
        jax.random.key(0), pairs_in_common, TRUE, SIZES, draws=2, moves=5
    )
    assert groups_of(order, SIZES) == groups_of(TRUE, SIZES)
    np.testing.assert_allclose(value, 12.0)


def test_evidence_that_is_no_number_is_passed_over():
    def spoilt(order):
        return jnp.where(order[0] == 0, 0.0, jnp.nan)

    order, value = gp.regroup(
        jax.random.key(0), spoilt, jnp.arange(8), SIZES, draws=3, moves=20
    )
    assert order[0] == 0
    assert value == 0.0


def test_one_group_of_all_columns_stays():
    order, _ = gp.regroup(
        jax.random.key(0), lambda order: jnp.zeros(()), jnp.arange(3), (3,)
    )
    np.testing.assert_array_equal(order, np.arange(3))
