"""The network family of variational Bayesian networks."""

import numpy as np
from jaxtyping import PRNGKeyArray

from bonas import nets
from bonas.spaces import Choice, Float, Int, Space
from bonas.tabular import variational_training
from bonas.tabular.network_family import (
    Config,
    Family,
    batch_size,
    config_architecture,
    equidistant_checkpoints,
    n_updates,
)
from bonas.tabular.scores import FoldOutputs

# Initial noise variance, for targets of variance 1.
_INITIAL_NOISE = 0.25


class VariationalFamily(Family):
    """Variational networks: layers, activation, learning rate and prior variance are searched."""

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
        return equidistant_checkpoints(n_updates(self.size.rows))

    @property
    def score(self) -> str:
        """The score to minimize, the negative log density under the estimated noise."""
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
        batch = min(batch_size(rows) * 2, rows)
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
