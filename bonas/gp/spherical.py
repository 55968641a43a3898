"""A linear kernel for search in many dimensions, on a sphere so that its optima need not lie in corners."""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from bonas.gp.kernel import Kernel, Params

_CENTRE = 0.5  # of the unit cube, which goes to the pole


@cache
def spherical_linear() -> Kernel:
    """variance · (level + (1 − level) p(a)·p(b)): Bayesian linear regression on the unit cube wrapped around a sphere.

    p(x) = (2z, ‖z‖² − 1)/(‖z‖² + 1) is the inverse stereographic projection of z = (x − ½)/(radius · lengthscale), with
    radius² = reach · Σ 1/(2 lengthscale_i)², so that at reach 1 the corners of the cube come to the equator. A function that is
    linear on the cube is least in a corner; one that is linear on the sphere may be least anywhere. Doumont et al. 2025
    (arXiv 2512.00170), with the priors of their code; the common factor of their length scales has no effect.
    """
    return Kernel(_prior, _value, _matrix)


def _prior(d: int) -> Params:
    return {
        "variance": dist.LogNormal(0.0, 1.0),
        "level": dist.Uniform(0.0, 1.0),
        "reach": dist.Uniform(0.0, 1.0),
        "lengthscale": dist.LogNormal(math.sqrt(2.0), math.sqrt(3.0)).expand([d]),
    }


def _project(params: Params, x: Array) -> Array:
    """A point (d,) on the sphere (d + 1,)."""
    ends = jnp.broadcast_to(_CENTRE / params["lengthscale"], x.shape)
    z = (x - _CENTRE) / (params["lengthscale"] * jnp.sqrt(params["reach"] * (ends @ ends)))
    square = z @ z
    return jnp.append(2.0 * z, square - 1.0) / (square + 1.0)


def _value(params: Params, a: Array, b: Array) -> Array:
    level = params["level"]
    return params["variance"] * (level + (1.0 - level) * (_project(params, a) @ _project(params, b)))


def _matrix(params: Params, a: Array, b: Array) -> Array:
    rows, level = jax.vmap(lambda x: _project(params, x)), params["level"]
    return params["variance"] * (level + (1.0 - level) * (rows(a) @ rows(b).T))
