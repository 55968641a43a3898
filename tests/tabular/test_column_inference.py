"""The inference of columns, tasks and fill values, and the tables that are refused."""

import json

import numpy as np
import pytest

from bonas.tabular.column_inference import fit_fill_values, infer_columns
from bonas.tabular.columns import Column, Columns, encode_inputs, encode_target
from bonas.tabular.table import Table, read_table

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


# Columns


def test_constant_columns_are_left_out_and_named(mixed):
    columns, notices = infer_columns(mixed, target="y")
    assert columns.unused == ("unit",)
    assert any("'unit'" in notice for notice in notices)


def test_numbers_are_categories_on_request(mixed):
    columns, _ = infer_columns(mixed, target="y", categorical=("age",))
    assert columns.inputs[0] == Column("age", ("1", "2", "4", "8"))


def test_dropped_columns_are_ignored(tmp_path):
    table = csv(tmp_path, "key,x,y\na1,1,0.1\n2,2,0.2\nc,3,0.9\n")
    columns, _ = infer_columns(table, target="y", drop=("key",))
    assert columns.names == ("x",)
    np.testing.assert_array_equal(encode_inputs(columns, table), [[1], [2], [3]])


# The task


@pytest.mark.parametrize(
    ("cells", "task", "classes"),
    [
        (["yes", "no"], "classification", ("no", "yes")),
        (["0", "1"], "classification", ("0", "1")),
        (["1", "2", "3"], "classification", ("1", "2", "3")),
        (
            [str(i) for i in range(11)],
            "classification",
            tuple(str(i) for i in range(11)),
        ),
        (["3", "4", "5"], "regression", ()),  # counts from neither 0 nor 1: a score
        (["0", "2"], "regression", ()),
        (["0.5", "1.5"], "regression", ()),
    ],
)
def test_the_task_is_inferred_from_the_target(tmp_path, cells, task, classes):
    rows = "".join(f"{i},{cell}\n" for i, cell in enumerate(cells * 5))
    columns, _ = infer_columns(csv(tmp_path, "x,y\n" + rows), target="y")
    assert (columns.task, columns.classes) == (task, classes)


def test_labels_are_positions_of_classes(tmp_path):
    table = csv(
        tmp_path,
        "x,y\n"
        + "".join(f"{i},{cell}\n" for i, cell in enumerate(["b", "a", "c"] * 3)),
    )
    columns, _ = infer_columns(table, target="y")
    np.testing.assert_array_equal(encode_target(columns, table), [1, 0, 2] * 3)


def test_ten_classes_of_numbers_are_in_the_order_of_numbers(tmp_path):
    table = csv(tmp_path, "x,y\n" + "".join(f"{i},{i % 12}\n" for i in range(48)))
    columns, _ = infer_columns(table, target="y")
    np.testing.assert_array_equal(encode_target(columns, table), np.arange(48) % 12)


