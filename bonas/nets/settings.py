"""The inputs of a training run: compiled settings, hyperparameters and data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from bonas.nets.losses import (
    Loss,
    accuracy,
    error,
    get_loss,
    half_squared_error,
    squared_error,
)
from bonas.nets.mlp import INITIAL
from bonas.nets.schedules import Schedule, constant
from bonas.nets.shapes import Shape, check_positive_integer

# Arrays, or nested lists of numbers.
Rows = ArrayLike | Sequence[Any]
# Default learning rates, from the optimizers' papers, and for SGD from Twist.
LEARNING_RATES = {"sgd": 0.05, "adam": 1e-3, "adadelta": 1.0}


@jax.tree_util.register_static
@dataclass(frozen=True)
class Settings:
    """Static settings of training; every combination of values is compiled once.

    Args:
        loss: A name in `losses.LOSSES`, or a function (outputs (n, c), targets) -> (n,).
        metrics: Validation metrics, given like `loss`; by default the loss. Patience uses the first
            one, for which lower must be better.
        optimizer: "adam", "adadelta" or "sgd".
        batch: Rows per update; None for all of them, 1 for Algorithm 3 of Twist. An incomplete last
            batch averages over its own rows.
        max_epochs: Largest number of epochs; `Hyperparameters.epochs` can end a run earlier.
        min_epochs: Tolerance and patience do not end a run before this epoch.
        tolerance: Stop when the training loss changes by less between two epochs (Wilton uses 1e-4
            between 1000 and 5000 epochs).
        patience: Stop after this many checkpoints without improvement of the first metric, and keep
            the best parameters.
        checkpoints: Validate after every multiple of this number, or after these epochs.
        shuffle: Permute the rows before every epoch (Twist, Algorithm 2).
        schedule: Factor of the learning rate, a function (step, steps) of the update and the total
            number of updates.
        momentum_schedule: Factor of the momentum, like `schedule`.
        dropout_schedule: Factor of the dropout rates of units and inputs, like `schedule`.
        initial: Distribution of the initial parameters; see `mlp.init`.
    """

    loss: str | Loss = "squared_error"
    metrics: tuple[str | Loss, ...] = ()
    optimizer: str = "adam"
    batch: int | None = 32
    max_epochs: int = 100
    min_epochs: int = 1
    tolerance: float | None = None
    patience: int | None = None
    checkpoints: int | tuple[int, ...] = 1
    shuffle: bool = True
    schedule: Schedule = constant
    momentum_schedule: Schedule = constant
    dropout_schedule: Schedule = constant
    initial: str = "scaled"

    def __post_init__(self) -> None:
        if isinstance(self.metrics, str) or callable(self.metrics):
            raise ValueError(
                f"metrics must be a tuple, such as ({self.metrics!r},); got {self.metrics!r}"
            )
        object.__setattr__(self, "metrics", tuple(self.metrics))
        if np.ndim(self.checkpoints) == 1:
            object.__setattr__(
                self, "checkpoints", tuple(np.asarray(self.checkpoints).tolist())
            )
        self._check_loss()
        for name, choices in (("optimizer", LEARNING_RATES), ("initial", INITIAL)):
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}; got {value!r}"
                )
        for name in ("batch", "max_epochs", "min_epochs", "patience"):
            if getattr(self, name) is not None:
                check_positive_integer(name, getattr(self, name))
        if self.tolerance is not None and not self.tolerance >= 0.0:
            raise ValueError(f"tolerance must not be negative; got {self.tolerance}")
        if self.min_epochs > self.max_epochs:
            raise ValueError(
                f"min_epochs ({self.min_epochs}) must not exceed max_epochs ({self.max_epochs})"
            )
        self._check_checkpoints()

    def _check_loss(self) -> None:
        if get_loss(self.loss) in (accuracy, error):
            raise ValueError(
                f"{self.loss} has no gradient; train on cross_entropy and use it as a metric"
            )
        if self.metric_functions[0] is accuracy and self.patience is not None:
            raise ValueError(
                "patience minimizes the first metric, but a high accuracy is better; use error"
            )

    def _check_checkpoints(self) -> None:
        epochs = np.atleast_1d(self.checkpoints)
        integers = epochs.dtype.kind == "i" and epochs.size > 0
        if not integers or epochs[0] < 1 or (np.diff(epochs) <= 0).any():
            raise ValueError(
                "checkpoints must be a number of epochs or an increasing tuple of epochs; "
                f"got {self.checkpoints!r}"
            )
        if epochs[-1] > self.max_epochs:
            raise ValueError(
                f"checkpoint {epochs[-1]} is never reached in {self.max_epochs} epochs"
            )

    @property
    def checkpoint_epochs(self) -> np.ndarray:
        """Epochs (c,) after which the network is validated, one per row of `Result.metrics`."""
        if isinstance(self.checkpoints, int):
            return np.arange(self.checkpoints, self.max_epochs + 1, self.checkpoints)
        return np.asarray(self.checkpoints)

    @property
    def metric_functions(self) -> tuple[Loss, ...]:
        """The validation metrics as functions."""
        return tuple(get_loss(metric) for metric in self.metrics or (self.loss,))


class Hyperparameters(NamedTuple):
    """Hyperparameters that may differ between networks of one compiled program.

    None disables a feature or selects its default, and adds no computation. A value is one number
    for all layers; learning rate and max_norm may also have one value per layer (depth + 1,), with
    the output layer last, and dropout one per hidden layer (depth,).
    """

    learning_rate: ArrayLike | None = None  # None: see LEARNING_RATES
    momentum: ArrayLike | None = None  # () for SGD
    dropout: ArrayLike | None = None  # probability in [0, 1) of dropping a hidden unit
    # () probability in [0, 1) of dropping an input
    input_dropout: ArrayLike | None = None
    # () decoupled decay of weights, not of biases
    weight_decay: ArrayLike | None = None
    max_norm: ArrayLike | None = None  # largest norm of the incoming weights of a unit
    epochs: ArrayLike | None = None  # () int, at most Settings.max_epochs, the default


class Examples(NamedTuple):
    """Training and validation rows, as built by `examples`; training has the precision of `x`."""

    x: Array  # (n, inputs)
    y: Array  # (n, outputs) targets, or (n,) int labels
    valid_x: Array | None = None  # (m, inputs)
    valid_y: Array | None = None  # (m, outputs) or (m,)
    # (n,) weight of each training row in the loss; None: all equal
    weight: Array | None = None


def examples(
    x: Rows,
    y: Rows,
    valid_x: Rows | None = None,
    valid_y: Rows | None = None,
    *,
    weight: Rows | None = None,
    dtype: Any = "float32",
) -> Examples:
    """Validate data and convert them to arrays for training; call this outside `jit`.

    Data are not scaled; networks train best on inputs of about unit variance.

    Args:
        x: Inputs (n, d).
        y: Targets (n,) or (n, c); integers of shape (n,) are class labels.
        valid_x: Inputs of validation rows.
        valid_y: Targets of validation rows.
        weight: Weight of each training row in the loss; equal weights if None.
        dtype: Precision of training.

    Raises:
        ValueError: If shapes do not match, a value is not finite or a weight is negative.
    """
    if (valid_x is None) != (valid_y is None):
        name = "valid_x" if valid_y is None else "valid_y"
        raise ValueError(
            f"expected both valid_x and valid_y, or neither; got only {name}"
        )
    x, y = _convert_rows(x, y, dtype, "row")
    weights = None if weight is None else _convert_weights(weight, len(x), dtype)
    if valid_x is None or valid_y is None:
        return Examples(x, y, weight=weights)
    valid_x, valid_y = _convert_rows(valid_x, valid_y, dtype, "validation row")
    same_columns = valid_x.shape[1:] == x.shape[1:] and valid_y.shape[1:] == y.shape[1:]
    if not same_columns or valid_y.dtype != y.dtype:
        raise ValueError(
            "expected validation rows with the columns and dtype of the training rows, "
            f"{x.shape}, {y.shape} ({y.dtype}); "
            f"got {valid_x.shape}, {valid_y.shape} ({valid_y.dtype})"
        )
    return Examples(x, y, valid_x, valid_y, weights)


def _convert_weights(weight: Rows, n: int, dtype: Any) -> Array:
    weights = np.asarray(weight, dtype)
    valid = weights.shape == (n,) and (np.isfinite(weights) & (weights >= 0)).all()
    if not valid or not weights.any():
        raise ValueError(
            f"expected {n} non-negative weights, not all zero; got {weights}"
        )
    return jax.device_put(weights)


def _convert_rows(x: Rows, y: Rows, dtype: Any, name: str) -> tuple[Array, Array]:
    x = np.asarray(x, dtype)
    y = np.asarray(y)
    if x.ndim != 2 or y.ndim not in (1, 2) or len(x) != len(y) or len(x) == 0:
        raise ValueError(
            "expected x of shape (n, d) and y of shape (n,) or (n, c), n > 0; "
            f"got {x.shape} and {y.shape}"
        )
    if y.ndim == 1 and y.dtype.kind in "iu":
        y = y.astype(np.int32)
    else:
        y = np.asarray(y[:, None] if y.ndim == 1 else y, dtype)
    bad = ~np.isfinite(x).all(axis=1) | ~np.isfinite(y.reshape(len(y), -1)).all(axis=1)
    if bad.any():
        raise ValueError(
            f"{name} {int(bad.argmax())} contains NaN or infinity: x {x[bad][0]}, y {y[bad][0]}"
        )
    # Unlike jnp.asarray, device_put does not compile a copy.
    return jax.device_put(x), jax.device_put(y)


def check(
    shape: Shape,
    settings: Settings,
    hyper: Hyperparameters,
    data: Examples,
    networks: int | None = None,
) -> None:
    """Raise a ValueError unless shape, settings, hyperparameters and data fit together.

    Values are checked only outside `jit`, where they are known.

    Args:
        shape: Shape of the networks.
        settings: Settings of the run.
        hyper: Hyperparameters.
        data: Training and validation rows.
        networks: Length of the leading axis of the hyperparameters, if they have one.
    """
    if data.x.ndim != 2 or data.x.shape[1] != shape.inputs:
        raise ValueError(f"expected x of shape (n, {shape.inputs}); got {data.x.shape}")
    if data.y.ndim == 2 and data.y.shape[1] != shape.outputs:
        raise ValueError(
            f"expected y of shape (n, {shape.outputs}); got {data.y.shape}"
        )
    if data.y.ndim == 1:
        _check_labels(shape, settings, data)
    if settings.patience is not None and data.valid_x is None:
        raise ValueError(
            "patience needs validation rows; pass examples(x, y, valid_x, valid_y)"
        )
    check_batch(settings.batch, len(data.x))
    if hyper.momentum is not None and settings.optimizer != "sgd":
        raise ValueError(f"momentum needs optimizer='sgd'; got {settings.optimizer!r}")
    _check_hyperparameters(
        shape, settings, hyper, () if networks is None else (networks,)
    )


def check_batch(batch: int | None, rows: int) -> None:
    """Raise a ValueError if a batch is larger than the number of rows."""
    if batch is not None and batch > rows:
        raise ValueError(
            f"batch ({batch}) exceeds the number of rows ({rows}); use None for all"
        )


def _check_labels(shape: Shape, settings: Settings, data: Examples) -> None:
    if get_loss(settings.loss) in (squared_error, half_squared_error):
        raise ValueError(
            "integer y of shape (n,) are class labels; for a squared error pass floats, or (n, c)"
        )
    for labels in (data.y, data.valid_y):
        if labels is None or isinstance(labels, jax.core.Tracer):
            continue
        low = np.asarray(labels).min()
        high = np.asarray(labels).max()
        if low < 0 or high >= shape.outputs:
            raise ValueError(
                f"labels must be between 0 and {shape.outputs - 1}; got {low} to {high}"
            )


def _check_hyperparameters(
    shape: Shape, settings: Settings, hyper: Hyperparameters, leading: tuple[int, ...]
) -> None:
    layers = {
        "learning_rate": shape.depth + 1,
        "max_norm": shape.depth + 1,
        "dropout": shape.depth,
    }
    for name, value in hyper._asdict().items():
        if value is None:
            continue
        allowed = [leading, (*leading, layers[name])] if name in layers else [leading]
        allowed += [()] if leading else []
        if jnp.shape(value) not in allowed:
            raise ValueError(
                f"expected {name} of shape {' or '.join(map(str, allowed))}; got {jnp.shape(value)}"
            )
        if not isinstance(value, jax.core.Tracer):
            _check_range(name, np.asarray(value), settings.max_epochs)


def _check_range(name: str, value: np.ndarray, max_epochs: int) -> None:
    """Raise a ValueError for a negative value, a probability of 1, or too many epochs."""
    below = np.full_like(value, True, dtype=bool)
    condition = ""
    if name in ("dropout", "input_dropout", "momentum"):
        below = value < 1
        condition = " and below 1"
    elif name == "epochs":
        below = value <= max_epochs
        condition = f" and at most max_epochs ({max_epochs})"
    if not ((value >= 0) & below).all():
        raise ValueError(f"{name} must be at least 0{condition}; got {value}")
