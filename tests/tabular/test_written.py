"""Predictions as a CSV file."""

import numpy as np
import pytest

from bonas.tabular.columns import Column, Columns
from bonas.tabular.kept import Found, Predictions
from bonas.tabular.written import write_predictions

VALUES = Predictions(np.array([1.5, -2.0]), np.array([0.25, 1.0]), None)
CHANCES = Predictions(np.array(["b", "a"]), None, np.array([[0.25, 0.75], [1.0, 0.0]]))


def found(target, classes=()):
    return Found({}, Columns(target, "classification" if classes else "regression", classes, (Column("x"),)), ())


@pytest.mark.parametrize(
    ("predicted", "predictions", "text"),
    [
        (found("y"), VALUES, "row,y,y_std\n1,1.5,0.25\n2,-2,1\n"),
        (found("y", ("a", "b")), CHANCES, "row,y,probability=a,probability=b\n1,b,0.250000,0.750000\n2,a,1.000000,0.000000\n"),
        (found("row"), VALUES, "row_number,row,row_std\n1,1.5,0.25\n2,-2,1\n"),
    ],
)
def test_rows_are_numbered_from_one_in_a_file_and_in_the_terminal(tmp_path, capsys, predicted, predictions, text):
    write_predictions(tmp_path / "said.csv", predicted, predictions)
    write_predictions(None, predicted, predictions)
    assert (tmp_path / "said.csv").read_text() == text
    assert capsys.readouterr().out == text
