"""Default priors of kernel parameters and of the noise variance; `gp.priors` has them too."""

import math

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, PRNGKeyArray
from numpyro.distributions import constraints

Priors = dict[str, dist.Distribution]


def log_normal(d: int) -> Priors:
    """Return weakly informative priors: length scales around √d/2, variance around 1.

    Distances in the unit cube grow like √d.
    """
    return {
        "variance": dist.LogNormal(0.0, 1.0),
        "lengthscale": dist.LogNormal(math.log(0.5) + 0.5 * math.log(d), 1.0).expand(
            [d]
        ),
    }


def log_normal_noise() -> dist.Distribution:
    """Return a prior of small noise, with median variance 3e-4 and 95% within a factor of 50."""
    return dist.LogNormal(-8.0, 2.0)


class Middle(dist.Distribution):  # type: ignore[misc,unused-ignore]
    """The distribution Beta(2, 2), with density 6x(1 − x) on [0, 1].

    NumPyro's Beta is a Dirichlet distribution, which is slower and promotes ranks. A draw is the
    median of three uniform draws.
    """

    support = constraints.unit_interval

    def sample(self, key: PRNGKeyArray, sample_shape: tuple[int, ...] = ()) -> Array:
        uniforms = jax.random.uniform(key, (*sample_shape, *self.batch_shape, 3))
        return jnp.median(uniforms, axis=-1)

    def log_prob(self, value: Array) -> Array:
        return math.log(6.0) + jnp.log(value) + jnp.log1p(-value)
