"""Tables from files, from scikit-learn and from Python."""

import gzip
import pickle

import numpy as np
import pandas
import pytest

from bonas.problems.datasets import SKLEARN_SETS
from bonas.tabular.table import Table, digest, read_table, table_from_rows

TEXT = "a,b\n1,x\n2,y\n"


def read_text(folder, text, name="t.csv"):
    (folder / name).write_text(text)
    return read_table(str(folder / name))


# CSV files


@pytest.mark.parametrize(
    ("separator", "name"),
    [(",", "t.csv"), (";", "t.csv"), ("\t", "t.tsv"), ("\t", "t.csv")],
)
def test_the_separator_is_detected(tmp_path, separator, name):
    table = read_text(tmp_path, TEXT.replace(",", separator), name)
    assert list(table.columns) == ["a", "b"]


def test_a_compressed_file_is_read(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert read_table(str(tmp_path / "t.csv.gz")).columns["b"].tolist() == ["x", "y"]


def flipped(data):
    """Invert the byte after the header of 10 bytes: an invalid block."""
    return data[:10] + bytes([data[10] ^ 0xFF]) + data[11:]


@pytest.mark.parametrize(
    "broken",
    [flipped, lambda data: data[:-9], lambda data: TEXT.encode()],
    ids=["flipped byte", "cut off", "not compressed"],
)
def test_a_broken_compressed_file_is_refused_by_name(tmp_path, broken):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(broken(gzip.compress(TEXT.encode())))
    with pytest.raises(ValueError, match=r"cannot decompress .*t\.csv\.gz: \S"):
        read_table(str(path))


def test_one_column_is_a_table(tmp_path):
    assert read_text(tmp_path, "a\n1\n2\n").columns["a"].tolist() == ["1", "2"]


def test_rows_know_their_line(tmp_path):
    table = read_text(tmp_path, "a,b\n\n1,x\n\n2,y\n")
    assert table.describe_row(1) == "row 2 (line 5)"


def test_lines_are_counted_across_quoted_line_breaks(tmp_path):
    table = read_text(tmp_path, 'a,b\n1,"x\ny"\n2,z\n')
    assert table.lines == (3, 4)
    assert table.columns["b"].tolist() == ["x\ny", "z"]


def test_cells_are_stripped_and_stay_text(tmp_path):
    table = read_text(tmp_path, 'a, b\n 1.50 ,"x" \nNA,?\n')
    assert table.columns["a"].tolist() == ["1.50", "NA"]
    assert table.columns["b"].tolist() == ["x", "?"]


@pytest.mark.typed
def test_numbers_are_parsed_as_python_does(tmp_path):
    cells = [
        "0.1",
        "1e-320",
        "123456789.123456789",
        "1_000",
        ".3",
        "2.2250738585072011e-308",
    ]
    table = read_text(tmp_path, "a\n" + "\n".join(cells) + "\n")
    assert table.parse("a")[0].tolist() == [float(cell) for cell in cells]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n,\n", "is empty"),
        ("a,b\n", "has a header but no rows"),
        ("a,b\n1,2\n3\n", r"row 2 \(line 3\) has 1 cells, but the header has 2"),
        ("a,b\n\n1,2,3\n", r"row 1 \(line 3\) has 3 cells, but the header has 2"),
        ("1,2\n3,4\n", "expected column names in the first line; got numbers"),
        ("a,\n1,2\n", "column 2 has no name"),
        ("a,a\n1,2\n", "more than one column 'a'"),
    ],
)
def test_a_malformed_csv_file_is_refused_with_its_row(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_text(tmp_path, text)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        read_table(str(tmp_path / "t.csv"))


# Parquet files


def write_parquet(folder, frame):
    pytest.importorskip("pyarrow")
    frame.to_parquet(folder / "t.parquet")
    return str(folder / "t.parquet")


def test_a_parquet_file_has_the_columns_of_its_frame(tmp_path):
    frame = pandas.DataFrame(
        {
            "number": [1.5, float("nan"), 3.0],
            "nullable": pandas.array([1, None, 3], dtype="Int64"),
            "flag": [True, False, True],
            "text": ["red", None, "blue"],
            "category": pandas.Categorical(["x", "y", None]),
            "day": pandas.to_datetime(["2020-01-01", None, "2020-01-03"]),
        }
    )
    table = read_table(write_parquet(tmp_path, frame))
    np.testing.assert_array_equal(table.columns["number"], [1.5, np.nan, 3.0])
    np.testing.assert_array_equal(table.columns["nullable"], [1.0, np.nan, 3.0])
    np.testing.assert_array_equal(table.columns["flag"], [1.0, 0.0, 1.0])
    assert table.columns["text"].tolist() == ["red", "", "blue"]
    assert table.columns["category"].tolist() == ["x", "y", ""]
    assert table.columns["day"].tolist()[1] == ""
    assert table.describe_row(1) == "row 2"


def test_csv_and_parquet_give_the_same_numbers(tmp_path):
    values = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    text = "a\n" + "\n".join(repr(value) for value in values.tolist()) + "\n"
    from_csv = read_text(tmp_path, text)
    from_parquet = read_table(write_parquet(tmp_path, pandas.DataFrame({"a": values})))
    np.testing.assert_array_equal(from_csv.numbers("a"), from_parquet.numbers("a"))


def test_an_empty_parquet_file_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    path = write_parquet(tmp_path, pandas.DataFrame({"a": [], "b": []}))
    with pytest.raises(ValueError, match=r"is empty: .* got 0 rows and 2 columns"):
        read_table(path)


def test_a_broken_parquet_file_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(ValueError, match="cannot be read as a Parquet file"):
        read_table(str(tmp_path / "t.parquet"))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")

    def no_pyarrow(*args, **kwargs):
        raise ImportError("no pyarrow")

    monkeypatch.setattr(pandas, "read_parquet", no_pyarrow)
    with pytest.raises(
        ImportError, match=r"needs pyarrow; .*pip install 'bonas\[parquet\]'"
    ):
        read_table(str(tmp_path / "t.parquet"))


# npz files and scikit-learn's data sets


def test_an_npz_file_is_a_table(tmp_path):
    np.savez(
        tmp_path / "t.npz",
        X=[[1.0, np.nan], [2.0, 3.0]],
        y=["no", "yes"],
        feature_names=["a", "b"],
    )
    table = read_table(str(tmp_path / "t.npz"))
    assert (list(table.columns), table.target, table.n_rows) == (
        ["a", "b", "y"],
        "y",
        2,
    )
    np.testing.assert_array_equal(table.columns["b"], [np.nan, 3.0])


@pytest.mark.parametrize("name", SKLEARN_SETS)
def test_data_sets_of_scikit_learn_have_a_target(name):
    table = read_table(name)
    assert table.target == "target"
    assert table.n_rows > 100


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "nowhere.csv",
            "does not exist; expected a file, or one of scikit-learn.*diabetes",
        ),
        (".", "is a folder"),
        ("t.xlsx", "expected a .csv, .tsv, .parquet or .npz file"),
    ],
)
def test_other_sources_are_refused(tmp_path, monkeypatch, source, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=message):
        read_table(source)


