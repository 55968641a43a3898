"""Constant prior means: known, learned, and Wilton's, which depends on the values."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, ArrayLike

from bonas.data import Dataset
from bonas.gp.exact import Mean
from bonas.gp.kernel import Params
from bonas.traced_settings import Setting, as_setting, setting_value


@dataclass(frozen=True)
class _Constant:
    level: Setting

    def __call__(self, params: Params, data: Dataset, x: Array) -> Array:
        return jnp.asarray(setting_value(self.level), x.dtype)


def constant(value: ArrayLike) -> Mean:
    """Create a prior mean that is a known constant."""
    return Mean(_Constant(as_setting("value", value)))


@dataclass(frozen=True)
class _NormalPrior:
    scale: Setting

    def __call__(self, d: int) -> Params:
        return {"constant": dist.Normal(0.0, setting_value(self.scale))}


def _learned_constant(params: Params, data: Dataset, x: Array) -> Array:
    level: Array = params["constant"]
    return level


def learned_constant(scale: ArrayLike = 1.0) -> Mean:
    """Create a prior mean that is an unknown constant, inferred with the other hyperparameters.

    Args:
        scale: Standard deviation of the prior N(0, scale²) of the parameter "constant".
    """
    return Mean(_learned_constant, _NormalPrior(as_setting("scale", scale)))


def _wilton(params: Params, data: Dataset, x: Array) -> Array:
    observed = data.mask[:, 0]
    y = data.y[:, 0]
    lowest = jnp.min(jnp.where(observed, y, jnp.inf))
    average = jnp.sum(jnp.where(observed, y, 0.0)) / jnp.maximum(observed.sum(), 1)
    return jnp.where(
        observed.any(), 0.5 * (jnp.where(observed.any(), lowest, 0.0) + average), 0.0
    )


# A constant prior mean, the midpoint of the lowest and the average observed value (Wilton 2020,
# eq. 7). As it is below the average, minimization explores more.
wilton = Mean(_wilton)
