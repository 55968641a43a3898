"""The default kernels: Matérn 5/2, its blend with the squared exponential, and their form."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array

from bonas.distances import squared_distances
from bonas.gp.kernel import Kernel, Params, Prior, check_prior
from bonas.linalg import safe_sqrt

# (params, squared distances of any shape) -> correlations
Profile = Callable[[Params, Array], Array]


def scaled(params: Params, x: Array) -> Array:
    """Divide each column by its length scale, or by a single length scale for all columns."""
    lengthscale: Array = params["lengthscale"]
    return x / lengthscale


@dataclass(frozen=True)
class Stationary(Kernel):
    """A kernel variance · profile(‖embed(a) − embed(b)‖²).

    Attributes:
        scale_prior: Prior of the variance and of the parameters of `embed`.
        profile: Correlation as a function of the squared distance.
        profile_prior: Prior of the parameters of the profile.
        embed: Function (params, x (d,)) -> features.
    """

    scale_prior: Prior
    profile: Profile
    profile_prior: Callable[[], Params] = dict
    embed: Callable[[Params, Array], Array] = scaled

    one_hot = True

    def prior(self, d: int) -> Params:
        return {**self.scale_prior(d), **self.profile_prior()}

    def value(self, params: Params, a: Array, b: Array) -> Array:
        difference = self.embed(params, a) - self.embed(params, b)
        variance: Array = params["variance"]
        return variance * self.profile(params, difference @ difference)

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        variance: Array = params["variance"]
        rows = jax.vmap(partial(self.embed, params))
        return variance * self.profile(params, squared_distances(rows(a), rows(b)))

    def diagonal(self, params: Params, x: Array) -> Array:
        variance: Array = params["variance"]
        return variance * self.profile(params, jnp.zeros(len(x), x.dtype))


@jax.custom_jvp
def _matern52(r2: Array) -> Array:
    r = safe_sqrt(5.0 * r2)
    return (1.0 + r + r * r / 3.0) * jnp.exp(-r)


@_matern52.defjvp
def _matern52_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    r = safe_sqrt(5.0 * primals[0])
    slope = -5.0 / 6.0 * (1.0 + r) * jnp.exp(-r)
    return _matern52(*primals), slope * tangents[0]


def matern52_profile(params: Params, r2: Array) -> Array:
    """Return (1 + √5 r + 5r²/3) exp(−√5 r), the Matérn 5/2 correlation.

    Wilton 2020, eq. 8, with its bracket corrected.

    Args:
        params: Not used.
        r2: Squared scaled distances of any shape.
    """
    return _matern52(r2)


def blend_profile(params: Params, r2: Array) -> Array:
    """Return share · exp(−r²/2) + (1 − share) · the Matérn 5/2 correlation."""
    share: Array = params["share"]
    return share * jnp.exp(-0.5 * r2) + (1.0 - share) * _matern52(r2)


def log_normal(d: int) -> Params:
    """Return weakly informative log-normal priors of the length scales and the variance.

    The medians are √d/2, because distances in the unit cube grow like √d, and 1.
    """
    return {
        "variance": dist.LogNormal(0.0, 1.0),
        "lengthscale": dist.LogNormal(math.log(0.5) + 0.5 * math.log(d), 1.0).expand(
            [d]
        ),
    }


def matern52(prior: Prior = log_normal) -> Kernel:
    """Create the Matérn 5/2 kernel variance · (1 + √5 r + 5r²/3) exp(−√5 r).

    The distance is r² = Σ (Δx_i / lengthscale_i)². Functions are twice differentiable.

    Args:
        prior: Function from the number of columns to priors of `variance` and `lengthscale`.
    """
    check_prior(prior)
    return Stationary(prior, matern52_profile)


def _share_prior() -> Params:
    return {"share": dist.Uniform(0.0, 1.0)}


def blend(prior: Prior = log_normal) -> Kernel:
    """Create a weighted average of the squared-exponential and Matérn 5/2 kernels.

    The kernel is variance · (share · se + (1 − share) · matern52), where the parameter `share` has
    a uniform prior on [0, 1]. It learns smooth functions from far fewer points than Matérn 5/2
    alone, and also fits rough functions, for which the squared-exponential kernel is too smooth.

    Args:
        prior: Function from the number of columns to priors of `variance` and `lengthscale`.
    """
    check_prior(prior)
    return Stationary(prior, blend_profile, _share_prior)
