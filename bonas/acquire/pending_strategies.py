"""Strategies for pending points: impute an observed value, or a posterior draw."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.acquire.pending import PendingStrategy
from bonas.data import Dataset
from bonas.static_settings import check_static
from bonas.surrogates import Surrogate

Lie = Literal["best", "mean", "worst"]


def posterior_sample(
    key: PRNGKeyArray, model: Surrogate, state: Any, data: Dataset
) -> Float[Array, " n"]:
    """Impute pending values by one joint draw from the posterior."""
    return model.sample(key, state, data.x, 1)[0]


@dataclass(frozen=True)
class ConstantLiar:
    """A pending strategy that assumes one observed value at every pending point."""

    lie: Lie

    def __call__(
        self, key: PRNGKeyArray, model: Surrogate, state: Any, data: Dataset
    ) -> Float[Array, " n"]:
        observed = data.mask[:, 0]
        y = data.y[:, 0]
        if self.lie == "best":
            value = jnp.min(jnp.where(observed, y, jnp.inf))
        elif self.lie == "worst":
            value = jnp.max(jnp.where(observed, y, -jnp.inf))
        else:
            value = jnp.sum(jnp.where(observed, y, 0.0)) / jnp.maximum(
                observed.sum(), 1
            )
        return jnp.full_like(y, value)


def constant_liar(lie: Lie = "best") -> PendingStrategy:
    """Create a strategy that imputes pending values with one constant (Ginsbourger et al. 2008).

    Args:
        lie: Which observed value to assume at pending points: "best", "mean" or "worst". The
            points of a batch are spread most widely with "worst".
    """
    check_static("lie", lie)
    if lie not in get_args(Lie):
        raise ValueError(f'lie must be "best", "mean" or "worst"; got {lie!r}')
    return ConstantLiar(lie)
