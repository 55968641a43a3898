"""Losses and metrics: functions of outputs (n, c) and targets that return one value per row."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

# (outputs (n, c), targets (n, c) or labels (n,)) -> (n,)
Loss = Callable[[Array, Array], Array]
Outputs = Float[Array, "n c"]
# Class labels, or one row of class probabilities per example.
Classes = Int[Array, " n"] | Float[Array, "n c"]


def squared_error(outputs: Outputs, targets: Float[Array, "n c"]) -> Float[Array, " n"]:
    """Return the mean over outputs of (f - y)²; its mean over rows is the mean squared error."""
    return jnp.mean((outputs - targets) ** 2, axis=1)


def half_squared_error(
    outputs: Outputs, targets: Float[Array, "n c"]
) -> Float[Array, " n"]:
    """Return ½ ‖y - f‖², the cost of one point (Twist, eq. 4)."""
    return 0.5 * jnp.sum((outputs - targets) ** 2, axis=1)


def cross_entropy(outputs: Outputs, targets: Classes) -> Float[Array, " n"]:
    """Return the cross-entropy between logits and labels or class probabilities."""
    logs = jax.nn.log_softmax(outputs, axis=1)
    if targets.ndim == 1:
        return -jnp.take_along_axis(logs, targets[:, None], axis=1)[:, 0]
    return -jnp.sum(targets * logs, axis=1)


def accuracy(outputs: Outputs, targets: Classes) -> Float[Array, " n"]:
    """Return 1 where the largest output belongs to the true class, else 0."""
    classes = targets if targets.ndim == 1 else jnp.argmax(targets, axis=1)
    return (jnp.argmax(outputs, axis=1) == classes).astype(outputs.dtype)


def error(outputs: Outputs, targets: Classes) -> Float[Array, " n"]:
    """Return 1 where the predicted class is wrong, else 0: the classification error."""
    return 1.0 - accuracy(outputs, targets)


LOSSES: dict[str, Loss] = {
    "squared_error": squared_error,
    "half_squared_error": half_squared_error,
    "cross_entropy": cross_entropy,
    "accuracy": accuracy,
    "error": error,
}


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss or metric with a given name; a function is returned unchanged."""
    if callable(loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(
            f"a loss or metric must be a function or one of {', '.join(LOSSES)}; got {loss!r}"
        )
    return LOSSES[loss]
