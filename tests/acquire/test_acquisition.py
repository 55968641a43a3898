import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import bonas
from bonas import acquire
from bonas.acquire import closed, ei, feasible, lcb, log_ei, log_pi, penalised, per_second, scheduled_lcb, thompson, top_two
from bonas.acquire.acquisition import adapted

KEY = jax.random.key(0)


def scores(acquisition, outlook, points):
    function, _ = acquisition.score(KEY, outlook, acquisition.init(10, 2))
    return function(points)


@pytest.mark.slow
@pytest.mark.parametrize("form", [log_ei, log_pi, lcb])
def test_a_closed_form_scores_what_the_model_predicts(form, make_outlook, points):
    outlook = make_outlook()
    expected = form(*outlook.predict(points), outlook.best)
    np.testing.assert_array_equal(scores(closed(form), outlook, points), expected)


def test_settings_reach_the_closed_form_and_equal_ones_make_equal_acquisitions(make_outlook, points):
    outlook = make_outlook()
    assert closed(log_ei, xi=0.3) is closed(log_ei, xi=0.3)
    expected = log_ei(*outlook.predict(points), outlook.best, xi=0.3)
    np.testing.assert_array_equal(scores(closed(log_ei, xi=0.3), outlook, points), expected)


def test_the_incumbent_is_the_best_posterior_mean_at_points_asked(make_outlook):
    outlook = make_outlook()
    mean, _ = outlook.predict(outlook.data.x[:6])
    np.testing.assert_allclose(outlook.best, mean.min(axis=1), rtol=1e-12)


def test_the_scheduled_bound_has_the_kappa_of_its_step(make_outlook, points):
    outlook = make_outlook()
    mean, std = outlook.predict(points)
    kappa = np.sqrt(2.0 * np.log(6.0 ** (2 / 2 + 2) * np.pi**2 / (3 * 0.05)))
    np.testing.assert_allclose(scores(scheduled_lcb(0.05), outlook, points), (kappa * std - mean)[0], rtol=1e-12)


def test_a_penalty_is_subtracted_with_its_weight(make_outlook, points):
    outlook = make_outlook()
    acquisition = penalised(log_ei, jnp.sum, weight=3.0)
    expected = scores(closed(log_ei), outlook, points) - 3.0 * points.sum(axis=1)
    np.testing.assert_allclose(scores(acquisition, outlook, points), expected, rtol=1e-12)


@pytest.mark.slow
def test_improvement_per_second_divides_by_the_cost_it_learned(make_outlook):
    """The log cost is linear in the first column: 6 points under a smooth kernel give its differences to a tenth."""
    at = make_outlook().data.x[:6]
    outlook = make_outlook(costs=np.exp(2.0 + 3.0 * np.asarray(at[:, 0])))
    learned = scores(closed(log_ei), outlook, at) - scores(per_second(), outlook, at)
    np.testing.assert_allclose(learned - learned.mean(), 3.0 * (at[:, 0] - at[:, 0].mean()), atol=0.1)


def test_costs_of_one_size_change_nothing(make_outlook, points):
    outlook = make_outlook(costs=np.full(6, 7.0))
    np.testing.assert_allclose(scores(per_second(), outlook, points), scores(closed(log_ei), outlook, points), rtol=1e-12)


@pytest.mark.slow
def test_feasibility_adds_nothing_before_a_failure(make_outlook, points):
    outlook = make_outlook()
    np.testing.assert_array_equal(scores(feasible(), outlook, points), scores(closed(log_ei), outlook, points))


def test_feasibility_adds_the_log_probability_of_success(make_outlook):
    outlook = make_outlook(failed=(2,))
    at = outlook.data.x[:6]
    acquisition = feasible()
    function, (_, fitted) = acquisition.score(KEY, outlook, acquisition.init(10, 2))
    added = np.asarray(function(at) - scores(closed(log_ei), outlook, at))
    assert added[2] < np.log(0.5)
    assert (np.delete(added, 2) > np.log(0.5)).all()
    from bonas import surrogates

    mean, std = surrogates.gp().predict(fitted, at)
    np.testing.assert_allclose(added, scipy.stats.norm.logcdf(mean[0] / std[0]), rtol=1e-6, atol=1e-10)


def test_wrappers_carry_the_memory_of_what_they_wrap(make_outlook):
    acquisition = penalised(per_second(feasible()), jnp.sum)
    memory = acquisition.init(10, 2)
    _, later = acquisition.score(KEY, make_outlook(), memory)
    assert jax.tree.structure(memory) == jax.tree.structure(later)


def test_scores_that_are_not_logarithms_are_refused():
    with pytest.raises(ValueError, match="give it log_ei or log_pi, not ei"):
        per_second(ei)


def test_what_has_no_score_cannot_be_penalised(make_outlook):
    with pytest.raises(ValueError, match="without scoring them"):
        scores(penalised(thompson(), jnp.sum), make_outlook(), jnp.zeros((1, 2)))


def test_what_is_no_acquisition_is_refused():
    with pytest.raises(ValueError, match="expected an acquisition"):
        acquire.acquisition.as_acquisition("ei")


@pytest.mark.parametrize(
    "make", [per_second, feasible, lambda: penalised(per_second(), jnp.sum), lambda: top_two(per_second())]
)
def test_models_of_their_own_are_told_of_options(make):
    """Three options take three columns of a length scale, not one."""
    space = bonas.Space(a=bonas.Float(0.0, 1.0), kind=bonas.Choice("x", "y", "z"))
    memory = adapted(make(), space).init(4, 2)
    scales = [leaf for path, leaf in jax.tree_util.tree_leaves_with_path(memory) if "lengthscale" in str(path)]
    assert scales
    assert all(leaf.shape[-1] == 4 for leaf in scales)


@pytest.mark.parametrize("samples", [1, 3])
def test_a_function_of_every_sample_is_averaged(samples):
    """What a reader writes first, best − mean + 2 std, is the same as the average of it."""
    rng = np.random.default_rng(samples)
    mean, std, best = (jnp.asarray(rng.uniform(size=size)) for size in ((samples, 5), (samples, 5), (samples,)))

    class Known:
        predict = staticmethod(lambda x: (mean, std))

    outlook = Known()
    outlook.best = best
    each, _ = closed(lambda mean, std, best: best - mean + 2.0 * std).score(None, outlook, ())
    averaged, _ = closed(lambda mean, std, best: (best - mean + 2.0 * std).mean(axis=0)).score(None, outlook, ())
    expected = (np.asarray(best)[:, None] - np.asarray(mean) + 2.0 * np.asarray(std)).mean(axis=0)
    np.testing.assert_allclose(each(None), expected, rtol=1e-12)
    np.testing.assert_allclose(averaged(None), expected, rtol=1e-12)


def test_scores_of_another_shape_are_refused():
    class Known:
        best = jnp.zeros(2)
        predict = staticmethod(lambda x: (jnp.zeros((2, 5)), jnp.ones((2, 5))))

    score, _ = closed(lambda mean, std, best: mean.sum()).score(None, Known(), ())
    with pytest.raises(ValueError, match="a score for each point"):
        score(None)
