"""The base class of surrogates that predict by networks drawn from a posterior."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset, clean
from bonas.gp import Prediction
from bonas.surrogates.network_posterior import Predictive
from bonas.surrogates.surrogate import (
    Covariances,
    OtherPoints,
    Points,
    Samples,
    Surrogate,
)


@dataclass(frozen=True)
class DrawnNetworks(Surrogate):
    """Base class of surrogates that predict with networks drawn from a posterior.

    The state of a subclass has the fields `draws` and `learned`, the arguments of `Predictive`.
    """

    def update(self, data: Dataset, state: Any) -> Any:
        predictive = self._predictive(data.x.shape[1])
        data = self._data(data)
        return state._replace(
            learned=predictive.update(state.draws, state.learned, data)
        )

    def predict(self, state: Any, x: Points) -> Prediction:
        predictive = self._predictive(x.shape[1])
        return predictive.predict(state.draws, state.learned, self._inputs(x))

    def covariance(self, state: Any, x: Points, at: OtherPoints) -> Covariances:
        predictive = self._predictive(x.shape[1])
        inputs = self._inputs(x), self._inputs(at)
        return predictive.covariance(state.draws, state.learned, *inputs)

    def sample(self, key: PRNGKeyArray, state: Any, x: Points, k: int) -> Samples:
        predictive = self._predictive(x.shape[1])
        return predictive.sample(key, state.draws, state.learned, self._inputs(x), k)

    def noise_variance(self, state: Any) -> Float[Array, " 1"]:
        """Return the variance of the noise, averaged over the networks."""
        noise: Array = self._noise(state.draws).astype(state.learned[0].dtype)
        return noise[None]

    def _noise(self, draws: Any) -> Float[Array, ""]:
        """Return the variance of the noise, averaged over the draws."""
        raise NotImplementedError

    def _predictive(self, d: int) -> Predictive:
        """Return the predictive of networks for points of d columns."""
        raise NotImplementedError

    def _inputs(self, x: Array) -> Array:
        """Convert points to inputs of the predictive."""
        return x

    def _data(self, data: Dataset) -> Dataset:
        data = clean(data)
        return data._replace(x=self._inputs(data.x))


def zeros_of(make: Callable[[], Any]) -> Any:
    """Return zeros in the shapes of what a function would return, without computing it."""
    shapes = jax.eval_shape(make)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
