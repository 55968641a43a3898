"""What training minimises and validation measures: functions of outputs (n, c) and targets, one value a row."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

Loss = Callable[[Array, Array], Array]  # (outputs (n, c), targets (n, c) or labels (n,)) -> (n,)


def squared_error(outputs: Array, targets: Array) -> Array:
    """Mean over the outputs of (f - y)²; its mean over rows is the mean squared error."""
    return jnp.mean((outputs - targets) ** 2, axis=1)


def half_squared_error(outputs: Array, targets: Array) -> Array:
    """½ ‖y - f‖², the cost of one point (Twist, eq. 4)."""
    return 0.5 * jnp.sum((outputs - targets) ** 2, axis=1)


def cross_entropy(outputs: Array, targets: Array) -> Array:
    """-log softmax(f)_y for labels y (n,), or -Σ y log softmax(f) for rows of probabilities (n, c). Outputs are logits."""
    logs = jax.nn.log_softmax(outputs, axis=1)
    if targets.ndim == 1:
        return -jnp.take_along_axis(logs, targets[:, None], axis=1)[:, 0]
    return -jnp.sum(targets * logs, axis=1)


def accuracy(outputs: Array, targets: Array) -> Array:
    """1 where the largest output is that of the class: a label (n,), or the largest entry of a row (n, c)."""
    classes = targets if targets.ndim == 1 else jnp.argmax(targets, axis=1)
    return (jnp.argmax(outputs, axis=1) == classes).astype(outputs.dtype)


def error(outputs: Array, targets: Array) -> Array:
    """1 where the class is wrong: the classification error, to be minimised."""
    return 1.0 - accuracy(outputs, targets)


LOSSES: dict[str, Loss] = {
    "squared_error": squared_error,
    "half_squared_error": half_squared_error,
    "cross_entropy": cross_entropy,
    "accuracy": accuracy,
    "error": error,
}


def named(loss: str | Loss) -> Loss:
    """The loss of that name; a function is its own."""
    if callable(loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(f"a loss or metric is a function or one of {', '.join(LOSSES)}; got {loss!r}")
    return LOSSES[loss]
