"""CSV and npz files, good and bad. An error names the file, the column and the row."""

import gzip

import numpy as np
import pytest

from bonas.problems import files

GOOD = "age,size,price\n1,2.5,10\n2,3.5,20\n3,1.5,15\n"


@pytest.fixture
def written(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def saved(tmp_path):
    def save(**arrays):
        path = tmp_path / "data.npz"
        np.savez(path, **arrays)
        return path

    return save


# CSV that is read


def test_columns_become_x(written):
    np.testing.assert_array_equal(files.read_csv(written(GOOD), "price").x, [[1, 2.5], [2, 3.5], [3, 1.5]])


def test_the_target_becomes_y(written):
    np.testing.assert_array_equal(files.read_csv(written(GOOD), "price").y, [10, 20, 15])


def test_names_leave_the_target_out(written):
    assert files.read_csv(written(GOOD), "size").names == ("age", "price")


def test_numbers_are_float32(written):
    examples = files.read_csv(written(GOOD), "price")
    assert (examples.x.dtype, examples.y.dtype, examples.task) == (np.float32, np.float32, "regression")


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\n\n"),
        GOOD.replace(",", " , "),
        '"age","size","price"\n"1","2.5","10"\n"2","3.5","20"\n"3","1.5","15"\n',
        GOOD.rstrip(),
    ],
    ids=["byte-order mark", "Windows", "blank lines", "spaces", "quotes", "no last newline"],
)
def test_harmless_variants_are_the_same(written, text):
    examples = files.read_csv(written(text), "price")
    assert (examples.names, examples.x.tolist()) == (("age", "size"), [[1, 2.5], [2, 3.5], [3, 1.5]])


def test_another_separator_is_taken(written):
    assert files.read_csv(written(GOOD.replace(",", ";")), "price", separator=";").y.tolist() == [10, 20, 15]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", GOOD.encode()),
        ("a.CSV", GOOD.encode()),
        ("a.csv.gz", gzip.compress(GOOD.encode(), mtime=0)),
        ("a.tsv", GOOD.replace(",", "\t").encode()),
    ],
)
def test_read_knows_the_kind_by_the_name(written, name, text):
    assert files.read(written(text, name), "price").y.tolist() == [10, 20, 15]


def test_dropped_columns_are_gone(written):
    assert files.read_csv(written(GOOD), "price", drop=["age"]).names == ("size",)


def test_a_dropped_column_may_hold_anything(written):
    assert files.read_csv(written("id,a,y\nx,1,1\nx,2,2\n"), "y", drop=["id"]).x.tolist() == [[1], [2]]


# Classes and categories


def test_text_targets_become_classes(written):
    examples = files.read_csv(written("a,kind\n1,dog\n2,cat\n3,dog\n"), "kind")
    assert (examples.task, examples.y.tolist(), examples.classes) == ("classification", [1, 0, 1], ("cat", "dog"))


def test_numbers_become_classes_when_asked(written):
    examples = files.read_csv(written("a,kind\n1,10\n2,9\n3,10\n"), "kind", task="classification")
    assert (examples.y.tolist(), examples.classes) == ([1, 0, 1], ("9", "10"))


def test_none_may_be_a_class(written):
    assert files.read_csv(written("a,kind\n1,none\n2,some\n"), "kind").classes == ("none", "some")


def test_a_categorical_column_is_one_hot_in_its_place(written):
    examples = files.read_csv(written("a,colour,b,y\n1,red,5,1\n2,blue,6,2\n"), "y", categorical=["colour"])
    assert examples.names == ("a", "colour=blue", "colour=red", "b")


def test_one_hot_columns_mark_their_value(written):
    examples = files.read_csv(written("colour,y\nred,1\nblue,2\nred,3\n"), "y", categorical=["colour"])
    assert examples.x.tolist() == [[0, 1], [1, 0], [0, 1]]


# CSV that is refused

