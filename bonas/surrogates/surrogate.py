"""The interface of surrogates: models of an objective that a search fits and queries."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas import gp as gaussian
from bonas.data import Dataset
from bonas.gp import Prediction
from bonas.spaces import Space


class FitInfo(NamedTuple):
    """Diagnostics of a surrogate's fit."""

    log_density: Array  # () log density of the hyperparameters, averaged over samples
    # () bool: whether an optimum was reached, or, for HMC and NUTS, no trajectory diverged
    converged: Array
    # () bool: false if the new parameters or their density were not finite; the last parameters
    # were kept
    finite: Array
    jitter: Array  # () the largest value added to the diagonal of a covariance


# Shapes of arguments and results: m and k points of d columns, s hyperparameter samples.
Points = Float[Array, "m d"]
OtherPoints = Float[Array, "k d"]
Covariances = Float[Array, "s m k"]
Samples = Float[Array, "k m"]


class Surrogate:
    """Base class of models of an objective that a search fits and queries.

    A surrogate is a frozen dataclass: its settings are fields and its behavior is methods. It is
    static, equal and hashable by value, and may be passed to any jitted function; subclasses are
    registered with JAX automatically. What changes from fit to fit is in the state, a pytree whose
    shapes depend only on the capacity.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        jax.tree_util.register_static(cls)

    # Whether `fit` and `update` use the known noise variances of the data.
    uses_known_noise: bool = False

    @property
    def has_evidence(self) -> bool:
        """Whether `FitInfo.log_density` is a density of the data and `refresh` is implemented.

        A search needs it to compare output scales. The default is False.
        """
        return False

    def init(self, capacity: int, d: int, p: int) -> Any:
        """Return the initial state, without data.

        Args:
            capacity: The number of rows of the data.
            d: The number of columns of a point.
            p: The number of outputs.
        """
        raise NotImplementedError

    def fit(self, key: PRNGKeyArray, data: Dataset, state: Any) -> tuple[Any, FitInfo]:
        """Fit the parameters to the data, starting from those in the state.

        Args:
            key: A random key.
            data: The observations. Masked rows must have no effect.
            state: The state of the last fit, or the initial one.

        Returns:
            A state of the same structure and shapes, and diagnostics.
        """
        raise NotImplementedError

    def update(self, data: Dataset, state: Any) -> Any:
        """Return the state conditioned on other data with the same parameters.

        Searches use it for data that include assumed values at pending points.
        """
        raise NotImplementedError

    def predict(self, state: Any, x: Points) -> Prediction:
        """Return the posterior mean and standard deviation of the latent values at points.

        Both have shape (s, m), for s hyperparameter samples and m points.
        """
        raise NotImplementedError

    def noise_variance(self, state: Any) -> Float[Array, " s"]:
        """Return the variance of the noise of an evaluation, for each hyperparameter sample.

        It is on the scale of the values that the model was fitted to, and does not include known
        noise variances of the data. The default is 0, for models without an estimate.
        """
        return jnp.zeros(1)

    def covariance(self, state: Any, x: Points, at: OtherPoints) -> Covariances:
        """Return the posterior covariances (s, m, k) of the latent values at two sets of points."""
        raise NotImplementedError

    def sample(self, key: PRNGKeyArray, state: Any, x: Points, k: int) -> Samples:
        """Draw k joint samples of the latent values at x."""
        raise NotImplementedError

    def adapt(self, space: Space) -> "Surrogate":
        """Return the surrogate configured for a space; by default, unchanged.

        A Gaussian process, for example, adapts its kernel to unordered options. Searches call this
        once, when they are made. Implement it with `dataclasses.replace`, which keeps subclasses.
        """
        return self

    def refresh(self, data: Dataset, state: Any) -> tuple[Any, FitInfo]:
        """Condition on new data with the same parameters, and return diagnostics as `fit` does.

        It is required if `has_evidence` is true.
        """
        raise NotImplementedError


class PosteriorSurrogate(Surrogate):
    """Base class of surrogates whose state has a field `posterior`.

    The posterior is that of a Gaussian process, with a leading axis of s hyperparameter samples.
    """

    uses_known_noise = True

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


def replicate(tree: Any, n: int) -> Any:
    """Repeat every leaf of a pytree n times along a new first axis."""
    return jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (n, *jnp.shape(leaf))), tree
    )
