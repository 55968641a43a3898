"""Train configurations on the folds of a table, choose an ensemble, and fit reference models.

The final ensemble averages the networks of the best few configurations on all folds, because a
single network, and the choice among good configurations on few rows, depend on chance. Each network
is evaluated on rows that it was not trained on, which gives the noise of the ensemble.

The reference models are a linear model and an MLP trained without a search, from scikit-learn. They
are fitted to the same rows, with the same scaling of inputs and targets. To add one, extend
`REFERENCES`, `REFERENCE_NAMES` and the two functions that make the estimators.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from bonas import nets
from bonas.problems.examples import Examples, Split, unscale
from bonas.tabular.network_family import Family, activation_name, hidden_widths
from bonas.tabular.saved_model import NetworkGroup, unpad_layers
from bonas.tabular.scores import (
    FoldOutputs,
    Predictive,
    average_networks,
    concatenate,
    loss,
    mixture,
)
from bonas.tabular.splits import PreparedTable

# Number of checkpoints without improvement of the validation loss after which training stops.
PATIENCE = 4
# Number of training runs of each chosen configuration with one fold, from different weights.
_REPEATS = 4
REFERENCES = ("linear", "mlp")
# Display names.
REFERENCE_NAMES = {
    ("linear", "regression"): "ridge regression",
    ("linear", "classification"): "logistic regression",
    ("mlp", "regression"): "default MLP, 2×64",
    ("mlp", "classification"): "default MLP, 2×64",
}
# Candidate L2 penalties (alpha) of ridge regression, for leave-one-out cross-validation.
_PENALTIES = np.logspace(-3, 4, 30)
# Candidate inverse penalties (C) of logistic regression, for five-fold cross-validation.
_STRENGTHS = np.logspace(-3, 3, 7)
# Rows that every class must have for cross-validation, and for early stopping.
_MIN_ROWS_CV = 5
_MIN_ROWS_EARLY_STOPPING = 10
# Early stopping ends the training of the MLP much earlier.
_MAX_EPOCHS = 1000
T = TypeVar("T")


class TrainingRun(NamedTuple):
    """A configuration in training."""

    config: Mapping[str, Any]
    training: Any  # the family's state
    curve: tuple[float, ...]  # validation loss at each checkpoint so far

    @property
    def best(self) -> float:
        """The lowest validation loss so far."""
        return min(self.curve)

    @property
    def is_stale(self) -> bool:
        """Whether the last `PATIENCE` checkpoints are not better than earlier ones."""
        return len(self.curve) - 1 - int(np.argmin(self.curve)) >= PATIENCE


class Trainer:
    """Trainer of configurations on a table, deterministic for a seed."""

    def __init__(self, table: PreparedTable, family: Family, seed: int):
        self.table = table
        self.family = family
        self.key = jax.random.key(seed)
        self.folds = _stack_folds(table.folds)

    def start(self, config: Mapping[str, Any], repeat: int = 0) -> TrainingRun:
        """Initialize the networks of a configuration; each repeat draws different weights."""
        key = jax.random.fold_in(self.key, repeat)
        return TrainingRun(config, self.family.start(key, config, self.folds), ())

    def advance(self, run: TrainingRun) -> TrainingRun:
        """Train to the next checkpoint; the loss of diverged networks is infinite."""
        until = self.family.checkpoints[len(run.curve)]
        training, outputs = self.family.train(run.training, until)
        return run._replace(training=training, curve=(*run.curve, self.loss(outputs)))

    def loss(self, outputs: FoldOutputs) -> float:
        """Compute the validation loss over all folds; infinite if a fold has no valid network."""
        if not outputs.valid.any(axis=1).all():
            return float("inf")
        predicted = mixture([self.predict_folds(outputs)])
        return loss(self.family.score, predicted, self.validation_targets)

    def predict_folds(self, outputs: FoldOutputs) -> list[Predictive]:
        """Predict the validation rows of each fold, in the units of the target."""
        task = self.table.columns.task
        predicted = []
        for split, values, valid, noise in zip(self.table.folds, *outputs, strict=True):
            if task == "regression":
                values = unscale(split.scaling, values)
                noise = float(noise) * split.scaling.y_scale**2
            predicted.append(average_networks(task, values[valid], noise))
        return predicted

    @property
    def validation_targets(self) -> Shaped[np.ndarray, " n"]:
        """The targets of the validation rows of all folds, in original units."""
        return np.concatenate(
            [targets_in_units(split, split.validation.y) for split in self.table.folds]
        )


def targets_in_units(
    split: Split, y: Shaped[np.ndarray, " n"]
) -> Shaped[np.ndarray, " n"]:
    """Convert scaled targets to original units; labels are not scaled."""
    return y if split.train.task == "classification" else unscale(split.scaling, y)


def _stack_folds(folds: list[Split]) -> nets.Examples:
    """Stack the folds along a leading axis; values become a column, labels do not."""

    def as_outputs(y: np.ndarray) -> np.ndarray:
        return y if y.dtype.kind == "i" else y[:, None]

    def stack(arrays: list[np.ndarray]) -> jax.Array:
        return jnp.asarray(np.stack(arrays))

    return nets.Examples(
        stack([fold.train.x for fold in folds]),
        stack([as_outputs(fold.train.y) for fold in folds]),
        stack([fold.validation.x for fold in folds]),
        stack([as_outputs(fold.validation.y) for fold in folds]),
    )


# The final ensemble


class ChosenConfig(NamedTuple):
    """A configuration and the checkpoint of its lowest validation loss."""

    config: Mapping[str, Any]
    until: int  # epochs or updates


class FinalEnsemble(NamedTuple):
    """The final networks of a search."""

    chosen: list[ChosenConfig]  # the configurations of the networks
    groups: list[NetworkGroup]
    validation: Predictive  # predictions for rows that the networks were not trained on


class _Repeat(NamedTuple):
    """The networks of one training run, by fold."""

    groups: list[NetworkGroup]
    predicted: list[Predictive]


class _Member(NamedTuple):
    """The networks of one configuration."""

    chosen: ChosenConfig
    repeats: list[_Repeat]


def train_final_ensemble(
    trainer: Trainer, chosen: Sequence[ChosenConfig]
) -> FinalEnsemble:
    """Train the best configurations again, and average the networks of the first few.

    The number of configurations is the one with the lowest validation loss. Training gives the same
    networks as in the search, so on the validation rows the ensemble is not worse than its first
    configuration.

    Args:
        trainer: Trainer of the search.
        chosen: Configurations in ascending order of their losses.
    """
    trained = [_train_member(trainer, each) for each in chosen]
    members = [member for member in trained if member.repeats]
    if not members:
        raise ValueError(
            "none of the best configurations could be trained again; all runs diverged"
        )
    members = _best_prefix(members, lambda some: _loss(trainer, _repeats(some)))
    groups = [group for repeat in _repeats(members) for group in repeat.groups]
    validation = _predict(_repeats(members))
    task = trainer.table.columns.task
    if task == "regression" and not trainer.family.predicts_noise:
        validation, groups = _add_noise(validation, groups, trainer.validation_targets)
    return FinalEnsemble([member.chosen for member in members], groups, validation)


def _best_prefix(items: list[T], loss_of: Callable[[list[T]], float]) -> list[T]:
    """Return the prefix of the list with the lowest loss."""
    length = min(range(1, len(items) + 1), key=lambda n: loss_of(items[:n]))
    return items[:length]


def _repeats(members: Sequence[_Member]) -> list[_Repeat]:
    return [repeat for member in members for repeat in member.repeats]


def _predict(repeats: Sequence[_Repeat]) -> Predictive:
    return mixture([repeat.predicted for repeat in repeats])


def _loss(trainer: Trainer, repeats: Sequence[_Repeat]) -> float:
    return loss(trainer.family.score, _predict(repeats), trainer.validation_targets)


def _train_member(trainer: Trainer, chosen: ChosenConfig) -> _Member:
    """Train a configuration on every fold, several times if there is one fold.

    The first repeat is the network of the search. The best number of repeats is kept, because a
    network may be much worse with other initial weights. Diverged runs are omitted.
    """
    n = 1 if len(trainer.table.folds) > 1 else _REPEATS
    trained = [_train_repeat(trainer, chosen, i) for i in range(n)]
    repeats = [repeat for repeat in trained if repeat is not None]
    if not repeats:
        return _Member(chosen, [])
    repeats.sort(key=lambda repeat: _loss(trainer, [repeat]))
    return _Member(chosen, _best_prefix(repeats, lambda some: _loss(trainer, some)))


def _train_repeat(
    trainer: Trainer, chosen: ChosenConfig, repeat: int
) -> _Repeat | None:
    """Train a configuration once on every fold; None if it diverged."""
    run = trainer.start(chosen.config, repeat)
    training, outputs = trainer.family.train(run.training, chosen.until)
    if not outputs.valid.any(axis=1).all():
        return None
    params = jax.tree.map(np.asarray, trainer.family.params(training))
    n_inputs = len(trainer.table.columns.names)
    widths = hidden_widths(chosen.config)
    groups = []
    for fold, split in enumerate(trainer.table.folds):
        valid = outputs.valid[fold]
        networks = jax.tree.map(
            lambda leaf, fold=fold, valid=valid: leaf[fold][valid], params
        )
        kernels, biases = unpad_layers(networks, widths, n_inputs)
        noise = float(outputs.noise[fold]) * split.scaling.y_scale**2
        activation = activation_name(chosen.config)
        groups.append(NetworkGroup(kernels, biases, activation, split.scaling, noise))
    return _Repeat(groups, trainer.predict_folds(outputs))


def _add_noise(
    predicted: Predictive, groups: list[NetworkGroup], y: np.ndarray
) -> tuple[Predictive, list[NetworkGroup]]:
    """Estimate the noise variance of networks without a likelihood.

    It is the squared validation error minus the variance between the networks.
    """
    spread = np.asarray(predicted.std) ** 2
    noise = max(float(np.mean((predicted.mean - y) ** 2) - spread.mean()), 0.0)
    with_noise = Predictive(predicted.mean, np.sqrt(spread + noise))
    return with_noise, [group._replace(noise=noise) for group in groups]


# Reference models


def reference_predictions(
    name: str, table: PreparedTable, seed: int
) -> tuple[Predictive, Predictive]:
    """Fit a reference model, and predict the validation rows of all folds and the test rows."""
    validation = [
        fit_reference(name, split, seed)(split.validation) for split in table.folds
    ]
    predict_test = fit_reference(name, table.development, seed)
    return concatenate(validation), predict_test(table.development.test)


def fit_reference(
    name: str, split: Split, seed: int
) -> Callable[[Examples], Predictive]:
    """Fit one of the `REFERENCES`; return a function that predicts scaled examples."""
    train = split.train
    if train.task == "regression":
        model = _regressor(name, seed).fit(train.x, train.y)
        return lambda examples: Predictive(
            unscale(split.scaling, model.predict(examples.x))
        )
    n_classes = max(len(train.classes), 2)
    model = _classifier(name, seed, train.y).fit(train.x, train.y)

    def predict(examples: Examples) -> Predictive:
        probabilities = np.zeros((len(examples.x), n_classes))
        # A rare class may have no training row.
        probabilities[:, model.classes_] = model.predict_proba(examples.x)
        return Predictive(probabilities)

    return predict


def _regressor(name: str, seed: int) -> Any:
    from sklearn.linear_model import RidgeCV
    from sklearn.neural_network import MLPRegressor

    if name == "linear":
        return RidgeCV(alphas=_PENALTIES)
    return MLPRegressor(
        hidden_layer_sizes=(64, 64),
        early_stopping=True,
        max_iter=_MAX_EPOCHS,
        random_state=seed,
    )


def _classifier(name: str, seed: int, y: np.ndarray) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.neural_network import MLPClassifier

    rarest = min(np.bincount(y)[np.unique(y)])
    if name == "linear":
        model = LogisticRegression(max_iter=1000)
        if rarest < _MIN_ROWS_CV:
            return model
        return GridSearchCV(model, {"C": _STRENGTHS}, scoring="neg_log_loss", cv=5)
    return MLPClassifier(
        hidden_layer_sizes=(64, 64),
        early_stopping=rarest >= _MIN_ROWS_EARLY_STOPPING,
        max_iter=_MAX_EPOCHS,
        random_state=seed,
    )
