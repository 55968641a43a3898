"""Ready-made priors: functions of the number of columns for kernels, functions of nothing for the noise variance.

They describe points in the unit cube and values standardised to mean 0 and variance 1.
"""

import math

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.distributions import constraints


def log_normal(d: int) -> dict:
    """Weakly informative: length scales around √d/2, since distances in the unit cube grow like √d; variance around 1."""
    return {
        "variance": dist.LogNormal(0.0, 1.0),
        "lengthscale": dist.LogNormal(math.log(0.5) + 0.5 * math.log(d), 1.0).expand([d]),
    }


def log_normal_noise() -> dist.Distribution:
    """Little noise unless the data ask for it: median variance 3e-4, a factor of 50 either way within two deviations."""
    return dist.LogNormal(-8.0, 2.0)


def dimension_scaled(d: int) -> dict:
    """Length scales LogNormal(√2 + log(d)/2, √3), which keep a function as complex in many columns as in few.

    Hvarfner, Hellsten & Nardi 2024. They fix the variance at 1, that of standardised values; here it stays within a fifth.
    Wider than `log_normal`, which grows like √d too, and centred at length scales eight times as long: a column is off until
    the data switch it on.
    """
    return {
        "variance": dist.LogNormal(0.0, 0.1),
        "lengthscale": dist.LogNormal(math.sqrt(2.0) + 0.5 * math.log(d), math.sqrt(3.0)).expand([d]),
    }


def dimension_scaled_noise() -> dist.Distribution:
    """The noise variance that goes with `dimension_scaled`: median 0.018, in the paper's code and in BoTorch."""
    return dist.LogNormal(-4.0, 1.0)


def flat_angles(d: int) -> dict:
    """For `gp.arc` and `gp.wedge`: every angle as likely as any other. The data must be many, or the angles sampled."""
    return {"rho": dist.Uniform(0.0, 1.0).expand([d])}


def half_cauchy(d: int) -> dict:
    """Independent Half-Cauchy(1) on the variance and each length scale: Wilton 2020, eq. 14."""
    return {"variance": dist.HalfCauchy(1.0), "lengthscale": dist.HalfCauchy(1.0).expand([d])}


def half_cauchy_noise() -> dist.Distribution:
    """Half-Cauchy(1) on the noise variance itself, as Wilton 2020, eq. 14, has it (W-X9)."""
    return dist.HalfCauchy(1.0)


def spearmint(d: int) -> dict:
    """What Spearmint's code samples under (R-S7): length scales uniform on (0, 2), variance by −(log √variance)²/2.

    That term is a density over the variance without the 1/variance of a log-normal, which makes it LogNormal(4, 2).
    """
    return {"variance": dist.LogNormal(4.0, 2.0), "lengthscale": dist.Uniform(0.0, 2.0).expand([d])}


def spearmint_noise() -> dist.Distribution:
    """Spearmint's horseshoe on the noise variance, of scale 0.1 (R-S7). For sampling: its pole at 0 leaves MAP no optimum."""
    return Horseshoe(0.1)


class Horseshoe(dist.Distribution):
    """The density log(1 + (scale/x)²)/(π scale) on x > 0: a pole at zero, the tail of a Cauchy.

    It is the mixture HalfCauchy(scale · u) over u ~ Uniform(0, 1), by which it is sampled.
    """

    arg_constraints = {"scale": constraints.positive}  # noqa: RUF012  NumPyro's way
    support = constraints.positive
    pytree_data_fields = ("scale",)

    def __init__(self, scale=1.0, *, validate_args=None):
        self.scale = scale
        super().__init__(batch_shape=jnp.shape(scale), validate_args=validate_args)

    def sample(self, key, sample_shape=()):
        mixing_key, cauchy_key = jax.random.split(key)
        shape = sample_shape + self.batch_shape
        # 1 − u, since uniform draws include 0, where the density has its pole
        width = 1.0 - jax.random.uniform(mixing_key, shape)
        return jnp.abs(jax.random.cauchy(cauchy_key, shape)) * width * jnp.broadcast_to(self.scale, shape)

    def log_prob(self, value):
        scale, value = jnp.broadcast_arrays(self.scale, value)
        # log(1 + (scale/x)²) by logarithms: the square itself overflows close to the pole
        return jnp.log(jax.nn.softplus(2.0 * (jnp.log(scale) - jnp.log(value)))) - jnp.log(math.pi * scale)


class Middle(dist.Distribution):
    """The density 6x(1 − x) on [0, 1], by which the middle one of three uniform draws is distributed.

    It is Beta(2, 2); NumPyro's goes by way of a Dirichlet distribution, which is dearer and promotes ranks.
    """

    support = constraints.unit_interval

    def sample(self, key, sample_shape=()):
        return jnp.median(jax.random.uniform(key, (*sample_shape, *self.batch_shape, 3)), axis=-1)

    def log_prob(self, value):
        return math.log(6.0) + jnp.log(value) + jnp.log1p(-value)
