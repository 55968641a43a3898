"""The synthetic sets against the sources' formulas, worked by hand, and the distributions that they
state.
"""

import inspect

import jax
import numpy as np
import pytest
from scipy import stats

from bonas.problems import synthetic

KEY = jax.random.key(0)
FEW, MANY = 20, 20_000  # every further size is compiled anew
MAKERS = [
    synthetic.two_class_plane,
    synthetic.wilton_pieces,
    synthetic.wilton_cubic,
    synthetic.agrawal_sinusoid,
]
CURVES = {
    "pieces": (synthetic.wilton_pieces, synthetic.pieces, (-14.0, 11.0), 5.0),
    "cubic": (synthetic.wilton_cubic, synthetic.cubic, (0.0, 1.0), 5.0),
    "sinusoid": (synthetic.agrawal_sinusoid, synthetic.sinusoid, (-1.0, 1.0), 0.1),
}
every_maker = pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
every_curve = pytest.mark.parametrize(
    ("maker", "function", "bounds", "noise"), CURVES.values(), ids=CURVES
)


@pytest.fixture(scope="module")
def drawn():
    """Many rows of every set, drawn once; no other key is used for a statistic."""
    return {maker: maker(KEY, n=MANY) for maker in MAKERS}


@every_maker
def test_the_same_key_gives_the_same_examples(maker):
    first, second = maker(KEY, n=FEW), maker(KEY, n=FEW)
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.y, second.y)


@every_maker
def test_another_key_gives_other_examples(maker):
    assert not np.array_equal(maker(KEY, n=FEW).x, maker(jax.random.key(1), n=FEW).x)


def test_a_key_gives_the_same_examples_in_float32():
    exact = synthetic.wilton_pieces(KEY, n=FEW)
    with jax.enable_x64(False):
        single = synthetic.wilton_pieces(KEY, n=FEW)
    np.testing.assert_array_equal(
        np.column_stack([exact.x, exact.y]), np.column_stack([single.x, single.y])
    )


@every_maker
def test_x_is_float32_in_numpy(maker, drawn):
    assert type(drawn[maker].x) is np.ndarray
    assert drawn[maker].x.dtype == np.float32


@every_maker
def test_no_rows_are_refused(maker):
    with pytest.raises(ValueError, match="at least 1; got 0"):
        maker(KEY, n=0)


@every_maker
@pytest.mark.parametrize("noise", [-1.0, np.nan, np.inf])
def test_noise_that_is_no_standard_deviation_is_refused(maker, noise):
    with pytest.raises(ValueError, match="noise must be a finite standard deviation"):
        maker(KEY, n=FEW, noise=noise)


@pytest.mark.parametrize(
    ("maker", "n"),
    [
        (synthetic.wilton_pieces, 150),
        (synthetic.wilton_cubic, 100),
        (synthetic.agrawal_sinusoid, 20),
    ],
)
def test_default_sizes_are_those_of_the_sources(maker, n):
    """Wilton 2020, experiments 1 and 2; Agrawal, Section 5.1.1."""
    assert inspect.signature(maker).parameters["n"].default == n


# Values by hand; those of the wave and the sinusoid from the sines of multiples of π.
@pytest.mark.parametrize(
    ("x", "value"),
    [
        (-12.0, -12.0),
        (-10.0, 10.0),
        (-9.0, 9.0),
        (-8.0, -8.0),
        (-7.0, -7.0),
        (-6.0, -6.0),
        (-5.0, -7.0),
        (1.0, 29.0),
    ],
)
def test_pieces_by_hand(x, value):
    assert synthetic.pieces(x) == value


def test_the_last_piece_is_a_growing_wave():
    x = np.pi * 2.25  # sin 2x = sin(4.5 π) = 1
    np.testing.assert_allclose(synthetic.pieces(x), x**2, rtol=1e-14)


def test_the_last_piece_starts_at_two():
    np.testing.assert_allclose(synthetic.pieces(2.0), 4.0 * np.sin(4.0), rtol=1e-15)


@pytest.mark.parametrize(
    ("x", "value"), [(0.0, 10.0), (1.0, 20.0), (0.5, 8.75), (0.2, -4.0)]
)
def test_cubic_by_hand(x, value):
    np.testing.assert_allclose(synthetic.cubic(x), value, atol=1e-13)


@pytest.mark.parametrize(
    ("x", "value"),
    [
        (0.0, 1.0),
        (np.pi / 2.0, -1.0),
        (-np.pi / 2.0, 1.0),
        (np.pi / 14.0, 1.0 + np.cos(17 * np.pi / 14)),
    ],
)
def test_sinusoid_by_hand(x, value):
    np.testing.assert_allclose(synthetic.sinusoid(x), value, atol=1e-14)


@every_curve
def test_without_noise_y_is_the_function(maker, function, bounds, noise):
    examples = maker(KEY, n=FEW, noise=0.0)
    np.testing.assert_array_equal(
        examples.y, function(examples.x[:, 0]).astype(np.float32)
    )


@every_curve
def test_noise_has_the_stated_standard_deviation(maker, function, bounds, noise, drawn):
    """The standard error of a standard deviation of n normal draws is std/√(2n); six of them."""
    residuals = drawn[maker].y - function(drawn[maker].x[:, 0])
    assert abs(residuals.std() - noise) < 6.0 * noise / np.sqrt(2.0 * MANY)


@every_curve
def test_x_is_uniform_between_the_bounds(maker, function, bounds, noise, drawn):
    """Kolmogorov–Smirnov at a fixed seed; a false alarm has probability 1e-6 for a fresh key."""
    low, high = bounds
    assert (
        stats.kstest(drawn[maker].x[:, 0], "uniform", (low, high - low)).pvalue > 1e-6
    )


def test_plane_without_noise_is_cut_by_the_wave():
    examples = synthetic.two_class_plane(KEY, n=MANY, noise=0.0)
    above = examples.x[:, 1] > 0.5 + 0.25 * np.sin(
        2.0 * np.pi * examples.x[:, 0].astype(np.float64)
    )
    np.testing.assert_array_equal(examples.y, above)


def test_noise_mixes_the_classes_of_the_plane(drawn):
    """P(blue | x) = Φ((x2 − wave)/0.1): the sum of blue − P over the points within the band, to six
    standard errors.
    """
    examples = drawn[synthetic.two_class_plane]
    x1, x2 = examples.x.astype(np.float64).T
    height = x2 - 0.5 - 0.25 * np.sin(2.0 * np.pi * x1)
    band = (height > 0.05) & (height < 0.15)
    probability = stats.norm.cdf(height[band] / 0.1)
    error = np.sqrt(np.sum(probability * (1.0 - probability)))
    assert abs(np.sum(examples.y[band] - probability)) < 6.0 * error


def test_classes_of_the_plane_are_balanced(drawn):
    """The wave and the noise are symmetric about 1/2; six standard errors of a mean of coin flips."""  # noqa: E501
    assert abs(drawn[synthetic.two_class_plane].y.mean() - 0.5) < 6.0 * 0.5 / np.sqrt(
        MANY
    )


def test_classes_of_the_plane_are_named():
    assert synthetic.two_class_plane(KEY, n=FEW).classes == ("red", "blue")
