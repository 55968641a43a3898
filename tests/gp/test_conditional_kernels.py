import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import CONDITIONAL, SPACE, draw

import bonas
from bonas import gp
from bonas.gp.conditional_kernels import options_on_sphere

LAST = SPACE.names.index("dropout_2")


@jax.jit
def value(kernel, params, a, b):
    return kernel.value(params, a, b)


def with_last(x, number):
    return x.at[LAST].set(number)


@pytest.fixture(params=list(CONDITIONAL))
def kernel(request):
    return CONDITIONAL[request.param]


def pair(off_too):
    """Return two points; the last parameter is inactive in the first and maybe in the second."""
    a = SPACE.encode({"depth": 1, "lr": 0.01, "activation": "tanh", "width_1": 8})
    b = {
        "depth": 2,
        "lr": 0.2,
        "activation": "relu",
        "width_1": 3,
        "width_2": 2,
        "slope": 0.1,
    }
    return a, SPACE.encode(b if off_too else {**b, "width_2": 9, "dropout_2": 0.3})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_value_of_an_inactive_parameter_changes_nothing_when_both_are_inactive(
    kernel, seed
):
    """The first desideratum: Swersky et al. 2014, eq. 1."""
    params = draw(kernel.prior(SPACE.dim), jax.random.key(seed))
    a, b = pair(off_too=True)
    values = [
        value(kernel, params, with_last(a, s), with_last(b, t))
        for s, t in ((0.0, 0.0), (0.3, 0.9), (1.0, 0.2))
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_an_inactive_value_changes_nothing_when_the_other_is_active(kernel, seed):
    """The second desideratum, eq. 2: the inactive side's value never matters."""
    params = draw(kernel.prior(SPACE.dim), jax.random.key(seed))
    a, b = pair(off_too=False)
    values = [value(kernel, params, with_last(a, s), b) for s in (0.0, 0.3, 1.0)]
    np.testing.assert_allclose(values, values[0], rtol=1e-13)


@pytest.mark.parametrize("product", [False, True])
def test_the_arc_kernel_does_not_depend_on_the_active_value_either(product):
    """Eq. 2: an active and an inactive value are omega apart. The wedge kernel differs."""
    a, b = pair(off_too=False)
    for make, constant in ((gp.arc, True), (gp.wedge, False)):
        kernel = make(SPACE.active, product=product)
        params = draw(kernel.prior(SPACE.dim), jax.random.key(0))
        values = [
            float(kernel.value(params, a, with_last(b, t))) for t in (0.0, 0.5, 1.0)
        ]
        assert (np.ptp(values) < 1e-14) == constant


ONE = bonas.Space(switch=bonas.Int(0, 1), x=bonas.Float(0.0, 1.0, when={"switch": 1}))
ON = ONE.encode({"switch": 1, "x": 0.25})


def distance(kernel, params, a, b):
    """The embedded distance behind a squared-exponential kernel of variance 1."""
    return float(
        jnp.sqrt(-2.0 * jnp.log(kernel.value({"variance": 1.0, **params}, a, b)))
    )


def test_arc_distances_are_those_of_equation_4():
    kernel = gp.arc(lambda x: jnp.array([False, True]) & (x[0] > 0.5), gp.se())
    params = {"omega": jnp.array([1.0, 0.8]), "rho": jnp.array([0.5, 0.7])}
    off = jnp.array([0.0, 0.9])
    a, b = jnp.array([1.0, 0.25]), jnp.array([1.0, 0.85])
    assert distance(kernel, params, off, off.at[1].set(0.1)) == 0.0
    np.testing.assert_allclose(distance(kernel, params, a, off), 0.8, rtol=1e-12)
    expected = 0.8 * np.sqrt(2) * np.sqrt(1 - np.cos(np.pi * 0.7 * 0.6))
    np.testing.assert_allclose(distance(kernel, params, a, b), expected, rtol=1e-12)
    np.testing.assert_allclose(
        expected, 2 * 0.8 * np.sin(np.pi * 0.7 * 0.6 / 2), rtol=1e-12
    )


def test_at_rho_one_third_inactivity_counts_as_much_as_the_whole_range():
    kernel = gp.arc(lambda x: x[:1] > -1.0, gp.se())
    params = {"omega": jnp.array([0.9]), "rho": jnp.array([1 / 3])}
    np.testing.assert_allclose(
        distance(kernel, params, jnp.array([0.0]), jnp.array([1.0])), 0.9, rtol=1e-12
    )


def test_product_and_joint_embeddings_agree_for_the_squared_exponential_only():
    """Only a product of exponentials is the exponential of a sum."""
    a, b = pair(off_too=False)
    for base, equal in ((gp.se(), True), (gp.matern52(), False)):
        joint, product = (
            gp.arc(SPACE.active, base, categories=SPACE.categories, product=p)
            for p in (False, True)
        )
        params = draw(joint.prior(SPACE.dim), jax.random.key(0))
        close = np.isclose(
            joint.value(params, a, b), product.value(params, a, b), rtol=1e-10
        )
        assert close == equal


@pytest.mark.parametrize("base", [gp.se(), gp.matern52()])
def test_the_box_kernel_is_the_base_kernel_where_everything_is_active(base):
    points = SPACE.sample(jax.random.key(0), 30)
    box = gp.box(lambda x: jnp.ones(len(x), bool), base)
    params = draw(box.prior(SPACE.dim), jax.random.key(0))
    np.testing.assert_allclose(
        gp.gram(box, params, points, points),
        gp.gram(base, params, points, points),
        rtol=1e-9,
        atol=1e-12,
    )


def test_box_distances_by_hand():
    kernel = gp.box(ONE.active, gp.se())
    params = {
        "lengthscale": jnp.array([1.0, 0.5]),
        "default": jnp.array([0.0, 0.4]),
        "distance": jnp.array([9.0, 0.3]),
    }
    off = ON.at[0].set(0.0)
    expected = np.sqrt(
        1.0**2 + ((0.25 - 0.4) / 0.5) ** 2 + 0.3**2
    )  # the switch, the default value, the distance
    np.testing.assert_allclose(distance(kernel, params, ON, off), expected, rtol=1e-12)


def test_wedge_distances_by_hand():
    kernel = gp.wedge(ONE.active, gp.se())
    params = {
        "low": jnp.array([1.0, 0.6]),
        "high": jnp.array([1.0, 1.1]),
        "rho": jnp.array([0.0, 0.5]),
    }
    off = ON.at[0].set(0.0)
    ends = [distance(kernel, params, ON.at[1].set(t), off) for t in (0.0, 1.0)]
    np.testing.assert_allclose(
        ends, [0.6, 1.1], rtol=1e-12
    )  # rho = 0 and equal sides: the switch adds nothing
    edge = distance(kernel, params, ON.at[1].set(0.0), ON.at[1].set(1.0))
    np.testing.assert_allclose(edge, np.hypot(0.6, 1.1), rtol=1e-12)  # a right angle


def test_the_distance_between_options_needs_the_square_root_that_the_paper_omits():
    """Hutter & Osborne 2013, m = 5, rho = 0.6: 0.66259; the printed form gives 0.51740."""
    options = [
        options_on_sphere(
            jnp.ones(()), jnp.asarray(0.6), jnp.eye(5)[i], jnp.asarray(True)
        )
        for i in range(5)
    ]
    apart = [
        float(jnp.linalg.norm(options[i] - options[j]))
        for i in range(5)
        for j in range(i)
    ]
    np.testing.assert_allclose(apart, 0.66259, atol=5e-6)
    np.testing.assert_allclose(
        [jnp.linalg.norm(option) for option in options], 1.0, rtol=1e-12
    )
    printed = np.sqrt(2) * 0.6 / (1 + 4 * 0.4**2)
    np.testing.assert_allclose(printed, 0.51740, atol=5e-6)


def test_the_rho_at_which_options_differ_as_much_as_from_inactive():
    """rho* for m = 5 is 0.77526, not the 0.80962 that follows from the printed form."""

    def apart(rho):
        first, second = (
            options_on_sphere(
                jnp.ones(()), jnp.asarray(rho), jnp.eye(5)[i], jnp.asarray(True)
            )
            for i in (0, 1)
        )
        return float(jnp.linalg.norm(first - second))

    np.testing.assert_allclose(apart(0.77526), 1.0, atol=1e-5)
    assert abs(apart(0.80962) - 1.0) > 0.03


def test_wrong_number_of_categories_is_refused():
    with pytest.raises(
        ValueError, match="expected points of 2 columns, as in categories; got 3"
    ):
        gp.arc(lambda x: x > 0.5, categories=(0, 3)).prior(3)


def test_one_hot_refuses_a_kernel_that_knows_its_categories():
    with pytest.raises(ValueError, match="categories"):
        gp.one_hot(SPACE.categories, gp.arc(SPACE.active))


@pytest.mark.parametrize("make", [gp.arc, gp.wedge])
def test_priors_of_some_parameters_can_be_given(make):
    flat = make(SPACE, prior=gp.priors.flat_angles).prior(7)
    usual = make(SPACE).prior(7)
    grid = jnp.full(7, 0.01)
    np.testing.assert_allclose(flat["rho"].log_prob(grid), 0.0, atol=1e-12)
    np.testing.assert_allclose(
        usual["rho"].log_prob(grid), np.log(6 * 0.01 * 0.99), rtol=1e-10
    )
    assert set(flat) == set(usual)


def test_a_prior_of_something_else_is_refused():
    kernel = gp.box(SPACE, prior=gp.priors.flat_angles)
    with pytest.raises(
        ValueError,
        match="has the parameters variance, lengthscale, default, distance; the prior names 'rho'",
    ):
        kernel.prior(7)
