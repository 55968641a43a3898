"""Kernels whose columns share parameters."""

import cases
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from bonas import gp

POINTS = jax.random.uniform(jax.random.key(0), (6, 4))


def test_a_group_has_one_entry_and_every_other_column_its_own():
    kernel = gp.tied(gp.matern52(), [(3, 1)])
    # columns 0, {1, 3}, 2
    params = {"variance": 2.0, "lengthscale": jnp.array([0.3, 0.7, 1.1])}
    alone = {"variance": 2.0, "lengthscale": jnp.array([0.3, 0.7, 1.1, 0.7])}
    np.testing.assert_allclose(
        gp.gram(kernel, params, POINTS, POINTS),
        gp.gram(gp.matern52(), alone, POINTS, POINTS),
        rtol=1e-13,
    )
    np.testing.assert_allclose(
        kernel.value(params, POINTS[0], POINTS[1]),
        gp.matern52().value(alone, POINTS[0], POINTS[1]),
        rtol=1e-13,
    )
    assert kernel.prior(4)["lengthscale"].shape() == (3,)
    assert kernel.prior(4)["variance"].shape() == ()


def test_the_prior_of_an_entry_is_that_of_a_column():
    one, other = (
        gp.tied(gp.matern52(), [(0, 1, 2)]).prior(4)["lengthscale"],
        gp.matern52().prior(4)["lengthscale"],
    )
    np.testing.assert_allclose(
        one.log_prob(jnp.array([0.4, 2.0])),
        other.log_prob(jnp.array([0.4, 0.4, 0.4, 2.0]))[2:],
    )


def test_sums_are_shared_part_by_part():
    kernel = gp.tied(gp.matern52() + gp.linear(), [(0, 1, 2, 3)])
    shapes = jax.tree.map(
        lambda part: part.shape(),
        kernel.prior(4),
        is_leaf=lambda node: isinstance(node, dist.Distribution),
    )
    assert all(
        shape in ((), (1,))
        for shape in jax.tree.leaves(
            shapes, is_leaf=lambda node: isinstance(node, tuple)
        )
    )
    params = cases.draw(kernel.prior(4), jax.random.key(1))
    assert gp.gram(kernel, params, POINTS, POINTS).shape == (6, 6)


def test_equal_calls_make_equal_kernels():
    assert gp.tied(gp.matern52(), [(0, 1)]) == gp.tied(gp.matern52(), ((0, 1),))


@pytest.mark.parametrize("groups", [[], [()], [(0, 1), (1, 2)], [(-1, 2)]])
def test_groups_that_make_no_sense_are_refused(groups):
    with pytest.raises(ValueError, match="each column in at most one group"):
        gp.tied(gp.matern52(), groups)


def test_columns_that_do_not_exist_are_refused():
    with pytest.raises(
        ValueError,
        match="expected points of at least 5 columns, as in the groups; got 4",
    ):
        gp.tied(gp.matern52(), [(0, 4)]).prior(4)


def test_priors_that_differ_by_column_are_refused():
    kernel = gp.Kernel(
        lambda d: {"scale": dist.LogNormal(jnp.arange(d, dtype=float), 1.0)},
        cases.brownian,
    )
    with pytest.raises(ValueError, match="columns with different priors"):
        gp.tied(kernel, [(0, 1)]).prior(3)


def test_options_share_the_entry_of_their_choice():
    """Column 2 has three options: the group (1, 2) is the positions 1 to 4 after `one_hot`."""
    kernel = gp.with_categories(
        gp.tied(gp.matern52(), [(1, 2)]), cases.SPACE.categories
    )
    plain = gp.one_hot(cases.SPACE.categories, gp.matern52())
    scales = jnp.linspace(0.3, 1.0, 6)
    alone = scales[jnp.array([0, 1, 1, 1, 1, 2, 3, 4, 5])]
    points = cases.SPACE.sample(jax.random.key(2), 5)
    np.testing.assert_allclose(
        gp.gram(kernel, {"variance": 1.5, "lengthscale": scales}, points, points),
        gp.gram(plain, {"variance": 1.5, "lengthscale": alone}, points, points),
        rtol=1e-13,
    )


def test_a_kernel_that_knows_the_choices_stays_as_it_is():
    knowing = gp.tied(gp.arc(cases.SPACE), [(3, 4)])
    assert gp.with_categories(knowing, cases.SPACE.categories) is knowing


def test_compositions_are_not_guessed_at():
    with pytest.raises(ValueError, match="or tie each part"):
        gp.with_categories(
            gp.tied(gp.matern52() + gp.linear(), [(3, 4)]), cases.SPACE.categories
        )
