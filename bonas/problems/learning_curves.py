"""Tables of real learning curves of networks, published by Baker et al. 2018.

The data have the MIT license.

| name | networks | epochs | minimized |
|---|---|---|---|
| metaqnn_cifar10 | 1000 convolutional (`problems.metaqnn`) | 20 | 1 − validation accuracy |
| metaqnn_svhn | 1300 convolutional | 20 | 1 − validation accuracy |
| resnet_cifar10 | 486 residual networks of 39 layers | 50 | 1 − validation accuracy |
| lstm_ptb | 280 LSTMs of 2 to 5 layers of 10 to 1390 cells | 60 | log perplexity of a word |

The residual networks differ in their number of weights and their learning rate. There is one run of
every network. Checkpoints are epochs, counted from 1. The description of the files says that the
first value of the last two sets was measured before training. It was not: accuracies are far above
chance, and perplexities far below the size of the vocabulary.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from bonas.problems import metaqnn
from bonas.problems.datasets import Source, find, locate
from bonas.problems.tables import Table, table, table_from_runs
from bonas.spaces import Float, Int, Space

_HOME = "https://raw.githubusercontent.com/MITAutoML/accelerating_nas"
_RESNET = Source(
    "curves/deep_resnets_cifar10.csv",
    _HOME,
    f"{_HOME}/7a0abeb37787f51f47231c45af2796be697fe2cc/data/deep_resnets_cifar10.csv",
    "27dbe828a15275ebc59a92dfec9f43ff7f28cac25353819c08d4afc7b8943994",
)
# At the commit of the other files its header lacks the last epoch. A later commit corrected that;
# this is the checksum of the corrected file.
_LSTM = Source(
    "curves/lstm_ptb.csv",
    _HOME,
    f"{_HOME}/master/data/lstm_ptb.csv",
    "154d96926a0085287ac507e39f37f5943425224af0eee8d126e00aab702441d9",
)
_METAQNN = {f"metaqnn_{name}": name for name in metaqnn.NAMES}
NAMES = (*_METAQNN, "resnet_cifar10", "lstm_ptb")


def load(name: str, *, download: bool = True, progress: bool = True) -> Table:
    """Load a table of learning curves by name.

    Args:
        name: One of NAMES, such as "resnet_cifar10".
        download: Whether to download the file if it is missing.
        progress: Whether to show a progress bar while downloading.
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}")
    if name in _METAQNN:
        trained = metaqnn.load(_METAQNN[name], download=download, progress=progress)
        steps = range(1, trained.curves.shape[1] + 1)
        return table(trained.space, steps, 1.0 - trained.curves)
    source, read = (
        (_RESNET, read_resnet) if name == "resnet_cifar10" else (_LSTM, read_lstm)
    )
    return read(
        find(f"{source.file}.gz")
        or locate(source, download=download, progress=progress)
    )


def read_resnet(path: Path) -> Table:
    """Read the learning curves of residual networks from a CSV file, gzipped or not.

    It has the columns num_params, lr and acc_0 to acc_49.
    """
    (weights, rate), accuracy = _read(path, ("num_params", "lr"), "acc_", 50)
    valid = (accuracy > 0.0) & (accuracy < 1.0)
    _check(path, "accuracies must be between 0 and 1", accuracy, valid)
    space = Space(
        weights=Int(int(weights.min()), int(weights.max()), log=True),
        rate=Float(rate.min(), rate.max(), log=True),
    )
    return _table(space, (weights, rate), 1.0 - accuracy)


def read_lstm(path: Path) -> Table:
    """Read the learning curves of LSTMs from a CSV file, gzipped or not.

    It has the columns n_layer, n_inputs and ep_0 to ep_59.
    """
    (layers, cells), perplexity = _read(path, ("n_layer", "n_inputs"), "ep_", 60)
    _check(path, "perplexities must be above 1", perplexity, perplexity > 1.0)
    space = Space(
        layers=Int(int(layers.min()), int(layers.max())),
        cells=Int(int(cells.min()), int(cells.max()), log=True),
    )
    return _table(space, (layers, cells), np.log(perplexity))


def _table(space: Space, columns: tuple[np.ndarray, ...], values: np.ndarray) -> Table:
    unit = [
        np.asarray(parameter.unit(jnp.asarray(column)))
        for parameter, column in zip(space.parameters.values(), columns, strict=True)
    ]
    return table_from_runs(
        space, np.stack(unit, axis=1), range(1, values.shape[1] + 1), values
    )


def _read(
    path: Path, names: tuple[str, ...], prefix: str, epochs: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the columns of these names, and the curves (n, epochs)."""
    rows = np.atleast_1d(
        np.genfromtxt(path, delimiter=",", names=True, encoding="utf-8")
    )
    curve_names = [f"{prefix}{epoch}" for epoch in range(epochs)]
    required = [*names, *curve_names]
    missing = [name for name in required if name not in (rows.dtype.names or ())]
    if missing or not len(rows):
        raise ValueError(
            f"{path}: expected a CSV file with the column {(missing or names)[0]!r} and at least "
            "one row"
        )
    for name in required:
        column = rows[name][:, None]
        _check(path, f"{name} must be a number", column, np.isfinite(column))
    return [rows[name] for name in names], np.stack(
        [rows[name] for name in curve_names], axis=1
    )


def _check(path: Path, rule: str, values: np.ndarray, valid: np.ndarray) -> None:
    if not valid.all():
        row, column = np.argwhere(~valid)[0]
        raise ValueError(f"{path}: row {row}: {rule}; got {values[row, column]}")