CASES = {
    "missing target": (GOOD, {}, r"no target 'y'; its columns are 'age', 'size', 'price'"),
    "unknown categorical": ("a,y\n1,1\n2,2\n", {"categorical": ["b"]}, r"no categorical column 'b'; its columns are 'a', 'y'"),
    "unknown drop": ("a,y\n1,1\n2,2\n", {"drop": ["b"]}, r"no column to drop 'b'; its columns are 'a', 'y'"),
    "dropped target": ("a,y\n1,1\n2,2\n", {"drop": ["y"]}, r"target 'y' cannot be categorical or dropped"),
    "text": ("a,b,y\n1,5,1\n2,red,2\n3,blue,3\n", {}, r"'b' is not numeric: row 2 \(line 3\) holds 'red'.*categorical=\['b'\]"),
    "text in a regression": ("a,y\n1,1\n2,red\n", {"task": "regression"}, r"'y' is not numeric: row 2 \(line 3\) holds 'red'"),
    "mixed target": ("a,y\n1,1\n2,red\n", {}, r"'y' mixes numbers and text: row 2 \(line 3\) holds 'red'"),
    "decimal comma": ("a;b;y\n1;2,5;1\n2;3,5;2\n", {"separator": ";"}, r"'b' is not numeric: row 1 \(line 2\) holds '2,5'"),
    "constant": ("a,b,y\n1,7,1\n2,7,2\n", {}, r"column 'b' is constant; pass drop=\['b'\]"),
    "constant target": ("a,y\n1,7\n2,7\n", {}, r"column 'y' is constant"),
    "one class": ("a,y\n1,cat\n2,cat\n", {}, r"column 'y' is constant"),
    "constant category": ("a,c,y\n1,red,7\n2,red,8\n", {"categorical": ["c"]}, r"column 'c=red' is constant"),
    "nan": ("a,b,y\n1,1,1\n2,nan,2\n", {}, r"column 'b', row 2 \(line 3\): 'nan' is not a finite"),
    "empty cell": ("a,b,y\n1,1,1\n2,,2\n", {}, r"column 'b', row 2 \(line 3\): '' is not a finite"),
    "question mark": ("a,b,y\n1,?,1\n2,1,2\n", {}, r"column 'b', row 1 \(line 2\): '\?' is not a finite"),
    "infinity": ("a,b,y\n1,1,1\n2,-inf,2\n", {}, r"column 'b', row 2 \(line 3\): '-inf' is not a finite"),
    "beyond float32": ("a,b,y\n1,1,1\n2,1e39,2\n", {}, r"column 'b', row 2 \(line 3\): '1e39' is not a finite float32"),
    "nan target": ("a,y\n1,1\n2,NA\n", {}, r"column 'y', row 2 \(line 3\): 'NA' is not a finite"),
    "empty class": ("a,y\n1,cat\n2,\n3,dog\n", {}, r"column 'y', row 2 \(line 3\): the cell is empty"),
    "empty category": ("a,c,y\n1,red,1\n2,,2\n", {"categorical": ["c"]}, r"column 'c', row 2 \(line 3\): the cell is empty"),
    "line after a blank": ("a,y\n\n1,1\n\nx,2\n", {}, r"row 2 \(line 5\) holds 'x'"),
    "empty file": ("", {}, r"data.csv is empty"),
    "blank file": ("\n \n", {}, r"data.csv is empty"),
    "header only": ("a,y\n", {}, r"a header but no rows"),
    "short row": ("a,b,y\n1,2,3\n4,5\n", {}, r"row 2 \(line 3\) has 2 cells, but the header names 3"),
    "long row": ("a,b,y\n1,2,3\n4,5,6,7\n", {}, r"row 2 \(line 3\) has 4 cells, but the header names 3"),
    "semicolons": ("a;b;y\n1;2;3\n", {}, r"only one column, 'a;b;y'; is its separator the semicolon\? Pass separator=';'"),
    "tabs": ("a\tb\ty\n1\t2\t3\n", {}, r"separator the tab\? Pass separator='\\t'"),
    "commas": (GOOD, {"separator": ";"}, r"separator the comma\? Pass separator=','"),
    "one column": ("y\n1\n2\n", {}, r"only one column, 'y'$"),
    "only the target": ("a,y\n1,1\n2,2\n", {"drop": ["a"]}, r"no columns to learn from"),
    "no header": ("1,2\n3,4\n", {}, r"first line of .* holds numbers"),
    "nameless column": (",a,y\n0,1,1\n1,2,2\n", {}, r"column 1 of .* has no name"),
    "twice the same name": ("a,a,y\n1,2,3\n4,5,6\n", {}, r"more than one column 'a'"),
    "not UTF-8": ("a,y\n1,caf\xe9\n".encode("latin-1"), {}, r"not text in UTF-8"),
    "unknown task": ("a,y\n1,1\n2,2\n", {"task": "ranking"}, r"regression, classification; got 'ranking'"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "options", "message"), CASES.values(), ids=CASES)
def test_bad_csv_is_refused_in_clear_words(written, text, options, message):
    with pytest.raises(ValueError, match=message):
        files.read_csv(written(text), "y", **options)


@pytest.mark.parametrize("case", [name for name, (_, options, _) in CASES.items() if not options])
def test_refusals_name_the_file(written, case):
    with pytest.raises(ValueError, match=r"data\.csv"):
        files.read_csv(written(CASES[case][0]), "y")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        files.read_csv(tmp_path / "none.csv", "y")


def test_a_broken_gzip_file_is_refused(written):
    with pytest.raises(ValueError, match="not a whole gzip file"):
        files.read(written(gzip.compress(GOOD.encode(), mtime=0)[:-12], "a.csv.gz"), "price")


def test_read_without_a_target_lists_the_columns(written):
    with pytest.raises(ValueError, match="needs a target, one of its columns: 'age', 'size', 'price'"):
        files.read(written(GOOD))


def test_an_unknown_kind_is_refused(written):
    with pytest.raises(ValueError, match=r"a\.xlsx is neither"):
        files.read(written("", "a.xlsx"), "y")


# New rows for a trained network


def test_inputs_come_in_the_order_of_the_names(written):
    assert files.read_inputs(written("b,other,a\n1,x,2\n"), ("a", "b")).tolist() == [[2, 1]]


