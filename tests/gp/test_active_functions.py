"""Invalid `active` functions and points outside the unit cube raise clear errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import draw

import bonas
from bonas import gp, surrogates
from bonas.problems import functions

KERNELS = {
    "arc": gp.arc,
    "box": gp.box,
    "wedge": gp.wedge,
    "product": lambda active: gp.arc(active, product=True),
    "masked": gp.masked,
    "blocks": lambda active: gp.blocks(active, ((0,), (1, 2))),
}
each_kernel = pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS)

X = jnp.asarray(np.random.default_rng(0).random((4, 3)))
ONLY = {"variance": 1.0}  # active is checked before the parameters
DATA = bonas.dataset(X, np.ones(4), capacity=6)
TWO = bonas.Space(
    a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0, when={"a": (">", 0.5)})
)
THREE = bonas.Space(
    a=bonas.Float(0.0, 1.0),
    b=bonas.Int(0, 9),
    c=bonas.Float(0.0, 1.0, when={"a": (">", 0.5)}),
)


def by_if(x):
    return x > 0.0 if x[0] > 0.5 else x > 1.0


INVALID_ACTIVE = {
    "one for all": (
        lambda x: x[0] > 0.5,
        r"shape \(3,\), one entry per column; got bool \(\)",
    ),
    "too few": (
        lambda x: x[:2] > 0.5,
        r"shape \(3,\), one entry per column; got bool \(2,\)",
    ),
    "a row": (
        lambda x: x[None, :] > 0.5,
        r"shape \(3,\), one entry per column; got bool \(1, 3\)",
    ),
    "floats": (
        lambda x: 0.5 * x,
        r"shape \(3,\), one entry per column; got float64 \(3,\)",
    ),
    "zeros and ones": (
        lambda x: (x > 0.5).astype(int),
        r"shape \(3,\), one entry per column; got int64 \(3,\)",
    ),
    "true": (lambda x: True, "one entry per column; got True"),
    "a list": (lambda x: [True, True, False], r"got \[True, True, False\]"),
    "nothing": (lambda x: None, "got None"),
    "an if": (by_if, "must be traceable.*no `if`"),
    "numpy": (lambda x: np.asarray(x) > 0.5, "must be traceable.*jnp for np"),
    "chosen columns": (lambda x: x[x > 0.5] > 0.0, "must be traceable"),
    "five columns": (
        lambda x: x > jnp.zeros(5),
        r"active raised an error at a point of shape \(3,\): .*\(5,\)",
    ),
    "no argument": (
        lambda: jnp.ones(3, bool),
        r"active raised an error at a point of shape \(3,\): .*argument",
    ),
}
each_mistake = pytest.mark.parametrize(
    ("active", "words"), INVALID_ACTIVE.values(), ids=INVALID_ACTIVE
)


@each_kernel
@each_mistake
def test_an_invalid_active_function_is_refused_by_the_matrix(make, active, words):
    with pytest.raises(ValueError, match=words):
        gp.gram(make(active), ONLY, X, X)


@each_kernel
@each_mistake
def test_an_invalid_active_function_is_refused_by_the_prior(make, active, words):
    with pytest.raises(ValueError, match=words):
        make(active).prior(3)


@each_kernel
@pytest.mark.parametrize(
    "active",
    [None, [True, False, True], np.ones(3, bool), 3],
    ids=["None", "list", "array", "number"],
)
def test_active_must_be_a_space_or_a_function(make, active):
    with pytest.raises(
        ValueError, match="expected a Space, or a function that returns which columns"
    ):
        make(active)


@pytest.mark.slow
def test_active_may_return_a_numpy_array():
    kernel = gp.arc(lambda x: np.array([True, False, True]))
    assert gp.gram(kernel, draw(kernel.prior(3), jax.random.key(0)), X, X).shape == (
        4,
        4,
    )


# Every function that knows the number of columns

ENTRY_POINTS = {  # a kernel that takes points of two columns, and points of three
    "gram": lambda kernel: gp.gram(kernel, ONLY, X, X),
    "condition": lambda kernel: gp.condition(kernel, ONLY, DATA, noise=0.1),
    "log_evidence": lambda kernel: gp.log_evidence(kernel, ONLY, DATA, noise=0.1),
    "hyperprior": lambda kernel: gp.hyperprior(kernel, 3),
    "hyperposterior": lambda kernel: gp.hyperposterior(kernel, DATA),
    "surrogate": lambda kernel: surrogates.gp(kernel).init(6, 3, 1),
    "bayes": lambda kernel: bonas.bayes(THREE, surrogate=surrogates.gp(kernel)),
    "sum": lambda kernel: gp.hyperposterior(kernel + gp.se(), DATA),
    "on": lambda kernel: gp.hyperposterior(gp.on_columns([0, 1, 2], kernel), DATA),
}


@each_kernel
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_a_space_of_another_dimension_is_refused(make, entry_point):
    make = (
        (lambda active: gp.blocks(active, ((0,), (1,))))
        if make is KERNELS["blocks"]
        else make
    )
    for active in (TWO, TWO.active):
        with pytest.raises(
            ValueError,
            match=r"expected a point of 2 columns, as in the space; got shape \(3,\)",
        ):
            ENTRY_POINTS[entry_point](make(active))


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_a_function_for_other_columns_is_refused(entry_point):
    with pytest.raises(
        ValueError, match=r"shape \(3,\), one entry per column; got bool \(2,\)"
    ):
        ENTRY_POINTS[entry_point](gp.arc(lambda x: jnp.array([True, False])))


@pytest.mark.parametrize(
    "kernel",
    [gp.arc(lambda x: x > 0.5, categories=(0, 3)), gp.one_hot((0, 3), gp.se())],
    ids=["arc", "one_hot"],
)
def test_categories_of_other_columns_are_refused_by_the_matrix(kernel):
    with pytest.raises(
        ValueError, match="expected points of 2 columns, as in categories; got 3"
    ):
        gp.gram(kernel, ONLY, X, X)


def test_points_that_are_no_rows_are_refused_by_the_matrix():
    with pytest.raises(
        ValueError, match=r"shapes \(n, d\) and \(m, d\); got \(3,\) and \(4, 3\)"
    ):
        gp.gram(gp.arc(THREE), ONLY, X[0], X)
    with pytest.raises(ValueError, match=r"got \(4, 3\) and \(4, 2\)"):
        gp.gram(gp.se(), ONLY, X, X[:, :2])


def test_an_ensemble_of_a_space_refuses_other_columns():
    model = surrogates.ensemble(members=2, widths=(4,), steps=1).adapt(
        functions.six_hump_camel.space
    )
    with pytest.raises(ValueError, match="expected points of 2 columns; got 3"):
        model.init(6, 3, 1)


# Points outside the box

OUTSIDE = np.array(
    [[0.9, 0.5, 0.2], [0.9, 256.0, 0.2]]
)  # a width as it is, and not as a column of the cube
FAR = bonas.dataset(OUTSIDE, np.ones(2))
SCALED = {
    "arc": gp.arc(lambda x: x > -1.0),
    "box": gp.box(lambda x: x > -1.0),
    "wedge": gp.wedge(lambda x: x > -1.0),
    "arc of a space": gp.arc(THREE),
    "masked of a space": gp.masked(THREE),
    "blocks of a space": gp.blocks(THREE, ((0, 1), (2,))),
    "sum": gp.se() + gp.arc(THREE),
    "on": gp.on_columns([0, 1, 2], gp.arc(THREE)),
}


def params_of(kernel):
    return draw(kernel.prior(3), jax.random.key(0))


@pytest.mark.parametrize("kernel", SCALED.values(), ids=SCALED)
def test_a_point_outside_the_box_is_refused(kernel):
    calls = (
        lambda: gp.gram(kernel, params_of(kernel), X, OUTSIDE),
        lambda: gp.condition(kernel, params_of(kernel), FAR, noise=0.1),
        lambda: gp.log_evidence(kernel, params_of(kernel), FAR, noise=0.1),
        lambda: gp.hyperposterior(kernel, FAR),
    )
    for call in calls:
        with pytest.raises(
            ValueError,
            match=r"point 1: .*(column 1|parameter 'b').* (lies|must be) in \[0, 1\].*got 256\.0",
        ):
            call()


def test_a_prediction_outside_the_box_is_refused():
    posterior = gp.condition(gp.arc(THREE), params_of(gp.arc(THREE)), DATA, noise=0.1)
    calls = (
        lambda: gp.predict(posterior, OUTSIDE),
        lambda: gp.joint(posterior, OUTSIDE),
        lambda: gp.covariance(posterior, X, OUTSIDE),
        lambda: gp.sample(jax.random.key(0), posterior, OUTSIDE, 2),
    )
    for call in calls:
        with pytest.raises(
            ValueError,
            match=r"point 1: the column of parameter 'b' must be in \[0, 1\]; got 256\.0",
        ):
            call()


def test_inactive_columns_may_hold_any_value():
    """Swersky et al. 2014, eq. 1: it does not count."""
    kernel = gp.arc(lambda x: jnp.array([True, False, True]))
    inside = OUTSIDE.copy()
    inside[1, 1] = 0.3
    matrices = [
        gp.gram(kernel, params_of(kernel), points, points)
        for points in (OUTSIDE, inside)
    ]
    np.testing.assert_array_equal(*matrices)


def test_a_function_tells_what_is_active_on_any_scale_where_the_kernel_has_none():
    kernel = gp.masked(lambda x: x > -1.0)
    params = {"variance": 1.0, "lengthscale": jnp.array([1.0, 256.0, 1.0])}
    expected = gp.gram(gp.matern52(), params, OUTSIDE, OUTSIDE)
    np.testing.assert_allclose(
        gp.gram(kernel, params, OUTSIDE, OUTSIDE), expected, rtol=1e-12
    )


def test_masked_rows_are_not_checked():
    kernel, masked = gp.arc(THREE), DATA._replace(x=DATA.x.at[4:].set(1e6))
    with_them, without = (
        gp.log_evidence(kernel, params_of(kernel), data, noise=0.1)
        for data in (masked, DATA)
    )
    np.testing.assert_allclose(with_them, without, rtol=1e-12)


def test_traced_points_are_not_checked():
    kernel = gp.arc(THREE)
    assert jnp.isfinite(
        jax.jit(lambda x: gp.gram(kernel, params_of(kernel), x, x))(OUTSIDE)
    ).all()


def test_concrete_points_are_checked_while_parameters_are_traced():
    kernel = gp.arc(lambda x: x > -1.0)
    with pytest.raises(
        ValueError, match=r"point 1: column 1 is active and must be in \[0, 1\]"
    ):
        jax.jit(lambda params: gp.log_evidence(kernel, params, FAR, noise=0.1))(
            params_of(kernel)
        )


def test_rounding_is_not_outside():
    kernel = gp.arc(THREE)
    points = np.clip(OUTSIDE, 0.0, 1.0) + np.array([0.0, 1e-7, 0.0])
    assert gp.gram(kernel, params_of(kernel), points, points).shape == (2, 2)
