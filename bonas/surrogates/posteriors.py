"""What Gaussian processes say under each of s hyperparameter samples: the last three functions of a surrogate."""

import jax
import jax.numpy as jnp
from jax import Array

from bonas import gp as gaussian
from bonas.gp import Posterior, Prediction


def predict_each(posteriors: Posterior, x: Array) -> Prediction:
    """Means and standard deviations (s, m) at x (m, d)."""
    return jax.vmap(gaussian.predict, (0, None))(posteriors, x)


def covariance_each(posteriors: Posterior, x: Array, at: Array) -> Array:
    """Covariances (s, m, k) between x (m, d) and at (k, d)."""
    return jax.vmap(gaussian.covariance, (0, None, None))(posteriors, x, at)


def sample_in_turn(key: Array, posteriors: Posterior, x: Array, k: int) -> Array:
    """k joint draws (k, m) at x (m, d): the i-th is from the i-th hyperparameter sample, in turn."""
    s = len(posteriors.alpha)
    each = -(-k // s)
    draws = jax.vmap(lambda key, one: gaussian.sample(key, one, x, each))(jax.random.split(key, s), posteriors)
    return jnp.swapaxes(draws, 0, 1).reshape(each * s, len(x))[:k]
