"""Other stationary kernels: squared exponential, Matérn 1/2 and 3/2, rational quadratic."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array

from bonas.gp import priors
from bonas.gp.default_kernels import Stationary
from bonas.gp.kernel import Kernel, Params, Prior, check_prior
from bonas.linalg import safe_sqrt

# Profiles. The Matérn ones have custom derivatives, since naive ones are 0/0 at coincident points.


def se_profile(params: Params, r2: Array) -> Array:
    """Return exp(−r²/2), the squared-exponential correlation.

    Args:
        params: Not used.
        r2: Squared scaled distances of any shape.
    """
    return jnp.exp(-0.5 * r2)


def rq_profile(params: Params, r2: Array) -> Array:
    """Return (1 + r²/2α)^−α, the rational quadratic correlation; see `se_profile`."""
    return jnp.exp(-params["alpha"] * jnp.log1p(0.5 * r2 / params["alpha"]))


@jax.custom_jvp
def _matern12(r2: Array) -> Array:
    return jnp.exp(-safe_sqrt(r2))


@_matern12.defjvp
def _matern12_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Return −exp(−r)/2r, set to 0 where r is rounding error (below 4e-10 in float64).

    The limit depends on the direction. A compiler may compute r = 1e-17 in one copy of this and 0
    in another (see `safe_sqrt`); both must give 0.
    """
    r2 = primals[0]
    r = safe_sqrt(r2)
    value = jnp.exp(-r)
    smallest = jnp.finfo(r2.dtype).eps ** 1.2
    return value, -0.5 * value * r / jnp.maximum(r2, smallest) * tangents[0]


@jax.custom_jvp
def _matern32(r2: Array) -> Array:
    r = safe_sqrt(3.0 * r2)
    return (1.0 + r) * jnp.exp(-r)


@_matern32.defjvp
def _matern32_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    r = safe_sqrt(3.0 * primals[0])
    decay = jnp.exp(-r)
    return (1.0 + r) * decay, -1.5 * decay * tangents[0]


def matern12_profile(params: Params, r2: Array) -> Array:
    """Return exp(−r), the Matérn 1/2 correlation; see `se_profile`."""
    return _matern12(r2)


def matern32_profile(params: Params, r2: Array) -> Array:
    """Return (1 + √3 r) exp(−√3 r), the Matérn 3/2 correlation; see `se_profile`."""
    return _matern32(r2)


# Constructors. `prior` is a function of the number of columns to {name: NumPyro distribution}.


def se(prior: Prior = priors.log_normal) -> Kernel:
    """Create the squared-exponential kernel variance · exp(−r²/2), r² = Σ (Δx_i / lengthscale_i)².

    Twist, eq. 26; Wilton 2020. Functions are infinitely differentiable.

    Args:
        prior: Function from the number of columns to priors of `variance` and `lengthscale`.
    """
    check_prior(prior)
    return Stationary(prior, se_profile)


@dataclass(frozen=True)
class PointwiseStationary(Stationary):
    """A stationary kernel whose covariances are computed pair by pair."""

    gram = None  # type: ignore[assignment]


def matern12(prior: Prior = priors.log_normal) -> Kernel:
    """Create the Matérn 1/2 kernel variance · exp(−r), of continuous functions.

    Functions are not differentiable. Covariances are computed pair by pair, not by matrix products:
    because of the kernel's slope at r = 0, their rounding errors would cause gradients of order 1.

    Args:
        prior: Function from the number of columns to priors of `variance` and `lengthscale`.
    """
    check_prior(prior)
    return PointwiseStationary(prior, matern12_profile)


def matern32(prior: Prior = priors.log_normal) -> Kernel:
    """Create the Matérn 3/2 kernel variance · (1 + √3 r) exp(−√3 r).

    Functions are once differentiable.

    Args:
        prior: Function from the number of columns to priors of `variance` and `lengthscale`.
    """
    check_prior(prior)
    return Stationary(prior, matern32_profile)


def _alpha_prior() -> Params:
    return {"alpha": dist.LogNormal(0.0, 1.0)}


def rq(prior: Prior = priors.log_normal) -> Kernel:
    """Create the rational quadratic kernel variance · (1 + r²/2α)^−α.

    It is a mixture of squared-exponential kernels with different length scales. The parameter
    `alpha` has the prior LogNormal(0, 1).

    Args:
        prior: Function from the number of columns to priors of `variance` and `lengthscale`.
    """
    check_prior(prior)
    return Stationary(prior, rq_profile, _alpha_prior)
