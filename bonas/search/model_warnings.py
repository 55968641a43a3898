"""Count the problems of a search's model, and warn at the end of a run if they were frequent."""

import warnings
from typing import NamedTuple

import jax
import numpy as np

from bonas.configuration import caller_level
from bonas.search.search import FALLBACKS, AskInfo

# Positions in FALLBACKS of the problems of a model; the others are problems of the objective.
_MODEL_FALLBACKS = tuple(range(2, len(FALLBACKS)))
# Shares of the asks with a model above which a run ends with a warning. Short fits of a healthy
# model often stop before the optimum, so that only a model that hardly ever converges counts.
_MAX_FALLBACKS = 0.05
_MAX_FLAT = 0.25
_MAX_UNCONVERGED = 0.95
# Asks with a model from which fits that do not converge count. The first fits start far from the
# optimum and often do not converge, so that few asks say nothing.
_MIN_ASKS = 10
# What is counted, and what to try against it, in the order of the fields of ModelProblems.
_PROBLEMS = (
    (
        "its fit or predictions were not finite",
        "Check the kernel and its gradient for NaN, or use a simpler kernel",
    ),
    (
        "the acquisition was flat",
        "Check that the objective is not constant, or change output=",
    ),
    (
        "the fit did not converge",
        "Check the gradient of the kernel for NaN, or use more steps",
    ),
)


class ModelWarning(UserWarning):
    """Warning that the model of a search often failed, or that its fits did not converge."""


class ModelProblems(NamedTuple):
    """The number of asks in which the model had a problem, over one or several runs."""

    asks: int  # asks with a model
    fallbacks: int  # the fit, the predictions or the scores were not finite
    flat: int  # all candidates had practically the same acquisition value
    unconverged: int  # the fit did not converge

    def __str__(self) -> str:
        found = [
            f"{text} {'once' if times == 1 else f'{times} times'}"
            for (text, _), times in zip(_PROBLEMS, self[1:], strict=True)
            if times
        ]
        asks = "1 ask" if self.asks == 1 else f"{self.asks} asks"
        return f"in {asks}, {' and '.join(found) or 'nothing failed'}"

    @property
    def remedy(self) -> str:
        """Advice against the first kind of problem that occurred; empty if there was none."""
        counted = zip(_PROBLEMS, self[1:], strict=True)
        return next((remedy for (_, remedy), times in counted if times), "")

    @property
    def frequent(self) -> bool:
        """Whether a problem occurred so often that the model should not be trusted."""
        unconverged = self.asks >= _MIN_ASKS and (
            self.unconverged > _MAX_UNCONVERGED * self.asks
        )
        return (
            self.fallbacks > _MAX_FALLBACKS * self.asks
            or self.flat > _MAX_FLAT * self.asks
            or unconverged
        )


def model_problems(info: AskInfo) -> ModelProblems:
    """Count the asks in which the model of a search had a problem.

    Points of the initial design are not counted, because they need no model. A flat acquisition is
    not a problem if no point was left.

    Args:
        info: Reports of asks with leaves of any shape, such as `History.info`.
    """
    fallback = np.isin(np.asarray(info.fallback), _MODEL_FALLBACKS)
    modeled = ~np.asarray(info.random) | fallback
    flat = np.asarray(info.flat) & ~np.asarray(info.exhausted)
    unconverged = ~np.asarray(info.converged) & ~fallback
    masks = (modeled, fallback, modeled & flat & ~fallback, modeled & unconverged)
    return ModelProblems(*(int(mask.sum()) for mask in masks))


def warn_about_model(info: AskInfo) -> None:
    """Issue one `ModelWarning` if problems of the model were frequent.

    Under `jit` nothing is issued, because the reports are not known.

    Args:
        info: Reports of asks with leaves of any shape, such as `History.info`.
    """
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(info)):
        return
    problems = model_problems(info)
    if problems.frequent:
        warnings.warn(
            f"the model of the search is unreliable: {problems}. {problems.remedy}; "
            "see 'When a model fails' in the documentation.",
            ModelWarning,
            stacklevel=caller_level(),
        )
