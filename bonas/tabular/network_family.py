"""Base class of network families, and the length of their training.

A family is a search space, and the training of its configurations on the folds of a table.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import PRNGKeyArray

from bonas import nets
from bonas.spaces import Space
from bonas.tabular.saved_model import ACTIVATIONS
from bonas.tabular.scores import FoldOutputs
from bonas.tabular.splits import Size

Config = Mapping[str, Any]
# Hyperparameters that `describe_network` reports if a configuration has them.
DESCRIBED = ("learning_rate", "weight_decay", "dropout", "prior_variance")
# Checkpoints of a training run.
N_CHECKPOINTS = 20
# Updates of a training run, enough for a small network at a medium learning rate. Early stopping on
# the validation rows ends most runs earlier.
_UPDATES = 3000
# Above this number of training rows, the updates grow with the square root of the rows: 8,500 for
# 13,000 rows. scikit-learn's MLP with two layers of 64 units stopped after 3,100 updates on one
# data set of 12,800 rows, and after 9,100 on another of 16,000.
SMALL_TABLE = 1600
_MIN_EPOCHS = 40


@dataclass(frozen=True)
class Family(ABC):
    """Base class of network families: a search space, and training on the folds of a table.

    Args:
        size: The sizes and the task of the table.
    """

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
        updates_per_epoch = -(-rows // batch_size(rows))
        return equidistant_checkpoints(
            max(n_updates(rows) // updates_per_epoch, _MIN_EPOCHS)
        )

    @property
    def score(self) -> str:
        """The name of the score to minimize, one of `scores.LOSSES`."""
        return "log_loss" if self.size.task == "classification" else "rmse"

    @property
    def first_config(self) -> Config | None:
        """A configuration to evaluate before all others, or None."""
        return None

    @abstractmethod
    def start(self, key: PRNGKeyArray, config: Config, folds: nets.Examples) -> Any:
        """Initialize the networks of a configuration on every fold, as a state for `train`."""

    @abstractmethod
    def train(self, training: Any, until: int) -> tuple[Any, FoldOutputs]:
        """Train up to a checkpoint, and compute the outputs for the validation rows.

        Args:
            training: State from `start` or from a previous call.
            until: One of `checkpoints`, in `unit`.

        Returns:
            The new state and the outputs.
        """

    @abstractmethod
    def params(self, training: Any) -> nets.Params:
        """Return the parameters (k, s, ...) of the networks that `train` evaluates."""


# Configurations of any family


def hidden_widths(config: Config) -> list[int]:
    """Return the widths of the hidden layers of a configuration of any family."""
    if "width" in config:
        return [config["width"]] * config["depth"]
    return [config[f"width_{i}"] for i in range(1, config["depth"] + 1)]


def activation_name(config: Config) -> str:
    """Return the activation of the hidden layers; ReLU if the configuration has none.

    Raises:
        ValueError: If networks with this activation cannot be saved.
    """
    name = config.get("activation", "relu")
    if name not in ACTIVATIONS:
        raise ValueError(
            f"activation must be one of {', '.join(ACTIVATIONS)}, because a search saves its "
            f"networks as plain MLPs; got {name!r}"
        )
    return name


def describe_network(config: Config) -> str:
    """Describe a configuration in words: its layers, and its members or hyperparameters."""
    *others, last = map(str, hidden_widths(config))
    widths = f"{', '.join(others)} and {last}" if others else last
    plural = "layer" if config["depth"] == 1 else "layers"
    layers = (
        f"{config['depth']} hidden {plural} of {widths} {activation_name(config)} units"
    )
    if "members" in config:
        networks = f"{config['members']} networks of {layers}"
        if "density" not in config:
            return networks
        return f"{networks}, each with {config['density']:.0%} of its weights"
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


# The length of training


def batch_size(rows: int) -> int:
    """Return a power of two near a tenth of the rows, from 8 to 256."""
    return min(2 ** round(math.log2(min(max(rows / 10, 8), 256))), rows)


def n_updates(rows: int) -> int:
    """Return the number of updates of a training run, which grows with the rows of large tables."""
    return round(_UPDATES * math.sqrt(max(rows / SMALL_TABLE, 1.0)))


def equidistant_checkpoints(end: int) -> tuple[int, ...]:
    """Return `N_CHECKPOINTS` equidistant checkpoints up to about `end`."""
    step = max(end // N_CHECKPOINTS, 1)
    return tuple(range(step, step * N_CHECKPOINTS + 1, step))