def test_a_pickle_is_not_opened(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.array([[object()]]), y=[1.0])
    with pytest.raises(ValueError, match="pickled object"):
        read_table(str(tmp_path / "t.npz"))


@pytest.mark.parametrize("content", [b"", b"nonsense", pickle.dumps([1])])
def test_a_broken_npz_file_is_refused_in_our_words(tmp_path, content):
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.npz.* npz file"):
        read_table(str(tmp_path / "t.npz"))


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"X": np.ones((2, 2)), "y": np.ones(3)}, "expected"),
        ({"X": np.array([["a"]]), "y": np.ones(1)}, "X must be numeric"),
    ],
)
def test_arrays_of_wrong_shape_or_type_are_refused(tmp_path, arrays, match):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(ValueError, match=match):
        read_table(str(tmp_path / "t.npz"))


def test_the_digest_depends_on_the_contents_only(tmp_path):
    for name, text in (("a.csv", TEXT), ("b.csv", TEXT), ("c.csv", TEXT + "3,z\n")):
        (tmp_path / name).write_text(text)
    same, also, other = (
        digest(str(tmp_path / name)) for name in ("a.csv", "b.csv", "c.csv")
    )
    assert same == also != other


# Cells


@pytest.mark.typed
def test_text_and_numbers_of_a_column():
    table = Table("t", {"x": np.array([1.0, np.nan]), "y": np.array(["2", "many"])})
    assert table.text("x").tolist() == ["1", ""]
    assert table.parse("y")[1].tolist() == [False, True]
    np.testing.assert_array_equal(table.numbers("x", fill=3.0), [1.0, 3.0])


# Rows from Python


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
def test_rows_come_in_many_forms(rows):
    table = table_from_rows(rows, ["a", "b"])
    np.testing.assert_array_equal(table.columns["a"], [1.0, 3.0])
    np.testing.assert_array_equal(table.columns["b"], [2.0, 4.0])


def test_a_dict_of_values_is_one_row():
    table = table_from_rows({"a": 1.0, "b": "red"}, ["a", "b"])
    assert (table.columns["a"].tolist(), table.columns["b"].tolist()) == (
        [1.0],
        ["red"],
    )


@pytest.mark.parametrize(
    "rows",
    [3, None, {1.0, 2.0}, (each for each in [1.0])],
    ids=["int", "None", "set", "generator"],
)
def test_other_types_are_refused_with_the_accepted_ones(rows):
    with pytest.raises(
        ValueError,
        match=f"expected a path, a DataFrame, a list of dicts, .*; got {type(rows).__name__}$",
    ):
        table_from_rows(rows, ["a", "b"])


def test_none_and_nan_are_missing_text():
    frame = pandas.DataFrame({"a": ["red", None, float("nan")]})
    assert table_from_rows(frame, ["a"]).columns["a"].tolist() == ["red", "", ""]


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
def test_rows_of_unequal_length_are_refused(rows):
    with pytest.raises(ValueError, match="expected"):
        table_from_rows(rows, ["a", "b"])
