"""What a search came to, in numbers and in words."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from bonas.study.result import metrics, plain
from bonas.tabular.columns import Column, Columns
from bonas.tabular.look import Answer

VALUES = Columns("y", "regression", (), (Column("x"),))
CLASSES = Columns("y", "classification", ("a", "b"), (Column("x"),))


def test_the_standard_error_of_a_root_mean_square_is_what_draws_show():
    """Over 2000 sets of 100 rows: their spread is known to 2%, so 10% is six standard errors."""
    rng = np.random.default_rng(0)
    found = [metrics(VALUES, Answer(np.zeros(100)), rng.standard_t(8, size=100)) for _ in range(2000)]
    assert np.mean([each["rmse_error"] for each in found]) == pytest.approx(np.std([each["rmse"] for each in found]), rel=0.1)


def test_the_share_of_variance_explained_is_scikit_learn_s():
    rng = np.random.default_rng(0)
    y, said = rng.normal(size=30), rng.normal(size=30)
    assert metrics(VALUES, Answer(said), y)["r2"] == pytest.approx(r2_score(y, said))


@pytest.mark.parametrize("y", [np.zeros(5), np.ones(5)])
def test_scores_are_numbers_whatever_the_rows(y):
    assert np.isfinite(list(metrics(VALUES, Answer(np.zeros(5), np.zeros(5)), y).values())).all()


def test_accuracy_has_the_error_of_a_share():
    chances = np.array([[0.9, 0.1]] * 3 + [[0.2, 0.8]])
    found = metrics(CLASSES, Answer(chances), np.zeros(4, int))
    assert found["accuracy"] == 0.75
    assert found["accuracy_error"] == pytest.approx(np.sqrt(0.75 * 0.25 / 4))


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (53.6782, 4, "53.68"),
        (13018.5, 4, "13018"),
        (4600.0, 2, "4600"),
        (4.04, 2, "4"),
        (0.01234567, 4, "0.01235"),
        (2e9, 4, "2e+09"),
    ],
)
def test_numbers_are_written_out(value, digits, text):
    assert plain(value, digits) == text
