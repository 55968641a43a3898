"""What columns are taken for, how cells become numbers, and what is refused, with its place."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bonas.tabular.columns import Column, Columns, encode, infer, targets, with_fills
from bonas.tabular.table import Table, read

EVERY = np.arange(4)


def csv(folder, text, name="data.csv"):
    (folder / name).write_text(text)
    return read(str(folder / name))


@pytest.fixture
def mixed(tmp_path):
    """A number, text, a constant, and a target."""
    return csv(tmp_path, "age,colour,unit,y\n1,red,kg,0.5\n2,blue,kg,1.5\n4,red,kg,2.5\n8,red,kg,9\n")


# What columns are


def test_text_becomes_a_column_of_zeros_and_ones_for_each_value(mixed):
    columns, _ = infer(mixed, target="y")
    assert columns.names == ("age", "colour=blue", "colour=red")
    np.testing.assert_array_equal(encode(columns, mixed), [[1, 0, 1], [2, 1, 0], [4, 0, 1], [8, 0, 1]])


def test_constant_columns_are_left_out_and_named(mixed):
    columns, notices = infer(mixed, target="y")
    assert columns.unused == ("unit",)
    assert any("'unit'" in notice for notice in notices)


def test_numbers_are_categories_where_that_is_said(mixed):
    columns, _ = infer(mixed, target="y", categorical=("age",))
    assert columns.inputs[0] == Column("age", ("1", "2", "4", "8"))


def test_dropped_columns_are_not_looked_at(tmp_path):
    table = csv(tmp_path, "key,x,y\na1,1,0.1\n2,2,0.2\nc,3,0.9\n")
    columns, _ = infer(table, target="y", drop=("key",))
    assert columns.names == ("x",)
    np.testing.assert_array_equal(encode(columns, table), [[1], [2], [3]])


def test_columns_survive_json(mixed):
    columns = with_fills(infer(mixed, target="y")[0], mixed, EVERY, True)[0]
    assert Columns.from_json(json.loads(json.dumps(columns.to_json()))) == columns


# The task


@pytest.mark.parametrize(
    ("cells", "task", "classes"),
    [
        (["yes", "no"], "classification", ("no", "yes")),
        (["0", "1"], "classification", ("0", "1")),
        (["1", "2", "3"], "classification", ("1", "2", "3")),
        ([str(i) for i in range(11)], "classification", tuple(str(i) for i in range(11))),
        (["3", "4", "5"], "regression", ()),  # counts from neither 0 nor 1: a score
        (["0", "2"], "regression", ()),
        (["0.5", "1.5"], "regression", ()),
    ],
)
def test_the_task_is_inferred_from_the_target(tmp_path, cells, task, classes):
    rows = "".join(f"{i},{cell}\n" for i, cell in enumerate(cells * 5))
    columns, _ = infer(csv(tmp_path, "x,y\n" + rows), target="y")
    assert (columns.task, columns.classes) == (task, classes)


def test_labels_are_positions_of_classes(tmp_path):
    table = csv(tmp_path, "x,y\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(["b", "a", "c"] * 3)))
    columns, _ = infer(table, target="y")
    np.testing.assert_array_equal(targets(columns, table), [1, 0, 2] * 3)


def test_ten_classes_of_numbers_are_in_the_order_of_numbers(tmp_path):
    table = csv(tmp_path, "x,y\n" + "".join(f"{i},{i % 12}\n" for i in range(48)))
    columns, _ = infer(table, target="y")
    np.testing.assert_array_equal(targets(columns, table), np.arange(48) % 12)


def test_the_task_can_be_said(tmp_path):
    table = csv(tmp_path, "x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(8)))
    assert infer(table, target="y", task="regression")[0].task == "regression"


# Missing values


HOLES = "age,colour,y\n1,red,0.5\n,blue,1.5\n4,,2.5\n8,red,9\n"


def test_missing_values_are_refused_with_their_columns(tmp_path):
    table = csv(tmp_path, HOLES)
    with pytest.raises(ValueError, match=r"'age' \(1, first in row 2 \(line 3\)\), 'colour' \(1, first in row 3 \(line 4\)\)"):
        with_fills(infer(table, target="y")[0], table, EVERY, False)


def test_missing_values_are_filled_in_from_the_rows_given(tmp_path):
    table = csv(tmp_path, HOLES)
    columns, notices = with_fills(infer(table, target="y")[0], table, np.array([0, 2]), True)
    assert [column.fill for column in columns.inputs] == [2.5, "red"]
    np.testing.assert_array_equal(encode(columns, table)[:, :3], [[1, 0, 1], [2.5, 1, 0], [4, 0, 1], [8, 0, 1]])
    assert notices[0] == "missing values filled in: 'age' (1), 'colour' (1)"


def test_where_values_are_often_missing_is_an_input(tmp_path):
    table = csv(tmp_path, HOLES)
    columns, notices = with_fills(infer(table, target="y")[0], table, EVERY, True)
    assert columns.names == ("age", "age is missing", "colour=blue", "colour=red", "colour is missing")
    np.testing.assert_array_equal(encode(columns, table)[:, [1, 4]], [[0, 0], [1, 0], [0, 1], [0, 0]])
    assert notices[1] == "inputs of their own say where they were missing: 'age', 'colour'"
    assert Columns.from_json(json.loads(json.dumps(columns.to_json()))) == columns


def test_a_value_that_is_rarely_missing_is_filled_in_alone():
    x = np.arange(100.0)
    x[:3] = np.nan
    table = Table("t", {"x": x, "y": np.arange(100.0)})
    assert with_fills(infer(table, target="y")[0], table, np.arange(100), True)[0].names == ("x",)


@pytest.mark.parametrize("cell", ["1", "yes"])
def test_a_column_of_one_value_and_gaps_is_not_constant(tmp_path, cell):
    table = csv(tmp_path, f"x,z,y\n{cell},1,0.5\n,2,1.5\n{cell},3,2.5\n,4,3.5\n")
    columns, notices = infer(table, target="y")
    assert not any("constant" in notice for notice in notices)
    with pytest.raises(ValueError, match=r"missing values in 'x' \(2, first in row 2"):
        with_fills(columns, table, EVERY, False)
    filled = with_fills(columns, table, EVERY, True)[0]
    np.testing.assert_array_equal(encode(filled, table)[:, filled.names.index("x is missing")], [0, 1, 0, 1])


def test_empty_columns_are_left_out_and_named(tmp_path):
    table = csv(tmp_path, "x,note,y\n1,,0.5\n2,,1.5\n3,,2.5\n")
    columns, notices = infer(table, target="y")
    assert (columns.names, columns.unused, notices) == (("x",), ("note",), ["left out, since empty: 'note'"])


# New rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,y\n1,2\n", "lacks 'colour'"),
        ("age,colour,weight\n1,red,3\n", "has 'weight', which the network was not trained on"),
        ("age,colour\n1,red\n2,green\n", r"column 'colour', row 2 \(line 3\): 'green' is none of 'blue', 'red'"),
        ("age,colour\nold,red\n", r"column 'age', row 1 \(line 2\): 'old' is not a number"),
        ("age,colour\n,red\n", r"column 'age', row 1 \(line 2\): is missing"),
        ("age,colour\n1e300,red\n", "is too large"),
    ],
)
def test_new_rows_are_checked_against_training(mixed, tmp_path, text, message):
    columns, _ = infer(mixed, target="y")
    with pytest.raises(ValueError, match=message):
        encode(columns, csv(tmp_path, text, "new.csv"))


def test_an_unseen_category_can_be_taken_for_missing(mixed, tmp_path):
    """A row of zeros; with a fill, what is filled in, and said to be missing where that is an input."""
    columns, _ = infer(mixed, target="y")
    new = csv(tmp_path, "age,colour\n1,green\n", "new.csv")
    with pytest.raises(ValueError, match=r"'green' is none of .*--unseen missing takes such cells for missing"):
        encode(columns, new)
    np.testing.assert_array_equal(encode(columns, new, unseen="missing"), [[1, 0, 0]])
    filled = replace(columns, inputs=(columns.inputs[0], Column("colour", ("blue", "red"), "red", gaps=True)))
    np.testing.assert_array_equal(encode(filled, new, unseen="missing"), [[1, 0, 1, 1]])
    with pytest.raises(ValueError, match="unseen is one of refuse, missing; got 'drop'"):
        encode(columns, new, unseen="drop")


def test_the_order_of_columns_and_the_target_make_no_difference(mixed, tmp_path):
    columns, _ = infer(mixed, target="y")
    new = csv(tmp_path, "y,unit,colour,age\n?,kg,blue,3\n", "new.csv")
    np.testing.assert_array_equal(encode(columns, new), [[3, 1, 0]])


def test_more_columns_can_be_dropped(mixed, tmp_path):
    columns, _ = infer(mixed, target="y")
    new = csv(tmp_path, "name,colour,age\nAnn,blue,3\n", "new.csv")
    np.testing.assert_array_equal(encode(columns, new, drop=("name",)), [[3, 1, 0]])


# Bad tables


@pytest.mark.parametrize(
    ("text", "how", "message"),
    [
        ("x,y\n1,2\n2,3\n", {}, "needs --target, one of its columns: 'x', 'y'"),
        ("x,y\n1,2\n2,3\n", {"target": "z"}, "no target 'z'; its columns are 'x', 'y'"),
        ("x,y\n1,2\n2,2\n", {"target": "y"}, "target 'y' is constant"),
        ("x,y\n1,2\n2,\n", {"target": "y"}, r"target 'y' is missing in 1 rows, first in row 2 \(line 3\)"),
        ("x,y\n1,2\n2,many\n", {"target": "y"}, "mixes numbers and text.*--task classification"),
        ("x,y\n1,2\n2,many\n", {"target": "y", "task": "regression"}, "'many' is not a number"),
        ("x,y\n1,2\nabc,3\n", {"target": "y"}, r"column 'x' holds numbers, but 'abc' in row 2 \(line 3\)"),
        ("x,y\n1,2\n1,3\n", {"target": "y"}, "no column to learn from beside the target 'y': all others are constant"),
        ("x,z,y\n1,,2\n1,,3\n", {"target": "y"}, "all others are empty or constant"),
        ("x,y\n1,2\n2,3\n", {"target": "y", "drop": ("x",)}, "no column to learn from.*: there is no other"),
        ("x,y\n1,2\n2,3\n", {"target": "y", "drop": ("w",)}, "--drop: .* has no column 'w'"),
        ("x,y\n1,2\n2,3\n", {"target": "y", "drop": ("y",)}, "can be neither categorical nor dropped"),
        ("x,y\n1,2\n2,3\n", {"target": "y", "task": "clustering"}, "a task is one of"),
    ],
)
def test_bad_tables_are_refused(tmp_path, text, how, message):
    with pytest.raises(ValueError, match=message):
        infer(csv(tmp_path, text), **how)


def test_text_of_too_many_values_is_refused():
    names = np.array([f"n{i}" for i in range(60)])
    table = Table("people", {"name": names, "x": np.arange(60.0), "y": np.linspace(0, 1, 60)})
    with pytest.raises(ValueError, match=r"'name' is text of 60 different values.*--drop name"):
        infer(table, target="y")


def test_a_class_of_one_row_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"class 'b' of the target 'y' has 1 row; each needs 3$"):
        infer(csv(tmp_path, "x,y\n" + "".join(f"{i},a\n" for i in range(9)) + "9,b\n"), target="y")


def test_counts_taken_for_classes_are_told_to_be_values(tmp_path):
    counts = "".join(f"{i},{count}\n" for i, count in enumerate([0, 1, 2, 3] * 5 + [4]))
    with pytest.raises(ValueError, match=r"class '4' .* has 1 row; each needs 3; pass --task regression if these are values"):
        infer(csv(tmp_path, "x,y\n" + counts), target="y")
