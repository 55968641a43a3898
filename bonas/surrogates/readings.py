"""What networks drawn from a posterior say of points: each as a function, or each with its output layer integrated out."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset
from bonas.gp import Prediction
from bonas.linalg import factorise, solve_lower, solve_upper
from bonas.nets import bnn_hmc, bnn_linear
from bonas.nets.bnn import BNN, without_output
from bonas.nets.bnn_hmc import Draws


class Reading(NamedTuple):
    """Functions of s draws; x (m, inputs) are inputs of the networks, `given` is what the reading made of the data."""

    learn: Callable[[Any, Dataset], Any]  # -> given, for the data that the draws are fitted to
    update: Callable[[Any, Any, Dataset], Any]  # -> given, for those and others, such as imagined ones
    predict: Callable[[Any, Any, Array], Prediction]  # (1, m) the moments of the mixture
    covariance: Callable[[Any, Any, Array, Array], Array]  # (1, m, k)
    sample: Callable[[Array, Any, Any, Array, int], Array]  # (k, m)


class OutputLayer(NamedTuple):
    """The normal distribution of an output layer, weights and bias, in units of their prior."""

    mean: Array  # (s, units + 1)
    lower: Array  # (s, units + 1, units + 1) Cholesky factor of its precision
    jitter: Array  # (s,) added to that to factorise it; 0 where none was needed


@cache
def linear(bnn: BNN) -> Reading:
    """Each draw as a Bayesian linear regression on its last hidden layer (Snoek et al. 2015, Section 3)."""

    def design(draw: Draws, x: Array) -> Array:
        return bnn_linear.design(bnn, without_output(draw.weights), draw.precisions, x)

    def learn(draws: Draws, data: Dataset) -> OutputLayer:
        def one(draw):
            rows, tau = jnp.where(data.mask, design(draw, data.x), 0.0), draw.precisions.noise.astype(data.y.dtype)
            units = rows.shape[1]
            lower, jitter = factorise(jnp.eye(units) + tau * rows.T @ rows, jnp.ones(units, bool))
            return OutputLayer(solve_upper(lower, solve_lower(lower, tau * (data.y[:, 0] @ rows))), lower, jitter)

        return jax.vmap(one)(draws)

    def each(draws: Draws, given: OutputLayer, x: Array) -> tuple[Array, Array]:
        """Means (s, m), and points (s, units + 1, m) whose products are covariances."""

        def one(draw, given):
            rows = design(draw, x)
            return rows @ given.mean, solve_lower(given.lower, rows.T)

        return jax.vmap(one)(draws, given)

    def predict(draws: Draws, given: OutputLayer, x: Array) -> Prediction:
        mean, white = each(draws, given, x)
        spread = jnp.mean(jnp.sum(white**2, axis=1), axis=0) + jnp.var(mean, axis=0)
        return Prediction(mean.mean(axis=0)[None], jnp.sqrt(spread)[None])

    def covariance(draws: Draws, given: OutputLayer, x: Array, at: Array) -> Array:
        (here, left), (there, right) = each(draws, given, x), each(draws, given, at)
        here, there = (mean - mean.mean(axis=0)[None, :] for mean in (here, there))
        return ((jnp.einsum("sum,suk->mk", left, right) + here.T @ there) / len(here))[None]

    def sample(key: Array, draws: Draws, given: OutputLayer, x: Array, k: int) -> Array:
        """Networks drawn at random, with an output layer each."""
        which_key, weight_key = jax.random.split(key)
        which = jax.random.randint(which_key, (k,), 0, len(given.mean))
        normal = jax.random.normal(weight_key, (k, given.mean.shape[1]), given.mean.dtype)

        def one(lane):
            i, normal = lane
            draw, layer = jax.tree.map(lambda leaf: leaf[i], (draws, given))
            return design(draw, x) @ (layer.mean + solve_upper(layer.lower, normal))

        return jax.lax.map(one, (which, normal))

    return Reading(learn, lambda draws, given, data: learn(draws, data), predict, covariance, sample)


class Mixed(NamedTuple):
    """Sums of networks."""

    mix: Array  # (s, s) functions are these sums of what the networks say: none is changed by a fit, all by imagined values
    noise: Array  # () the variance of the noise, its mean over the draws
    learned: Array  # (n,) bool: the rows that the networks were given


def functions(plain: Callable[[Any, Array], Array], noise_of: Callable[[Any], Array], floor: float) -> Reading:
    """Each of s draws as a function, plain(draws, x) -> (s, m), and a standard deviation `floor` beside that of the functions.

    An acquisition that took each network for a hyperparameter would see no spread. Imagined values condition the moments as
    they would a Gaussian, by new sums of the same networks (an ensemble Kalman filter: Bishop, Etherton & Majumdar 2001):
    nothing is fitted again, and draws stay draws of functions. noise_of(draws) -> () is the variance of the noise.
    """

    def outputs(draws: Any, given: Mixed, x: Array) -> Array:
        """What each of the functions says (s, m)."""
        return given.mix @ plain(draws, x).astype(given.mix.dtype)

    def learn(draws: Any, data: Dataset) -> Mixed:
        dtype, count = data.y.dtype, len(jax.tree.leaves(draws)[0])
        return Mixed(jnp.eye(count, dtype=dtype), noise_of(draws).astype(dtype), data.mask[:, 0])

    def update(draws: Any, given: Mixed, data: Dataset) -> Mixed:
        """The moments given the rows that the networks were not fitted to."""
        new, values = data.mask[:, 0] & ~given.learned, plain(draws, data.x).astype(data.y.dtype)
        return given._replace(mix=condition(values, data.y[:, 0], new, given.noise + floor**2))

    def predict(draws: Any, given: Mixed, x: Array) -> Prediction:
        values = outputs(draws, given, x)
        return Prediction(values.mean(axis=0)[None], jnp.sqrt(values.var(axis=0) + floor**2)[None])

    def covariance(draws: Any, given: Mixed, x: Array, at: Array) -> Array:
        here, there = (
            values - values.mean(axis=0)[None, :] for values in (outputs(draws, given, x), outputs(draws, given, at))
        )
        same = (x[:, None, :] == at[None, :, :]).all(axis=2)
        return (here.T @ there / len(here) + jnp.where(same, floor**2, 0.0))[None]

    def sample(key: Array, draws: Any, given: Mixed, x: Array, k: int) -> Array:
        """Functions drawn at random from those there are, and the floor as noise."""
        which_key, noise_key = jax.random.split(key)
        which = jax.random.randint(which_key, (k,), 0, len(given.mix))
        return outputs(draws, given, x)[which] + floor * jax.random.normal(noise_key, (k, len(x)), given.mix.dtype)

    return Reading(learn, update, predict, covariance, sample)


@cache
def whole(bnn: BNN, floor: float) -> Reading:
    """Each draw of a chain as a function."""

    def plain(draws: Draws, x: Array) -> Array:
        return bnn_hmc.outputs(bnn, draws.weights, x)[:, :, 0]

    return functions(plain, lambda draws: jnp.mean(1.0 / draws.precisions.noise), floor)


def condition(values: Array, y: Array, new: Array, noise: Array) -> Array:
    """Sums (s, s) of functions with values (s, n), whose mean and covariance are those of a Gaussian process given y (n,).

    That process has the mean and the covariance of the functions, and y is observed with this noise where `new` (n,) holds.
    """
    s = len(values)
    centre = jnp.eye(s, dtype=values.dtype) - 1.0 / s
    spread = jnp.where(new[None, :], values - values.mean(axis=0)[None, :], 0.0) / jnp.sqrt(s * noise)
    error = jnp.where(new, y - values.mean(axis=0), 0.0) / jnp.sqrt(noise)
    eigenvalues, vectors = jnp.linalg.eigh(spread.T @ spread)
    sums, q = spread @ vectors, jnp.sqrt(1.0 + jnp.maximum(eigenvalues, 0.0))
    shift = sums @ ((vectors.T @ error) / q**2) / jnp.sqrt(s)
    # the symmetric root of (I + spread spread')⁻¹, which leaves the mean where it is
    shrink = centre - (sums / (q * (q + 1.0))[None, :]) @ (sums.T @ centre)
    return 1.0 / s + (centre @ shift)[None, :] + shrink
