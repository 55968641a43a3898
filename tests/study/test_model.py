"""The model of a report: parity with conditioning by hand, and the scales of its values."""

import jax
import numpy as np
import pytest

import bonas
from bonas.study import model

SPACE = bonas.Space(
    rate=bonas.Float(1e-3, 1.0, log=True), kind=bonas.Choice("a", "b"), slope=bonas.Float(0.0, 1.0, when={"kind": "a"})
)


@pytest.fixture(scope="module")
def trials():
    u = np.asarray(SPACE.sample(jax.random.key(0), 24))
    values = 1.0 + 4.0 * (u[:, 0] - 0.4) ** 2 + 0.3 * u[:, 1]
    return u, values


@pytest.fixture(scope="module")
def fitted(trials):
    return model.fit(SPACE, *trials)


@pytest.mark.slow
def test_leaving_out_is_conditioning_on_the_others(fitted):
    """With C = K + noise, the value i given the others is Gaussian by the textbook formula, row by row."""
    residuals, _ = model.left_out(fitted)
    seen = np.asarray(fitted.data.mask[:, 0])
    lower = np.asarray(fitted.state.posterior.lower[0])[np.ix_(seen, seen)]
    covariance, y = lower @ lower.T, np.asarray(fitted.data.y[:, 0])[seen]
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        weights = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, i])
        mean, variance = weights @ y[rest], covariance[i, i] - weights @ covariance[rest, i]
        assert residuals[i] == pytest.approx((y[i] - mean) / np.sqrt(variance), rel=1e-6, abs=1e-8)


@pytest.mark.slow
def test_the_bottom_of_a_bowl_is_found(fitted, trials):
    u, values = trials
    found = model.along(fitted, u[values.argmin()])
    along = found["rate"]
    assert along.at[int(along.values.middle.argmin())] == pytest.approx(10 ** (3 * 0.4 - 3), rel=0.2)
    assert along.at[0] == pytest.approx(1e-3)
    assert along.at[-1] == pytest.approx(1.0)
    assert (along.values.low <= along.values.middle).all()
    assert (along.values.middle <= along.values.high).all()
    assert found["kind"].at == ["a", "b"]


@pytest.mark.slow
def test_parameters_that_are_inactive_at_the_point_have_no_slice(fitted):
    without, with_it = (
        model.along(fitted, SPACE.encode(c)) for c in ({"rate": 0.1, "kind": "b"}, {"rate": 0.1, "kind": "a", "slope": 0.5})
    )
    assert set(without) == {"rate", "kind"}
    assert set(with_it) == {"rate", "kind", "slope"}


@pytest.mark.slow
def test_quantiles_of_a_maximised_value_are_in_order(trials):
    u, values = trials
    fitted = model.fit(SPACE, u, -values, sign=-1.0)
    _, predicted = model.left_out(fitted)
    assert (predicted.low < predicted.high).all()
    assert np.corrcoef(predicted.middle, -values)[0, 1] > 0.9


@pytest.mark.parametrize("name", ["plain", "log", "tails"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_way_back_from_a_scale_leads_to_the_values(name, sign):
    from bonas.search.outputs import OUTPUTS

    y = np.exp(np.random.default_rng(0).normal(0.0, 2.0, 21))
    data = bonas.dataset(np.zeros((21, 1)), y)
    scaled, mean, std = bonas.standardise(OUTPUTS[name](data)[0])
    back = model._inverse(name, y, float(mean), float(std), sign)(np.asarray(scaled.y[:, 0]))
    np.testing.assert_allclose(back, sign * y, rtol=1e-9)


def test_of_many_trials_the_better_and_the_latest_are_taken():
    costs = np.random.default_rng(1).permutation(1000).astype(float)
    rows = model.chosen(costs)
    assert len(rows) == len(set(rows)) == model.MOST
    assert list(rows) == sorted(rows)
    assert set(np.flatnonzero(costs < model.MOST // 2)) <= set(rows)
    late = [row for row in rows if costs[row] >= model.MOST // 2]
    assert min(late) > 1000 - 2 * len(late)


def test_of_few_trials_all_are_taken():
    assert model.chosen(np.arange(7.0)) == (0, 1, 2, 3, 4, 5, 6)
