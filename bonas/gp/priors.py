"""Priors of kernel parameters and of the noise variance.

Priors of kernels are functions of the number of columns, priors of the noise variance functions
without arguments. They suit points in the unit cube and values of mean 0 and variance 1.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, PRNGKeyArray
from numpyro.distributions import constraints

from bonas.gp.conditional_kernels import Middle as Middle
from bonas.gp.default_kernels import log_normal as log_normal
from bonas.gp.hyperparameters import log_normal_noise as log_normal_noise

Priors = dict[str, dist.Distribution]


def dimension_scaled(d: int) -> Priors:
    """Return priors whose length scales grow with √d (Hvarfner, Hellsten & Nardi 2024).

    The prior LogNormal(√2 + log(d)/2, √3) of the length scales keeps the complexity of functions
    independent of the number d of columns. Its median is eight times that of `log_normal`, and it
    is wider, so that a column has little effect unless the data require it. The paper fixes the
    variance at 1; here it is LogNormal(0, 0.1), within about a fifth of 1.
    """
    log_mean = math.sqrt(2.0) + 0.5 * math.log(d)
    return {
        "variance": dist.LogNormal(0.0, 0.1),
        "lengthscale": dist.LogNormal(log_mean, math.sqrt(3.0)).expand([d]),
    }


def dimension_scaled_noise() -> dist.Distribution:
    """Return the prior LogNormal(−4, 1) of the noise variance, to be used with `dimension_scaled`.

    Its median is 0.018, as in the code of Hvarfner, Hellsten & Nardi 2024.
    """
    return dist.LogNormal(-4.0, 1.0)


def half_cauchy(d: int) -> Priors:
    """Return half-Cauchy priors of scale 1 for all parameters (Wilton 2020, eq. 14)."""
    return {
        "variance": dist.HalfCauchy(1.0),
        "lengthscale": dist.HalfCauchy(1.0).expand([d]),
    }


def half_cauchy_noise() -> dist.Distribution:
    """Return the half-Cauchy prior of scale 1 for the noise variance (Wilton 2020, eq. 14)."""
    return dist.HalfCauchy(1.0)


def spearmint(d: int) -> Priors:
    """Return the priors of Spearmint's code (the search of Swersky et al. 2014).

    Length scales are uniform on (0, 2). The log-density of the variance is −(log √variance)²/2,
    without the −log(variance) of a log-normal, which makes it LogNormal(4, 2).
    """
    return {
        "variance": dist.LogNormal(4.0, 2.0),
        "lengthscale": dist.Uniform(0.0, 2.0).expand([d]),
    }


def spearmint_noise() -> dist.Distribution:
    """Return Spearmint's prior of the noise variance, a horseshoe of scale 0.1.

    Its density has a pole at 0, so no MAP estimate exists: sample the hyperparameters.
    """
    return Horseshoe(0.1)


def flat_angles(d: int) -> Priors:
    """Return a uniform prior of the angles `rho` of `gp.arc` and `gp.wedge`, for their `prior=`.

    Use it with many observations, or if the hyperparameters are sampled.
    """
    return {"rho": dist.Uniform(0.0, 1.0).expand([d])}


class Horseshoe(dist.Distribution):  # type: ignore[misc,unused-ignore]
    """The horseshoe distribution, with density log(1 + (scale/x)²)/(π scale) for x > 0.

    The density has a pole at 0. The distribution is the mixture of HalfCauchy(scale · u) over
    u ~ Uniform(0, 1).
    """

    arg_constraints = {"scale": constraints.positive}  # noqa: RUF012  as NumPyro has it
    support = constraints.positive
    pytree_data_fields = ("scale",)

    def __init__(self, scale: Any = 1.0, *, validate_args: bool | None = None) -> None:
        self.scale = scale
        super().__init__(batch_shape=jnp.shape(scale), validate_args=validate_args)

    def sample(self, key: PRNGKeyArray, sample_shape: tuple[int, ...] = ()) -> Array:
        mixing_key, cauchy_key = jax.random.split(key)
        shape = sample_shape + self.batch_shape
        # 1 − u, since uniform draws include 0, where the density has its pole
        width = 1.0 - jax.random.uniform(mixing_key, shape)
        size = jnp.abs(jax.random.cauchy(cauchy_key, shape))
        return size * width * jnp.broadcast_to(self.scale, shape)

    def log_prob(self, value: Array) -> Array:
        scale, value = jnp.broadcast_arrays(self.scale, value)
        # log(1 + (scale/x)²) from logarithms: the square overflows close to the pole
        bracket = jax.nn.softplus(2.0 * (jnp.log(scale) - jnp.log(value)))
        return jnp.log(bracket) - jnp.log(math.pi * scale)
