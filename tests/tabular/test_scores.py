"""Predictive distributions and their scores, against scikit-learn and SciPy."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from bonas.tabular import scores
from bonas.tabular.scores import INTERVAL_LEVELS, Predictive, interval_coverage

DRAWS = np.random.default_rng(0)


@pytest.mark.typed
def test_scores_of_values_match_other_libraries():
    y, mean, std = (
        DRAWS.normal(size=50),
        DRAWS.normal(size=50),
        DRAWS.uniform(0.5, 2.0, 50),
    )
    predicted = Predictive(mean, std)
    assert scores.rmse(predicted, y) == pytest.approx(
        metrics.root_mean_squared_error(y, mean)
    )
    assert scores.negative_log_density(predicted, y) == pytest.approx(
        -stats.norm.logpdf(y, mean, std).mean()
    )
    low, high = stats.norm.interval(0.9, mean, std)
    assert scores.coverage(predicted, y) == np.mean((y >= low) & (y <= high))


@pytest.mark.typed
def test_scores_of_classes_match_other_libraries():
    probabilities, y = (
        scores.softmax(DRAWS.normal(size=(50, 3))),
        DRAWS.integers(3, size=50),
    )
    predicted = Predictive(probabilities)
    assert scores.log_loss(predicted, y) == pytest.approx(
        metrics.log_loss(y, probabilities, labels=[0, 1, 2])
    )
    assert scores.accuracy(predicted, y) == metrics.accuracy_score(
        y, probabilities.argmax(axis=1)
    )


@pytest.mark.typed
def test_a_class_of_probability_zero_has_a_finite_score():
    assert np.isfinite(
        scores.log_loss(Predictive(np.array([[1.0, 0.0]])), np.array([1]))
    )


def test_values_are_averaged_and_their_spread_adds_to_the_noise():
    predicted = scores.average_networks(
        "regression", np.array([[[1.0], [2.0]], [[3.0], [2.0]]]), noise=0.25
    )
    np.testing.assert_allclose(predicted.mean, [2.0, 2.0])
    np.testing.assert_allclose(predicted.std, [np.sqrt(1.25), 0.5])


def test_probabilities_are_averaged_instead_of_logits():
    """A confident network does not outvote the others."""
    logits = np.array([[[100.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]])
    expected = (1.0 + 2.0 / (1.0 + np.e)) / 3.0
    np.testing.assert_allclose(
        scores.average_networks("classification", logits).mean,
        [[expected, 1.0 - expected]],
    )


# Calibration

ROWS = 10_000
FIVE_ERRORS = 5.0 * 0.5 / np.sqrt(ROWS)  # five standard errors of a share, at most


@pytest.mark.typed
def test_intervals_contain_their_share_of_draws_from_the_prediction():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=ROWS), rng.uniform(0.5, 2.0, ROWS)
    covered = interval_coverage(Predictive(mean, std), rng.normal(mean, std))
    assert list(covered) == [str(level) for level in INTERVAL_LEVELS]
    expected = np.array(INTERVAL_LEVELS) / 100.0
    np.testing.assert_allclose(list(covered.values()), expected, atol=FIVE_ERRORS)


def test_intervals_of_overconfident_predictions_contain_less():
    """With half the true deviation, the 95% interval reaches to 0.98 deviations: 67.3%."""
    y = np.random.default_rng(0).normal(size=ROWS)
    covered = interval_coverage(Predictive(np.zeros(ROWS), np.full(ROWS, 0.5)), y)
    assert abs(covered["95"] - 0.673) < FIVE_ERRORS
