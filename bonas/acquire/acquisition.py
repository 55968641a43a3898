"""The interface of acquisitions, which choose the next point from a surrogate's predictions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from bonas.acquire.argument_checks import check_closed_form, hashable_settings
from bonas.acquire.maximize import Score, Selection
from bonas.data import Dataset
from bonas.gp import Prediction
from bonas.spaces import Space
from bonas.surrogates import Surrogate
from bonas.traced_settings import setting_values

# A function of the predicted mean (s, m) and std (s, m) for s hyperparameter samples at m points,
# and the incumbent (s, 1). It returns scores (m,), or (s, m), which are averaged over the samples.
ClosedForm = Callable[..., Array]


@dataclass(frozen=True)
class Context:
    """The inputs of an acquisition at one ask.

    A context is valid only within one trace, and is not a pytree.
    """

    model: Surrogate  # the model of the objective
    model_state: Any  # the model's state given the evaluations
    # the model's state given the evaluations and the values assumed at pending points
    fantasy_state: Any
    # whether the model's predictions at evaluated and pending points are finite
    finite: Bool[Array, ""]
    # incumbent: lowest posterior mean at evaluated and pending points
    best: Float[Array, " s"]
    data: Dataset  # all proposed points, with standardized values
    pending: Bool[Array, " n"]  # rows of the data that are not yet evaluated
    failed: Bool[Array, " n"]  # rows of the data whose evaluation failed
    cost: Float[Array, " n"]  # cost of each evaluation, in any unit
    # maximize a score over the space, given a random key
    maximize: Callable[[PRNGKeyArray, Score], Selection]
    # draw candidates (m, d) from the whole space and near the best points
    candidates: Callable[[PRNGKeyArray], Array]
    # select the best of points (m, d) by scores (m,), preferring points not proposed before
    choose: Callable[[Array, Array], Selection]

    @property
    def noise(self) -> Float[Array, " s"]:
        """The noise variance of an evaluation; see `Surrogate.noise_variance`."""
        return self.model.noise_variance(self.model_state)

    def predict(self, x: Float[Array, "m d"]) -> Prediction:
        """Predict mean and std (s, m) at points x, given the values assumed at pending points."""
        return self.model.predict(self.fantasy_state, x)


class Acquisition:
    """Base class of acquisitions, which choose the next point to evaluate.

    To define one, write a frozen dataclass that overrides `score`, or `select` if it does more than
    maximize a score. Acquisitions are static: they may be passed to any jitted function.
    """

    def __init_subclass__(cls) -> None:
        jax.tree_util.register_static(cls)

    def init(self, capacity: int, d: int) -> Any:
        """Return the initial memory, a pytree that each ask receives and updates.

        It is empty by default.

        Args:
            capacity: Number of rows of the data.
            d: Number of columns of a point.
        """
        return ()

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        """Return the score to maximize, and the new memory.

        Random numbers are drawn here, once per ask, so that the score is a deterministic function.

        Args:
            key: Random key.
            context: The model, the data and the incumbent.
            memory: The memory that the previous ask returned, or the initial one.
        """
        raise ValueError(
            f"{type(self).__name__} selects points without a score, so it cannot be combined with "
            "an acquisition that changes scores; use one with a score, such as bonas.log_ei"
        )

    def select(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Selection, Any]:
        """Select the next point, by default one that maximizes `score`; return the new memory, too.

        Arguments as in `score`.
        """
        score_key, maximize_key = jax.random.split(key)
        score, memory = self.score(score_key, context, memory)
        return context.maximize(maximize_key, score), memory

    def adapt(self, space: Space) -> "Acquisition":
        """Return the acquisition adapted to a space; override it if the acquisition has models."""
        return self


@dataclass(frozen=True)
class ClosedFormAcquisition(Acquisition):
    """An acquisition given by a function of mean, std and incumbent."""

    function: ClosedForm
    settings: tuple[tuple[str, Any], ...] = ()

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        return lambda x: self._scores(context, x), memory

    def _scores(self, context: Context, x: Array) -> Array:
        mean, std = context.predict(x)
        best = context.best[:, None]
        scores = jnp.asarray(
            self.function(mean, std, best, **setting_values(self.settings))
        )
        if scores.shape == mean.shape:
            return scores.mean(axis=0)
        if scores.shape == mean.shape[1:]:
            return scores
        raise ValueError(
            f"expected a score for each point: from mean and std of shape {mean.shape} (samples, "
            f"points), scores {mean.shape[1:]}, or {mean.shape} to average; got {scores.shape}"
        )


def closed_form_acquisition(function: ClosedForm, **settings: Any) -> Acquisition:
    """Create an acquisition from a closed form, as in ``closed_form_acquisition(lcb, kappa=1.0)``.

    Without settings this is not needed, because a search accepts a closed form directly.

    Args:
        function: A function of mean and std (s, m), for s hyperparameter samples at m points, and
            the incumbent (s, 1). It returns scores (s, m), which are averaged over the samples, or
            averaged scores (m,).
        **settings: Keyword arguments for the function; numbers may be traced.
    """
    fixed = hashable_settings(settings)
    check_closed_form(function, settings)
    return ClosedFormAcquisition(function, fixed)


def as_acquisition(acquisition: Acquisition | ClosedForm) -> Acquisition:
    """Convert a closed form to an acquisition; an acquisition is returned unchanged."""
    if isinstance(acquisition, Acquisition):
        return acquisition
    return closed_form_acquisition(acquisition)


def adapt_acquisition(
    acquisition: Acquisition | ClosedForm, space: Space
) -> Acquisition:
    """Convert a closed form to an acquisition, and adapt its models to a space."""
    return as_acquisition(acquisition).adapt(space)
