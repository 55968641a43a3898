"""Tables from files, from scikit-learn and from Python."""

import pickle

import numpy as np
import pandas
import pytest

from bonas.problems.datasets import SHIPPED
from bonas.tabular.table import digest, read, table_of

TEXT = "a,b\n1,x\n2,y\n"


@pytest.mark.parametrize(("mark", "name"), [(",", "t.csv"), (";", "t.csv"), ("\t", "t.tsv"), ("\t", "t.csv")])
def test_the_separator_is_found(tmp_path, mark, name):
    (tmp_path / name).write_text(TEXT.replace(",", mark))
    assert list(read(str(tmp_path / name)).columns) == ["a", "b"]


def test_one_column_is_a_table(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    assert read(str(tmp_path / "t.csv")).columns["a"].tolist() == ["1", "2"]


def test_rows_know_their_line(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n\n1,x\n\n2,y\n")
    assert read(str(tmp_path / "t.csv")).where(1) == "row 2 (line 5)"


def test_an_npz_file_is_a_table(tmp_path):
    np.savez(tmp_path / "t.npz", X=[[1.0, np.nan], [2.0, 3.0]], y=["no", "yes"], feature_names=["a", "b"])
    table = read(str(tmp_path / "t.npz"))
    assert (list(table.columns), table.target, table.rows) == (["a", "b", "y"], "y", 2)
    np.testing.assert_array_equal(table.columns["b"], [np.nan, 3.0])


@pytest.mark.parametrize("name", SHIPPED)
def test_sets_of_scikit_learn_have_a_target(name):
    table = read(name)
    assert table.target == "target"
    assert table.rows > 100


@pytest.mark.parametrize(
    ("source", "message"),
    [("nowhere.csv", "is no file, and no set.*diabetes"), (".", "is a folder"), ("t.xlsx", "neither a .csv nor an .npz")],
)
def test_what_is_no_table_is_refused(tmp_path, monkeypatch, source, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=message):
        read(source)


def test_a_pickle_is_not_opened(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.array([[object()]]), y=[1.0])
    with pytest.raises(ValueError, match=r"it holds a pickled object, which is not opened$"):
        read(str(tmp_path / "t.npz"))


@pytest.mark.parametrize("content", [b"", b"nonsense", pickle.dumps([1])])
def test_what_is_no_npz_file_is_told_in_our_words(tmp_path, content):
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"t.npz as an npz file of plain arrays: it is no npz file$"):
        read(str(tmp_path / "t.npz"))


@pytest.mark.parametrize("arrays", [{"X": np.ones((2, 2)), "y": np.ones(3)}, {"X": np.array([["a"]]), "y": np.ones(1)}])
def test_arrays_that_do_not_fit_are_refused(tmp_path, arrays):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(ValueError, match="expected"):
        read(str(tmp_path / "t.npz"))


def test_the_digest_is_of_the_contents(tmp_path):
    for name, text in (("a.csv", TEXT), ("b.csv", TEXT), ("c.csv", TEXT + "3,z\n")):
        (tmp_path / name).write_text(text)
    same, also, other = (digest(str(tmp_path / name)) for name in ("a.csv", "b.csv", "c.csv"))
    assert same == also != other


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 2.0], [3.0, 4.0]],
        np.array([[1, 2], [3, 4]]),
        [{"b": 2.0, "a": 1.0}, {"a": 3.0, "b": 4.0}],
        {"a": [1.0, 3.0], "b": [2.0, 4.0]},
        pandas.DataFrame({"a": [1, 3], "b": [2, 4]}),
    ],
    ids=["lists", "array", "dicts", "columns", "frame"],
)
def test_rows_from_python(rows):
    table = table_of(rows, ["a", "b"])
    np.testing.assert_array_equal(table.columns["a"], [1.0, 3.0])
    np.testing.assert_array_equal(table.columns["b"], [2.0, 4.0])


def test_a_dict_of_values_is_one_row():
    table = table_of({"a": 1.0, "b": "red"}, ["a", "b"])
    assert (table.columns["a"].tolist(), table.columns["b"].tolist()) == ([1.0], ["red"])


@pytest.mark.parametrize("rows", [3, None, {1.0, 2.0}, (each for each in [1.0])], ids=["int", "None", "set", "generator"])
def test_what_are_no_rows_is_told_what_rows_are(rows):
    with pytest.raises(ValueError, match=f"expected a path, a DataFrame, a list of dicts, .*; got {type(rows).__name__}$"):
        table_of(rows, ["a", "b"])


def test_none_and_nan_are_missing_text():
    frame = pandas.DataFrame({"a": ["red", None, float("nan")]})
    assert table_of(frame, ["a"]).columns["a"].tolist() == ["red", "", ""]


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 2.0, 3.0]],
        [[1.0, 2.0], [3.0]],
        [1.0, 2.0],
        [],
        np.ones(()),
        {"a": [1.0], "b": [1.0, 2.0]},
        {"a": 1.0, "b": [1.0, 2.0]},
        {},
    ],
)
def test_rows_that_do_not_fit_are_refused(rows):
    with pytest.raises(ValueError, match="expected"):
        table_of(rows, ["a", "b"])
