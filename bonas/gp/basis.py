"""Bayesian linear regression on basis functions: y = w·φ(x) + noise, w ~ N(0, variance I)."""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from bonas.gp.kernel import Kernel


def line(x: Array) -> Array:
    """φ(x) = x (d,): a line through the origin, Twist eq. 17."""
    return x


def affine(x: Array) -> Array:
    """φ(x) = (1, x) (d + 1,): Twist eq. 22, with the prior that it omits for w_0 (T-X7)."""
    return jnp.concatenate([jnp.ones(1, x.dtype), x])


def quadratic(x: Array) -> Array:
    """φ(x) = (1, x_1 … x_d, x_1² … x_d²) (2d + 1,): Twist, after eq. 24."""
    return jnp.concatenate([affine(x), x * x])


@cache
def basis(features: Callable[[Array], Array]) -> Kernel:
    """The kernel variance · φ(a)·φ(b): linear regression on `features`, in function space (Twist, T-D12).

    Condition and predict with it as with any kernel: the posterior after Twist's eq. 25 is what comes out. With fewer
    features than points K is singular, so the noise must not be 0.
    """

    def value(params, a, b):
        return params["variance"] * (features(a) @ features(b))

    def matrix(params, a, b):
        rows = jax.vmap(features)
        return params["variance"] * (rows(a) @ rows(b).T)

    return Kernel(lambda d: {"variance": dist.LogNormal(0.0, 1.0)}, value, matrix)
