from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import bonas
from bonas import acquire
from bonas.acquire import (
    adapt_acquisition,
    closed_form_acquisition,
    ei,
    feasible,
    lcb,
    log_ei,
    log_pi,
    penalize,
    per_second,
    scheduled_lcb,
    thompson,
    top_two,
)

KEY = jax.random.key(0)


def scores(acquisition, context, points):
    function, _ = acquisition.score(KEY, context, acquisition.init(10, 2))
    return function(points)


@pytest.mark.slow
@pytest.mark.parametrize("form", [log_ei, log_pi, lcb])
def test_a_closed_form_scores_what_the_model_predicts(form, make_context, points):
    context = make_context()
    expected = form(*context.predict(points), context.best)
    np.testing.assert_array_equal(
        scores(closed_form_acquisition(form), context, points), expected
    )


def test_settings_reach_the_closed_form_and_equal_ones_make_equal_acquisitions(
    make_context, points
):
    context = make_context()
    assert closed_form_acquisition(log_ei, xi=0.3) == closed_form_acquisition(
        log_ei, xi=0.3
    )
    expected = log_ei(*context.predict(points), context.best, xi=0.3)
    np.testing.assert_array_equal(
        scores(closed_form_acquisition(log_ei, xi=0.3), context, points), expected
    )


def test_the_incumbent_is_the_best_posterior_mean_at_points_asked(make_context):
    context = make_context()
    mean, _ = context.predict(context.data.x[:6])
    np.testing.assert_allclose(context.best, mean.min(axis=1), rtol=1e-12)


def test_the_scheduled_bound_has_the_kappa_of_its_step(make_context, points):
    context = make_context()
    mean, std = context.predict(points)
    kappa = np.sqrt(2.0 * np.log(6.0 ** (2 / 2 + 2) * np.pi**2 / (3 * 0.05)))
    np.testing.assert_allclose(
        scores(scheduled_lcb(0.05), context, points),
        (kappa * std - mean)[0],
        rtol=1e-12,
    )


def test_a_penalty_is_subtracted_with_its_weight(make_context, points):
    context = make_context()
    acquisition = penalize(log_ei, jnp.sum, weight=3.0)
    expected = scores(
        closed_form_acquisition(log_ei), context, points
    ) - 3.0 * points.sum(axis=1)
    np.testing.assert_allclose(
        scores(acquisition, context, points), expected, rtol=1e-12
    )


@pytest.mark.slow
def test_improvement_per_second_divides_by_the_cost_it_learned(make_context):
    """The log cost is linear in the first column; six points give its differences to 0.1."""
    at = make_context().data.x[:6]
    context = make_context(costs=np.exp(2.0 + 3.0 * np.asarray(at[:, 0])))
    learned = scores(closed_form_acquisition(log_ei), context, at) - scores(
        per_second(), context, at
    )
    np.testing.assert_allclose(
        learned - learned.mean(), 3.0 * (at[:, 0] - at[:, 0].mean()), atol=0.1
    )


def test_costs_of_one_size_change_nothing(make_context, points):
    context = make_context(costs=np.full(6, 7.0))
    np.testing.assert_allclose(
        scores(per_second(), context, points),
        scores(closed_form_acquisition(log_ei), context, points),
        rtol=1e-12,
    )


@pytest.mark.slow
def test_feasibility_adds_nothing_before_a_failure(make_context, points):
    context = make_context()
    np.testing.assert_array_equal(
        scores(feasible(), context, points),
        scores(closed_form_acquisition(log_ei), context, points),
    )


def test_feasibility_adds_the_log_probability_of_success(make_context):
    context = make_context(failed=(2,))
    at = context.data.x[:6]
    acquisition = feasible()
    function, (_, fitted) = acquisition.score(KEY, context, acquisition.init(10, 2))
    added = np.asarray(
        function(at) - scores(closed_form_acquisition(log_ei), context, at)
    )
    assert added[2] < np.log(0.5)
    assert (np.delete(added, 2) > np.log(0.5)).all()
    from bonas import surrogates

    mean, std = surrogates.gp().predict(fitted, at)
    np.testing.assert_allclose(
        added, scipy.stats.norm.logcdf(mean[0] / std[0]), rtol=1e-6, atol=1e-10
    )


