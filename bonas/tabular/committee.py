"""What is kept at the end: the networks of all folds of the best few configurations, whose answers are averaged.

One network is a matter of chance, and so is which of several good configurations was best on few rows. Every network has
rows that it was not trained on, so what the committee says of those is known, and with it the noise around its answers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from bonas.tabular.kept import Group, cut_out
from bonas.tabular.look import Answer
from bonas.tabular.spaces import activation_of, widths_of
from bonas.tabular.training import Trainer, score, together

BEST = 5  # configurations at most
_REPEATS = 4  # trainings of each from other weights, where there is one fold
Each = TypeVar("Each")


class Chosen(NamedTuple):
    """A configuration, and when its validation loss was least."""

    config: Mapping[str, Any]
    until: int  # epochs or updates


class Committee(NamedTuple):
    """The networks, and what they say of rows that they were not trained on."""

    chosen: list[Chosen]  # the configurations that have a part in it
    groups: list[Group]
    validation: Answer


class _Repeat(NamedTuple):
    """The networks of one training, fold by fold."""

    groups: list[Group]
    answers: list[Answer]


class _Member(NamedTuple):
    """The networks of one configuration."""

    chosen: Chosen
    repeats: list[_Repeat]


def committee(trainer: Trainer, chosen: Sequence[Chosen]) -> Committee:
    """The committee of the first so many of those configurations that does best on the rows held out.

    They are trained anew, as in the search, so that they are the very same networks: on those rows it is not worse than the
    first of them was in the search.
    """
    members = [member for each in chosen if (member := _trained(trainer, each)).repeats]
    if not members:
        raise ValueError("none of the best configurations could be trained again")
    members = _best_first(members, lambda some: _loss(trainer, _repeats(some)))
    groups = [group for repeat in _repeats(members) for group in repeat.groups]
    validation = _said(_repeats(members))
    if trainer.prepared.columns.task == "regression" and trainer.family.name != "bnn":
        validation, groups = _with_noise(validation, groups, trainer.held_out)
    return Committee([member.chosen for member in members], groups, validation)


def _best_first(some: list[Each], loss: Callable[[list[Each]], float]) -> list[Each]:
    """The first so many that have the least loss together."""
    return some[: min(range(1, len(some) + 1), key=lambda number: loss(some[:number]))]


def _repeats(members: Sequence[_Member]) -> list[_Repeat]:
    return [repeat for member in members for repeat in member.repeats]


def _said(repeats: Sequence[_Repeat]) -> Answer:
    return together([repeat.answers for repeat in repeats])


def _loss(trainer: Trainer, repeats: Sequence[_Repeat]) -> float:
    return score(trainer.family.score, _said(repeats), trainer.held_out)


def _trained(trainer: Trainer, chosen: Chosen) -> _Member:
    """A configuration trained on every fold, several times where there is one; without repeats where it diverged.

    The first repeat is the network of the search. Of several the best so many stay: from other weights one may be far worse.
    """
    number = 1 if len(trainer.prepared.folds) > 1 else _REPEATS
    made = [found for repeat in range(number) if (found := _repeat(trainer, chosen, repeat)) is not None]
    made.sort(key=lambda repeat: _loss(trainer, [repeat]))
    return _Member(chosen, _best_first(made, lambda some: _loss(trainer, some)) if made else [])


def _repeat(trainer: Trainer, chosen: Chosen, repeat: int) -> _Repeat | None:
    """A training; None where it diverged."""
    folds, inputs = trainer.prepared.folds, len(trainer.prepared.columns.names)
    training, look = trainer.family.advance(trainer.begin(chosen.config, repeat).training, chosen.until)
    if not look.counted.any(axis=1).all():
        return None
    groups = []
    params = jax.tree.map(np.asarray, trainer.family.params(training))
    for fold, (split, counted, noise) in enumerate(zip(folds, look.counted, look.noise, strict=True)):
        own = jax.tree.map(lambda leaf, fold=fold, counted=counted: leaf[fold][counted], params)
        layers = cut_out(own, widths_of(chosen.config), inputs)
        variance = float(noise) * split.scaling.y_scale**2
        groups.append(Group(*layers, activation_of(chosen.config), split.scaling, variance))
    return _Repeat(groups, trainer.answers(look))


def _with_noise(answer: Answer, groups: list[Group], y: np.ndarray) -> tuple[Answer, list[Group]]:
    """The noise that networks without a likelihood do not know of: what their spread leaves of the error on rows held out."""
    spread = np.asarray(answer.std) ** 2
    noise = max(float(np.mean((answer.mean - y) ** 2) - spread.mean()), 0.0)
    return Answer(answer.mean, np.sqrt(spread + noise)), [group._replace(noise=noise) for group in groups]
