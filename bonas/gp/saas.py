"""Sparse axis-aligned subspaces: a prior under which few columns matter, and the data say which."""

from functools import cache

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from bonas.gp.kernel import Kernel, Params
from bonas.gp.kernels import isotropic, matern52_profile
from bonas.linalg import safe_sqrt


@cache
def saas(alpha: float = 0.1) -> Kernel:
    """Matérn 5/2 with inverse squared length scales tau · local_i, tau ~ HalfCauchy(alpha), local_i ~ HalfCauchy(1).

    Eriksson & Jankowiak 2021, eqs 4 to 8. A small tau switches all columns off, and the tails of each local_i let its column
    come back where the data insist. For sampling, by NUTS (`surrogates.saas`): the most probable parameters of such a prior
    are those without any live column. The variance is around 1 as everywhere here; they have LogNormal(0, 10).
    """
    if not alpha > 0.0:
        raise ValueError(f"alpha must be positive; got {alpha}")

    def prior(d: int) -> Params:
        return {
            "variance": dist.LogNormal(0.0, 1.0),
            "tau": dist.HalfCauchy(alpha),
            "local": dist.HalfCauchy(1.0).expand([d]),
        }

    def embed(params: Params, x: Array) -> Array:
        return x * safe_sqrt(inverse_squares(params))

    return isotropic(prior, embed, matern52_profile)


def inverse_squares(params: Params) -> Array:
    """The inverse squared length scales (d,) of `saas`, or (s, d) of s samples: how much each column matters."""
    return jnp.asarray(params["tau"])[..., None] * params["local"]
