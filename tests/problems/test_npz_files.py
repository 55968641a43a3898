"""npz files, good and bad. An error names the file, the column and the row."""

import numpy as np
import pytest

from bonas.problems import npz_files


@pytest.fixture
def saved(tmp_path):
    def save(**arrays):
        path = tmp_path / "data.npz"
        np.savez(path, **arrays)
        return path

    return save


X, Y = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]]), np.array([1.0, 2.0, 3.0])


def changed(array, row, *column, to):
    array = array.copy()
    array[(row, *column)] = to
    return array


def test_npz_arrays_become_examples(saved):
    examples = npz_files.read_npz(saved(X=X, y=Y))
    assert (examples.x.tolist(), examples.y.tolist(), examples.task) == (
        X.tolist(),
        Y.tolist(),
        "regression",
    )


def test_npz_columns_have_names(saved):
    assert npz_files.read_npz(
        saved(X=X, y=Y, feature_names=np.array(["a", "b"]))
    ).names == (
        "a",
        "b",
    )


def test_npz_columns_without_names_are_numbered(saved):
    assert npz_files.read_npz(saved(X=X, y=Y)).names == ("x1", "x2")


def test_npz_text_becomes_classes(saved):
    examples = npz_files.read_npz(saved(X=X, y=np.array(["b", "a", "b"])))
    assert (examples.y.tolist(), examples.classes) == ([1, 0, 1], ("a", "b"))


def test_npz_numbers_become_classes_when_asked(saved):
    assert npz_files.read_npz(
        saved(X=X, y=np.array([7, 5, 7])), task="classification"
    ).classes == (
        "5",
        "7",
    )


def test_npz_columns_can_be_dropped(saved):
    examples = npz_files.read_npz(saved(X=X, y=Y), drop=["x1"])
    assert (examples.x.tolist(), examples.names) == ([[2], [5], [4]], ("x2",))


def test_npz_numbers_are_float32(saved):
    examples = npz_files.read_npz(saved(X=X, y=Y))
    assert (examples.x.dtype, examples.y.dtype) == (np.float32, np.float32)


def test_an_unknown_task_is_refused(saved):
    with pytest.raises(
        ValueError, match="task must be one of regression, classification"
    ):
        npz_files.read_npz(saved(X=X, y=Y), task="ranking")


BAD = {
    "no y": ({"X": X, "z": Y}, r"lacks 'y'; it contains 'X', 'z'"),
    "lengths": ({"X": X, "y": Y[:2]}, r"got \(3, 2\) and \(2,\)"),
    "flat": ({"X": Y, "y": Y}, r"got \(3,\) and \(3,\)"),
    "text": ({"X": X.astype(str), "y": Y}, r"X must be numeric; got <U\d+"),
    "complex target": ({"X": X, "y": Y + 1j}, r"numbers or text; got complex128"),
    "nan": (
        {"X": changed(X, 1, 0, to=np.nan), "y": Y},
        r"column 'x1', row 2: nan is not a finite",
    ),
    "beyond float32": (
        {"X": changed(X, 1, 0, to=1e39), "y": Y},
        r"column 'x1', row 2: inf is not a finite",
    ),
    "nan target": (
        {"X": X, "y": changed(Y, 2, to=np.nan)},
        r"column 'y', row 3 is not a finite",
    ),
    "constant": (
        {"X": np.ones((3, 2)), "y": Y},
        r"column 'x1' is constant; pass drop=\['x1'\]",
    ),
    "no rows": ({"X": X[:0], "y": Y[:0]}, r"no rows"),
    "names": (
        {"X": X, "y": Y, "feature_names": np.array(["a"])},
        r"expected 2 feature_names, one per column; got 1",
    ),
    "pickled": (
        {"X": X, "y": np.array([1, "a", None], dtype=object)},
        r"npz file of plain arrays",
    ),
}


@pytest.mark.parametrize(("arrays", "message"), BAD.values(), ids=BAD)
def test_bad_npz_is_refused_in_clear_words(saved, arrays, message):
    with pytest.raises(ValueError, match=message):
        npz_files.read_npz(saved(**arrays))


def test_npz_text_is_no_regression(saved):
    with pytest.raises(
        ValueError, match="expected a numeric y for regression; got text"
    ):
        npz_files.read_npz(saved(X=X, y=np.array(["b", "a", "b"])), task="regression")


def test_npz_nan_is_no_class(saved):
    with pytest.raises(ValueError, match="row 1 is not a finite"):
        npz_files.read_npz(
            saved(X=X, y=changed(Y, 0, to=np.nan)), task="classification"
        )


def test_npz_columns_to_drop_must_be_there(saved):
    with pytest.raises(
        ValueError, match="no column 'z' to drop; its columns are 'x1', 'x2'"
    ):
        npz_files.read_npz(saved(X=X, y=Y), drop=["z"])


def test_one_column_must_be_left(saved):
    with pytest.raises(ValueError, match="all are dropped"):
        npz_files.read_npz(saved(X=X, y=Y), drop=["x1", "x2"])


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 cut short"])
def test_a_file_that_is_no_npz_is_refused(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="npz file of plain arrays"):
        npz_files.read_npz(path)


def test_a_missing_npz_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        npz_files.read_npz(tmp_path / "none.npz")


def test_an_npy_file_by_another_name_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(ValueError, match="npz file of plain arrays"):
        npz_files.read_npz((tmp_path / "a.npy").rename(tmp_path / "a.npz"))
