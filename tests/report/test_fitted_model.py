"""The model of a report: leave-one-out by the textbook formula, slices, and output scales."""

import jax
import numpy as np
import pytest

import bonas
from bonas.report import fitted_model

SPACE = bonas.Space(
    rate=bonas.Float(1e-3, 1.0, log=True),
    kind=bonas.Choice("a", "b"),
    slope=bonas.Float(0.0, 1.0, when={"kind": "a"}),
)


@pytest.fixture(scope="module")
def trials():
    u = np.asarray(SPACE.sample(jax.random.key(0), 24))
    values = 1.0 + 4.0 * (u[:, 0] - 0.4) ** 2 + 0.3 * u[:, 1]
    return u, values


@pytest.fixture(scope="module")
def model(trials):
    return fitted_model.fit_model(SPACE, *trials)


@pytest.mark.slow
def test_leave_one_out_is_conditioning_on_the_others(model):
    """With C = K + noise, the value i given the others is Gaussian by the textbook formula."""
    residuals, _ = fitted_model.leave_one_out(model)
    seen = np.asarray(model.data.mask[:, 0])
    lower = np.asarray(model.state.posterior.lower[0])[np.ix_(seen, seen)]
    covariance, y = lower @ lower.T, np.asarray(model.data.y[:, 0])[seen]
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        weights = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, i])
        mean, variance = (
            weights @ y[rest],
            covariance[i, i] - weights @ covariance[rest, i],
        )
        assert residuals[i] == pytest.approx(
            (y[i] - mean) / np.sqrt(variance), rel=1e-6, abs=1e-8
        )


@pytest.mark.slow
def test_the_minimum_of_a_parabola_is_found(model, trials):
    u, values = trials
    found = fitted_model.slice_model(model, u[values.argmin()])
    along = found["rate"]
    assert along.at[int(along.values.middle.argmin())] == pytest.approx(
        10 ** (3 * 0.4 - 3), rel=0.2
    )
    assert along.at[0] == pytest.approx(1e-3)
    assert along.at[-1] == pytest.approx(1.0)
    assert (along.values.low <= along.values.middle).all()
    assert (along.values.middle <= along.values.high).all()
    assert found["kind"].at == ["a", "b"]


@pytest.mark.slow
def test_parameters_that_are_inactive_at_the_point_have_no_slice(model):
    without, with_it = (
        fitted_model.slice_model(model, SPACE.encode(c))
        for c in ({"rate": 0.1, "kind": "b"}, {"rate": 0.1, "kind": "a", "slope": 0.5})
    )
    assert set(without) == {"rate", "kind"}
    assert set(with_it) == {"rate", "kind", "slope"}


@pytest.mark.slow
def test_quantiles_of_a_maximized_value_are_in_order(trials):
    u, values = trials
    model = fitted_model.fit_model(SPACE, u, -values, sign=-1.0)
    _, predicted = fitted_model.leave_one_out(model)
    assert (predicted.low < predicted.high).all()
    assert np.corrcoef(predicted.middle, -values)[0, 1] > 0.9


@pytest.mark.parametrize("name", ["plain", "log", "tails"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_inverse_of_a_scale_gives_the_values(name, sign):
    from bonas.search.output_scales import OUTPUT_SCALES

    y = np.exp(np.random.default_rng(0).normal(0.0, 2.0, 21))
    data = bonas.dataset(np.zeros((21, 1)), y)
    scaled, mean, std = bonas.standardize(OUTPUT_SCALES[name](data)[0])
    back = fitted_model.inverse_scale(name, y, float(mean), float(std), sign)(
        np.asarray(scaled.y[:, 0])
    )
    np.testing.assert_allclose(back, sign * y, rtol=1e-9)


@pytest.mark.parametrize("name", ["plain", "log", "tails"])
@pytest.mark.parametrize("factor", [1.0, -(2.0**1000)])
@pytest.mark.filterwarnings("error")
def test_predictions_far_beyond_the_values_stay_finite(name, factor):
    y = np.array([1e-300, 1e-200, 1.0, 1.5, 1.9])
    back = fitted_model.inverse_scale(name, y, 1.0, 500.0, factor)
    ends = np.sign(factor) * back(np.array([-1e6, 0.0, 1e6]))
    assert np.isfinite(ends).all()
    assert ends[0] <= ends[1] <= ends[2]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e300, 1.7e308])
@pytest.mark.filterwarnings("error")
def test_the_model_of_huge_values_is_that_of_the_values_divided(model, trials, size):
    u, values = trials
    power = 2.0 ** np.floor(np.log2(size / values.max()))
    huge = fitted_model.fit_model(SPACE, u, values * power)
    _, found = fitted_model.leave_one_out(huge)
    _, expected = fitted_model.leave_one_out(model)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one / power, other, rtol=1e-6)


def test_of_many_trials_the_better_and_the_latest_are_used():
    costs = np.random.default_rng(1).permutation(1000).astype(float)
    rows = fitted_model.select_rows(costs)
    assert len(rows) == len(set(rows)) == fitted_model.MAX_TRIALS
    assert list(rows) == sorted(rows)
    assert set(np.flatnonzero(costs < fitted_model.MAX_TRIALS // 2)) <= set(rows)
    late = [row for row in rows if costs[row] >= fitted_model.MAX_TRIALS // 2]
    assert min(late) > 1000 - 2 * len(late)


@pytest.mark.typed
def test_of_few_trials_all_are_used():
    assert fitted_model.select_rows(np.arange(7.0)) == (0, 1, 2, 3, 4, 5, 6)