def test_wrappers_carry_the_memory_of_what_they_wrap(make_context):
    acquisition = penalize(per_second(feasible()), jnp.sum)
    memory = acquisition.init(10, 2)
    _, later = acquisition.score(KEY, make_context(), memory)
    assert jax.tree.structure(memory) == jax.tree.structure(later)


@pytest.mark.parametrize("value", [[1.0], {"a": 1.0}, np.ones(2)])
def test_unhashable_settings_are_refused(value):
    with pytest.raises(TypeError, match="xi must be hashable"):
        closed_form_acquisition(log_ei, xi=value)


def test_scores_that_are_not_logarithms_are_refused():
    with pytest.raises(ValueError, match="expected log_ei or log_pi; got ei"):
        per_second(ei)


def test_an_acquisition_without_a_score_cannot_be_penalized(make_context):
    with pytest.raises(ValueError, match="without a score"):
        scores(penalize(thompson(), jnp.sum), make_context(), jnp.zeros((1, 2)))


def test_other_objects_are_not_acquisitions():
    with pytest.raises(ValueError, match="expected an acquisition"):
        acquire.as_acquisition("ei")


@pytest.mark.parametrize(
    "make",
    [
        per_second,
        feasible,
        lambda: penalize(per_second(), jnp.sum),
        lambda: top_two(per_second()),
    ],
)
def test_adapt_reaches_the_models_of_wrapped_acquisitions(make):
    """Three options take three columns of a length scale, not one."""
    space = bonas.Space(a=bonas.Float(0.0, 1.0), kind=bonas.Choice("x", "y", "z"))
    memory = adapt_acquisition(make(), space).init(4, 2)
    scales = [
        leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(memory)
        if "lengthscale" in str(path)
    ]
    assert scales
    assert all(leaf.shape[-1] == 4 for leaf in scales)


@pytest.mark.parametrize("samples", [1, 3])
def test_a_function_of_every_sample_is_averaged(samples):
    """best − mean + 2 std for every sample is averaged over the samples."""
    rng = np.random.default_rng(samples)
    mean, std, best = (
        jnp.asarray(rng.uniform(size=size))
        for size in ((samples, 5), (samples, 5), (samples,))
    )

    class Known:
        predict = staticmethod(lambda x: (mean, std))

    context = Known()
    context.best = best
    each, _ = closed_form_acquisition(
        lambda mean, std, best: best - mean + 2.0 * std
    ).score(None, context, ())
    averaged, _ = closed_form_acquisition(
        lambda mean, std, best: (best - mean + 2.0 * std).mean(axis=0)
    ).score(None, context, ())
    expected = (
        np.asarray(best)[:, None] - np.asarray(mean) + 2.0 * np.asarray(std)
    ).mean(axis=0)
    np.testing.assert_allclose(each(None), expected, rtol=1e-12)
    np.testing.assert_allclose(averaged(None), expected, rtol=1e-12)


def test_models_of_failures_and_costs_ignore_the_noise_of_the_values(
    make_context, points
):
    acquisition = per_second(feasible())
    context = make_context(costs=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], failed=(1,))
    noisy = replace(context, data=context.data._replace(noise=jnp.full(10, 9.0)))
    np.testing.assert_array_equal(
        scores(acquisition, noisy, points), scores(acquisition, context, points)
    )


def test_scores_of_another_shape_are_refused():
    class Known:
        best = jnp.zeros(2)
        predict = staticmethod(lambda x: (jnp.zeros((2, 5)), jnp.ones((2, 5))))

    score, _ = closed_form_acquisition(lambda mean, std, best: mean.sum()).score(
        None, Known(), ()
    )
    with pytest.raises(ValueError, match="expected a score for each point"):
        score(None)
