"""What is kept at the end: the networks of all folds of the best few configurations, whose answers are averaged.

One network is a matter of chance, and so is which of several good configurations was best on few rows. Every network has
rows that it was not trained on, so what the committee says of those is known, and with it the noise around its answers.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from bonas.tabular.kept import Group, cut_out
from bonas.tabular.look import Answer
from bonas.tabular.spaces import activation_of, widths_of
from bonas.tabular.training import Trainer, together

BEST = 5  # configurations
_REPEATS = 4  # trainings of each from other weights, where there is one fold


class Chosen(NamedTuple):
    """A configuration, and when its validation loss was least."""

    config: Mapping[str, Any]
    until: int  # epochs or updates


class Committee(NamedTuple):
    """The networks, and what they say of rows that they were not trained on."""

    groups: list[Group]
    validation: Answer


def committee(trainer: Trainer, chosen: Sequence[Chosen]) -> Committee:
    """The committee of those configurations, trained anew: as in the search, so that they are the very same networks."""
    folds, task = trainer.prepared.folds, trainer.prepared.columns.task
    groups: list[Group] = []
    answers = []
    for config, until in chosen:
        for repeat in range(1 if len(folds) > 1 else _REPEATS):
            training, look = trainer.family.advance(trainer.begin(config, repeat).training, until)
            if not look.counted.any(axis=1).all():
                continue
            answers.append(trainer.answers(look))
            params = jax.tree.map(np.asarray, trainer.family.params(training))
            for fold, (split, counted, noise) in enumerate(zip(folds, look.counted, look.noise, strict=True)):
                own = jax.tree.map(lambda leaf, fold=fold, counted=counted: leaf[fold][counted], params)
                layers = cut_out(own, widths_of(config), len(trainer.prepared.columns.names))
                groups.append(Group(*layers, activation_of(config), split.scaling, float(noise) * split.scaling.y_scale**2))
    if not groups:
        raise ValueError("none of the best configurations could be trained again")
    validation = together(answers)
    if task == "regression" and trainer.family.name != "bnn":
        validation, groups = _with_noise(validation, groups, trainer.held_out)
    return Committee(groups, validation)


def _with_noise(answer: Answer, groups: list[Group], y: np.ndarray) -> tuple[Answer, list[Group]]:
    """The noise that networks without a likelihood do not know of: what their spread leaves of the error on rows held out."""
    spread = np.asarray(answer.std) ** 2
    noise = max(float(np.mean((answer.mean - y) ** 2) - spread.mean()), 0.0)
    return Answer(answer.mean, np.sqrt(spread + noise)), [group._replace(noise=noise) for group in groups]