def test_inputs_are_one_hot_as_in_training(written):
    assert files.read_inputs(written("c,a\nred,2\n"), ("a", "c=blue", "c=red")).tolist() == [[2, 0, 1]]


def test_inputs_are_float32(written):
    assert files.read_inputs(written("a,b\n1,2\n"), ("a", "b")).dtype == np.float32


def test_one_row_of_inputs_may_be_constant(written):
    assert files.read_inputs(written("a,b\n1,1\n"), ("a", "b")).tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,c\n1,green\n", r"column 'c', row 1 \(line 2\): 'green' is none of 'blue', 'red'"),
        ("a,d\n1,red\n", r"no input 'c'; its columns are 'a', 'd'"),
        ("a,c\nx,red\n", r"column 'a' is not numeric: row 1 \(line 2\) holds 'x'"),
    ],
    ids=["unseen value", "missing column", "text"],
)
def test_bad_inputs_are_refused(written, text, message):
    with pytest.raises(ValueError, match=message):
        files.read_inputs(written(text), ("a", "c=blue", "c=red"))


# npz

X, Y = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]]), np.array([1.0, 2.0, 3.0])


def changed(array, row, *column, to):
    array = array.copy()
    array[(row, *column)] = to
    return array


def test_npz_arrays_become_examples(saved):
    examples = files.read(saved(X=X, y=Y))
    assert (examples.x.tolist(), examples.y.tolist(), examples.task) == (X.tolist(), Y.tolist(), "regression")


def test_npz_columns_have_names(saved):
    assert files.read_npz(saved(X=X, y=Y, feature_names=np.array(["a", "b"]))).names == ("a", "b")


def test_npz_columns_without_names_are_numbered(saved):
    assert files.read_npz(saved(X=X, y=Y)).names == ("x1", "x2")


def test_npz_text_becomes_classes(saved):
    examples = files.read_npz(saved(X=X, y=np.array(["b", "a", "b"])))
    assert (examples.y.tolist(), examples.classes) == ([1, 0, 1], ("a", "b"))


def test_npz_numbers_become_classes_when_asked(saved):
    assert files.read_npz(saved(X=X, y=np.array([7, 5, 7])), task="classification").classes == ("5", "7")


def test_npz_columns_can_be_dropped(saved):
    assert files.read_npz(saved(X=X, y=Y), drop=["x1"]).x.tolist() == [[2], [5], [4]]


BAD = {
    "no y": ({"X": X, "z": Y}, r"lacks 'y'; it holds 'X', 'z'"),
    "lengths": ({"X": X, "y": Y[:2]}, r"got \(3, 2\) and \(2,\)"),
    "flat": ({"X": Y, "y": Y}, r"got \(3,\) and \(3,\)"),
    "text": ({"X": X.astype(str), "y": Y}, r"X holds <U\d+, not numbers"),
    "complex target": ({"X": X, "y": Y + 1j}, r"y holds complex128"),
    "nan": ({"X": changed(X, 1, 0, to=np.nan), "y": Y}, r"column 'x1', row 2: nan is not a finite"),
    "beyond float32": ({"X": changed(X, 1, 0, to=1e39), "y": Y}, r"column 'x1', row 2: inf is not a finite"),
    "nan target": ({"X": X, "y": changed(Y, 2, to=np.nan)}, r"column 'y', row 3 is not a finite"),
    "constant": ({"X": np.ones((3, 2)), "y": Y}, r"column 'x1' is constant; pass drop=\['x1'\]"),
    "no rows": ({"X": X[:0], "y": Y[:0]}, r"no rows"),
    "names": ({"X": X, "y": Y, "feature_names": np.array(["a"])}, r"1 feature_names for 2 columns"),
    "pickled": ({"X": X, "y": np.array([1, "a", None], dtype=object)}, r"npz file of plain arrays"),
}


@pytest.mark.parametrize(("arrays", "message"), BAD.values(), ids=BAD)
def test_bad_npz_is_refused_in_clear_words(saved, arrays, message):
    with pytest.raises(ValueError, match=message):
        files.read_npz(saved(**arrays))


def test_npz_text_is_no_regression(saved):
    with pytest.raises(ValueError, match="no target of a regression"):
        files.read_npz(saved(X=X, y=np.array(["b", "a", "b"])), task="regression")


def test_npz_nan_is_no_class(saved):
    with pytest.raises(ValueError, match="row 1 is not a finite"):
        files.read_npz(saved(X=X, y=changed(Y, 0, to=np.nan)), task="classification")


def test_npz_columns_to_drop_must_be_there(saved):
    with pytest.raises(ValueError, match="no column 'z' to drop; its columns are 'x1', 'x2'"):
        files.read_npz(saved(X=X, y=Y), drop=["z"])


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 cut short"])
def test_a_file_that_is_no_npz_is_refused(written, content):
    with pytest.raises(ValueError, match="npz file of plain arrays"):
        files.read(written(content, "a.npz"))


def test_a_missing_npz_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        files.read(tmp_path / "none.npz")


def test_an_npy_file_by_another_name_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(ValueError, match="npz file of plain arrays"):
        files.read((tmp_path / "a.npy").rename(tmp_path / "a.npz"))
