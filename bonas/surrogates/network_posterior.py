"""Predictions of networks drawn from a posterior.

Each network is a function, or a Bayesian linear regression with its output layer integrated out.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from bonas.data import Dataset
from bonas.gp import Prediction
from bonas.linalg import factorize, solve_lower, solve_upper
from bonas.nets import BNN, bnn_hmc, hidden_weights, integrated_output
from bonas.nets.bnn_hmc import Draws

# Shapes: m and n inputs of k columns, s networks.
Inputs = Float[Array, "m k"]
OtherInputs = Float[Array, "n k"]
Outputs = Float[Array, "s m"]
Covariances = Float[Array, "1 m n"]
Samples = Float[Array, "n m"]


class Predictive:
    """Interface to the predictions of s networks drawn from a posterior, at inputs x (m, k).

    The argument `draws` holds the networks, and `learned` the result of `learn` or `update`.
    Predictions are moments of the mixture of all networks. (If each network were treated as a
    hyperparameter sample, its prediction would have no spread.)
    """

    def learn(self, draws: Any, data: Dataset) -> Any:
        """Precompute what predictions need from the data to which the networks were fitted."""
        raise NotImplementedError

    def update(self, draws: Any, learned: Any, data: Dataset) -> Any:
        """Update the result of `learn` with additional data, such as assumed values."""
        raise NotImplementedError

    def predict(self, draws: Any, learned: Any, x: Inputs) -> Prediction:
        """Return mean and standard deviation (1, m)."""
        raise NotImplementedError

    def covariance(
        self, draws: Any, learned: Any, x: Inputs, at: OtherInputs
    ) -> Covariances:
        """Return covariances between two sets of points."""
        raise NotImplementedError

    def sample(
        self, key: PRNGKeyArray, draws: Any, learned: Any, x: Inputs, n: int
    ) -> Samples:
        """Draw n functions at x."""
        raise NotImplementedError


class OutputLayer(NamedTuple):
    """Normal distributions of s output layers, weights and bias, in units of their prior."""

    mean: Array  # (s, units + 1)
    lower: Array  # (s, units + 1, units + 1) Cholesky factor of the precision
    jitter: Array  # (s,) added to the diagonal to factorize it; 0 if none was needed


@dataclass(frozen=True)
class IntegratedOutput(Predictive):
    """Bayesian linear regression on the last hidden layer of each draw.

    Snoek et al. 2015, Section 3.
    """

    bnn: BNN

    def learn(self, draws: Draws, data: Dataset) -> OutputLayer:
        def one(draw: Draws) -> OutputLayer:
            rows = jnp.where(data.mask, self._design(draw, data.x), 0.0)
            precision = draw.precisions.noise.astype(data.y.dtype)
            units = rows.shape[1]
            gram = jnp.eye(units) + precision * rows.T @ rows
            lower, jitter = factorize(gram, jnp.ones(units, bool))
            target = precision * (data.y[:, 0] @ rows)
            return OutputLayer(
                solve_upper(lower, solve_lower(lower, target)), lower, jitter
            )

        return jax.vmap(one)(draws)

    def update(self, draws: Draws, learned: OutputLayer, data: Dataset) -> OutputLayer:
        return self.learn(draws, data)

    def predict(self, draws: Draws, learned: OutputLayer, x: Inputs) -> Prediction:
        mean, white = self._moments(draws, learned, x)
        variance = jnp.mean(jnp.sum(white**2, axis=1), axis=0) + jnp.var(mean, axis=0)
        return Prediction(mean.mean(axis=0)[None], jnp.sqrt(variance)[None])

    def covariance(
        self, draws: Draws, learned: OutputLayer, x: Inputs, at: OtherInputs
    ) -> Covariances:
        mean_x, white_x = self._moments(draws, learned, x)
        mean_at, white_at = self._moments(draws, learned, at)
        left, right = (mean - mean.mean(axis=0)[None, :] for mean in (mean_x, mean_at))
        within = jnp.einsum("sum,suk->mk", white_x, white_at)
        return ((within + left.T @ right) / len(left))[None]

    def sample(
        self, key: PRNGKeyArray, draws: Draws, learned: OutputLayer, x: Inputs, n: int
    ) -> Samples:
        """Draw networks at random, each with a new output layer."""
        row_key, weight_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (n,), 0, len(learned.mean))
        normals = jax.random.normal(
            weight_key, (n, learned.mean.shape[1]), learned.mean.dtype
        )

        def one(lane: tuple[Array, Array]) -> Array:
            row, normal = lane
            draw, layer = jax.tree.map(lambda leaf: leaf[row], (draws, learned))
            weights: Array = layer.mean + solve_upper(layer.lower, normal)
            return self._design(draw, x) @ weights

        samples: Array = jax.lax.map(one, (rows, normals))
        return samples

    def _design(self, draw: Draws, x: Array) -> Array:
        weights = hidden_weights(draw.weights)
        return integrated_output.design_matrix(self.bnn, weights, draw.precisions, x)

    def _moments(
        self, draws: Draws, learned: OutputLayer, x: Array
    ) -> tuple[Array, Array]:
        """Return means (s, m) and vectors (s, units + 1, m) whose products are covariances."""

        def one(draw: Draws, layer: OutputLayer) -> tuple[Array, Array]:
            rows = self._design(draw, x)
            return rows @ layer.mean, solve_lower(layer.lower, rows.T)

        return jax.vmap(one)(draws, learned)


class Mixture(NamedTuple):
    """Linear combinations of s networks."""

    mix: Array  # (s, s) weights: the identity after a fit, changed by assumed values
    noise: Array  # () the variance of the noise, averaged over the draws
    learned: Array  # (n,) bool: the rows that were used to fit the networks


@dataclass(frozen=True, eq=False)
class FunctionMixture(Predictive):
    """Predictions of a mixture of functions; subclasses define `outputs` and `noise`.

    Assumed values condition the moments by Gaussian formulas, through linear combinations of the
    networks (an ensemble Kalman filter: Bishop, Etherton & Majumdar 2001). No network is fitted
    again, and samples remain functions.
    """

    floor: float  # standard deviation added to the spread of the functions

    def outputs(self, draws: Any, x: Inputs) -> Outputs:
        """Return the output of each network."""
        raise NotImplementedError

    def noise(self, draws: Any) -> Float[Array, ""]:
        """Return the variance of the noise."""
        raise NotImplementedError

    def learn(self, draws: Any, data: Dataset) -> Mixture:
        dtype = data.y.dtype
        s = len(jax.tree.leaves(draws)[0])
        return Mixture(
            jnp.eye(s, dtype=dtype), self.noise(draws).astype(dtype), data.mask[:, 0]
        )

    def update(self, draws: Any, learned: Mixture, data: Dataset) -> Mixture:
        """Condition on the rows that were not used to fit the networks."""
        new = data.mask[:, 0] & ~learned.learned
        values = self.outputs(draws, data.x).astype(data.y.dtype)
        noise = learned.noise + self.floor**2
        return learned._replace(mix=condition(values, data.y[:, 0], new, noise))

    def predict(self, draws: Any, learned: Mixture, x: Inputs) -> Prediction:
        values = self._mixed(draws, learned, x)
        std = jnp.sqrt(values.var(axis=0) + self.floor**2)
        return Prediction(values.mean(axis=0)[None], std[None])

    def covariance(
        self, draws: Any, learned: Mixture, x: Inputs, at: OtherInputs
    ) -> Covariances:
        left, right = (
            values - values.mean(axis=0)[None, :]
            for values in (
                self._mixed(draws, learned, x),
                self._mixed(draws, learned, at),
            )
        )
        same = (x[:, None, :] == at[None, :, :]).all(axis=2)
        return (left.T @ right / len(left) + jnp.where(same, self.floor**2, 0.0))[None]

    def sample(
        self, key: PRNGKeyArray, draws: Any, learned: Mixture, x: Inputs, n: int
    ) -> Samples:
        """Draw functions at random, with added noise of standard deviation `floor`."""
        row_key, noise_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (n,), 0, len(learned.mix))
        noise = jax.random.normal(noise_key, (n, len(x)), learned.mix.dtype)
        return self._mixed(draws, learned, x)[rows] + self.floor * noise

    def _mixed(self, draws: Any, learned: Mixture, x: Array) -> Outputs:
        return learned.mix @ self.outputs(draws, x).astype(learned.mix.dtype)


@dataclass(frozen=True, eq=False)
class SampledNetworks(FunctionMixture):
    """A mixture of the networks drawn by Markov chains."""

    bnn: BNN

    def outputs(self, draws: Draws, x: Inputs) -> Outputs:
        return bnn_hmc.outputs(self.bnn, draws.weights, x)[:, :, 0]

    def noise(self, draws: Draws) -> Float[Array, ""]:
        return mean_noise(draws)


def mean_noise(draws: Draws) -> Float[Array, ""]:
    """Return the variance of the noise, averaged over the draws."""
    return jnp.mean(1.0 / draws.precisions.noise)


def condition(
    values: Float[Array, "s n"],
    y: Float[Array, " n"],
    new: Bool[Array, " n"],
    noise: Array,
) -> Float[Array, "s s"]:
    """Return the linear combinations of functions that condition them on new values.

    The combined functions have the posterior mean and covariance of a Gaussian process whose prior
    has the mean and covariance of the given functions.

    Args:
        values: The values of s functions at n rows.
        y: The observed values.
        new: The rows to condition on.
        noise: The variance of the noise of y.
    """
    s = len(values)
    center = jnp.eye(s, dtype=values.dtype) - 1.0 / s
    deviations = jnp.where(new[None, :], values - values.mean(axis=0)[None, :], 0.0)
    spread = deviations / jnp.sqrt(s * noise)
    error = jnp.where(new, y - values.mean(axis=0), 0.0) / jnp.sqrt(noise)
    eigenvalues, vectors = jnp.linalg.eigh(spread.T @ spread)
    sums = spread @ vectors
    q = jnp.sqrt(1.0 + jnp.maximum(eigenvalues, 0.0))
    shift = sums @ ((vectors.T @ error) / q**2) / jnp.sqrt(s)
    # The symmetric root of (I + spread spread')⁻¹ leaves the mean unchanged.
    shrink = center - (sums / (q * (q + 1.0))[None, :]) @ (sums.T @ center)
    mix: Array = 1.0 / s + (center @ shift)[None, :] + shrink
    return mix
