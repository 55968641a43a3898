"""Network families of `bonas search`: MLPs, ensembles of sparse MLPs, variational MLPs.

To add a family, subclass `Family` and list it in `FAMILIES`, and its name with a few words in
`FAMILIES` of cli/arguments.py. Its space needs a parameter `depth`, and `width` or `width_1` to
`width_<depth>`. These and the parameters in `DESCRIBED` describe the network to the user.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import PRNGKeyArray

from bonas import nets
from bonas.spaces import Choice, Float, Int, Space
from bonas.tabular import fold_training, variational_training
from bonas.tabular.scores import FoldOutputs
from bonas.tabular.splits import Size

Config = Mapping[str, Any]
MAX_DEPTH = 3
# Checkpoints of a training run.
N_CHECKPOINTS = 20
# Updates of a training run, enough for a small network at a medium learning rate. Early stopping on
# the validation rows ends most runs earlier.
_UPDATES = 3000
# Above this number of training rows, the updates grow with the square root of the rows: 8,500 for
# 13,000 rows. scikit-learn's MLP with two layers of 64 units stopped after 3,100 updates on one
# data set of 12,800 rows, and after 9,100 on another of 16,000.
_SMALL_TABLE = 1600
# From this number of rows on, wide layers are part of the space.
_LARGE_TABLE = 2000
_MIN_EPOCHS = 40
# On a large table trials are long and few, and most configurations are worse than a typical
# network: start with this one. Learning rate and weight decay are the middle of their ranges.
_USUAL_MLP = {
    "depth": 2,
    "width_1": 64,
    "width_2": 64,
    "activation": "relu",
    "learning_rate": 3e-3,
    "weight_decay": 0.1,
    "dropout": 0.0,
}
# Ensembles: the learning rate is not searched (Wilton 2020, Section 3.3).
_ENSEMBLE_LEARNING_RATE = 3e-3
_MAX_MEMBERS = 10
# Variational networks: initial noise variance, for targets of variance 1.
_INITIAL_NOISE = 0.25
# Hyperparameters that `describe_network` reports if a configuration has them.
DESCRIBED = ("learning_rate", "weight_decay", "dropout", "prior_variance")


@dataclass(frozen=True)
class Family(ABC):
    """A family of networks: a search space, and training on the folds of a table."""

    size: Size

    name: ClassVar[str]
    unit: ClassVar[str] = "epochs"  # the unit of checkpoints
    predicts_noise: ClassVar[bool] = False  # if not, it is estimated after training
    regression_only: ClassVar[bool] = False

    @property
    @abstractmethod
    def space(self) -> Space:
        """The search space."""

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """The checkpoints of training, in `unit`."""
        rows = self.size.rows
        updates_per_epoch = -(-rows // _batch_size(rows))
        return _checkpoints(max(_updates(rows) // updates_per_epoch, _MIN_EPOCHS))

    @property
    def score(self) -> str:
        """The name of the score to minimize, one of `scores.LOSSES`."""
        return "log_loss" if self.size.task == "classification" else "rmse"

    @property
    def first_config(self) -> Config | None:
        """A configuration to evaluate before all others, if any."""
        return None

    @abstractmethod
    def start(self, key: PRNGKeyArray, config: Config, folds: nets.Examples) -> Any:
        """Initialize the networks of a configuration on every fold."""

    @abstractmethod
    def train(self, training: Any, until: int) -> tuple[Any, FoldOutputs]:
        """Train up to a checkpoint, and compute the outputs for the validation rows."""

    @abstractmethod
    def params(self, training: Any) -> nets.Params:
        """Return the parameters (k, s, ...) of the networks that `train` evaluates."""


class _FoldFamily(Family):
    """A family trained by `fold_training`."""

    @property
    def _max_width(self) -> int:
        return 64 if self.size.rows < _LARGE_TABLE else 256

    def _plan(
        self, activations: tuple[str, ...], max_members: int
    ) -> fold_training.Plan:
        size = self.size
        shape = nets.Shape(
            size.inputs,
            size.outputs,
            MAX_DEPTH,
            self._max_width,
            activations=activations,
        )
        loss = "cross_entropy" if size.task == "classification" else "squared_error"
        settings = nets.Settings(
            loss=loss, batch=_batch_size(size.rows), max_epochs=self.checkpoints[-1]
        )
        return fold_training.Plan(shape, settings, max_members)

    def train(
        self, training: fold_training.FoldTraining, until: int
    ) -> tuple[fold_training.FoldTraining, FoldOutputs]:
        return fold_training.train_folds(training, until)

    def params(self, training: fold_training.FoldTraining) -> nets.Params:
        return fold_training.network_params(training)


class MLPFamily(_FoldFamily):
    """Multilayer perceptrons with searched layers, activation, learning rate and regularization."""

    name = "mlp"

    @property
    def space(self) -> Space:
        """The search space."""
        later_widths = {
            f"width_{i}": Int(4, self._max_width, log=True, when={"depth": (">=", i)})
            for i in range(2, MAX_DEPTH + 1)
        }
        return Space(
            depth=Int(1, MAX_DEPTH),
            width_1=Int(4, self._max_width, log=True),
            **later_widths,
            activation=Choice("relu", "tanh"),
            learning_rate=Float(3e-4, 3e-2, log=True),
            weight_decay=Float(1e-3, 10.0, log=True),
            dropout=Float(0.0, 0.5),
        )

    @property
    def first_config(self) -> Config | None:
        """A typical network, if the table is large."""
        return _USUAL_MLP if self.size.rows >= _SMALL_TABLE else None

    def start(
        self, key: PRNGKeyArray, config: Config, folds: nets.Examples
    ) -> fold_training.FoldTraining:
        """Initialize one network per fold."""
        plan = self._plan(("relu", "tanh"), max_members=1)
        names = ("learning_rate", "weight_decay", "dropout")
        hyper = nets.Hyperparameters(
            **{name: np.float32(config[name]) for name in names}
        )
        members = fold_training.Members(
            config_architecture(plan.shape, config), hyper, 1
        )
        return fold_training.start_folds(key, plan, members, folds)


class EnsembleFamily(_FoldFamily):
    """Ensembles of sparse networks with a searched design (θ of Wilton 2020, Section 3.3)."""

    name = "ensemble"

    @property
    def space(self) -> Space:
        """The search space."""
        return Space(
            depth=Int(1, MAX_DEPTH),
            width=Int(4, self._max_width, log=True),
            members=Int(2, _MAX_MEMBERS),
            density=Float(0.2, 1.0),
        )

    def start(
        self, key: PRNGKeyArray, config: Config, folds: nets.Examples
    ) -> fold_training.FoldTraining:
        """Initialize the members of the ensemble on every fold."""
        plan = self._plan(("relu",), max_members=_MAX_MEMBERS)
        hyper = nets.Hyperparameters(learning_rate=np.float32(_ENSEMBLE_LEARNING_RATE))
        members = fold_training.Members(
            config_architecture(plan.shape, config), hyper, config["members"]
        )
        return fold_training.start_folds(key, plan, members, folds)


class VariationalFamily(Family):
    """Variational networks with searched layers, learning rate and prior variance."""

    name = "bnn"
    predicts_noise = True
    regression_only = True
    unit = "updates"

    _MAX_WIDTH = 64
    _MAX_DEPTH = 2

    @property
    def space(self) -> Space:
        """The search space."""
        return Space(
            depth=Int(1, self._MAX_DEPTH),
            width=Int(4, self._MAX_WIDTH, log=True),
            activation=Choice("relu", "tanh"),
            learning_rate=Float(1e-3, 3e-2, log=True),
            prior_variance=Float(1e-3, 10.0, log=True),
        )

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """The checkpoints of training, in updates."""
        return _checkpoints(_updates(self.size.rows))

    @property
    def score(self) -> str:
        """The negative log density under the estimated noise."""
        return "nats"

    def start(
        self, key: PRNGKeyArray, config: Config, folds: nets.Examples
    ) -> variational_training.VariationalTraining:
        """Initialize the variational posterior of every fold."""
        shape = nets.Shape(
            self.size.inputs,
            1,
            self._MAX_DEPTH,
            self._MAX_WIDTH,
            activations=("relu", "tanh"),
        )
        rows = self.size.rows
        batch = min(_batch_size(rows) * 2, rows)
        hyper = nets.VIHyperparameters(
            np.float32(config["learning_rate"]),
            np.float32(config["prior_variance"]),
            np.float32(_INITIAL_NOISE),
            np.float32(1.0),
        )
        return variational_training.start_variational(
            key,
            shape,
            config_architecture(shape, config),
            folds,
            vi=nets.VI(samples=4),
            plan=nets.TrainingPlan(self.checkpoints, batch=batch, draws=1),
            hyper=hyper,
        )

    def train(
        self, training: variational_training.VariationalTraining, until: int
    ) -> tuple[variational_training.VariationalTraining, FoldOutputs]:
        """Train up to a number of updates."""
        return variational_training.train_variational(training, until)

    def params(self, training: variational_training.VariationalTraining) -> nets.Params:
        """Draw networks from the posteriors."""
        return variational_training.posterior_draws(training)


# The families by name.
FAMILIES: dict[str, type[Family]] = {
    family.name: family for family in (MLPFamily, EnsembleFamily, VariationalFamily)
}


def make_family(name: str, size: Size) -> Family:
    """Create a network family by name for data of a given size."""
    if name not in FAMILIES:
        raise ValueError(f"space must be one of {', '.join(FAMILIES)}; got {name!r}")
    if FAMILIES[name].regression_only and size.task == "classification":
        others = [each for each in FAMILIES if not FAMILIES[each].regression_only]
        raise ValueError(
            f"space {name!r} supports only regression; use {' or '.join(others)}"
        )
    return FAMILIES[name](size)


def _batch_size(rows: int) -> int:
    """Return a power of two near a tenth of the rows, from 8 to 256."""
    return min(2 ** round(math.log2(min(max(rows / 10, 8), 256))), rows)


def _updates(rows: int) -> int:
    return round(_UPDATES * math.sqrt(max(rows / _SMALL_TABLE, 1.0)))


def _checkpoints(end: int) -> tuple[int, ...]:
    """Return equidistant checkpoints up to about `end`."""
    step = max(end // N_CHECKPOINTS, 1)
    return tuple(range(step, step * N_CHECKPOINTS + 1, step))


# Configurations of any family


def hidden_widths(config: Config) -> list[int]:
    """Return the widths of the hidden layers of a configuration of any family."""
    if "width" in config:
        return [config["width"]] * config["depth"]
    return [config[f"width_{i}"] for i in range(1, config["depth"] + 1)]


def activation_name(config: Config) -> str:
    """Return the activation of the hidden layers; ReLU if the configuration has none."""
    return config.get("activation", "relu")


def describe_network(config: Config) -> str:
    """Describe the network of a configuration in words, from its depth and widths on."""
    *others, last = map(str, hidden_widths(config))
    widths = f"{', '.join(others)} and {last}" if others else last
    plural = "layer" if config["depth"] == 1 else "layers"
    layers = (
        f"{config['depth']} hidden {plural} of {widths} {activation_name(config)} units"
    )
    if "members" in config:
        density = f"{config['density']:.0%}"
        return f"{config['members']} networks of {layers}, each with {density} of its weights"
    numbers = [
        f"{name.replace('_', ' ')} {config[name]:.2g}"
        for name in DESCRIBED
        if name in config
    ]
    return ", ".join([layers, *numbers])


def config_architecture(shape: nets.Shape, config: Config) -> nets.Architecture:
    """Create the architecture on the host, because `nets.architecture` compiles once per depth."""
    widths = np.zeros(shape.depth, np.int32)
    widths[: config["depth"]] = hidden_widths(config)
    activation = np.int32(shape.activations.index(activation_name(config)))
    density = np.float32(config["density"]) if "density" in config else None
    return nets.Architecture(widths, activation, density)  # type: ignore[arg-type]
