"""Symmetric stable distributions, as priors of weights.

A sum of stable variables is stable, so wide networks keep the tails of their weights. The
index is 2 for the normal distribution (variance 1), 1 for the Cauchy distribution, and between 0
and 2 in general, with characteristic function exp(−|t|^index). Only these two have a simple
density; the others are a function of two normal latent variables.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

NORMAL = 2.0
CAUCHY = 1.0


def check_index(index: float) -> None:
    """Raise a ValueError unless 0 < index <= 2."""
    if not 0.0 < index <= 2.0:
        raise ValueError(
            f"the index of a stable distribution must be above 0 and at most 2; got {index}"
        )


def has_density(index: float) -> bool:
    """Return whether the density of this index is implemented: normal or Cauchy."""
    return index in (NORMAL, CAUCHY)


def latent_shape(index: float, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the latent variables of stable variables of a given shape.

    A variable is its own latent variable if its density is known; otherwise it has two.
    """
    return shape if has_density(index) else (2, *shape)


def draw_latent(
    key: PRNGKeyArray, index: float, shape: tuple[int, ...], dtype: Any = None
) -> Array:
    """Draw the latent variables of stable variables of a given shape; see `from_latent`."""
    draw = jax.random.cauchy if index == CAUCHY else jax.random.normal
    dtype = jnp.result_type(float) if dtype is None else dtype
    return draw(key, latent_shape(index, shape), dtype)


def log_latent(index: float, latent: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return the log density of each latent variable, up to a constant."""
    return -jnp.log1p(latent**2) if index == CAUCHY else -0.5 * latent**2


def from_latent(index: float, latent: Array) -> Array:
    """Convert latent variables to stable variables (Chambers, Mallows & Stuck 1976).

    Two normal variables replace the uniform angle and the exponential variable of the paper.
    """
    if has_density(index):
        return latent
    angle = math.pi * (norm.cdf(latent[0]) - 0.5)
    # −log of a uniform variable is exponential; its logarithm does not overflow.
    log_exponential = jnp.log(-norm.logcdf(latent[1]))
    # The cosine of the angle, exact in the tails.
    log_cos = jnp.log(jnp.sin(math.pi * norm.cdf(-jnp.abs(latent[0]))))
    other = jnp.log(jnp.cos((1.0 - index) * angle)) - log_exponential
    return jnp.sin(index * angle) * jnp.exp(((1.0 - index) * other - log_cos) / index)


def width_scale(index: float, incoming: int) -> float:
    """Return N^(−1/index), the factor that makes a sum of N weights as wide as one (Neal 1996)."""
    return float(np.power(float(incoming), -1.0 / index))
