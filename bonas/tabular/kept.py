"""The found networks in a file: plain arrays and JSON in an npz file, which hold nothing that could be run.

What is kept is a committee of plain networks, predicted with in NumPy: a Bayesian one is kept as draws from its posterior.
"""

import json
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bonas.nets.mlp import Params
from bonas.problems.examples import Scaling, Task, unscale
from bonas.problems.files import load_npz
from bonas.tabular.columns import Columns, encode
from bonas.tabular.look import Answer, averaged
from bonas.tabular.table import Table, read, table_of

SCHEMA = 1
_ROWS = 4096  # predicted at once: hundreds of networks of these take some tens of megabytes
_SQLITE = b"SQLite format 3\0"  # how the file of a study begins
_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"relu": lambda z: np.maximum(z, 0.0), "tanh": np.tanh}


class Group(NamedTuple):
    """Networks of one architecture that were trained on the same rows."""

    kernels: tuple[np.ndarray, ...]  # (s, incoming, units) of each layer, the output last
    biases: tuple[np.ndarray, ...]  # (s, units)
    activation: str
    scaling: Scaling  # of the rows they were trained on
    noise: float  # variance of a value around what they say, in its own units


class Predictions(NamedTuple):
    """What the committee says of rows."""

    value: np.ndarray  # (n,) values, or names of the likeliest classes
    std: np.ndarray | None  # (n,) of a value, its noise included; None in a classification
    probabilities: np.ndarray | None  # (n, c) of `Found.classes`; None in a regression


class Found:
    """What a search found, ready to predict with: `predict(rows)`, and `about`, a dict of how it was found."""

    def __init__(self, about: dict[str, Any], columns: Columns, groups: Sequence[Group]):
        self.about, self.columns, self.groups = about, columns, tuple(groups)

    @property
    def classes(self) -> tuple[str, ...]:
        """What labels stand for; empty in a regression."""
        return self.columns.classes

    def predict(self, rows: Any, *, drop: Sequence[str] = (), unseen: str = "refuse") -> Predictions:
        """Predictions for the path of a CSV file, a DataFrame, dicts, a dict of columns or of one row, or an array (n, inputs).

        Columns are checked against those of training by name: one that is missing or unknown is refused, except the target
        and those named in `drop`; so is a category that training did not see, unless `unseen` is "missing", which takes it for
        a missing cell (`columns.encode`).
        """
        if isinstance(rows, (str, os.PathLike)):
            table = read(os.fspath(rows))
        else:
            table = table_of(rows, [column.name for column in self.columns.inputs])
        answer = self.answer(table, drop=drop, unseen=unseen)
        if self.columns.task == "regression":
            return Predictions(answer.mean, answer.std, None)
        return Predictions(np.array(self.classes)[answer.mean.argmax(axis=1)], None, answer.mean)

    def answer(self, table: Table, *, drop: Sequence[str] = (), unseen: str = "refuse") -> Answer:
        """The average over the networks of every group, and over groups."""
        return answer_of(self.columns.task, self.groups, encode(self.columns, table, drop=drop, unseen=unseen))

    def __repr__(self) -> str:
        networks = sum(len(group.biases[-1]) for group in self.groups)
        return f"Found({self.columns.task} of {self.columns.target!r} by {networks} networks)"


def answer_of(task: Task, groups: Sequence[Group], x: np.ndarray) -> Answer:
    """What groups say together of rows x (n, d) in their own units, some rows at a time."""
    parts = [_answer(task, groups, x[start : start + _ROWS]) for start in range(0, max(len(x), 1), _ROWS)]
    std = None if parts[0].std is None else np.concatenate([np.asarray(part.std) for part in parts])
    return Answer(np.concatenate([part.mean for part in parts]), std)


def _answer(task: Task, groups: Sequence[Group], x: np.ndarray) -> Answer:
    outputs, noise = [], []
    for group in groups:
        found = forward(group, x)
        outputs.append(unscale(group.scaling, found) if task == "regression" else found)
        noise.append(np.full(len(found), group.noise))
    if task == "classification":  # groups may differ in size, and count alike
        return Answer(np.mean([averaged(task, each).mean for each in outputs], axis=0))
    each = [averaged(task, *pair) for pair in zip(outputs, noise, strict=True)]
    means, variances = np.stack([a.mean for a in each]), np.stack([np.asarray(a.std) ** 2 for a in each])
    return Answer(means.mean(axis=0), np.sqrt(means.var(axis=0) + variances.mean(axis=0)))


def forward(group: Group, x: np.ndarray) -> np.ndarray:
    """Outputs (s, n, c) for rows x (n, d)."""
    h = ((x - group.scaling.x_centre) / group.scaling.x_scale)[None]
    for kernel, bias in zip(group.kernels[:-1], group.biases[:-1], strict=True):
        h = _ACTIVATIONS[group.activation](h @ kernel + bias[:, None, :])
    return h @ group.kernels[-1] + group.biases[-1][:, None, :]


