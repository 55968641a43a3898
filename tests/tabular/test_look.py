"""Answers and their scores, against scikit-learn and by hand."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from bonas.tabular import look
from bonas.tabular.look import Answer

DRAWS = np.random.default_rng(0)


def test_scores_of_values_are_those_of_others():
    y, mean, std = DRAWS.normal(size=50), DRAWS.normal(size=50), DRAWS.uniform(0.5, 2.0, 50)
    answer = Answer(mean, std)
    assert look.rmse(answer, y) == pytest.approx(metrics.root_mean_squared_error(y, mean))
    assert look.nats(answer, y) == pytest.approx(-stats.norm.logpdf(y, mean, std).mean())
    low, high = stats.norm.interval(0.9, mean, std)
    assert look.coverage(answer, y) == np.mean((y >= low) & (y <= high))


def test_scores_of_classes_are_those_of_others():
    chances, y = look.softmax(DRAWS.normal(size=(50, 3))), DRAWS.integers(3, size=50)
    answer = Answer(chances)
    assert look.log_loss(answer, y) == pytest.approx(metrics.log_loss(y, chances, labels=[0, 1, 2]))
    assert look.accuracy(answer, y) == metrics.accuracy_score(y, chances.argmax(axis=1))


def test_a_class_without_any_chance_has_a_finite_score():
    assert np.isfinite(look.log_loss(Answer(np.array([[1.0, 0.0]])), np.array([1])))


def test_values_are_averaged_and_their_spread_adds_to_the_noise():
    answer = look.averaged("regression", np.array([[[1.0], [2.0]], [[3.0], [2.0]]]), noise=0.25)
    np.testing.assert_allclose(answer.mean, [2.0, 2.0])
    np.testing.assert_allclose(answer.std, [np.sqrt(1.25), 0.5])


def test_chances_are_averaged_and_not_logits():
    """A network that is sure of itself does not outvote the others."""
    logits = np.array([[[100.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]])
    expected = (1.0 + 2.0 / (1.0 + np.e)) / 3.0
    np.testing.assert_allclose(look.averaged("classification", logits).mean, [[expected, 1.0 - expected]])
