"""The file of saved networks: the same predictions after loading, and no code in it."""

import json
import pickle

import numpy as np
import pytest
from tabular.two_networks import ABOUT, COLUMNS, MODEL

from bonas.tabular.network_file import load, model_path, save


def test_a_loaded_model_is_the_saved_one(tmp_path):
    save(model_path(tmp_path / "s.db"), MODEL)
    again = load(tmp_path / "s.db")
    rows = {"a": [1.0, 2.0], "c": ["yes", "no"]}
    np.testing.assert_array_equal(again.predict(rows).value, MODEL.predict(rows).value)
    assert (again.about, again.columns) == (ABOUT, COLUMNS)
    assert [path.name for path in tmp_path.iterdir()] == ["s.network.npz"]


def rewritten(path, **changes):
    """Change some arrays of a file; None removes one."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(
        path, **{name: array for name, array in arrays.items() if array is not None}
    )


def head_of(path, **changes):
    with np.load(path) as file:
        return np.array(json.dumps(json.loads(str(file["head"])) | changes))


def without_about(path):
    with np.load(path) as file:
        head = json.loads(str(file["head"]))
    del head["about"]
    return np.array(json.dumps(head))


def change_group(name, value):
    def change(path):
        with np.load(path) as file:
            groups = json.loads(str(file["head"]))["groups"]
        rewritten(
            path, head=head_of(path, groups=[groups[0] | {name: value}, groups[1]])
        )

    return change


def change_columns(name, value):
    def change(path):
        with np.load(path) as file:
            columns = json.loads(str(file["head"]))["columns"]
        rewritten(path, head=head_of(path, columns=columns | {name: value}))

    return change


def set_zip_version(path, version):
    """Set the version that is needed to extract the first array."""
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\1\2") + 6] = version
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda path: rewritten(path, head=head_of(path, schema=2)),
            "expected schema 1; got 2",
        ),
        (lambda path: rewritten(path, head=None), "lacks 'head'"),
        (
            lambda path: rewritten(path, head=np.array("{}")),
            "is not a network file of bonas",
        ),
        (
            lambda path: rewritten(path, head=np.array("not JSON")),
            "is not a network file of bonas",
        ),
        (
            lambda path: rewritten(path, head=head_of(path, groups=[])),
            "it contains no networks",
        ),
        (
            lambda path: rewritten(path, **{"0/kernel/0": np.ones((2, 9, 4))}),
            "shapes of its arrays do not match",
        ),
        (lambda path: rewritten(path, **{"0/x_scale": None}), "lacks '0/x_scale'"),
        (
            lambda path: rewritten(path, **{"0/kernel/0": np.array("text")}),
            "'0/kernel/0' must be an array of float32 numbers",
        ),
        (
            lambda path: rewritten(path, **{"0/kernel/1": np.full((2, 4, 1), np.nan)}),
            "'0/kernel/1' must be an array of float32 numbers",
        ),
        (
            lambda path: rewritten(path, **{"0/kernel/0": np.array(1.0)}),
            "an array has no axis",
        ),
        (
            lambda path: rewritten(path, **{"0/x_scale": np.zeros(3)}),
            "'0/x_scale' must be positive",
        ),
        (change_group("layers", 2**63), "a network has 9223372036854775808 layers"),
        (change_group("noise", -1.0), "a group has the scales and the noise"),
        (change_group("y_scale", float("inf")), "a group has the scales and the noise"),
        (change_group("activation", []), "is not a network file of bonas"),
        (change_columns("task", "regress"), "the task 'regress' has 0 classes"),
        (
            change_columns("target", ["y"]),
            "names of columns and categories to be strings",
        ),
        (
            change_columns("inputs", [{"name": "a", "values": [], "fill": "x"}]),
            "column 'a' has the fill 'x'",
        ),
        (lambda path: rewritten(path, head=without_about(path)), "'about'"),
        (lambda path: set_zip_version(path, 99), "cannot read"),
        (lambda path: path.write_bytes(b"nonsense"), "cannot read"),
        (lambda path: path.write_bytes(pickle.dumps({"head": 1})), "cannot read"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, change, message):
    path = tmp_path / "s.network.npz"
    save(path, MODEL)
    change(path)
    with pytest.raises(ValueError, match=message):
        load(path)


class Trap:
    """An object that prints when unpickled."""

    def __reduce__(self):
        return print, ("code of a stranger was run",)


def test_code_in_a_file_is_not_run(tmp_path, capsys):
    path = tmp_path / "s.network.npz"
    save(path, MODEL)
    rewritten(path, **{"0/bias/0": np.array([Trap()], dtype=object)})
    with pytest.raises(ValueError, match="pickled object"):
        load(path)
    assert capsys.readouterr().out == ""


def test_a_study_without_networks_tells_how_to_continue(tmp_path):
    (tmp_path / "s.db").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="bonas resume"):
        load(tmp_path / "s.db")
    with pytest.raises(FileNotFoundError, match="and there is no study"):
        load(tmp_path / "other.db")


@pytest.mark.parametrize("name", ["s.csv", "s.html"])
def test_other_files_with_the_name_of_a_study_are_refused(tmp_path, name):
    save(model_path(tmp_path / "s.db"), MODEL)
    (tmp_path / name).write_text("a,c,y\n1,no,2\n")
    with pytest.raises(ValueError, match="is not a study; expected"):
        load(tmp_path / name)
