"""What `bonas search` searches: plain networks, Wilton's ensembles, and variational networks, and how each is trained."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jax import Array

from bonas import nets
from bonas.nets.mlp import Params
from bonas.nets.vi_train import Course, Traits
from bonas.problems.examples import Task
from bonas.spaces import Choice, Float, Int, Space
from bonas.tabular import teams, variational
from bonas.tabular.look import Look

SPACES = ("mlp", "ensemble", "bnn")
_UPDATES = 3000  # of a run: enough for a small network at a middling rate; the validation rows end most runs earlier
# Rows to train on up to which they are. Beyond, updates grow with the root of the rows: some 8,500 on 13,000 rows. How long
# scikit-learn's network of two layers of 64 units goes on before it stops varies: on one set 3,100 updates on 12,800 rows, and
# 9,100 on 16,000. This is near the longer; a network that is done earlier is stopped by the validation rows.
_FEW = 1600
_LOOKS = 20  # checkpoints of a run
_MANY = 2000  # rows from which on wider networks can pay
_DEEPEST = 3
# On many rows trials are long and few, and most of what is drawn from the space does worse than the network that one would
# train without a search: it comes first. Its rate and decay are the middle of those searched.
_USUAL = {
    "depth": 2,
    "width_1": 64,
    "width_2": 64,
    "activation": "relu",
    "learning_rate": 3e-3,
    "weight_decay": 0.1,
    "dropout": 0.0,
}
_RATE = 3e-3  # of Wilton's ensembles, whose learning rate is not searched (W-D4)
_MEMBERS = 10
_NOISE = 0.25  # variance that variational networks begin with, for targets of variance 1


class Size(NamedTuple):
    """What a space depends on."""

    rows: int  # to train on
    inputs: int
    outputs: int
    task: Task


@dataclass(frozen=True)
class Family:
    """A space and how its networks are trained on folds.

    begin: (key, config, folds) -> a training. advance: (training, until) -> (training, Look).
    params: training -> parameters (k, s, ...) of the networks of a Look, padded to one shape.
    checkpoints: when training is looked at, in `unit`s.
    score: what the search minimises: "rmse", "log_loss" or "nats" of `bonas.tabular.look`.
    """

    name: str
    space: Space
    checkpoints: tuple[int, ...]
    unit: str
    score: str
    begin: Callable[[Array, Mapping[str, Any], nets.Examples], Any]
    advance: Callable[[Any, int], tuple[Any, Look]]
    params: Callable[[Any], Params]
    first: Mapping[str, Any] | None = None  # what a search begins with; None: with what it chooses


def family(name: str, size: Size) -> Family:
    """The space of that name for data of that size."""
    if name not in SPACES:
        raise ValueError(f"a space is one of {', '.join(SPACES)}; got {name!r}")
    if name == "bnn" and size.task == "classification":
        raise ValueError("the space bnn is for regression: its networks have normal noise; use mlp or ensemble")
    return {"mlp": _mlp, "ensemble": _ensemble, "bnn": _bnn}[name](size)


def widths_of(config: Mapping[str, Any]) -> list[int]:
    """The hidden layers of a configuration of any of the spaces."""
    if "width" in config:
        return [config["width"]] * config["depth"]
    return [config[f"width_{i}"] for i in range(1, config["depth"] + 1)]


def activation_of(config: Mapping[str, Any]) -> str:
    """What hidden units do; ReLU where the configuration does not say."""
    return config.get("activation", "relu")


def in_words(config: Mapping[str, Any]) -> str:
    """The network of a configuration, for people."""
    layers = " and ".join([", ".join(map(str, widths_of(config)[:-1])), str(widths_of(config)[-1])]).removeprefix(" and ")
    plural = "layer" if config["depth"] == 1 else "layers"
    said = f"{config['depth']} hidden {plural} of {layers} {activation_of(config)} units"
    if "members" in config:
        return f"{config['members']} networks of {said}, each with {config['density']:.0%} of its weights"
    numbers = {name: config[name] for name in ("learning_rate", "weight_decay", "dropout", "prior_variance") if name in config}
    return said + "".join(f", {name.replace('_', ' ')} {value:.2g}" for name, value in numbers.items())


def _architecture(shape: nets.Shape, config: Mapping[str, Any]) -> nets.Architecture:
    """The network of a configuration, made on the host: `nets.architecture` compiles a program for every depth."""
    widths = np.zeros(shape.depth, np.int32)
    widths[: config["depth"]] = widths_of(config)
    density = np.float32(config["density"]) if "density" in config else None
    return nets.Architecture(widths, np.int32(shape.activations.index(activation_of(config))), density)  # type: ignore[arg-type]


def _batch(rows: int) -> int:
    """A power of two near a tenth of the rows, from 8 to 256."""
    return min(2 ** round(math.log2(min(max(rows / 10, 8), 256))), rows)


def _checkpoints(updates: int) -> tuple[int, ...]:
    every = max(updates // _LOOKS, 1)
    return tuple(range(every, every * _LOOKS + 1, every))


def _updates(rows: int) -> int:
    return round(_UPDATES * math.sqrt(max(rows / _FEW, 1.0)))


def _epochs(rows: int) -> tuple[int, ...]:
    """Checkpoints in epochs, which make about so many updates, and not fewer than 40 epochs."""
    return _checkpoints(max(_updates(rows) // -(-rows // _batch(rows)), 40))


def _settings(size: Size, epochs: int) -> nets.Settings:
    loss = "cross_entropy" if size.task == "classification" else "squared_error"
    return nets.Settings(loss=loss, batch=_batch(size.rows), max_epochs=epochs)


def _score(size: Size) -> str:
    return "log_loss" if size.task == "classification" else "rmse"


def _widest(size: Size) -> int:
    return 64 if size.rows < _MANY else 256


def _mlp(size: Size) -> Family:
    """Depth, a width for each layer, activation, learning rate, weight decay and dropout."""
    widest, checkpoints = _widest(size), _epochs(size.rows)
    later = {f"width_{i}": Int(4, widest, log=True, when={"depth": (">=", i)}) for i in range(2, _DEEPEST + 1)}
    space = Space(
        depth=Int(1, _DEEPEST),
        width_1=Int(4, widest, log=True),
        **later,
        activation=Choice("relu", "tanh"),
        learning_rate=Float(3e-4, 3e-2, log=True),
        weight_decay=Float(1e-3, 10.0, log=True),
        dropout=Float(0.0, 0.5),
    )
    shape = nets.Shape(size.inputs, size.outputs, _DEEPEST, widest, activations=("relu", "tanh"))
    plan = teams.Plan(shape, _settings(size, checkpoints[-1]), most=1)

    def begin(key: Array, config: Mapping[str, Any], folds: nets.Examples) -> teams.Training:
        network = _architecture(shape, config)
        names = ("learning_rate", "weight_decay", "dropout")
        hyper = nets.Hyper(**{name: np.float32(config[name]) for name in names})
        return teams.begin(key, plan, teams.Team(network, hyper, 1), folds)

    first = _USUAL if size.rows >= _FEW else None
    return Family("mlp", space, checkpoints, "epochs", _score(size), begin, teams.advance, teams.params_of, first)


def _ensemble(size: Size) -> Family:
    """θ = (L, D, N, p): layers, their width, members, and the share of weights that each has (Wilton 2020, Section 3.3)."""
    widest, checkpoints = _widest(size), _epochs(size.rows)
    space = Space(depth=Int(1, _DEEPEST), width=Int(4, widest, log=True), members=Int(2, _MEMBERS), density=Float(0.2, 1.0))
    shape = nets.Shape(size.inputs, size.outputs, _DEEPEST, widest, activations=("relu",))
    plan = teams.Plan(shape, _settings(size, checkpoints[-1]), most=_MEMBERS)

    def begin(key: Array, config: Mapping[str, Any], folds: nets.Examples) -> teams.Training:
        network = _architecture(shape, config)
        hyper = nets.Hyper(learning_rate=np.float32(_RATE))
        return teams.begin(key, plan, teams.Team(network, hyper, config["members"]), folds)

    return Family("ensemble", space, checkpoints, "epochs", _score(size), begin, teams.advance, teams.params_of)


def _bnn(size: Size) -> Family:
    """Depth, width, activation, and what variational inference is told: the rate of its climb and the mode of the prior."""
    widest, checkpoints = 64, _checkpoints(_updates(size.rows))
    space = Space(
        depth=Int(1, 2),
        width=Int(4, widest, log=True),
        activation=Choice("relu", "tanh"),
        learning_rate=Float(1e-3, 3e-2, log=True),
        prior_variance=Float(1e-3, 10.0, log=True),
    )
    shape = nets.Shape(size.inputs, 1, 2, widest, activations=("relu", "tanh"))
    course, vi = Course(checkpoints, batch=min(_batch(size.rows) * 2, size.rows), draws=1), nets.VI(samples=4)

    def begin(key: Array, config: Mapping[str, Any], folds: nets.Examples) -> variational.Training:
        network = _architecture(shape, config)
        traits = Traits(*(np.float32(value) for value in (config["learning_rate"], config["prior_variance"], _NOISE, 1.0)))
        return variational.begin(key, shape, vi, course, network, traits, folds)

    return Family("bnn", space, checkpoints, "updates", "nats", begin, variational.advance, variational.params_of)
