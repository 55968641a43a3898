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
from bonas.tabular.training import Trainer, score, together

BEST = 5  # configurations at most
_REPEATS = 4  # trainings of each from other weights, where there is one fold


class Chosen(NamedTuple):
    """A configuration, and when its validation loss was least."""

    config: Mapping[str, Any]
    until: int  # epochs or updates


class Committee(NamedTuple):
    """The networks, and what they say of rows that they were not trained on."""

    chosen: list[Chosen]  # the configurations that have a part in it
    groups: list[Group]
    validation: Answer


class _Member(NamedTuple):
    """The networks of one configuration."""

    chosen: Chosen
    groups: list[Group]
    answers: list[list[Answer]]  # of each repeat, by fold


def committee(trainer: Trainer, chosen: Sequence[Chosen]) -> Committee:
    """The committee of the first so many of those configurations that does best on the rows held out.

    They are trained anew, as in the search, so that they are the very same networks.
    """
    members = [member for each in chosen if (member := _trained(trainer, each)).groups]
    if not members:
        raise ValueError("none of the best configurations could be trained again")

    def loss(number: int) -> float:
        return score(trainer.family.score, _said(members[:number]), trainer.held_out)

    members = members[: min(range(1, len(members) + 1), key=loss)]
    groups, validation = [group for member in members for group in member.groups], _said(members)
    if trainer.prepared.columns.task == "regression" and trainer.family.name != "bnn":
        validation, groups = _with_noise(validation, groups, trainer.held_out)
    return Committee([member.chosen for member in members], groups, validation)


def _said(members: Sequence[_Member]) -> Answer:
    return together([answers for member in members for answers in member.answers])


def _trained(trainer: Trainer, chosen: Chosen) -> _Member:
    """A configuration trained on every fold, several times where there is one; without groups where it diverged."""
    folds, inputs = trainer.prepared.folds, len(trainer.prepared.columns.names)
    made = _Member(chosen, [], [])
    for repeat in range(1 if len(folds) > 1 else _REPEATS):
        training, look = trainer.family.advance(trainer.begin(chosen.config, repeat).training, chosen.until)
        if not look.counted.any(axis=1).all():
            continue
        made.answers.append(trainer.answers(look))
        params = jax.tree.map(np.asarray, trainer.family.params(training))
        for fold, (split, counted, noise) in enumerate(zip(folds, look.counted, look.noise, strict=True)):
            own = jax.tree.map(lambda leaf, fold=fold, counted=counted: leaf[fold][counted], params)
            layers = cut_out(own, widths_of(chosen.config), inputs)
            variance = float(noise) * split.scaling.y_scale**2
            made.groups.append(Group(*layers, activation_of(chosen.config), split.scaling, variance))
    return made


def _with_noise(answer: Answer, groups: list[Group], y: np.ndarray) -> tuple[Answer, list[Group]]:
    """The noise that networks without a likelihood do not know of: what their spread leaves of the error on rows held out."""
    spread = np.asarray(answer.std) ** 2
    noise = max(float(np.mean((answer.mean - y) ** 2) - spread.mean()), 0.0)
    return Answer(answer.mean, np.sqrt(spread + noise)), [group._replace(noise=noise) for group in groups]
