"""Networks in a file: the same predictions after reading, and nothing that could be run."""

import json
import pickle

import jax
import numpy as np
import pandas
import pytest

from bonas import nets
from bonas.nets.mlp import init, masks
from bonas.problems.examples import Scaling
from bonas.tabular import kept
from bonas.tabular.columns import Column, Columns

SHAPE = nets.Shape(3, 2, depth=3, width=6, activations=("relu", "tanh"))
X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
PLAIN = Scaling(np.zeros(3), np.ones(3), 0.0, 1.0)
COLUMNS = Columns("y", "regression", (), (Column("a"), Column("c", ("no", "yes"))), ("unused",))
ABOUT = {"seed": 0}


def params_of(widths, activation):
    network = nets.architecture(SHAPE, widths, activation)
    keys = jax.random.split(jax.random.key(1), 2)
    mask = masks(keys[0], SHAPE, network)
    return network, jax.vmap(lambda key: init(key, SHAPE, network, mask, "unit"))(keys)


@pytest.fixture
def group():
    """Two networks of one hidden layer for COLUMNS."""
    rng = np.random.default_rng(1)
    kernels = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 1))
    biases = rng.normal(size=(2, 4)), rng.normal(size=(2, 1))
    return kept.Group(kernels, biases, "tanh", Scaling(np.ones(3), np.full(3, 2.0), 10.0, 5.0), 0.5)


@pytest.fixture
def found(group):
    return kept.Found(ABOUT, COLUMNS, [group, group._replace(noise=1.5)])


@pytest.mark.slow
@pytest.mark.parametrize(("widths", "activation"), [((4,), "relu"), ((6, 2), "tanh"), ((1, 5, 6), "relu")])
def test_networks_cut_out_of_their_padding_say_the_same(widths, activation):
    network, params = params_of(widths, activation)
    group = kept.Group(*kept.cut_out(params, widths, 3), activation, PLAIN, 0.0)
    assert [kernel.shape[-1] for kernel in group.kernels] == [*widths, 2]
    padded = jax.vmap(lambda each: nets.apply(SHAPE, each, X.astype(float), network))(params)
    np.testing.assert_allclose(kept.forward(group, X), padded, rtol=1e-10, atol=1e-12)


def test_predictions_are_in_the_units_of_the_target(group, found):
    row = np.array([[2.0, 1.0, 0.0]])  # a = 2, c = no
    scaled = (row - 1.0) / 2.0
    values = [
        10.0 + 5.0 * (np.tanh(scaled @ group.kernels[0][i] + group.biases[0][i]) @ group.kernels[1][i] + group.biases[1][i])
        for i in range(2)
    ]
    said = found.predict([{"a": 2.0, "c": "no"}])
    np.testing.assert_allclose(said.value, np.mean(values))
    np.testing.assert_allclose(said.std, np.sqrt(np.var(values) + 1.0))  # the mean of 0.5 and 1.5


def test_a_file_says_what_was_saved(found, tmp_path):
    kept.save(kept.path_of(tmp_path / "s.db"), found)
    again = kept.load(tmp_path / "s.db")
    rows = {"a": [1.0, 2.0], "c": ["yes", "no"]}
    np.testing.assert_array_equal(again.predict(rows).value, found.predict(rows).value)
    assert (again.about, again.columns) == (ABOUT, COLUMNS)
    assert [path.name for path in tmp_path.iterdir()] == ["s.network.npz"]


def test_rows_may_come_in_many_ways(found, tmp_path):
    (tmp_path / "new.csv").write_text("c,a\nyes,1\nno,2\n")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "c": ["yes", "no"]})
    given = [tmp_path / "new.csv", frame, [["1.0", "yes"], ["2.0", "no"]]]
    values = [found.predict(rows).value for rows in given]
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])


def test_many_rows_are_predicted_as_few_are(found):
    rows = np.random.default_rng(0).normal(size=(10_000, 1))
    table = {"a": rows[:, 0], "c": np.where(rows[:, 0] > 0.0, "yes", "no")}
    said = found.predict(table)
    some = found.predict({name: column[5000:5003] for name, column in table.items()})
    np.testing.assert_allclose(said.value[5000:5003], some.value, rtol=1e-12)
    np.testing.assert_allclose(said.std[5000:5003], some.std, rtol=1e-12)


def test_classes_are_named(group):
    columns = Columns("y", "classification", ("cat", "dog"), COLUMNS.inputs)
    two = group._replace(
        kernels=(group.kernels[0], np.zeros((2, 4, 2))), biases=(group.biases[0], np.array([[0.0, 1.0]] * 2)), scaling=PLAIN
    )
    said = kept.Found(ABOUT, columns, [two]).predict([{"a": 1.0, "c": "no"}])
    assert said.value.tolist() == ["dog"]
    np.testing.assert_allclose(said.probabilities, [[1.0 / (1.0 + np.e), np.e / (1.0 + np.e)]])


# Files that are not ours


def rewritten(path, **changes):
    """The file with some of its arrays changed, or left out where None."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def head_of(path, **changes):
    with np.load(path) as file:
        return np.array(json.dumps(json.loads(str(file["head"])) | changes))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: rewritten(path, head=head_of(path, schema=2)), "it has schema 2, and this bonas reads 1"),
        (lambda path: rewritten(path, head=None), "lacks 'head'"),
        (lambda path: rewritten(path, head=np.array("{}")), "does not hold networks"),
        (lambda path: rewritten(path, head=np.array("not JSON")), "does not hold networks"),
        (lambda path: rewritten(path, head=head_of(path, groups=[])), "it holds no networks"),
        (lambda path: rewritten(path, **{"0/kernel/0": np.ones((2, 9, 4))}), "do not fit together"),
        (lambda path: rewritten(path, **{"0/x_scale": None}), "lacks '0/x_scale'"),
        (lambda path: path.write_bytes(b"nonsense"), "cannot read"),
        (lambda path: path.write_bytes(pickle.dumps({"head": 1})), "cannot read"),
    ],
)
def test_a_bad_file_is_refused(found, tmp_path, change, message):
    path = tmp_path / "s.network.npz"
    kept.save(path, found)
    change(path)
    with pytest.raises(ValueError, match=message):
        kept.load(path)


class Trap:
    """Something whose unpickling would be seen."""

    def __reduce__(self):
        return print, ("code of a stranger was run",)


def test_a_stranger_s_code_is_not_run(found, tmp_path, capsys):
    path = tmp_path / "s.network.npz"
    kept.save(path, found)
    rewritten(path, **{"0/bias/0": np.array([Trap()], dtype=object)})
    with pytest.raises(ValueError, match=r"it holds a pickled object, which is not opened$"):
        kept.load(path)
    assert capsys.readouterr().out == ""


def test_a_study_without_networks_says_how_to_get_them(tmp_path):
    (tmp_path / "s.db").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="bonas resume"):
        kept.load(tmp_path / "s.db")
    with pytest.raises(FileNotFoundError, match="there is no such study either"):
        kept.load(tmp_path / "other.db")


@pytest.mark.parametrize("name", ["s.csv", "s.html"])
def test_files_of_the_same_name_that_are_no_study_are_refused(found, tmp_path, name):
    kept.save(kept.path_of(tmp_path / "s.db"), found)
    (tmp_path / name).write_text("a,c,y\n1,no,2\n")
    with pytest.raises(ValueError, match="is neither a study nor the networks of one"):
        kept.load(tmp_path / name)
