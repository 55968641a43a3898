"""Prior means: a number for each point, which may depend on parameters to be inferred or on the data."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from bonas.data import Dataset


@jax.tree_util.register_static
@dataclass(frozen=True)
class Mean:
    """A prior mean. Static: it may be passed to any jitted function.

    value: value(params, data, x) -> () for cleaned data and one point x of shape (d,).
    prior: prior(d) -> {name: NumPyro distribution}, or a plain dict; empty where there is nothing to infer.
    """

    value: Callable[[dict, Dataset, Array], Array]
    prior: Callable[[int], dict] = lambda d: {}

    def __post_init__(self):
        if isinstance(self.prior, dict):
            given = dict(self.prior)
            object.__setattr__(self, "prior", lambda d: given)


def _zero(params, data, x):
    return jnp.zeros((), x.dtype)


# Zero everywhere, which suits standardised values: Twist, Section 3.5.
zero = Mean(_zero)


def constant(value: float) -> Mean:
    """The same known number everywhere."""
    return _constant(float(value))


@cache
def _constant(value: float) -> Mean:
    return Mean(lambda params, data, x: jnp.asarray(value, x.dtype))


@cache
def learned_constant(scale: float = 1.0) -> Mean:
    """An unknown constant with prior N(0, scale²): params {"constant": ...}."""
    return Mean(lambda params, data, x: params["constant"], lambda d: {"constant": dist.Normal(0.0, scale)})


def _wilton(params, data, x):
    observed, y = data.mask[:, 0], data.y[:, 0]
    lowest = jnp.min(jnp.where(observed, y, jnp.inf))
    average = jnp.sum(jnp.where(observed, y, 0.0)) / jnp.maximum(observed.sum(), 1)
    return jnp.where(observed.any(), 0.5 * (jnp.where(observed.any(), lowest, 0.0) + average), 0.0)


# Half-way between the lowest value and the average: Wilton 2020, eq. 7. Lower than the average, so that a minimiser explores.
wilton = Mean(_wilton)
