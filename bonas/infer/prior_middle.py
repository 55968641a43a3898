"""The middle of a prior, where inference starts."""

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions import biject_to


def middle(distribution: dist.Distribution) -> Array:
    """Return the median of a distribution, or a substitute if it has no quantile function.

    The substitute is the mean, or, if the mean is not known or infinite, the value at 0 of the
    unconstrained parameter.
    """
    shape = distribution.shape()
    # these classes have no quantile function of their own
    while isinstance(distribution, (dist.ExpandedDistribution, dist.Independent)):
        distribution = distribution.base_dist
    try:
        value = distribution.icdf(jnp.full(distribution.shape(), 0.5))
    # some quantile functions need another library
    except (NotImplementedError, AttributeError, ImportError):
        value = _mean_or_center(distribution)
    return jnp.broadcast_to(value, shape)


def _mean_or_center(distribution: dist.Distribution) -> Array:
    transform = biject_to(distribution.support)
    center: Array = transform(jnp.zeros(transform.inverse_shape(distribution.shape())))
    try:
        return jnp.where(jnp.isfinite(distribution.mean), distribution.mean, center)
    except (NotImplementedError, AttributeError):
        return center
