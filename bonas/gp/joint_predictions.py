"""Joint predictions of an exact Gaussian process: covariances between points, and samples."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from bonas.gp.exact import Posterior, as_points, project, rounding_error
from bonas.gp.kernel import gram
from bonas.linalg import factorize


def joint(
    posterior: Posterior, x: ArrayLike
) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
    """Return the joint mean and covariance matrix of the latent function at x (m, d)."""
    result: tuple[Array, Array] = _all_pairs(posterior, as_points(posterior, x))
    return result


@jax.jit
def _all_pairs(posterior: Posterior, x: Array) -> tuple[Array, Array]:
    mean, white = project(posterior, x)
    return mean, gram(posterior.kernel, posterior.params, x, x) - white.T @ white


def covariance(posterior: Posterior, a: ArrayLike, b: ArrayLike) -> Float[Array, "m k"]:
    """Return the posterior covariances of the latent function between a (m, d) and b (k, d)."""
    result: Array = _between(
        posterior, as_points(posterior, a), as_points(posterior, b)
    )
    return result


@jax.jit
def _between(posterior: Posterior, a: Array, b: Array) -> Array:
    _, left = project(posterior, a)
    _, right = project(posterior, b)
    return gram(posterior.kernel, posterior.params, a, b) - left.T @ right


def sample(
    key: PRNGKeyArray, posterior: Posterior, x: ArrayLike, k: int
) -> Float[Array, "k m"]:
    """Draw k joint samples of the latent function at x (m, d).

    The rounding error of the prior variance is added to each variance, as in `predict`.
    """
    result: Array = _sample(key, posterior, as_points(posterior, x), k)
    return result


@partial(jax.jit, static_argnums=3)
def _sample(key: PRNGKeyArray, posterior: Posterior, x: Array, k: int) -> Array:
    mean: Array
    mean, cov = _all_pairs(posterior, x)
    prior = posterior.kernel.diagonal(posterior.params, x)
    lower, _ = factorize(cov + jnp.diag(rounding_error(prior)), jnp.ones(len(x), bool))
    return mean[None, :] + jax.random.normal(key, (k, len(x)), cov.dtype) @ lower.T
