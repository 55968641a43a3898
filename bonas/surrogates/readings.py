"""What networks drawn from a posterior say of points: each as a function, or each with its output layer integrated out."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas import gp as gaussian
from bonas.data import Dataset
from bonas.gp import Prediction, basis, line
from bonas.linalg import solve_lower, solve_upper
from bonas.nets import bnn_hmc, bnn_linear
from bonas.nets.bnn import BNN, without_output
from bonas.nets.bnn_hmc import Draws

_SUM = basis(line)  # of features whose weights are standard normal variables


class Reading(NamedTuple):
    """Functions of s draws; x (m, inputs) are inputs of the networks, `given` is what the reading made of the data."""

    learn: Callable[[Draws, Dataset], Any]  # -> given, for the data that the draws are fitted to
    update: Callable[[Draws, Any, Dataset], Any]  # -> given, for those and others, such as imagined ones
    predict: Callable[[Draws, Any, Array], Prediction]  # (1, m) the moments of the mixture
    covariance: Callable[[Draws, Any, Array, Array], Array]  # (1, m, k)
    sample: Callable[[Array, Draws, Any, Array, int], Array]  # (k, m)


@cache
def linear(bnn: BNN) -> Reading:
    """Each draw as a Gaussian process, whose features are its last hidden layer (Snoek et al. 2015)."""

    def design(draw: Draws, x: Array) -> Array:
        return bnn_linear.design(bnn, without_output(draw.weights), draw.precisions, x)

    def learn(draws: Draws, data: Dataset):
        def one(draw):
            seen = data._replace(x=design(draw, data.x))
            noise = (1.0 / draw.precisions.noise).astype(data.y.dtype)
            return gaussian.condition(_SUM, {"variance": jnp.ones((), data.y.dtype)}, seen, noise=noise)

        return jax.vmap(one)(draws)

    def predict(draws: Draws, given, x: Array) -> Prediction:
        mean, std = jax.vmap(lambda draw, one: gaussian.predict(one, design(draw, x)))(draws, given)
        spread = jnp.mean(std**2, axis=0) + jnp.var(mean, axis=0)
        return Prediction(mean.mean(axis=0)[None], jnp.sqrt(spread)[None])

    def covariance(draws: Draws, given, x: Array, at: Array) -> Array:
        def one(draw, given):
            here, there = design(draw, x), design(draw, at)
            return (
                gaussian.covariance(given, here, there),
                gaussian.predict(given, here).mean,
                gaussian.predict(given, there).mean,
            )

        within, here, there = jax.vmap(one)(draws, given)
        here, there = (mean - mean.mean(axis=0)[None, :] for mean in (here, there))
        return (within.mean(axis=0) + here.T @ there / len(here))[None]

    def sample(key: Array, draws: Draws, given, x: Array, k: int) -> Array:
        """Output weights from the prior made to agree with the data (Matheron's rule), for networks drawn at random."""
        which_key, weight_key, noise_key = jax.random.split(key, 3)
        which = jax.random.randint(which_key, (k,), 0, len(draws.precisions.noise))

        def one(i, prior, noise):
            draw, posterior = jax.tree.map(lambda leaf: leaf[i], (draws, given))
            rows, mask, y = posterior.data.x, posterior.data.mask[:, 0], posterior.data.y[:, 0]
            imagined = rows @ prior + noise / jnp.sqrt(draw.precisions.noise).astype(y.dtype)
            error = solve_upper(posterior.lower, solve_lower(posterior.lower, jnp.where(mask, y - imagined, 0.0)))
            return design(draw, x) @ (prior + jnp.where(mask[:, None], rows, 0.0).T @ error)

        n, units = given.data.x.shape[1:]
        prior = jax.random.normal(weight_key, (k, units), given.alpha.dtype)
        return jax.lax.map(lambda lane: one(*lane), (which, prior, jax.random.normal(noise_key, (k, n), given.alpha.dtype)))

    return Reading(learn, lambda draws, given, data: learn(draws, data), predict, covariance, sample)


class Mixed(NamedTuple):
    """Sums of networks."""

    mix: Array  # (s, s) functions are these sums of what the networks say: none is changed by a fit, all by imagined values
    noise: Array  # () the variance of the noise, its mean over the draws
    learned: Array  # (n,) bool: the rows that the networks were given


@cache
def whole(bnn: BNN, floor: float) -> Reading:
    """Each draw as a function, and a standard deviation `floor` beside that of the functions.

    An acquisition that took each network for a hyperparameter would see no spread. Imagined values condition the moments as
    they would a Gaussian, by new sums of the same networks (an ensemble Kalman filter: Bishop, Etherton & Majumdar 2001):
    no chain is run, and draws stay draws of functions.
    """

    def plain(draws: Draws, x: Array, dtype) -> Array:
        return bnn_hmc.outputs(bnn, draws.weights, x)[:, :, 0].astype(dtype)

    def outputs(draws: Draws, given: Mixed, x: Array) -> Array:
        """What each of the functions says (s, m)."""
        return given.mix @ plain(draws, x, given.mix.dtype)

    def learn(draws: Draws, data: Dataset) -> Mixed:
        noise = jnp.mean(1.0 / draws.precisions.noise).astype(data.y.dtype)
        return Mixed(jnp.eye(len(draws.precisions.noise), dtype=data.y.dtype), noise, data.mask[:, 0])

    def update(draws: Draws, given: Mixed, data: Dataset) -> Mixed:
        """The moments given the rows that the networks were not fitted to."""
        new = data.mask[:, 0] & ~given.learned
        return given._replace(mix=condition(plain(draws, data.x, data.y.dtype), data.y[:, 0], new, given.noise + floor**2))

    def predict(draws: Draws, given: Mixed, x: Array) -> Prediction:
        values = outputs(draws, given, x)
        return Prediction(values.mean(axis=0)[None], jnp.sqrt(values.var(axis=0) + floor**2)[None])

    def covariance(draws: Draws, given: Mixed, x: Array, at: Array) -> Array:
        here, there = (
            values - values.mean(axis=0)[None, :] for values in (outputs(draws, given, x), outputs(draws, given, at))
        )
        same = (x[:, None, :] == at[None, :, :]).all(axis=2)
        return (here.T @ there / len(here) + jnp.where(same, floor**2, 0.0))[None]

    def sample(key: Array, draws: Draws, given: Mixed, x: Array, k: int) -> Array:
        """Functions drawn at random from those there are, and the floor as noise."""
        which_key, noise_key = jax.random.split(key)
        which = jax.random.randint(which_key, (k,), 0, len(given.mix))
        return outputs(draws, given, x)[which] + floor * jax.random.normal(noise_key, (k, len(x)), given.mix.dtype)

    return Reading(learn, update, predict, covariance, sample)


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
