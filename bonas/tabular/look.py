"""What networks say of rows, on the way and at the end: their answers averaged, and scored."""

import math
from typing import NamedTuple

import numpy as np

from bonas.problems.examples import Task

NAMES = {  # of scores, for people
    "rmse": "RMSE",
    "log_loss": "log loss",
    "nats": "negative log density",
    "accuracy": "accuracy",
    "r2": "R²",
}
_SMALLEST = 1e-12  # chance or standard deviation that is counted with at least: the logarithm of 0 is no score
_WITHIN = 1.6448536269514722  # standard deviations around the mean that hold 90% of a normal distribution


class Look(NamedTuple):
    """Outputs of the networks of each fold for the rows held out, in the units that they were trained in."""

    outputs: np.ndarray  # (k, s, m, c)
    counted: np.ndarray  # (k, s) bool: the networks that are averaged
    noise: np.ndarray  # (k,) variance of the noise that they believe in; 0 where they know of none


class Answer(NamedTuple):
    """What a committee says of rows."""

    mean: np.ndarray  # (n,) values, or (n, c) chances of the classes
    std: np.ndarray | None = None  # (n,) standard deviation of a value; None where nothing is known of it


def softmax(logits: np.ndarray) -> np.ndarray:
    """exp(z) / Σ exp(z) over the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def averaged(task: Task, outputs: np.ndarray, noise: np.ndarray | float = 0.0) -> Answer:
    """The answer of networks with outputs (s, n, c): the mean of their values, or of their chances of the classes.

    noise: variance of a value around each network's, () or (s,); the networks' own spread comes on top.
    """
    if task == "classification":
        return Answer(softmax(outputs).mean(axis=0))
    values = outputs[:, :, 0]
    return Answer(values.mean(axis=0), np.sqrt(values.var(axis=0) + np.mean(noise)))


def rmse(answer: Answer, y: np.ndarray) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((answer.mean - y) ** 2)))


def log_loss(answer: Answer, y: np.ndarray) -> float:
    """Mean of -log of the chance that the right class is given."""
    return float(-np.mean(np.log(np.maximum(answer.mean[np.arange(len(y)), y], _SMALLEST))))


def accuracy(answer: Answer, y: np.ndarray) -> float:
    """Share of rows whose likeliest class is the right one."""
    return float(np.mean(answer.mean.argmax(axis=1) == y))


def coverage(answer: Answer, y: np.ndarray) -> float:
    """Share of values within the interval that should hold 90% of them: calibration in one number."""
    return float(np.mean(np.abs(answer.mean - y) <= _WITHIN * np.asarray(answer.std)))


def nats(answer: Answer, y: np.ndarray) -> float:
    """Mean of -log N(y; mean, std²): low where predictions are good and know how good they are."""
    std = np.maximum(np.asarray(answer.std), _SMALLEST)
    return float(np.mean(0.5 * math.log(2.0 * math.pi) + np.log(std) + 0.5 * ((y - answer.mean) / std) ** 2))
