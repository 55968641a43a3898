"""Kernels of linear models: on the columns, on basis functions and on a sphere."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float

from bonas.gp.kernel import Kernel, Params

_CENTER = 0.5  # the center of the unit cube is projected to the pole of the sphere


@dataclass(frozen=True)
class Linear(Kernel):
    """The kernel of a linear function with one slope per column."""

    one_hot = True

    def prior(self, d: int) -> Params:
        return {
            "bias": dist.HalfNormal(1.0),
            "slope": dist.HalfNormal(1.0).expand([d]),
            "center": dist.Normal(0.5, 0.5).expand([d]),
        }

    def value(self, params: Params, a: Array, b: Array) -> Array:
        bias: Array = params["bias"] ** 2
        return bias + _slopes(params, a) @ _slopes(params, b)

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        bias: Array = params["bias"] ** 2
        rows = jax.vmap(partial(_slopes, params))
        return bias + rows(a) @ rows(b).T


def _slopes(params: Params, x: Array) -> Array:
    slope: Array = params["slope"]
    center: Array = params["center"]
    return slope * (x - center)


def linear() -> Kernel:
    """Create the linear kernel bias² + Σ slope_i² (a_i − center_i)(b_i − center_i).

    Hutchinson 2019, eq. 2.32, but with one slope per column instead of one for all columns. The
    parameters `bias` and `slope` are the standard deviations of the function's value at `center`
    and of its slopes.
    """
    return Linear()


def linear_features(x: Float[Array, " d"]) -> Float[Array, " d"]:
    """Return φ(x) = x, the features of a line through the origin (Twist, eq. 17)."""
    return x


def affine_features(x: Float[Array, " d"]) -> Float[Array, " d+1"]:
    """Return φ(x) = (1, x) (Twist, eq. 22, which omits the prior of w_0)."""
    return jnp.concatenate([jnp.ones(1, x.dtype), x])


def quadratic_features(x: Float[Array, " d"]) -> Float[Array, " 2*d+1"]:
    """Return φ(x) = (1, x_1 … x_d, x_1² … x_d²) (Twist, after eq. 24)."""
    return jnp.concatenate([affine_features(x), x * x])


@dataclass(frozen=True)
class Basis(Kernel):
    """The kernel of Bayesian linear regression on basis functions."""

    features: Callable[[Array], Array]
    one_hot: bool = False

    def prior(self, d: int) -> Params:
        return {"variance": dist.LogNormal(0.0, 1.0)}

    def value(self, params: Params, a: Array, b: Array) -> Array:
        variance: Array = params["variance"]
        return variance * (self.features(a) @ self.features(b))

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        variance: Array = params["variance"]
        rows = jax.vmap(self.features)
        return variance * (rows(a) @ rows(b).T)


def basis(features: Callable[[Array], Array]) -> Kernel:
    """Create the kernel variance · φ(a)·φ(b) of Bayesian linear regression on features φ.

    The model is y = w·φ(x) + noise with w ~ N(0, variance I); Twist, eq. 25, is its posterior. With
    fewer features than points, the covariance matrix is singular, so the noise must not be 0.

    Args:
        features: The function φ from a point (d,) to its features, such as `affine_features` or
            `quadratic_features`.
    """
    if not callable(features):
        raise TypeError(f"features must be a function of one point; got {features!r}")
    return Basis(
        features,
        one_hot=features in (linear_features, affine_features, quadratic_features),
    )


@dataclass(frozen=True)
class SphericalLinear(Kernel):
    """The kernel of a linear function on the unit cube projected to a sphere."""

    one_hot = True

    def prior(self, d: int) -> Params:
        return {
            "variance": dist.LogNormal(0.0, 1.0),
            "level": dist.Uniform(0.0, 1.0),
            "reach": dist.Uniform(0.0, 1.0),
            "lengthscale": dist.LogNormal(math.sqrt(2.0), math.sqrt(3.0)).expand([d]),
        }

    def value(self, params: Params, a: Array, b: Array) -> Array:
        product = _to_sphere(params, a) @ _to_sphere(params, b)
        return _shift(params, product)

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        rows = jax.vmap(partial(_to_sphere, params))
        return _shift(params, rows(a) @ rows(b).T)


def _shift(params: Params, product: Array) -> Array:
    level: Array = params["level"]
    variance: Array = params["variance"]
    return variance * (level + (1.0 - level) * product)


def _to_sphere(params: Params, x: Array) -> Array:
    """Project a point (d,) to the sphere (d + 1,)."""
    ends = jnp.broadcast_to(_CENTER / params["lengthscale"], x.shape)
    z = (x - _CENTER) / (
        params["lengthscale"] * jnp.sqrt(params["reach"] * (ends @ ends))
    )
    square: Array = z @ z
    return jnp.append(2.0 * z, square - 1.0) / (square + 1.0)


def spherical_linear() -> Kernel:
    """Create the kernel variance · (level + (1 − level) p(a)·p(b)) of linear functions on a sphere.

    p(x) = (2z, ‖z‖² − 1)/(‖z‖² + 1) is the inverse stereographic projection of z = (x − ½)/(radius
    · lengthscale), with radius² = reach · Σ 1/(2 lengthscale_i)², so that reach 1 projects the
    corners of the cube to the equator. A function that is linear on the cube has its minimum in a
    corner; one that is linear on the sphere may have it anywhere. Doumont et al. 2025 (arXiv
    2512.00170), with the priors of their code; the common factor of their length scales has no
    effect.
    """
    return SphericalLinear()
