"""The network families of `bonas search` by name.

To add a family, subclass `Family` in a file of its own and list it in `FAMILIES`, and its name with
a few words in `FAMILIES` of cli/arguments.py. Its space needs a parameter `depth`, and `width` or
`width_1` to `width_<depth>`. These and the parameters in `network_family.DESCRIBED` describe the
network to the user. A search saves its networks as MLPs with the activation relu or tanh.
"""

import numpy as np
from jaxtyping import PRNGKeyArray

from bonas import nets
from bonas.spaces import Choice, Float, Int, Space
from bonas.tabular import fold_training
from bonas.tabular.network_family import (
    SMALL_TABLE,
    Config,
    Family,
    batch_size,
    config_architecture,
)
from bonas.tabular.scores import FoldOutputs
from bonas.tabular.splits import Size
from bonas.tabular.variational_family import VariationalFamily

_MAX_DEPTH = 3
# From this number of rows on, wide layers are part of the space.
_LARGE_TABLE = 2000
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
            _MAX_DEPTH,
            self._max_width,
            activations=activations,
        )
        loss = "cross_entropy" if size.task == "classification" else "squared_error"
        settings = nets.Settings(
            loss=loss, batch=batch_size(size.rows), max_epochs=self.checkpoints[-1]
        )
        return fold_training.Plan(shape, settings, max_members)

    def train(
        self, training: fold_training.FoldTraining, until: int
    ) -> tuple[fold_training.FoldTraining, FoldOutputs]:
        return fold_training.train_folds(training, until)

    def params(self, training: fold_training.FoldTraining) -> nets.Params:
        return fold_training.network_params(training)


class MLPFamily(_FoldFamily):
    """Multilayer perceptrons: layers, activation, learning rate and regularization are searched."""

    name = "mlp"

    @property
    def space(self) -> Space:
        """The search space."""
        later_widths = {
            f"width_{i}": Int(4, self._max_width, log=True, when={"depth": (">=", i)})
            for i in range(2, _MAX_DEPTH + 1)
        }
        return Space(
            depth=Int(1, _MAX_DEPTH),
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
        return _USUAL_MLP if self.size.rows >= SMALL_TABLE else None

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
    """Ensembles of sparse networks: the design θ is searched (Wilton 2020, Section 3.3)."""

    name = "ensemble"

    @property
    def space(self) -> Space:
        """The search space."""
        return Space(
            depth=Int(1, _MAX_DEPTH),
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


# The families by name.
FAMILIES: dict[str, type[Family]] = {
    family.name: family for family in (MLPFamily, EnsembleFamily, VariationalFamily)
}


def make_family(name: str, size: Size) -> Family:
    """Create the network family with a given name for a table of a given size."""
    if name not in FAMILIES:
        raise ValueError(f"space must be one of {', '.join(FAMILIES)}; got {name!r}")
    if FAMILIES[name].regression_only and size.task == "classification":
        others = [each for each in FAMILIES if not FAMILIES[each].regression_only]
        raise ValueError(
            f"space {name!r} supports only regression; use {' or '.join(others)}"
        )
    return FAMILIES[name](size)
