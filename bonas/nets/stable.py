"""Symmetric stable distributions: sums of draws have the shape of one, so wide networks keep the tails of their weights.

The index is 2 for the normal distribution (of variance 1), 1 for Cauchy's, and between 0 and 2 in general, with the
characteristic function exp(−|t|^index). Only those two have a density in closed form; the others are written as a function of
two normal variables, whose density is known.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.stats import norm

NORMAL, CAUCHY = 2.0, 1.0


def check_index(index: float) -> None:
    """A ValueError for what is no index of a stable distribution."""
    if not 0.0 < index <= 2.0:
        raise ValueError(f"the index of a stable distribution is above 0 and at most 2; got {index}")


def has_density(index: float) -> bool:
    """Whether the density is known in closed form."""
    return index in (NORMAL, CAUCHY)


def latent_shape(index: float, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the variables that a draw of this shape is written in."""
    return shape if has_density(index) else (2, *shape)


def draw_latent(key: Array, index: float, shape: tuple[int, ...], dtype=None) -> Array:
    """Those variables, drawn."""
    draw = jax.random.cauchy if index == CAUCHY else jax.random.normal
    return draw(key, latent_shape(index, shape), jnp.result_type(float) if dtype is None else dtype)


def log_latent(index: float, latent: Array) -> Array:
    """The logarithm of their density, each, without the constant."""
    return -jnp.log1p(latent**2) if index == CAUCHY else -0.5 * latent**2


def from_latent(index: float, latent: Array) -> Array:
    """The stable variables themselves: by Chambers, Mallows & Stuck 1976 from two normal ones, which stand for their uniform
    angle and their exponential variable."""
    if has_density(index):
        return latent
    angle = math.pi * (norm.cdf(latent[0]) - 0.5)
    # −log of a uniform variable is exponential; by its logarithm, which has no overflow
    log_exponential = jnp.log(-norm.logcdf(latent[1]))
    log_cos = jnp.log(jnp.sin(math.pi * norm.cdf(-jnp.abs(latent[0]))))  # of the angle, exact in the tails
    other = jnp.log(jnp.cos((1.0 - index) * angle)) - log_exponential
    return jnp.sin(index * angle) * jnp.exp(((1.0 - index) * other - log_cos) / index)


def width_scale(index: float, incoming: int) -> float:
    """What `incoming` weights are multiplied by, so that their sum is as wide as one: N^(−1/index) (Neal 1996; G-S2)."""
    return float(np.power(float(incoming), -1.0 / index))