def test_the_task_can_be_given(tmp_path):
    table = csv(tmp_path, "x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(8)))
    assert infer_columns(table, target="y", task="regression")[0].task == "regression"


# Missing values


INCOMPLETE = "age,color,y\n1,red,0.5\n,blue,1.5\n4,,2.5\n8,red,9\n"


def test_missing_values_are_refused_with_their_columns(tmp_path):
    table = csv(tmp_path, INCOMPLETE)
    with pytest.raises(
        ValueError,
        match=r"'age' \(1, first in row 2 \(line 3\)\), 'color' \(1, first in row 3 \(line 4\)\)",
    ):
        fit_fill_values(infer_columns(table, target="y")[0], table, ALL_ROWS, False)


def test_missing_values_are_filled_in_from_the_rows_given(tmp_path):
    table = csv(tmp_path, INCOMPLETE)
    columns, notices = fit_fill_values(
        infer_columns(table, target="y")[0], table, np.array([0, 2]), True
    )
    assert [column.fill for column in columns.inputs] == [2.5, "red"]
    np.testing.assert_array_equal(
        encode_inputs(columns, table)[:, :3],
        [[1, 0, 1], [2.5, 1, 0], [4, 0, 1], [8, 0, 1]],
    )
    assert notices[0] == "missing values filled in: 'age' (1), 'color' (1)"


def test_often_missing_values_add_an_indicator(tmp_path):
    table = csv(tmp_path, INCOMPLETE)
    columns, notices = fit_fill_values(
        infer_columns(table, target="y")[0], table, ALL_ROWS, True
    )
    assert columns.names == (
        "age",
        "age is missing",
        "color=blue",
        "color=red",
        "color is missing",
    )
    np.testing.assert_array_equal(
        encode_inputs(columns, table)[:, [1, 4]], [[0, 0], [1, 0], [0, 1], [0, 0]]
    )
    assert notices[1] == "missing-value indicators added: 'age', 'color'"
    assert Columns.from_json(json.loads(json.dumps(columns.to_json()))) == columns


def test_rarely_missing_values_add_no_indicator():
    x = np.arange(100.0)
    x[:3] = np.nan
    table = Table("t", {"x": x, "y": np.arange(100.0)})
    assert fit_fill_values(
        infer_columns(table, target="y")[0], table, np.arange(100), True
    )[0].names == ("x",)


@pytest.mark.parametrize("cell", ["1", "yes"])
def test_a_column_of_one_value_and_gaps_is_not_constant(tmp_path, cell):
    table = csv(tmp_path, f"x,z,y\n{cell},1,0.5\n,2,1.5\n{cell},3,2.5\n,4,3.5\n")
    columns, notices = infer_columns(table, target="y")
    assert not any("constant" in notice for notice in notices)
    with pytest.raises(ValueError, match=r"missing values in 'x' \(2, first in row 2"):
        fit_fill_values(columns, table, ALL_ROWS, False)
    filled = fit_fill_values(columns, table, ALL_ROWS, True)[0]
    np.testing.assert_array_equal(
        encode_inputs(filled, table)[:, filled.names.index("x is missing")],
        [0, 1, 0, 1],
    )


def test_empty_columns_are_left_out_and_named(tmp_path):
    table = csv(tmp_path, "x,note,y\n1,,0.5\n2,,1.5\n3,,2.5\n")
    columns, notices = infer_columns(table, target="y")
    assert (columns.names, columns.unused, notices) == (
        ("x",),
        ("note",),
        ["ignored (empty): 'note'"],
    )


# Bad tables


@pytest.mark.parametrize(
    ("text", "how", "message"),
    [
        (
            "x,y\n1,2\n2,3\n",
            {},
            "--target is required for .*; choose one of its columns: 'x', 'y'",
        ),
        (
            "x,y\n1,2\n2,3\n",
            {"target": "z"},
            "no column 'z' to predict; its columns are 'x', 'y'",
        ),
        ("x,y\n1,2\n2,2\n", {"target": "y"}, "target 'y' is constant"),
        (
            "x,y\n1,2\n2,\n",
            {"target": "y"},
            r"target 'y' is missing in 1 rows, first in row 2 \(line 3\)",
        ),
        (
            "x,y\n1,2\n2,many\n",
            {"target": "y"},
            "mixes numbers and text.*--task classification",
        ),
        (
            "x,y\n1,2\n2,many\n",
            {"target": "y", "task": "regression"},
            "'many' is not a number",
        ),
        (
            "x,y\n1,2\nabc,3\n",
            {"target": "y"},
            r"column 'x' mixes numbers and text: row 2 \(line 3\) holds 'abc'",
        ),
        (
            "x,y\n1,2\n1,3\n",
            {"target": "y"},
            "no input columns besides the target 'y': all others are constant",
        ),
        ("x,z,y\n1,,2\n1,,3\n", {"target": "y"}, "all others are empty or constant"),
        (
            "x,y\n1,2\n2,3\n",
            {"target": "y", "drop": ("x",)},
            "no input columns.*: there is no other column",
        ),
        (
            "x,y\n1,2\n2,3\n",
            {"target": "y", "drop": ("w",)},
            r"--drop \(in Python: drop=\): .* has no column 'w'",
        ),
        (
            "x,y\n1,2\n2,3\n",
            {"target": "y", "drop": ("y",)},
            "cannot be categorical or dropped",
        ),
        (
            "x,y\n1,2\n2,3\n",
            {"target": "y", "task": "clustering"},
            "task must be one of",
        ),
    ],
)
def test_bad_tables_are_refused(tmp_path, text, how, message):
    with pytest.raises(ValueError, match=message):
        infer_columns(csv(tmp_path, text), **how)


def test_text_with_too_many_values_is_refused():
    names = np.array([f"n{i}" for i in range(60)])
    table = Table(
        "people", {"name": names, "x": np.arange(60.0), "y": np.linspace(0, 1, 60)}
    )
    with pytest.raises(
        ValueError, match=r"'name' has 60 different text values.*--drop name"
    ):
        infer_columns(table, target="y")


def test_a_class_with_one_row_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"class 'b' of the target 'y' has 1 row; each class needs 3$"
    ):
        infer_columns(
            csv(tmp_path, "x,y\n" + "".join(f"{i},a\n" for i in range(9)) + "9,b\n"),
            target="y",
        )


def test_rare_labels_that_are_numbers_suggest_a_regression(tmp_path):
    counts = "".join(f"{i},{count}\n" for i, count in enumerate([0, 1, 2, 3] * 5 + [4]))
    with pytest.raises(
        ValueError,
        match=r"class '4' .* has 1 row; each class needs 3; if these are numbers to predict, pass --task regression",  # noqa: E501
    ):
        infer_columns(csv(tmp_path, "x,y\n" + counts), target="y")
