"""What a training run is told: settings that are compiled in, hyperparameters that may differ by network, and data."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.nets.losses import Loss, accuracy, error, half_squared_error, named, squared_error
from bonas.nets.mlp import INITIAL, Shape
from bonas.nets.optimisers import OPTIMISERS, Schedule, constant


@jax.tree_util.register_static
@dataclass(frozen=True)
class Settings:
    """How to train. Static: it may be passed to any jitted function, and other settings are compiled anew.

    loss: a name in `losses.LOSSES`, or a function (outputs (n, c), targets) -> (n,).
    metrics: what validation measures, like `loss`; none means the loss. The first one decides about patience: lower is better.
    batch: rows an update; None for all of them, 1 for Twist's Algorithm 3. A last batch that is not full counts its own rows.
    max_epochs, min_epochs: Hyper.epochs ends a run before max_epochs; nothing but that and divergence before min_epochs.
    tolerance: stop when the training loss of consecutive epochs differs by less (Wilton: 1e-4 between 1000 and 5000 epochs).
    patience: stop after so many checkpoints without a new best of the first metric, and keep the parameters of the best.
    checkpoints: validate every so many epochs, or after these epochs.
    shuffle: permute the rows before every epoch (Twist, Algorithm 2); without, batches follow the order of the data.
    schedule: the factor of the learning rate, schedule(step, steps), with the updates done and all those of the run.
    momentum_schedule, dropout_schedule: the same for momentum, and for the chance that units and inputs are dropped.
    initial: how parameters start; see `mlp.init`.
    """

    loss: str | Loss = "squared_error"
    metrics: tuple[str | Loss, ...] = ()
    optimiser: str = "adam"
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

    def __post_init__(self):
        if isinstance(self.metrics, str) or callable(self.metrics):
            raise ValueError(f"metrics is a tuple; write ({self.metrics!r},)")
        measures = self.measures
        if named(self.loss) in (accuracy, error):
            raise ValueError(f"{self.loss} has no slope to follow; train on cross_entropy and measure it as a metric")
        if self.patience is not None and measures[0] is accuracy:
            raise ValueError("patience waits for the first metric to fall; accuracy rises: use error")
        for name, known in (("optimiser", OPTIMISERS), ("initial", INITIAL)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is one of {', '.join(known)}; got {getattr(self, name)!r}")
        for name in ("batch", "max_epochs", "min_epochs", "patience"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}")
        if self.tolerance is not None and not self.tolerance >= 0.0:
            raise ValueError(f"tolerance must not be negative; got {self.tolerance}")
        if self.min_epochs > self.max_epochs:
            raise ValueError(f"min_epochs, {self.min_epochs}, is more than max_epochs, {self.max_epochs}")
        wanted = np.atleast_1d(self.checkpoints)
        if wanted.dtype.kind != "i" or wanted.size == 0 or wanted[0] < 1 or (np.diff(wanted) <= 0).any():
            raise ValueError(f"checkpoints is a number of epochs, or a rising tuple of them; got {self.checkpoints!r}")
        if wanted[-1] > self.max_epochs:
            raise ValueError(f"checkpoint {wanted[-1]} is never reached in {self.max_epochs} epochs")

    @property
    def checkpoint_epochs(self) -> np.ndarray:
        """The epochs after which validation happens, (c,): the rows of Result.metrics."""
        if isinstance(self.checkpoints, int):
            return np.arange(self.checkpoints, self.max_epochs + 1, self.checkpoints)
        return np.asarray(self.checkpoints)

    @property
    def measures(self) -> tuple[Loss, ...]:
        """The metrics as functions."""
        return tuple(named(metric) for metric in self.metrics or (self.loss,))


class Hyper(NamedTuple):
    """What may differ from network to network in one compiled program. None is off, or the default, and costs nothing.

    One value for all layers, or one a layer: (depth + 1,) with the output last, (depth,) for dropout.
    """

    learning_rate: ArrayLike | None = None  # None: 1e-3 for Adam, 1 for Adadelta, 0.05 for SGD
    momentum: ArrayLike | None = None  # () of SGD
    dropout: ArrayLike | None = None  # chance that a hidden unit is dropped, in [0, 1)
    input_dropout: ArrayLike | None = None  # () the same for inputs
    weight_decay: ArrayLike | None = (
        None  # () share of each weight, times the learning rate, lost an update; biases keep theirs
    )
    max_norm: ArrayLike | None = None  # longest vector of incoming weights that a unit may have
    epochs: ArrayLike | None = None  # () int, at most Settings.max_epochs, which is the default


class Examples(NamedTuple):
    """Rows to learn from, and rows to validate on. Training has the precision of x: `examples` gives float32."""

    x: Array  # (n, inputs)
    y: Array  # (n, outputs) targets, or (n,) int labels
    valid_x: Array | None = None  # (m, inputs)
    valid_y: Array | None = None
    weight: Array | None = None  # (n,) how much a training row counts; None: all alike


def examples(
    x: ArrayLike,
    y: ArrayLike,
    valid_x: ArrayLike | None = None,
    valid_y: ArrayLike | None = None,
    *,
    weight: ArrayLike | None = None,
    dtype="float32",
) -> Examples:
    """Data for training: x (n, d) and y (n,) or (n, c); whole numbers in y (n,) are labels. Call it outside `jit`.

    Bad data are refused here, with the row named. Nothing is scaled: networks want inputs of about unit size.
    """
    if (valid_x is None) != (valid_y is None):
        raise ValueError("valid_x and valid_y come together")
    x, y = _rows(x, y, dtype, "row")
    counts = None if weight is None else np.asarray(weight, dtype)
    if counts is not None and (
        counts.shape != (len(x),) or not (np.isfinite(counts) & (counts >= 0)).all() or not counts.any()
    ):
        raise ValueError(f"expected {len(x)} weights that are not negative, and not all zero; got {counts}")
    counts = None if counts is None else jax.device_put(counts)
    if valid_x is None or valid_y is None:
        return Examples(x, y, weight=counts)
    held = _rows(valid_x, valid_y, dtype, "validation row")
    if held[0].shape[1:] != x.shape[1:] or held[1].shape[1:] != y.shape[1:] or held[1].dtype != y.dtype:
        raise ValueError(f"validation rows differ in kind: {held[0].shape}, {held[1].shape} beside {x.shape}, {y.shape}")
    return Examples(x, y, *held, counts)


def _rows(x: ArrayLike, y: ArrayLike, dtype, what: str) -> tuple[Array, Array]:
    x, y = np.asarray(x, dtype), np.asarray(y)
    if x.ndim != 2 or y.ndim not in (1, 2) or len(x) != len(y) or len(x) == 0:
        raise ValueError(f"expected x of shape (n, d) and y of shape (n,) or (n, c), n > 0; got {x.shape} and {y.shape}")
    labels = y.ndim == 1 and y.dtype.kind in "iu"
    y = y.astype(np.int32) if labels else np.asarray(y[:, None] if y.ndim == 1 else y, dtype)
    bad = ~np.isfinite(x).all(axis=1) | ~np.isfinite(y.reshape(len(y), -1)).all(axis=1)
    if bad.any():
        raise ValueError(f"{what} {int(bad.argmax())} holds a NaN or an infinite value: x {x[bad][0]}, y {y[bad][0]}")
    return jax.device_put(x), jax.device_put(y)  # without compiling a copy, as jnp.asarray does


def check(shape: Shape, settings: Settings, hyper: Hyper, data: Examples, networks: int | None = None) -> None:
    """Refuse what does not fit together, when it is traced or called; `networks` is the leading axis of hyper, if any."""
    if data.x.ndim != 2 or data.x.shape[1] != shape.inputs:
        raise ValueError(f"expected rows of {shape.inputs} inputs; got x of shape {data.x.shape}")
    if data.y.ndim == 2 and data.y.shape[1] != shape.outputs:
        raise ValueError(f"expected {shape.outputs} targets a row; got y of shape {data.y.shape}")
    if data.y.ndim == 1:
        _check_labels(shape, settings, data)
    if settings.patience is not None and data.valid_x is None:
        raise ValueError("patience needs validation rows: examples(x, y, valid_x, valid_y)")
    if settings.batch is not None and settings.batch > len(data.x):
        raise ValueError(f"batch, {settings.batch}, is more than the {len(data.x)} rows; None takes all of them")
    if hyper.momentum is not None and settings.optimiser != "sgd":
        raise ValueError(f"momentum is for sgd; {settings.optimiser} has its own")
    _check_hyper(shape, settings, hyper, () if networks is None else (networks,))


def _check_labels(shape: Shape, settings: Settings, data: Examples) -> None:
    if named(settings.loss) in (squared_error, half_squared_error):
        raise ValueError("y (n,) of whole numbers are labels; for a squared error give y as floating-point numbers or (n, c)")
    for labels in (data.y, data.valid_y):
        if labels is None or isinstance(labels, jax.core.Tracer):
            continue
        known = np.asarray(labels)
        if known.min() < 0 or known.max() >= shape.outputs:
            raise ValueError(f"labels must be between 0 and {shape.outputs - 1}; got {known.min()} to {known.max()}")


def _check_hyper(shape: Shape, settings: Settings, hyper: Hyper, lead: tuple[int, ...]) -> None:
    layers = {"learning_rate": shape.depth + 1, "max_norm": shape.depth + 1, "dropout": shape.depth}
    for name, value in hyper._asdict().items():
        if value is None:
            continue
        fits = [lead, (*lead, layers[name])] if name in layers else [lead]
        fits += [()] if lead else []
        if jnp.shape(value) not in fits:
            raise ValueError(f"expected {name} of shape {' or '.join(map(str, fits))}; got {jnp.shape(value)}")
        if isinstance(value, jax.core.Tracer):
            continue
        known = np.asarray(value)
        share, most = name in ("dropout", "input_dropout", "momentum"), settings.max_epochs
        if not (known >= 0).all() or (share and (known >= 1).any()) or (name == "epochs" and (known > most).any()):
            high = " and below 1" if share else f" and at most max_epochs, {most}" if name == "epochs" else ""
            raise ValueError(f"{name} must be at least 0{high}; got {known}")