def cut_out(params: Params, widths: Sequence[int], inputs: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Kernels and biases, layer by layer, of networks (s, ...) of these widths, out of their padded parameters."""
    layers: list[tuple[str, Any]] = [("first", ()), *(("hidden", i) for i in range(len(widths) - 1)), ("last", ())]
    ins, outs = [inputs, *widths], [*widths, np.shape(params["last"]["bias"])[-1]]
    kernels, biases = [], []
    for (name, place), incoming, units in zip(layers, ins, outs, strict=True):
        kernel, bias = (np.asarray(params[name][part]) for part in ("kernel", "bias"))
        if name == "hidden":
            kernel, bias = kernel[:, place], bias[:, place]
        kernels.append(kernel[:, :incoming, :units])
        biases.append(bias[:, :units])
    return tuple(kernels), tuple(biases)


# Files


def path_of(study: str | os.PathLike) -> Path:
    """Where the networks of a study are kept: beside it."""
    return Path(study).with_suffix(".network.npz")


def save(path: Path, found: Found) -> None:
    """Write the networks, all at once: a file that was there before is replaced by a whole one or not at all."""
    arrays: dict[str, np.ndarray] = {}
    described = []
    for i, group in enumerate(found.groups):
        arrays |= {f"{i}/kernel/{layer}": kernel for layer, kernel in enumerate(group.kernels)}
        arrays |= {f"{i}/bias/{layer}": bias for layer, bias in enumerate(group.biases)}
        arrays |= {f"{i}/x_centre": group.scaling.x_centre, f"{i}/x_scale": group.scaling.x_scale}
        scales = {"y_centre": group.scaling.y_centre, "y_scale": group.scaling.y_scale}
        described.append({"activation": group.activation, "layers": len(group.kernels), "noise": group.noise, **scales})
    head = {"schema": SCHEMA, "about": found.about, "columns": found.columns.to_json(), "groups": described}
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            np.savez_compressed(file, head=np.array(json.dumps(head)), allow_pickle=False, **arrays)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def load(study: str | os.PathLike) -> Found:
    """The networks that a search found: of the path of a study, beside which they are kept, or of their own file.

    A file from a stranger cannot run code: it holds numbers and JSON, and a pickled object is refused.
    """
    path = Path(study) if Path(study).name.endswith(".npz") else path_of(study)
    if path != Path(study) and not _may_be_study(Path(study)):
        raise ValueError(f"{study} is neither a study nor the networks of one: give the file of the study, or {path.name}")
    if not path.is_file():
        known = Path(study).is_file()
        why = f"the search has not ended: bonas resume {study} goes on with it" if known else "there is no such study either"
        raise FileNotFoundError(f"{path} is not there; {why}")
    try:
        head = json.loads(str(load_npz(path, ("head",))["head"]))
        if head["schema"] != SCHEMA:
            raise ValueError(f"it has schema {head['schema']}, and this bonas reads {SCHEMA}")
        columns = Columns.from_json(head["columns"])
        groups = [_group(path, i, described) for i, described in enumerate(head["groups"])]
        _check(columns, groups)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise ValueError(f"{path} does not hold networks that bonas kept: {problem}") from problem
    return Found(head["about"], columns, groups)


def _may_be_study(path: Path) -> bool:
    """Whether a file is SQLite's, or still empty; one that is not there may have been moved away from its networks."""
    if not path.is_file():
        return True
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) in (_SQLITE, b"")


def _group(path: Path, i: int, described: dict[str, Any]) -> Group:
    layers = range(int(described["layers"]))
    names = [f"{i}/{part}/{layer}" for part in ("kernel", "bias") for layer in layers]
    arrays = load_npz(path, (*names, f"{i}/x_centre", f"{i}/x_scale"))
    scaling = Scaling(
        arrays[f"{i}/x_centre"], arrays[f"{i}/x_scale"], float(described["y_centre"]), float(described["y_scale"])
    )
    kernels, biases = (tuple(arrays[f"{i}/{part}/{layer}"] for layer in layers) for part in ("kernel", "bias"))
    if described["activation"] not in _ACTIVATIONS:
        raise ValueError(f"unknown activation {described['activation']!r}")
    return Group(kernels, biases, described["activation"], scaling, float(described["noise"]))


def _check(columns: Columns, groups: Sequence[Group]) -> None:
    """A ValueError where the arrays do not fit together."""
    d, outputs = len(columns.names), max(len(columns.classes), 1)
    if not groups:
        raise ValueError("it holds no networks")
    for group in groups:
        sizes = [d, *(kernel.shape[-1] for kernel in group.kernels)]
        s = len(group.biases[-1])
        kernels = [(s, *pair) for pair in pairwise(sizes)]
        fits = [kernel.shape for kernel in group.kernels] == kernels and sizes[-1] == outputs
        fits &= [bias.shape for bias in group.biases] == [(s, size) for size in sizes[1:]]
        if not fits or group.scaling.x_centre.shape != (d,) or group.scaling.x_scale.shape != (d,):
            raise ValueError("its arrays do not fit together")
