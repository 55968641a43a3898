"""The table of trained Bayesian networks: a loader, and how it was packed (`experiments/make_bnn_table.py`).

Datasheet. What: variational networks of 1 to 3 hidden layers on UCI sets, trained by bonas, with validation scores at
checkpoints; constant widths, and on two sets layers that halve. Why: searches on learning curves can be compared in seconds.
How: one split and scaling as in Hutchinson's code (H-S4), Adam, one hyper-prior a layer; updates, batches and draws are kept
in the file, set by set (`settings`).

Units, for values in those of their target: `log_likelihood`, of validation rows, `train_log_likelihood`, of as many training
rows, and `bound`, of the evidence: nats a row; `rmse`, of the mean prediction, and `rmse_published`, over draws and rows:
those of the target; `noise`, a variance: their square; `seconds`: of training and scoring up to a checkpoint, compiling
included; `active`: hidden units in use, layer by layer (H-S5). Scores are means over the last updates before a checkpoint.

    set        rows that train, validate   columns   target
    yacht             261         47           6     residuary resistance, without a unit
    boston            430         76          13     median value of homes, 1000 dollars
    energy            652        116           8     heating load, kWh/m²
    concrete          875        155           8     compressive strength, MPa
    wine_red         1359        240          11     quality, a mark from 0 to 10
    kin8nm           6963       1229           8     distance of a robot arm's end from a point, as simulated
    power            8132       1436           4     electrical output, MW
    protein         38870       1500 of 6860   9     deviation of a decoy from the structure, Å

Source of the data: the UCI repository, but boston StatLib and kin8nm DELVE, by OpenML (`bonas.problems.uci` has the address of
each), under the terms given there; boston and kin8nm state none. None of their rows are in the table, which is bonas's own
and under its licence.

Limits: one split, so scores of networks are correlated through it, and rows that occur twice (of wine 240, protein 1711, power
41, concrete 25) can be on both sides; validation rows chose nothing in training, but a search that looks networks up by them
has no test set left. Scores are means over few updates and draws, so they have noise besides that of seeds; seconds were
measured beside other work.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from bonas.problems.download import has_sha256
from bonas.problems.tables import Table, table
from bonas.spaces import Choice, Int, Listed, Space

FILE = "bnn_table.npz"
SHIPPED = Path(__file__).parent / "data" / FILE
SHA256 = "4e1e4328370599653b78b150b7918b111d8537e00172168f15b2d90c9e82c524"  # of the shipped file
METRICS = ("log_likelihood", "rmse", "rmse_published", "train_log_likelihood", "bound", "noise", "seconds")
_LOSSES = {"log_likelihood": -1.0, "rmse": 1.0, "rmse_published": 1.0}  # what can be minimised, and by which sign


class Network(NamedTuple):
    """An architecture of the table."""

    depth: int
    width: int  # of the first hidden layer
    shrinking: bool = False  # each layer has half the units of the one before; else all have as many

    def widths(self) -> list[int]:
        """Units of each hidden layer."""
        return [max(self.width >> i, 1) if self.shrinking else self.width for i in range(self.depth)]


class Record(NamedTuple):
    """All that is known of the networks of one set."""

    networks: tuple[Network, ...]  # n of them
    steps: np.ndarray  # (c,) updates at each checkpoint
    metrics: dict[str, np.ndarray]  # (n, s, c) each; NaN of a network that diverged, or was trained with fewer seeds
    active: np.ndarray  # (n, s, c, depth) units in use; -1 where not known


def names(path: Path | None = None) -> tuple[str, ...]:
    """The sets of the table."""
    return tuple(settings(path)["sets"])


def settings(path: Path | None = None) -> dict[str, Any]:
    """How the networks of each set were trained ("settings"), by which command and versions."""
    with _open(path) as arrays:
        return json.loads(str(arrays["about"]))


def record(name: str, path: Path | None = None) -> Record:
    """Everything that the table holds of a set."""
    known = settings(path)
    if name not in known["sets"]:
        raise ValueError(f"the table has the sets {', '.join(known['sets'])}; got {name!r}")
    with _open(path) as arrays:
        networks = tuple(Network(int(d), int(w), bool(s)) for d, w, s in arrays[f"{name}/networks"])
        metrics = {metric: arrays[f"{name}/{metric}"] for metric in METRICS}
        return Record(networks, np.asarray(known["settings"][name]["checkpoints"]), metrics, arrays[f"{name}/active"])


def load(name: str, metric: str = "log_likelihood", *, shrinking: bool = False, path: Path | None = None) -> Table:
    """The networks of a set as learning curves to search: of the negative log likelihood in nats a row, or an error.

    The space is depth and width, the latter by its logarithm (H-D6, H-S7). shrinking: with those whose layers halve, which
    a third column tells.
    """
    if metric not in _LOSSES:
        raise ValueError(f"what a search minimises is made of {', '.join(_LOSSES)}; got {metric!r}")
    found = record(name, path)
    chosen = [i for i, network in enumerate(found.networks) if shrinking or not network.shrinking]
    if shrinking and len(chosen) == sum(not network.shrinking for network in found.networks):
        raise ValueError(f"the table has no shrinking networks of {name}")
    networks = [found.networks[i] for i in chosen]
    depths, widths = [network.depth for network in networks], [network.width for network in networks]
    columns: dict[str, Any] = {"depth": Int(min(depths), max(depths)), "width": Int(min(widths), max(widths), log=True)}
    kinds: dict[str, list] = {"depth": depths, "width": widths}
    unit = [parameter.unit(jnp.asarray(kinds[key])) for key, parameter in columns.items()]
    if shrinking:
        columns["pattern"] = Choice("constant", "shrinking")
        unit.append(jnp.asarray([float(network.shrinking) for network in networks]))
    rows = np.stack(unit, axis=1)
    values = _LOSSES[metric] * found.metrics[metric][chosen].astype(float)
    return table(Listed(Space(**columns), rows), found.steps.tolist(), values)


def _open(path: Path | None):
    source = SHIPPED if path is None else Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"{source} is not there; experiments/make_bnn_table.py makes it")
    if path is None:
        check(SHIPPED)
    return np.load(source, allow_pickle=False)


@cache
def check(path: Path) -> None:
    """A ValueError for a file that is not the table that bonas ships; looked at once a process."""
    try:
        has_sha256(SHA256)(path)
    except ValueError as problem:
        raise ValueError(f"{path} is not the table of networks of this version of bonas: {problem}. Install it anew.") from None


def pack(path: Path, rows: list[dict], about: dict) -> None:
    """Write the rows of `experiments/make_bnn_table.py` as one compressed file."""
    arrays: dict[str, np.ndarray] = {}
    sets = list(dict.fromkeys(row["set"] for row in rows))
    for name in sets:
        own = [row for row in rows if row["set"] == name]
        networks = list(dict.fromkeys(tuple(row["network"]) for row in own))
        seeds, (steps, layers) = max(row["seed"] for row in own) + 1, np.shape(own[0]["active"])
        place = {network: i for i, network in enumerate(networks)}
        arrays[f"{name}/networks"] = np.asarray(networks, np.int16)
        blocks = {metric: np.full((len(networks), seeds, steps), np.nan, np.float32) for metric in METRICS}
        active = np.full((len(networks), seeds, steps, layers), -1, np.int16)
        for row in own:
            at = place[tuple(row["network"])], row["seed"]
            active[at] = row["active"]
            for metric, block in blocks.items():
                block[at] = np.asarray(row[metric], np.float32)
        arrays |= {f"{name}/{metric}": block for metric, block in blocks.items()} | {f"{name}/active": active}
    arrays["about"] = np.asarray(json.dumps({**about, "sets": sets}))
    np.savez_compressed(path, allow_pickle=False, **arrays)


def rows(path: Path | None = None) -> list[dict]:
    """What `pack` was given, to add to it."""
    found = []
    for name in names(path):
        known = record(name, path)
        trained = np.isfinite(known.metrics["seconds"][:, :, 0])  # (n, s): others have fewer seeds
        for i, seed in np.argwhere(trained).tolist():
            scores = {key: [_plain(value) for value in block[i, seed]] for key, block in known.metrics.items()}
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
    """A number as rows have it: six digits, and None for NaN."""
    return None if np.isnan(value) else float(f"{value:.6g}")


def digest(path: Path) -> str:
    """The sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
