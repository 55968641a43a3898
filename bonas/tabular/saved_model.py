"""The networks of a search: their predictions, which need only NumPy, and their file.

A Bayesian network is represented by draws from its posterior. The npz file contains plain arrays
and JSON, so that loading it cannot run code.
"""

import json
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from bonas.nets import Params
from bonas.problems.examples import TASKS, Scaling, Task, unscale
from bonas.problems.npz_files import load_npz
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

# The version of the format of the file.
SCHEMA = 1
_MOST_LAYERS = 1000
_LARGEST = float(np.finfo(np.float32).max)
_SQLITE_HEADER = b"SQLite format 3\0"


class NetworkGroup(NamedTuple):
    """Networks of one architecture, trained on the same rows."""

    # (s, incoming, units) by layer, the output layer last
    kernels: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]  # (s, units) by layer
    activation: str
    scaling: Scaling  # fitted to the training rows
    noise: float  # noise variance, in the units of the target


class Predictions(NamedTuple):
    """Predictions of a saved model for n rows."""

    value: Shaped[np.ndarray, " n"]  # values, or names of the most probable classes
    # standard deviation including noise; regression only
    std: Float[np.ndarray, " n"] | None
    probabilities: Float[np.ndarray, "n c"] | None  # by class; classification only


class SavedModel:
    """The trained networks of a search, which predict new rows.

    Attributes:
        about: The result and the settings of the search.
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
                missing or unknown column, except the target, raises a ValueError.
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
    """Average the predictions of groups of networks for rows in original units."""
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
    """Compute the outputs of every network of a group, in scaled units."""
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


# The file


def model_path(study: str | os.PathLike) -> Path:
    """Return the path of the networks of a study, a file in the same folder."""
    return Path(study).with_suffix(".network.npz")


def save(path: Path, model: SavedModel) -> None:
    """Write the networks to a file atomically."""
    arrays: dict[str, np.ndarray] = {}
    groups = []
    for i, group in enumerate(model.groups):
        arrays |= {
            f"{i}/kernel/{layer}": kernel for layer, kernel in enumerate(group.kernels)
        }
        arrays |= {f"{i}/bias/{layer}": bias for layer, bias in enumerate(group.biases)}
        arrays |= {
            f"{i}/x_center": group.scaling.x_center,
            f"{i}/x_scale": group.scaling.x_scale,
        }
        groups.append(
            {
                "activation": group.activation,
                "layers": len(group.kernels),
                "noise": group.noise,
                "y_center": group.scaling.y_center,
                "y_scale": group.scaling.y_scale,
            }
        )
    head = {
        "schema": SCHEMA,
        "about": model.about,
        "columns": model.columns.to_json(),
        "groups": groups,
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(
                file, head=np.array(json.dumps(head)), allow_pickle=False, **arrays
            )
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def load(study: str | os.PathLike) -> SavedModel:
    """Load the networks of a search.

    Args:
        study: The path of a study, or of its .network.npz file. The file contains only numbers
            and JSON, and pickled objects are rejected, so an untrusted file cannot run code.
    """
    path = _find_model(Path(study))
    try:
        head = json.loads(str(load_npz(path, ("head",))["head"]))
        if head["schema"] != SCHEMA:
            raise ValueError(f"expected schema {SCHEMA}; got {head['schema']}")
        columns = Columns.from_json(head["columns"])
        _check_columns(columns)
        groups = [_load_group(path, i, entry) for i, entry in enumerate(head["groups"])]
        _check_shapes(columns, groups)
        return SavedModel(dict(head["about"]), columns, groups)
    except (AttributeError, LookupError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is not a network file of bonas: {error!r}") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a network file of bonas: {error}") from error


def _find_model(path: Path) -> Path:
    """Return the network file of a study, or the path itself if it is one."""
    if path.name.endswith(".npz"):
        found = path
    else:
        found = model_path(path)
        if not _may_be_study(path):
            raise ValueError(
                f"{path} is not a study; expected a study file or {found.name}"
            )
    if found.is_file():
        return found
    if path.is_file():
        why = f"the search is not complete. To continue: bonas resume {path}"
    else:
        why = f"and there is no study {path}"
    raise FileNotFoundError(f"{found} does not exist: {why}")


def _may_be_study(path: Path) -> bool:
    """Return whether a path may be a study: an SQLite file, an empty file or a missing one."""
    if not path.is_file():
        return True
    with path.open("rb") as file:
        return file.read(len(_SQLITE_HEADER)) in (_SQLITE_HEADER, b"")


def _load_group(path: Path, i: int, entry: dict[str, Any]) -> NetworkGroup:
    layers = int(entry["layers"])
    if not 1 <= layers <= _MOST_LAYERS:
        raise ValueError(f"layers must be from 1 to {_MOST_LAYERS}; got {layers}")
    kernel_names = [f"{i}/kernel/{layer}" for layer in range(layers)]
    bias_names = [f"{i}/bias/{layer}" for layer in range(layers)]
    # the spelling in older files
    center = "center" if "y_center" in entry else "centre"
    arrays = load_npz(
        path, (*kernel_names, *bias_names, f"{i}/x_{center}", f"{i}/x_scale")
    )
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or not (abs(array) <= _LARGEST).all():
            raise ValueError(f"{name!r} must be an array of float32 numbers")
    numbers = [float(entry[name]) for name in (f"y_{center}", "y_scale", "noise")]
    if not max(map(abs, numbers)) <= _LARGEST or numbers[2] < 0.0:
        raise ValueError(
            f"y_center, y_scale and noise must be finite in float32, and noise >= 0; got {numbers}"
        )
    if not (arrays[f"{i}/x_scale"] > 0.0).all():
        raise ValueError(f"'{i}/x_scale' must be positive")
    if entry["activation"] not in ACTIVATIONS:
        raise ValueError(
            f"activation must be one of {', '.join(ACTIVATIONS)}; got {entry['activation']!r}"
        )
    return NetworkGroup(
        kernels=tuple(arrays[name] for name in kernel_names),
        biases=tuple(arrays[name] for name in bias_names),
        activation=entry["activation"],
        scaling=Scaling(
            arrays[f"{i}/x_{center}"],
            arrays[f"{i}/x_scale"],
            *numbers[:2],
        ),
        noise=numbers[2],
    )


def _check_columns(columns: Columns) -> None:
    """Raise a ValueError unless names are strings and fill values fit their columns."""
    texts = [columns.target, *columns.classes, *columns.unused]
    for column in columns.inputs:
        texts += [column.name, *column.categories]
        kinds = (str,) if column.categories else (int, float)
        if column.fill is not None and not isinstance(column.fill, kinds):
            kind = "text" if column.categories else "a number"
            raise ValueError(
                f"the fill value of column {column.name!r} must be {kind}; got {column.fill!r}"
            )
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("names of columns and categories must be strings")
    if columns.task not in TASKS or (columns.task == TASKS[1]) != bool(columns.classes):
        raise ValueError(
            "task must be regression without classes or classification with classes; "
            f"got {columns.task!r} with {len(columns.classes)} classes"
        )


def _check_shapes(columns: Columns, groups: Sequence[NetworkGroup]) -> None:
    d = len(columns.names)
    n_outputs = max(len(columns.classes), 1)
    if not groups:
        raise ValueError("it contains no networks")
    for group in groups:
        if min(array.ndim for array in (*group.kernels, *group.biases)) < 1:
            raise ValueError("kernels and biases must have at least one axis")
        s = len(group.biases[-1])
        sizes = [d, *(kernel.shape[-1] for kernel in group.kernels)]
        fits = [kernel.shape for kernel in group.kernels] == [
            (s, *pair) for pair in pairwise(sizes)
        ]
        fits &= [bias.shape for bias in group.biases] == [
            (s, size) for size in sizes[1:]
        ]
        fits &= sizes[-1] == n_outputs
        fits &= group.scaling.x_center.shape == group.scaling.x_scale.shape == (d,)
        if not fits:
            raise ValueError("the shapes of its arrays do not match")
