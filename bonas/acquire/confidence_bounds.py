"""Lower confidence bounds whose weight grows with the number of evaluations."""

import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, PRNGKeyArray

from bonas.acquire.acquisition import Acquisition, Context
from bonas.acquire.closed_form import lcb
from bonas.acquire.maximize import Score


def kappa_schedule(step: ArrayLike, d: int, delta: float = 0.1) -> Array:
    """Return kappa of `lcb` at evaluation step = 1, 2, … of a search in d columns.

    √(2 log(step^(d/2 + 2) π² / 3 delta)): Brochu, Cora & de Freitas 2010, after Srinivas et al.
    2010.

    Args:
        delta: The probability that the regret bound does not hold.
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be a probability between 0 and 1; got {delta}")
    # a 32-bit integer step would give a 32-bit logarithm
    log_step = jnp.log(jnp.asarray(step, float))
    return jnp.sqrt((d + 4.0) * log_step + 2.0 * math.log(math.pi**2 / (3.0 * delta)))


@dataclass(frozen=True)
class ScheduledLCB(Acquisition):
    """The lower confidence bound with a growing kappa."""

    delta: float

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        step = jnp.maximum(context.data.size, 1)
        kappa = kappa_schedule(step, context.data.x.shape[1], self.delta)
        return lambda x: lcb(*context.predict(x), context.best, kappa=kappa), memory


def scheduled_lcb(delta: float = 0.1) -> Acquisition:
    """Create a lower confidence bound with kappa from `kappa_schedule` (Brochu et al. 2010)."""
    return ScheduledLCB(float(delta))
