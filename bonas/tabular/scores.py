"""Average the outputs of networks, and score the predictive distributions."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

from bonas.problems.examples import Task

# Display names of scores.
SCORE_NAMES = {
    "rmse": "RMSE",
    "log_loss": "log loss",
    "nats": "negative log density",
    "accuracy": "accuracy",
    "r2": "R²",
}
# Nominal coverage, in percent, of the central intervals that are checked on the test rows.
INTERVAL_LEVELS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
# Lower bound of probabilities and standard deviations, because the logarithm of 0 is infinite.
_SMALLEST = 1e-12
# Half width, in standard deviations, of the interval that holds 90% of a normal distribution.
_HALF_WIDTH_90 = 1.6448536269514722


class FoldOutputs(NamedTuple):
    """Network outputs for the validation rows of each fold, in scaled units."""

    outputs: Float[np.ndarray, "k s m c"]
    # the networks to average, without diverged ones
    valid: Bool[np.ndarray, "k s"]
    # estimated noise variance; 0 for networks without a likelihood
    noise: Float[np.ndarray, " k"]


class Predictive(NamedTuple):
    """Predictive distribution of n rows: means and standard deviations, or class probabilities."""

    mean: Float[np.ndarray, "n ..."]  # (n,) values, or (n, c) class probabilities
    # standard deviation of a value, if known
    std: Float[np.ndarray, " n"] | None = None


def softmax(logits: Float[np.ndarray, "*n c"]) -> Float[np.ndarray, "*n c"]:
    """Convert logits to probabilities over the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def average_networks(
    task: Task, outputs: Float[np.ndarray, "s n c"], noise: np.ndarray | float = 0.0
) -> Predictive:
    """Average the values, or the class probabilities, of s networks.

    Args:
        task: The task of the networks.
        outputs: Network outputs: values, or logits.
        noise: Noise variance of a value, of any shape; its mean is added to the variance between
            the networks.
    """
    if task == "classification":
        return Predictive(softmax(outputs).mean(axis=0))
    values = outputs[:, :, 0]
    return Predictive(values.mean(axis=0), np.sqrt(values.var(axis=0) + np.mean(noise)))


def mixture(members: Sequence[Sequence[Predictive]]) -> Predictive:
    """Average the predictions of several members.

    The variance of a mixture is the mean of the variances plus the variance of the means.

    Args:
        members: For each member, its predictions for every fold.
    """
    joined = [concatenate(folds) for folds in members]
    mean = np.mean([each.mean for each in joined], axis=0)
    if joined[0].std is None:
        return Predictive(mean)
    spread = np.var([each.mean for each in joined], axis=0)
    variance = np.mean([np.asarray(each.std) ** 2 for each in joined], axis=0)
    return Predictive(mean, np.sqrt(spread + variance))


def concatenate(parts: Sequence[Predictive]) -> Predictive:
    """Concatenate predictions of different rows."""
    mean = np.concatenate([part.mean for part in parts])
    if parts[0].std is None:
        return Predictive(mean)
    return Predictive(mean, np.concatenate([np.asarray(part.std) for part in parts]))


# Scores


def rmse(predicted: Predictive, y: Float[np.ndarray, " n"]) -> float:
    """Return the root mean squared error."""
    return float(np.sqrt(np.mean(residuals(predicted, y) ** 2)))


def residuals(
    predicted: Predictive, y: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Return predicted means minus values in float64, where the squares of float32 are finite."""
    return np.asarray(predicted.mean, np.float64) - y


def log_loss(predicted: Predictive, y: Shaped[np.ndarray, " n"]) -> float:
    """Return the mean negative log probability of the true class."""
    probabilities = predicted.mean[np.arange(len(y)), y]
    return float(-np.mean(np.log(np.maximum(probabilities, _SMALLEST))))


def accuracy(predicted: Predictive, y: Shaped[np.ndarray, " n"]) -> float:
    """Return the fraction of rows whose most probable class is the true one."""
    return float(np.mean(predicted.mean.argmax(axis=1) == y))


def coverage(predicted: Predictive, y: Float[np.ndarray, " n"]) -> float:
    """Return the fraction of values inside the central 90% intervals."""
    half_width = _HALF_WIDTH_90 * np.asarray(predicted.std)
    return float(np.mean(np.abs(residuals(predicted, y)) <= half_width))


def negative_log_density(predicted: Predictive, y: Float[np.ndarray, " n"]) -> float:
    """Return the mean of -log N(y; mean, std²), in nats."""
    std = np.maximum(np.asarray(predicted.std), _SMALLEST)
    squares = (residuals(predicted, y) / std) ** 2
    return float(np.mean(0.5 * math.log(2.0 * math.pi) + np.log(std) + 0.5 * squares))


# The scores that a search can minimize, by the name that studies store.
LOSSES: dict[str, Callable[[Predictive, np.ndarray], float]] = {
    "rmse": rmse,
    "log_loss": log_loss,
    "nats": negative_log_density,
}


def loss(name: str, predicted: Predictive, y: Shaped[np.ndarray, " n"]) -> float:
    """Compute the score with a given name of `LOSSES`; return infinity if it is not finite."""
    value = LOSSES[name](predicted, y)
    return value if np.isfinite(value) else float("inf")


def interval_coverage(
    predicted: Predictive, y: Float[np.ndarray, " n"]
) -> dict[str, float]:
    """Return the fraction of values in central intervals, by nominal coverage in percent."""
    from scipy.stats import norm

    distance = np.abs(residuals(predicted, y)) / np.asarray(predicted.std)
    return {
        str(level): float(np.mean(distance <= norm.ppf(0.5 + level / 200.0)))
        for level in INTERVAL_LEVELS
    }
