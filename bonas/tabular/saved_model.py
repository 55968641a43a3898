"""The networks of a search, and their predictions, which need only NumPy.

A Bayesian network is represented by draws from its posterior.
"""

import csv
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from bonas.nets import Params
from bonas.problems.examples import Scaling, Task, unscale
from bonas.tabular.columns import Columns, Unseen, encode_inputs
from bonas.tabular.scores import Predictive, average_networks, concatenate
from bonas.tabular.table import read_table, table_from_rows

# Number of rows predicted at once, which limits the memory for hundreds of networks.
_CHUNK = 4096
# The activations of hidden layers by name.
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda z: np.maximum(z, 0.0),
    "tanh": np.tanh,
}


class NetworkGroup(NamedTuple):
    """Networks of one architecture, trained on the same rows."""

    # (s, incoming, units) by layer, the output layer last
    kernels: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]  # (s, units) by layer
    activation: str
    scaling: Scaling  # fitted to the training rows
    noise: float  # noise variance, in the units of the target


class Predictions(NamedTuple):
    """Predictions for rows."""

    value: Shaped[np.ndarray, " n"]  # values, or names of the most probable classes
    # standard deviation including noise; regression only
    std: Float[np.ndarray, " n"] | None
    probabilities: Float[np.ndarray, "n c"] | None  # by class; classification only


class SavedModel:
    """The trained networks of a search, which predict new rows.

    Attributes:
        about: How the networks were found, as a dict.
        columns: The columns of the training table.
        groups: The networks.
    """

    def __init__(
        self, about: dict[str, Any], columns: Columns, groups: Sequence[NetworkGroup]
    ):
        self.about = about
        self.columns = columns
        self.groups = tuple(groups)

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names by label; empty for regression."""
        return self.columns.classes

    def predict(
        self, rows: Any, *, drop: Sequence[str] = (), unseen: Unseen = "refuse"
    ) -> Predictions:
        """Predict the target of rows.

        Args:
            rows: The path of a CSV or Parquet file, a DataFrame, a list of dicts, a dict of
                columns or of one row, or an array (n, inputs). Columns are matched by name; a
                missing or unknown column is an error, except the target.
            drop: Columns of `rows` to ignore.
            unseen: How to treat a category that is not in the training data: "refuse" raises an
                error, "missing" treats it as a missing value.
        """
        if isinstance(rows, (str, os.PathLike)):
            table = read_table(os.fspath(rows))
        else:
            table = table_from_rows(
                rows, [column.name for column in self.columns.inputs]
            )
        x = encode_inputs(self.columns, table, drop=drop, unseen=unseen)
        predicted = predict_groups(self.columns.task, self.groups, x)
        if self.columns.task == "regression":
            return Predictions(predicted.mean, predicted.std, None)
        labels = predicted.mean.argmax(axis=1)
        return Predictions(np.array(self.classes)[labels], None, predicted.mean)

    def __repr__(self) -> str:
        n = sum(len(group.biases[-1]) for group in self.groups)
        return f"SavedModel({self.columns.task} of {self.columns.target!r} by {n} networks)"


def predict_groups(
    task: Task, groups: Sequence[NetworkGroup], x: Float[np.ndarray, "n d"]
) -> Predictive:
    """Average the predictions of groups for rows in original units."""
    starts = range(0, max(len(x), 1), _CHUNK)
    return concatenate(
        [_predict_chunk(task, groups, x[i : i + _CHUNK]) for i in starts]
    )


def _predict_chunk(
    task: Task, groups: Sequence[NetworkGroup], x: np.ndarray
) -> Predictive:
    """Predict some rows; groups of different sizes have equal weight."""
    if task == "classification":
        averages = [
            average_networks(task, group_outputs(group, x)).mean for group in groups
        ]
        return Predictive(np.mean(averages, axis=0))
    predicted = []
    for group in groups:
        outputs = unscale(group.scaling, group_outputs(group, x))
        noise = np.full(len(outputs), group.noise)
        predicted.append(average_networks(task, outputs, noise))
    means = np.stack([each.mean for each in predicted])
    variances = np.stack([np.asarray(each.std) ** 2 for each in predicted])
    return Predictive(
        means.mean(axis=0), np.sqrt(means.var(axis=0) + variances.mean(axis=0))
    )


def group_outputs(
    group: NetworkGroup, x: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "s n c"]:
    """Evaluate the networks of a group."""
    h = ((x - group.scaling.x_center) / group.scaling.x_scale)[None]
    for kernel, bias in zip(group.kernels[:-1], group.biases[:-1], strict=True):
        h = ACTIVATIONS[group.activation](h @ kernel + bias[:, None, :])
    return h @ group.kernels[-1] + group.biases[-1][:, None, :]


def unpad_layers(
    params: Params, widths: Sequence[int], n_inputs: int
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Extract the kernels and biases of networks from padded parameters (s, ...)."""
    n_outputs = np.shape(params["last"]["bias"])[-1]
    incoming = [n_inputs, *widths]
    units = [*widths, n_outputs]
    kernels = []
    biases = []
    for i in range(len(units)):
        if i == 0:
            layer = {name: np.asarray(leaf) for name, leaf in params["first"].items()}
        elif i < len(widths):
            layer = {
                name: np.asarray(leaf)[:, i - 1]
                for name, leaf in params["hidden"].items()
            }
        else:
            layer = {name: np.asarray(leaf) for name, leaf in params["last"].items()}
        kernels.append(layer["kernel"][:, : incoming[i], : units[i]])
        biases.append(layer["bias"][:, : units[i]])
    return tuple(kernels), tuple(biases)


# Predictions as CSV


def write_predictions(
    path: Path | None, model: SavedModel, predictions: Predictions
) -> None:
    """Write predictions as CSV, one line per row, numbered from 1.

    The columns are the row number, the value, and its standard deviation or the probability of
    each class.

    Args:
        path: The file to write; None: standard output.
        model: The model that made the predictions.
        predictions: The predictions.
    """
    target = model.columns.target
    number_column = "row" if target != "row" else "row_number"
    header, rows = _prediction_cells(model, predictions)
    lines: list[list[Any]] = [[number_column, *header]]
    lines += [[i, *row] for i, row in enumerate(rows, start=1)]
    if path is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)


def _prediction_cells(
    model: SavedModel, predictions: Predictions
) -> tuple[list[str], list[list[str]]]:
    target = model.columns.target
    if predictions.probabilities is None:
        pairs = zip(predictions.value, predictions.std, strict=True)  # type: ignore[arg-type]
        return [target, f"{target}_std"], [
            [f"{value:.7g}", f"{std:.7g}"] for value, std in pairs
        ]
    header = [target, *(f"probability={name}" for name in model.classes)]
    pairs = zip(predictions.value, predictions.probabilities, strict=True)
    return header, [[value, *(f"{p:.6f}" for p in shares)] for value, shares in pairs]
