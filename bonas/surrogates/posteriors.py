"""Predictions of surrogates with Gaussian-process posteriors in their state."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from bonas import gp as gaussian
from bonas.gp import Prediction
from bonas.surrogates.surrogate import (
    Covariances,
    OtherPoints,
    Points,
    Samples,
    Surrogate,
)


class PosteriorSurrogate(Surrogate):
    """A surrogate whose state has a field `posterior` (s, ...) of s hyperparameter samples."""

    def predict(self, state: Any, x: Points) -> Prediction:
        return jax.vmap(gaussian.predict, (0, None))(state.posterior, x)

    def covariance(self, state: Any, x: Points, at: OtherPoints) -> Covariances:
        return jax.vmap(gaussian.covariance, (0, None, None))(state.posterior, x, at)

    def sample(self, key: PRNGKeyArray, state: Any, x: Points, k: int) -> Samples:
        """Draw k joint samples, cycling through the hyperparameter samples."""
        s = len(state.posterior.alpha)
        each = -(-k // s)
        keys = jax.random.split(key, s)
        draws = jax.vmap(lambda key, one: gaussian.sample(key, one, x, each))(
            keys, state.posterior
        )
        return jnp.swapaxes(draws, 0, 1).reshape(each * s, len(x))[:k]
