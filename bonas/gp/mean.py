"""The interface of prior means, and the zero mean."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from bonas.data import Dataset
from bonas.gp.kernel import Params, as_prior


def _no_parameters(d: int) -> Params:
    return {}


@jax.tree_util.register_static
@dataclass(frozen=True)
class Mean:
    """A prior mean, which is static: it may be passed to any jitted function.

    Attributes:
        value: Function (params, data, x (d,)) -> (), for cleaned data and one point x.
        prior: Function from d to {name: NumPyro distribution}, or a dict; empty by default.
    """

    value: Callable[[Params, Dataset, Array], Array]
    prior: Any = _no_parameters

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", as_prior(self.prior))


def check_mean(mean: Any) -> None:
    """Raise a ValueError unless the argument is a mean."""
    if not isinstance(mean, Mean):
        raise ValueError(
            f"expected a mean, such as gp.zero or gp.constant(0.5); got {mean!r}"
        )


def _zero(params: Params, data: Dataset, x: Array) -> Array:
    return jnp.zeros((), x.dtype)


# Zero everywhere, for standardized values (Twist, Section 3.5).
zero = Mean(_zero)
