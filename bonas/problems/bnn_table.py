"""A table of trained Bayesian networks, to compare searches on learning curves in seconds.

The table contains variational networks of 1 to 3 hidden layers, trained by bonas on UCI data sets,
with validation scores at checkpoints. Hidden layers have equal widths; on two sets there are also
networks whose layers have half the width of the previous one. The split, the scaling and the
hyperprior per layer are as in Hutchinson's published code; the optimizer is Adam. `settings`
returns the number of updates, batches and draws for every set. The file is made by
`experiments/hutchinson/make_table.py`.

Units: `log_likelihood` of validation rows, `train_log_likelihood` of equally many training rows and
`bound` of the evidence are in nats per row. `rmse` of the mean prediction and `rmse_published` over
draws and rows are in the units of the target, and the variance `noise` in their square. `seconds`
is the time of training and scoring up to a checkpoint, with compilation. `active` is the number of
hidden units in use in each layer. Scores are means over the last updates before a checkpoint.

    set       training    validation   columns    target
    yacht          261    47                 6    residuary resistance, without a unit
    boston         430    76                13    median value of homes, 1000 dollars
    energy         652    116                8    heating load, kWh/m²
    concrete       875    155                8    compressive strength, MPa
    wine_red      1359    240               11    quality, a mark from 0 to 10
    kin8nm        6963    1229               8    distance of a robot arm's end from a point
    power         8132    1436               4    electrical output, MW
    protein      38870    1500 of 6860       9    deviation of a decoy from the structure, Å

The data are from the UCI repository, except boston (StatLib) and kin8nm (DELVE, from OpenML, a
simulation), under the terms given there; boston and kin8nm state no terms. `bonas.problems.uci` has
the address of each. The table contains none of their rows. It is part of bonas and has its license.

Limitations: all networks share one split, so their scores are correlated, and rows that occur twice
(wine 240, protein 1711, power 41, concrete 25) can be in both parts. Validation rows were not used
in training, but a search over the table has no test set left. Scores are means over few updates and
draws, so they are noisy even for a fixed seed. Seconds were measured on a busy machine.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from bonas.problems.download import has_sha256
from bonas.problems.tables import Table, table
from bonas.spaces import Choice, Int, Space, TableSpace

FILE = "bnn_table.npz"
TABLE_FILE = Path(__file__).parent / "data" / FILE
# SHA-256 digest of TABLE_FILE.
SHA256 = "4e1e4328370599653b78b150b7918b111d8537e00172168f15b2d90c9e82c524"
METRICS = (
    "log_likelihood",
    "rmse",
    "rmse_published",
    "train_log_likelihood",
    "bound",
    "noise",
    "seconds",
)
# Metrics that can be minimized, and their sign.
_LOSSES = {"log_likelihood": -1.0, "rmse": 1.0, "rmse_published": 1.0}


class Network(NamedTuple):
    """The architecture of a network of the table."""

    depth: int
    width: int  # units of the first hidden layer
    shrinking: bool = False  # each layer has half the units of the previous one

    def widths(self) -> list[int]:
        """Return the units of each hidden layer."""
        if not self.shrinking:
            return [self.width] * self.depth
        return [max(self.width >> i, 1) for i in range(self.depth)]


class Record(NamedTuple):
    """All results of the networks of one data set."""

    networks: tuple[Network, ...]  # (n,)
    steps: np.ndarray  # (c,) updates at each checkpoint
    # (n, s, c) each; NaN if diverged or trained with fewer seeds
    metrics: dict[str, np.ndarray]
    active: np.ndarray  # (n, s, c, depth) units in use; -1 if unknown


def names(path: Path | None = None) -> tuple[str, ...]:
    """Return the names of the data sets of the table."""
    return tuple(settings(path)["sets"])


def settings(path: Path | None = None) -> dict[str, Any]:
    """Return the training settings of each data set, the command that ran, and the versions."""
    with _open(path) as arrays:
        return json.loads(str(arrays["about"]))


def record(name: str, path: Path | None = None) -> Record:
    """Load all results of one data set.

    Args:
        name: One of `names()`.
        path: The file to read; by default, the one that is part of bonas.

    Raises:
        ValueError: If the file has no such data set.
    """
    known = settings(path)
    if name not in known["sets"]:
        raise ValueError(
            f"name must be one of {', '.join(known['sets'])}; got {name!r}"
        )
    with _open(path) as arrays:
        networks = tuple(
            Network(int(d), int(w), bool(s)) for d, w, s in arrays[f"{name}/networks"]
        )
        metrics = {metric: arrays[f"{name}/{metric}"] for metric in METRICS}
        steps = np.asarray(known["settings"][name]["checkpoints"])
        return Record(networks, steps, metrics, arrays[f"{name}/active"])


def load(
    name: str,
    metric: str = "log_likelihood",
    *,
    shrinking: bool = False,
    path: Path | None = None,
) -> Table:
    """Load learning curves of networks trained on a data set, as a table to search.

    The parameters are the depth and the width, on a logarithmic scale, as in Hutchinson's searches.

    Args:
        name: The name of the data set; see `names`.
        metric: The score to minimize: "log_likelihood" (its negative, in nats per row), "rmse" or
            "rmse_published".
        shrinking: Whether to include networks in which each layer has half the units of the
            previous one. They add a third parameter, `pattern`.
        path: The file to read; by default, the one that is part of bonas.

    Raises:
        ValueError: If the data set or the metric is unknown, or there are no shrinking networks.
    """
    if metric not in _LOSSES:
        raise ValueError(f"metric must be one of {', '.join(_LOSSES)}; got {metric!r}")
    results = record(name, path)
    constant = [
        i for i, network in enumerate(results.networks) if not network.shrinking
    ]
    chosen = list(range(len(results.networks))) if shrinking else constant
    if shrinking and len(chosen) == len(constant):
        raise ValueError(
            f"the table of {name!r} has no shrinking networks; pass shrinking=False"
        )
    networks = [results.networks[i] for i in chosen]
    depths = [network.depth for network in networks]
    widths = [network.width for network in networks]
    columns: dict[str, Any] = {
        "depth": Int(min(depths), max(depths)),
        "width": Int(min(widths), max(widths), log=True),
    }
    unit = [
        parameter.unit(jnp.asarray(values))
        for parameter, values in zip(columns.values(), (depths, widths), strict=True)
    ]
    if shrinking:
        columns["pattern"] = Choice("constant", "shrinking")
        unit.append(jnp.asarray([float(network.shrinking) for network in networks]))
    rows = np.stack(unit, axis=1)
    curves = _LOSSES[metric] * results.metrics[metric][chosen].astype(float)
    return table(TableSpace(Space(**columns), rows), results.steps.tolist(), curves)


def _open(path: Path | None) -> Any:
    source = TABLE_FILE if path is None else Path(path)
    if not source.is_file():
        raise FileNotFoundError(
            f"{source} is missing; make it with experiments/hutchinson/make_table.py"
        )
    if path is None:
        check(TABLE_FILE)
    return np.load(source, allow_pickle=False)


def check(path: Path) -> None:
    """Raise a ValueError unless the file is the published table."""
    try:
        has_sha256(SHA256)(path)
    except ValueError as problem:
        raise ValueError(
            f"{path} is not the table of networks of this version of bonas: {problem}. "
            "Reinstall bonas."
        ) from None


def pack(path: Path, rows: list[dict], about: dict) -> None:
    """Write the results of trained networks as one compressed file.

    Args:
        path: The file to write.
        rows: One dict per network and seed, as made by `experiments/hutchinson/make_table.py`.
        about: Settings, command and versions, which `settings` returns.
    """
    arrays: dict[str, np.ndarray] = {}
    sets = list(dict.fromkeys(row["set"] for row in rows))
    for name in sets:
        packed = _pack_set([row for row in rows if row["set"] == name])
        arrays |= {f"{name}/{key}": array for key, array in packed.items()}
    arrays["about"] = np.asarray(json.dumps({**about, "sets": sets}))
    np.savez_compressed(path, allow_pickle=False, **arrays)


def _pack_set(rows: list[dict]) -> dict[str, np.ndarray]:
    """Return the arrays of one data set as the file stores them."""
    networks = list(dict.fromkeys(tuple(row["network"]) for row in rows))
    seeds = max(row["seed"] for row in rows) + 1
    steps, layers = np.shape(rows[0]["active"])
    sizes = (len(networks), seeds, steps)
    metrics = {metric: np.full(sizes, np.nan, np.float32) for metric in METRICS}
    active = np.full((*sizes, layers), -1, np.int16)
    place = {network: i for i, network in enumerate(networks)}
    for row in rows:
        at = place[tuple(row["network"])], row["seed"]
        active[at] = row["active"]
        for metric, block in metrics.items():
            block[at] = np.asarray(row[metric], np.float32)
    return {"networks": np.asarray(networks, np.int16), **metrics, "active": active}


def rows(path: Path | None = None) -> list[dict]:
    """Return the rows of the table in the form that `pack` takes, to extend the table."""
    found = []
    for name in names(path):
        known = record(name, path)
        # (n, s): others have fewer seeds
        trained = np.isfinite(known.metrics["seconds"][:, :, 0])
        for i, seed in np.argwhere(trained).tolist():
            scores = {
                key: [_plain(value) for value in block[i, seed]]
                for key, block in known.metrics.items()
            }
            found.append(
                {
                    "set": name,
                    "network": list(known.networks[i]),
                    "seed": seed,
                    **scores,
                    "active": known.active[i, seed].tolist(),
                }
            )
    return found


def _plain(value: np.float32) -> float | None:
    """Round a number to six digits; None for NaN."""
    return None if np.isnan(value) else float(f"{value:.6g}")


def digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
