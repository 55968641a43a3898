"""Sparse axis-aligned subspaces (SAAS): a prior under which few columns matter."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, ArrayLike

from bonas.gp.default_kernels import Stationary, matern52_profile
from bonas.gp.kernel import Kernel, Params
from bonas.linalg import safe_sqrt
from bonas.traced_settings import Setting, as_setting, setting_value


@dataclass(frozen=True)
class _SparsePrior:
    alpha: Setting

    def __call__(self, d: int) -> Params:
        return {
            "variance": dist.LogNormal(0.0, 1.0),
            "tau": dist.HalfCauchy(setting_value(self.alpha)),
            "local": dist.HalfCauchy(1.0).expand([d]),
        }


def _scaled(params: Params, x: Array) -> Array:
    return x * safe_sqrt(inverse_squared_lengthscales(params))


def saas(alpha: ArrayLike = 0.1) -> Kernel:
    """Create a Matérn 5/2 kernel with a sparse prior over columns (SAAS).

    Eriksson & Jankowiak 2021, eqs. 4–8. The inverse squared length scales are tau · local_i with
    tau ~ HalfCauchy(alpha) and local_i ~ HalfCauchy(1). A small tau removes the effect of all
    columns, and the heavy tail of local_i restores the effect of single columns if the data require
    it. Sample the parameters by NUTS (`surrogates.saas`), because no column has an effect at the
    mode of this prior. The variance is LogNormal(0, 1); in the paper it is LogNormal(0, 10).

    Args:
        alpha: Scale of the prior of tau; with a smaller one, fewer columns have an effect.
    """
    scale = as_setting("alpha", alpha)
    if isinstance(scale, float) and not scale > 0.0:
        raise ValueError(f"alpha must be positive; got {alpha}")
    return Stationary(_SparsePrior(scale), matern52_profile, embed=_scaled)


def inverse_squared_lengthscales(params: Params) -> Array:
    """Return the inverse squared length scales (d,) of `saas`, or (s, d) for s samples.

    They measure the effect of each column.
    """
    local: Array = params["local"]
    return jnp.asarray(params["tau"])[..., None] * local
