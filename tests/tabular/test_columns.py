"""The encoding of rows, and the new rows that are refused, with row and column."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bonas.tabular.column_inference import fit_fill_values, infer_columns
from bonas.tabular.columns import Column, Columns, encode_inputs
from bonas.tabular.table import read_table

ALL_ROWS = np.arange(4)


def csv(folder, text, name="data.csv"):
    (folder / name).write_text(text)
    return read_table(str(folder / name))


@pytest.fixture
def mixed(tmp_path):
    """A number, text, a constant, and a target."""
    return csv(
        tmp_path,
        "age,color,unit,y\n1,red,kg,0.5\n2,blue,kg,1.5\n4,red,kg,2.5\n8,red,kg,9\n",
    )


@pytest.mark.typed
def test_text_becomes_a_column_of_zeros_and_ones_for_each_value(mixed):
    columns, _ = infer_columns(mixed, target="y")
    assert columns.names == ("age", "color=blue", "color=red")
    np.testing.assert_array_equal(
        encode_inputs(columns, mixed), [[1, 0, 1], [2, 1, 0], [4, 0, 1], [8, 0, 1]]
    )


def test_columns_survive_json(mixed):
    columns = fit_fill_values(
        infer_columns(mixed, target="y")[0], mixed, ALL_ROWS, True
    )[0]
    assert Columns.from_json(json.loads(json.dumps(columns.to_json()))) == columns


# New rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,y\n1,2\n", "has no column 'color', which was used in training"),
        ("age,color,weight\n1,red,3\n", "has 'weight', not used in training"),
        (
            "age,color\n1,red\n2,green\n",
            r"column 'color', row 2 \(line 3\): expected one of 'blue', 'red'; got 'green'",
        ),
        (
            "age,color\nold,red\n",
            r"column 'age', row 1 \(line 2\): 'old' is not a number",
        ),
        ("age,color\n,red\n", r"column 'age', row 1 \(line 2\): the value is missing"),
        ("age,color\n1e300,red\n", "is too large"),
    ],
)
def test_new_rows_are_checked_against_training(mixed, tmp_path, text, message):
    columns, _ = infer_columns(mixed, target="y")
    with pytest.raises(ValueError, match=message):
        encode_inputs(columns, csv(tmp_path, text, "new.csv"))


def test_an_unseen_category_can_be_treated_as_missing(mixed, tmp_path):
    """It is encoded as zeros, or as the fill value with the indicator set."""
    columns, _ = infer_columns(mixed, target="y")
    new = csv(tmp_path, "age,color\n1,green\n", "new.csv")
    with pytest.raises(
        ValueError,
        match="got 'green'; to treat unknown categories as missing, pass --unseen missing",
    ):
        encode_inputs(columns, new)
    np.testing.assert_array_equal(
        encode_inputs(columns, new, unseen="missing"), [[1, 0, 0]]
    )
    filled = replace(
        columns,
        inputs=(
            columns.inputs[0],
            Column("color", ("blue", "red"), "red", missing_indicator=True),
        ),
    )
    np.testing.assert_array_equal(
        encode_inputs(filled, new, unseen="missing"), [[1, 0, 1, 1]]
    )
    with pytest.raises(
        ValueError, match="unseen must be one of 'refuse', 'missing'; got 'drop'"
    ):
        encode_inputs(columns, new, unseen="drop")


def test_the_order_of_columns_and_the_target_do_not_matter(mixed, tmp_path):
    columns, _ = infer_columns(mixed, target="y")
    new = csv(tmp_path, "y,unit,color,age\n?,kg,blue,3\n", "new.csv")
    np.testing.assert_array_equal(encode_inputs(columns, new), [[3, 1, 0]])


def test_more_columns_can_be_dropped(mixed, tmp_path):
    columns, _ = infer_columns(mixed, target="y")
    new = csv(tmp_path, "name,color,age\nAnn,blue,3\n", "new.csv")
    np.testing.assert_array_equal(
        encode_inputs(columns, new, drop=("name",)), [[3, 1, 0]]
    )
