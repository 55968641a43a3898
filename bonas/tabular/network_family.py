"""The contract of a network family: a search space, and training on the folds of a table."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import PRNGKeyArray

from bonas import nets
from bonas.spaces import Space
from bonas.tabular.network_configs import Config
from bonas.tabular.scores import FoldOutputs
from bonas.tabular.splits import Size
from bonas.tabular.training_length import batch_size, equidistant_checkpoints, n_updates

_MIN_EPOCHS = 40


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
