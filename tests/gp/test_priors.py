"""Ready-made priors against SciPy's densities and formulas written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.integrate
import scipy.stats

import bonas
from bonas import gp
from bonas.gp import priors

POINTS = np.array([1e-3, 0.2, 1.0, 1.9, 40.0])


@pytest.mark.parametrize("d", [1, 6])
def test_log_normal_length_scales_grow_with_the_diagonal(d):
    prior = priors.log_normal(d)["lengthscale"]
    expected = scipy.stats.lognorm(1.0, scale=0.5 * np.sqrt(d)).logpdf(POINTS)
    for point, value in zip(POINTS, expected, strict=True):
        np.testing.assert_allclose(
            prior.log_prob(jnp.full(d, point)), np.full(d, value), rtol=1e-10
        )


def test_log_normal_variance_has_median_one():
    expected = scipy.stats.lognorm(1.0).logpdf(POINTS)
    np.testing.assert_allclose(
        priors.log_normal(2)["variance"].log_prob(POINTS), expected, rtol=1e-10
    )


def test_log_normal_noise_is_small_unless_the_data_ask_for_more():
    expected = scipy.stats.lognorm(2.0, scale=np.exp(-8.0))
    np.testing.assert_allclose(
        priors.log_normal_noise().log_prob(POINTS), expected.logpdf(POINTS), rtol=1e-10
    )


def test_half_cauchy_is_on_every_length_scale_the_variance_and_the_noise():
    """2/(π (1 + v²)): Wilton 2020, eq. 14."""
    expected = np.log(2 / (np.pi * (1 + POINTS**2)))
    prior = priors.half_cauchy(len(POINTS))
    np.testing.assert_allclose(
        prior["lengthscale"].log_prob(POINTS), expected, rtol=1e-10
    )
    np.testing.assert_allclose(prior["variance"].log_prob(POINTS), expected, rtol=1e-10)
    np.testing.assert_allclose(
        priors.half_cauchy_noise().log_prob(POINTS), expected, rtol=1e-10
    )


def test_spearmint_variance_has_the_shape_of_its_code():
    """−(log √v)²/2 up to a constant, without a Jacobian; compare differences."""
    values = np.asarray(priors.spearmint(2)["variance"].log_prob(POINTS))
    shape = -0.5 * np.log(np.sqrt(POINTS)) ** 2
    np.testing.assert_allclose(np.diff(values), np.diff(shape), rtol=1e-10)


def test_spearmint_length_scales_are_uniform_up_to_two():
    prior = priors.spearmint(3)["lengthscale"]
    np.testing.assert_allclose(
        prior.log_prob(jnp.array([1e-6, 1.0, 1.999])),
        np.full(3, np.log(0.5)),
        rtol=1e-12,
    )
    support = prior.support
    assert not support(jnp.array([2.1, 2.1, 2.1])).any()


@pytest.mark.parametrize(
    "ready",
    [priors.log_normal, priors.half_cauchy, priors.spearmint, priors.dimension_scaled],
)
def test_kernel_priors_have_one_length_scale_a_column(ready):
    prior = ready(5)
    assert prior["lengthscale"].shape() == (5,)
    assert prior["variance"].shape() == ()


# Many columns


@pytest.mark.parametrize("d", [1, 6, 100])
def test_dimension_scaled_has_the_numbers_of_the_paper(d):
    """Hvarfner, Hellsten & Nardi 2024: LogNormal(√2 + log(d)/2, √3)."""
    prior = priors.dimension_scaled(d)["lengthscale"]
    expected = scipy.stats.lognorm(
        np.sqrt(3.0), scale=np.exp(np.sqrt(2.0)) * np.sqrt(d)
    ).logpdf(POINTS)
    for point, value in zip(POINTS, expected, strict=True):
        np.testing.assert_allclose(
            prior.log_prob(jnp.full(d, point)), np.full(d, value), rtol=1e-10
        )
    noise = scipy.stats.lognorm(1.0, scale=np.exp(-4.0)).logpdf(POINTS)
    np.testing.assert_allclose(
        priors.dimension_scaled_noise().log_prob(POINTS), noise, rtol=1e-10
    )


def _median_correlation(prior, d):
    """Return the median correlation of two random points, over 4000 draws."""
    a_key, b_key, scale_key = jax.random.split(jax.random.key(d), 3)
    a, b = (jax.random.uniform(key, (4000, d)) for key in (a_key, b_key))
    lengthscale = prior(d)["lengthscale"].sample(scale_key, (4000,))
    params = {"variance": jnp.ones(4000), "lengthscale": lengthscale}
    return float(jnp.median(jax.vmap(gp.matern52().value)(params, a, b)))


def _unscaled(d):
    """The prior of one column, whatever their number."""
    return {"lengthscale": priors.dimension_scaled(1)["lengthscale"].expand([d])}


@pytest.mark.slow
def test_under_the_dimension_scaled_prior_distant_points_stay_correlated():
    """From 2 to 200 columns; the standard error of a median over 4000 draws is below 0.01."""
    found = {d: _median_correlation(priors.dimension_scaled, d) for d in (2, 20, 200)}
    assert min(found.values()) > 0.3, found


@pytest.mark.parametrize("prior", [_unscaled, priors.half_cauchy, priors.spearmint])
def test_under_priors_that_do_not_know_the_dimension_correlations_vanish(prior):
    assert _median_correlation(prior, 2) > 0.05
    assert _median_correlation(prior, 200) < 1e-3


# The horseshoe


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_the_horseshoe_integrates_to_one(scale):
    horseshoe = priors.Horseshoe(scale)
    density = jax.jit(lambda x: jnp.exp(horseshoe.log_prob(x)))
    # the pole at 0 and the tail are integrable: a piece each
    near, _ = scipy.integrate.quad(density, 0.0, scale)
    far, _ = scipy.integrate.quad(density, scale, np.inf)
    np.testing.assert_allclose(near + far, 1.0, rtol=1e-8)


def test_the_horseshoe_has_the_shape_of_spearmint_s_code():
    values = np.asarray(priors.spearmint_noise().log_prob(POINTS))
    shape = np.log(np.log(1 + (0.1 / POINTS) ** 2))
    np.testing.assert_allclose(np.diff(values), np.diff(shape), rtol=1e-9)


def _cdf(x, scale):
    return (x * np.log1p((scale / x) ** 2) + 2 * scale * np.arctan(x / scale)) / (
        np.pi * scale
    )


@pytest.mark.parametrize("scale", [0.1, 2.0])
def test_draws_of_the_horseshoe_follow_its_distribution(scale):
    """Kolmogorov–Smirnov test on 10,000 draws; it fails for one seed in a million."""
    draws = priors.Horseshoe(scale).sample(jax.random.key(0), (10_000,))
    assert scipy.stats.kstest(np.asarray(draws), lambda x: _cdf(x, scale)).pvalue > 1e-6


def test_the_horseshoe_and_its_gradient_are_finite_close_to_the_pole():
    """At 1e-200 the square of scale/x overflows; its logarithm is 2 log(scale/x) there."""
    value, gradient = jax.value_and_grad(priors.Horseshoe(0.1).log_prob)(1e-200)
    np.testing.assert_allclose(
        value,
        np.log(2 * (np.log(0.1) + 200 * np.log(10.0))) - np.log(0.1 * np.pi),
        rtol=1e-12,
    )
    assert np.isfinite(gradient)


def test_a_batch_of_horseshoes_is_one_of_each():
    scales = np.array([0.1, 1.0, 10.0])
    batch = priors.Horseshoe(jnp.asarray(scales))
    draws = batch.sample(jax.random.key(1), (4,))
    alone = [
        np.log(np.log1p((scale / draws[:, i]) ** 2) / (np.pi * scale))
        for i, scale in enumerate(scales)
    ]
    np.testing.assert_allclose(
        batch.log_prob(draws), np.stack(alone, axis=1), rtol=1e-9
    )


def test_middle_is_a_beta_distribution():
    grid = np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(
        priors.Middle().log_prob(jnp.asarray(grid)),
        scipy.stats.beta(2, 2).logpdf(grid),
        rtol=1e-10,
    )
    draws = priors.Middle().expand([4]).sample(jax.random.key(0), (5000,))
    assert draws.shape == (5000, 4)
    for column in np.asarray(draws).T:
        assert scipy.stats.kstest(column, scipy.stats.beta(2, 2).cdf).pvalue > 1e-4


def test_a_parameter_of_a_prior_may_be_a_batch_axis():
    data = bonas.dataset(jnp.array([[0.1], [0.5], [0.8]]), jnp.array([1.0, -1.0, 0.0]))

    def log_density(median):
        def prior(d):
            scales = dist.LogNormal(jnp.log(median), 0.1).expand([d])
            return {"variance": dist.LogNormal(0.0, 1.0), "lengthscale": scales}

        target = gp.hyperposterior(gp.matern52(prior), data)
        return target.maximizing(target.start)

    medians = np.array([0.1, 0.5, 2.0])
    one_by_one = [log_density(median) for median in medians]
    np.testing.assert_allclose(
        jax.vmap(log_density)(jnp.asarray(medians)), one_by_one, rtol=1e-12
    )
    assert len(np.unique(one_by_one)) == 3
