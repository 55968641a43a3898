"""Bayesian optimization with a known noise variance for each observation."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset
from bonas.search.bayesian import Bayes, BayesState
from bonas.search.scale_inverses import invert_scale
from bonas.search.search import Observation


@dataclass(frozen=True)
class KnownNoiseBayes(Bayes):
    """Bayesian optimization that weights observations by their noise; see `bayes(known_noise=)`.

    The variances are a column of the data, 0 at rows that are pending or failed.
    """

    uses_known_noise = True

    def init(self, key: PRNGKeyArray, capacity: int) -> BayesState:
        return _with_noise(super().init(key, capacity), jnp.zeros(capacity))

    def tell(self, state: BayesState, observation: Observation) -> BayesState:
        before = state.observations
        column = jnp.asarray(before.data.noise)
        if observation.noise is None:
            raise ValueError(
                "expected a noise variance for every observation, because the search has "
                "known_noise=True: return (value, cost, noise) from the objective, or pass "
                "Observation(x, y, noise=variance), data=(x, y, cost, noise) or "
                "study.tell(trial, value, noise=variance); 0.0 if a value has no noise"
            )
        variance = jnp.asarray(observation.noise, before.data.y.dtype)
        if variance.shape != ():
            raise ValueError(
                f"expected one noise variance for an observation; got shape {variance.shape}"
            )
        ok = observation.ok & jnp.isfinite(variance) & (variance >= 0.0)
        state = super().tell(state, observation._replace(ok=ok, noise=None))
        after = state.observations
        was_pending = before.pending & ~after.pending
        row = jnp.where(was_pending.any(), was_pending.argmax(), before.data.size)
        valid = jnp.where(after.failed.at[row].get(mode="clip"), 0.0, variance)
        return _with_noise(state, column.at[row].set(valid, mode="drop"))


def _with_noise(state: BayesState, noise: Float[Array, " n"]) -> BayesState:
    data = state.observations.data._replace(noise=noise)
    return state._replace(observations=state.observations._replace(data=data))


def scale_noise(scale: Any, data: Dataset, scaled: Dataset) -> Dataset:
    """Return data on an output scale with noise variances on that scale, to first order.

    A variance is divided by the squared derivative of the inverse of the scale.

    Args:
        scale: The output scale.
        data: The data before they were scaled.
        scaled: The scaled data, with the noise variances of `data`.
    """
    inverse = invert_scale(scale, data)
    observed = scaled.mask[:, 0]
    y = jnp.where(observed, scaled.y[:, 0], 0.0)
    slope = jax.jvp(inverse, (y,), (jnp.ones_like(y),))[1]
    noise = jnp.where(observed, jnp.asarray(data.noise) / slope**2, 0.0)
    return scaled._replace(noise=noise)
