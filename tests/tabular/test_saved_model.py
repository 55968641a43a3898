"""Saved networks: predictions in the units and by the names of the target, and as CSV."""

import jax
import numpy as np
import pandas
import pytest
from tabular.two_networks import ABOUT, COLUMNS, GROUP, MODEL

from bonas import nets
from bonas.nets.mlp import init, masks
from bonas.problems.examples import Scaling
from bonas.tabular import saved_model
from bonas.tabular.columns import Column, Columns
from bonas.tabular.saved_model import (
    NetworkGroup,
    Predictions,
    SavedModel,
    write_predictions,
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


# Predictions as CSV

VALUES = Predictions(np.array([1.5, -2.0]), np.array([0.25, 1.0]), None)
CLASSES = Predictions(np.array(["b", "a"]), None, np.array([[0.25, 0.75], [1.0, 0.0]]))


def empty_model(target, classes=()):
    task = "classification" if classes else "regression"
    return SavedModel({}, Columns(target, task, classes, (Column("x"),)), ())


@pytest.mark.parametrize(
    ("model", "predictions", "text"),
    [
        (empty_model("y"), VALUES, "row,y,y_std\n1,1.5,0.25\n2,-2,1\n"),
        (
            empty_model("y", ("a", "b")),
            CLASSES,
            "row,y,probability=a,probability=b\n1,b,0.250000,0.750000\n2,a,1.000000,0.000000\n",
        ),
        (empty_model("row"), VALUES, "row_number,row,row_std\n1,1.5,0.25\n2,-2,1\n"),
    ],
)
def test_rows_are_numbered_from_one_in_a_file_and_in_the_terminal(
    tmp_path, capsys, model, predictions, text
):
    write_predictions(tmp_path / "predictions.csv", model, predictions)
    write_predictions(None, model, predictions)
    assert (tmp_path / "predictions.csv").read_text() == text
    assert capsys.readouterr().out == text
