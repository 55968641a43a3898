"""The scores of a result, and its text."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from bonas.tabular.columns import Column, Columns
from bonas.tabular.result import (
    compute_scores,
    format_number,
    format_with_error,
    result_lines,
)
from bonas.tabular.scores import Predictive

VALUES = Columns("y", "regression", (), (Column("x"),))
CLASSES = Columns("y", "classification", ("a", "b"), (Column("x"),))


def test_the_standard_error_of_the_rmse_matches_repeated_draws():
    """Over 2000 sets of 100 rows: their spread is known to 2%, so 10% is six standard errors."""
    rng = np.random.default_rng(0)
    found = [
        compute_scores(VALUES, Predictive(np.zeros(100)), rng.standard_t(8, size=100))
        for _ in range(2000)
    ]
    assert np.mean([each["rmse_error"] for each in found]) == pytest.approx(
        np.std([each["rmse"] for each in found]), rel=0.1
    )


def test_r2_matches_scikit_learn():
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=30), rng.normal(size=30)
    assert compute_scores(VALUES, Predictive(predicted), y)["r2"] == pytest.approx(
        r2_score(y, predicted)
    )


@pytest.mark.parametrize("y", [np.zeros(5), np.ones(5)])
def test_scores_are_finite_for_constant_rows(y):
    assert np.isfinite(
        list(compute_scores(VALUES, Predictive(np.zeros(5), np.zeros(5)), y).values())
    ).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e12, 1e30])
def test_scores_of_huge_float32_values_are_finite(unit):
    """Their squares overflow in float32."""
    rng = np.random.default_rng(0)
    y, mean = rng.normal(size=(2, 30)).astype(np.float32)
    one, many = (
        compute_scores(
            VALUES,
            Predictive((c * mean).astype(np.float32), np.full(30, c, np.float32)),
            (c * y).astype(np.float32),
        )
        for c in (1.0, unit)
    )
    assert many["rmse"] == pytest.approx(one["rmse"] * unit)
    assert many["rmse_error"] == pytest.approx(one["rmse_error"] * unit)
    assert many["r2"] == pytest.approx(one["r2"])
    assert many["within_90"] == one["within_90"]
    assert many["nats"] == pytest.approx(one["nats"] + np.log(unit))


def test_accuracy_has_a_binomial_standard_error():
    probabilities = np.array([[0.9, 0.1]] * 3 + [[0.2, 0.8]])
    found = compute_scores(CLASSES, Predictive(probabilities), np.zeros(4, int))
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
    assert format_number(value, digits) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (57.0214, 4.04, "57.02 ± 4.04"),
        (32.7, 2.0, "32.70 ± 2.00"),
        (0.42163, 0.00581, "0.4216 ± 0.0058"),
        (0.9142, 0.0151, "0.9142 ± 0.0151"),
        (13018.5, 460.0, "13018 ± 460"),
        (1.0, 0.0, "1.000 ± 0.000"),
        (0.0, 0.0, "0 ± 0"),
        (2e9, 3e7, "2e+09 ± 3e+07"),
        (1.234e-8, 3e-10, "1.234e-08 ± 3e-10"),
    ],
)
def test_an_error_has_the_decimals_of_its_number(value, error, text):
    assert format_with_error(value, error) == text


def result(still_falling=None):
    scores = {"rmse": 57.0214, "rmse_error": 4.04, "r2": 0.4471}
    each = {
        "bonas": scores,
        "linear": scores | {"rmse": 157.5, "rmse_error": 12.3, "r2": -0.2},
        "mlp": scores,
    }
    return {
        "task": "regression",
        "rows": {"train_and_validation": 353, "folds": 5, "test": 89},
        "best": {
            "number": 3,
            "value": 56.2,
            "in_words": "1 hidden layer of 4 relu units",
        },
        "score": "rmse",
        "networks": {"in_all": 5, "architectures": [{}]},
        "still_falling": still_falling,
        "validation": each,
        "test": each,
    }


@pytest.mark.parametrize("width", [80, 58, 40])
def test_the_table_fits_a_narrow_terminal_and_has_every_score(width):
    lines = result_lines(result(), width)[4:]
    assert max(map(len, lines)) <= max(width, 50)
    assert "\n".join(lines).count("157.5 ± 12.3  -0.200") == 2
    assert len({len(line) for line in lines}) <= 2  # aligned to the right, in each part


@pytest.mark.parametrize(
    ("networks", "text"),
    [(1, "Saved: 1 network of the"), (5, "Saved: the average of 5 networks of the")],
)
def test_networks_are_counted(networks, text):
    counted = result() | {"networks": {"in_all": networks, "architectures": [{}]}}
    assert f"{text} best architecture." in result_lines(counted)


def test_the_result_tells_if_training_ended_too_early():
    assert not any("was still falling" in line for line in result_lines(result()))
    assert any(
        "still falling at the last checkpoint, after 60 epochs" in line
        for line in result_lines(result("60 epochs"))
    )
