"""Schedules: factors of the learning rate, momentum or dropout over the updates of a run."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# (updates so far, updates of the whole run) -> factor, all of shape ().
Schedule = Callable[[Array, Array], Array]
Scalar = Float[Array, ""]


def constant(step: Scalar, steps: Scalar) -> Scalar:
    """Return 1 at every update."""
    return jnp.ones_like(step)


def cosine(step: Scalar, steps: Scalar) -> Scalar:
    """Return ½ (1 + cos(π step / steps)), which decays from 1 to 0 over the run."""
    return 0.5 * (1.0 + jnp.cos(jnp.pi * step / steps))


def linear(step: Scalar, steps: Scalar) -> Scalar:
    """Return the linear schedule 1 - step / steps, which decays from 1 to 0.

    Args:
        step: Updates so far.
        steps: Updates of the whole run.
    """
    return 1.0 - step / steps


@jax.tree_util.register_static
@dataclass(frozen=True)
class InverseTime:
    """Schedule 1 / (1 + step / half_life); see `inverse_time`."""

    half_life: float

    def __call__(self, step: Scalar, steps: Scalar) -> Scalar:
        return 1.0 / (1.0 + step / self.half_life)


@jax.tree_util.register_static
@dataclass(frozen=True)
class Warmup:
    """Schedule that rises linearly from `start` to 1 over `updates` updates; see `warmup`."""

    start: float
    updates: int

    def __call__(self, step: Scalar, steps: Scalar) -> Scalar:
        return self.start + (1.0 - self.start) * jnp.minimum(step / self.updates, 1.0)


@jax.tree_util.register_static
@dataclass(frozen=True)
class ZeroAtEnd:
    """Schedule that is 1, and 0 for the last `updates` updates; see `zero_at_end`."""

    updates: int

    def __call__(self, step: Scalar, steps: Scalar) -> Scalar:
        return jnp.where(step < steps - self.updates, 1.0, 0.0)


def inverse_time(half_life: float) -> InverseTime:
    """Return the schedule 1 / (1 + step / half_life), which is ½ after `half_life` updates."""
    return InverseTime(half_life)


def warmup(start: float, updates: int) -> Warmup:
    """Return a schedule that rises linearly from `start` to 1 over `updates` updates, then stays 1.

    Use it for the learning rate, or for momentum, which Sutskever et al. 2013 also raise during
    training, by another rule.
    """
    return Warmup(start, updates)


def zero_at_end(updates: int) -> ZeroAtEnd:
    """Return a schedule that is 1, and 0 for the last `updates` updates of the run.

    Use it to end training with a phase without dropout.
    """
    return ZeroAtEnd(updates)
