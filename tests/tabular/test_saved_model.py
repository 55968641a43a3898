"""Saved networks: predictions in units and names of the target; their file, without code in it."""

import json
import pickle

import jax
import numpy as np
import pandas
import pytest
from tabular.two_networks import ABOUT, COLUMNS, GROUP, MODEL

from bonas import nets
from bonas.nets.mlp import init, masks
from bonas.problems.examples import Scaling
from bonas.tabular import saved_model
from bonas.tabular.columns import Columns
from bonas.tabular.saved_model import (
    NetworkGroup,
    SavedModel,
    load,
    model_path,
    save,
)

SHAPE = nets.Shape(3, 2, depth=3, width=6, activations=("relu", "tanh"))
X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
PLAIN = Scaling(np.zeros(3), np.ones(3), 0.0, 1.0)


def params_of(widths, activation):
    network = nets.architecture(SHAPE, widths, activation)
    keys = jax.random.split(jax.random.key(1), 2)
    mask = masks(keys[0], SHAPE, network)
    return network, jax.vmap(lambda key: init(key, SHAPE, network, mask, "unit"))(keys)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "activation"), [((4,), "relu"), ((6, 2), "tanh"), ((1, 5, 6), "relu")]
)
def test_unpadded_networks_have_the_same_outputs(widths, activation):
    network, params = params_of(widths, activation)
    group = NetworkGroup(
        *saved_model.unpad_layers(params, widths, 3), activation, PLAIN, 0.0
    )
    assert [kernel.shape[-1] for kernel in group.kernels] == [*widths, 2]
    padded = jax.vmap(lambda each: nets.apply(SHAPE, each, X.astype(float), network))(
        params
    )
    np.testing.assert_allclose(
        saved_model.group_outputs(group, X), padded, rtol=1e-10, atol=1e-12
    )


@pytest.mark.typed
def test_predictions_are_in_the_units_of_the_target():
    row = np.array([[2.0, 1.0, 0.0]])  # a = 2, c = no
    scaled = (row - 1.0) / 2.0
    values = [
        10.0
        + 5.0
        * (
            np.tanh(scaled @ GROUP.kernels[0][i] + GROUP.biases[0][i])
            @ GROUP.kernels[1][i]
            + GROUP.biases[1][i]
        )
        for i in range(2)
    ]
    predicted = MODEL.predict([{"a": 2.0, "c": "no"}])
    np.testing.assert_allclose(predicted.value, np.mean(values))
    np.testing.assert_allclose(
        predicted.std, np.sqrt(np.var(values) + 1.0)
    )  # the mean of 0.5 and 1.5


def test_rows_may_come_in_many_forms(tmp_path):
    (tmp_path / "new.csv").write_text("c,a\nyes,1\nno,2\n")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "c": ["yes", "no"]})
    given = [tmp_path / "new.csv", frame, [["1.0", "yes"], ["2.0", "no"]]]
    values = [MODEL.predict(rows).value for rows in given]
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])


def test_predictions_do_not_depend_on_the_number_of_rows():
    rows = np.random.default_rng(0).normal(size=(10_000, 1))
    table = {"a": rows[:, 0], "c": np.where(rows[:, 0] > 0.0, "yes", "no")}
    predicted = MODEL.predict(table)
    some = MODEL.predict({name: column[5000:5003] for name, column in table.items()})
    np.testing.assert_allclose(predicted.value[5000:5003], some.value, rtol=1e-12)
    np.testing.assert_allclose(predicted.std[5000:5003], some.std, rtol=1e-12)


def test_classes_are_predicted_by_name():
    columns = Columns("y", "classification", ("cat", "dog"), COLUMNS.inputs)
    two = GROUP._replace(
        kernels=(GROUP.kernels[0], np.zeros((2, 4, 2))),
        biases=(GROUP.biases[0], np.array([[0.0, 1.0]] * 2)),
        scaling=PLAIN,
    )
    predicted = SavedModel(ABOUT, columns, [two]).predict([{"a": 1.0, "c": "no"}])
    assert predicted.value.tolist() == ["dog"]
    np.testing.assert_allclose(
        predicted.probabilities, [[1.0 / (1.0 + np.e), np.e / (1.0 + np.e)]]
    )


# The file


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
            "must have at least one axis",
        ),
        (
            lambda path: rewritten(path, **{"0/x_scale": np.zeros(3)}),
            "'0/x_scale' must be positive",
        ),
        (
            change_group("layers", 2**63),
            "layers must be from 1 to 1000; got 9223372036854775808",
        ),
        (change_group("noise", -1.0), "noise >= 0; got .*-1.0"),
        (
            change_group("y_scale", float("inf")),
            "must be finite in float32, .* got .*inf",
        ),
        (change_group("activation", []), "is not a network file of bonas"),
        (
            change_columns("task", "regress"),
            "classification with classes; got 'regress' with 0 classes",
        ),
        (
            change_columns("target", ["y"]),
            "names of columns and categories must be strings",
        ),
        (
            change_columns("inputs", [{"name": "a", "values": [], "fill": "x"}]),
            "fill value of column 'a' must be a number; got 'x'",
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
