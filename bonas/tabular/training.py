"""From a configuration to a validation loss, checkpoint by checkpoint: what a search on a table minimises."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bonas import nets
from bonas.problems.examples import Split, unscale
from bonas.tabular import look as scores
from bonas.tabular.look import Answer, Look, averaged
from bonas.tabular.prepared import Prepared
from bonas.tabular.spaces import Family

PATIENCE = 4  # checkpoints without a better validation loss after which a training ends


class Going(NamedTuple):
    """A configuration in training."""

    config: Mapping[str, Any]
    training: Any  # the family's
    curve: tuple[float, ...]  # validation loss at the checkpoints so far

    @property
    def best(self) -> float:
        """The least validation loss so far."""
        return min(self.curve)

    @property
    def stale(self) -> bool:
        """Whether it is so many checkpoints ago that training may end."""
        return len(self.curve) - 1 - int(np.argmin(self.curve)) >= PATIENCE


class Trainer:
    """Trains configurations of a family on a prepared table; the same configuration always gives the same curve."""

    def __init__(self, prepared: Prepared, family: Family, seed: int):
        self.prepared, self.family, self.key = prepared, family, jax.random.key(seed)
        self.folds = _stacked(prepared.folds)

    def begin(self, config: Mapping[str, Any], repeat: int = 0) -> Going:
        """A configuration before its first checkpoint; other repeats start from other weights."""
        return Going(config, self.family.begin(jax.random.fold_in(self.key, repeat), config, self.folds), ())

    def advance(self, going: Going) -> Going:
        """The same at its next checkpoint. A loss that is no number, of networks that diverged, is infinite."""
        until = self.family.checkpoints[len(going.curve)]
        training, look = self.family.advance(going.training, until)
        return going._replace(training=training, curve=(*going.curve, self.loss(look)))

    def loss(self, look: Look) -> float:
        """What the search minimises, of all rows held out; infinite where a fold has no network that counts."""
        if not look.counted.any(axis=1).all():
            return float("inf")
        return score(self.family.score, together([self.answers(look)]), self.held_out)

    def answers(self, look: Look) -> list[Answer]:
        """What the networks of each fold say of the rows that it holds out, in the target's own units."""
        task = self.prepared.columns.task
        found = []
        for split, outputs, counted, noise in zip(self.prepared.folds, *look, strict=True):
            if task == "regression":
                outputs, noise = unscale(split.scaling, outputs), noise * split.scaling.y_scale**2
            found.append(averaged(task, outputs[counted], noise))
        return found

    @property
    def held_out(self) -> np.ndarray:
        """The targets of all rows held out, fold by fold, in their own units."""
        return np.concatenate([in_units(split, split.validation.y) for split in self.prepared.folds])


def together(members: list[list[Answer]]) -> Answer:
    """The answers of several members, each a list by fold, averaged and put one after the other.

    The variance of a mixture is the mean of the variances and the variance of the means.
    """
    each = [Answer(np.concatenate([a.mean for a in answers]), _concatenated(answers)) for answers in members]
    mean = np.mean([answer.mean for answer in each], axis=0)
    if each[0].std is None:
        return Answer(mean)
    spread = np.var([answer.mean for answer in each], axis=0)
    return Answer(mean, np.sqrt(spread + np.mean([np.asarray(answer.std) ** 2 for answer in each], axis=0)))


def _concatenated(answers: list[Answer]) -> np.ndarray | None:
    return None if answers[0].std is None else np.concatenate([np.asarray(a.std) for a in answers])


def score(name: str, answer: Answer, y: np.ndarray) -> float:
    """A score of `bonas.tabular.look` by its name; infinite where it is no number."""
    value = getattr(scores, name)(answer, y)
    return value if np.isfinite(value) else float("inf")


def in_units(split: Split, y: np.ndarray) -> np.ndarray:
    """Targets of a split in their own units; labels are their own."""
    return y if split.train.task == "classification" else unscale(split.scaling, y)


def _stacked(folds: list[Split]) -> nets.Examples:
    """The folds as one, with a leading axis; values have a column of their own, labels have not."""

    def column(y: np.ndarray) -> np.ndarray:
        return y if y.dtype.kind == "i" else y[:, None]

    parts = [(f.train.x, column(f.train.y), f.validation.x, column(f.validation.y)) for f in folds]
    return nets.Examples(*(jnp.asarray(np.stack(part)) for part in zip(*parts, strict=True)))
