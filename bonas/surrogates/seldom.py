"""Work that is dear and not due at every fit."""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array

from bonas.infer.target import choose


def seldom(due: Array, work: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """work() where due () holds, else otherwise(); both give the same shapes.

    A condition with lanes makes `vmap` compute both sides always. Here work is done when it is due in any lane, and then each
    lane still takes its own: searches side by side, which are at the same step, pay for it as seldom as one alone.
    """
    return jax.lax.cond(_in_any_lane(due), lambda: choose(due, work(), otherwise()), otherwise)


@jax.custom_batching.custom_vmap
def _in_any_lane(flag: Array) -> Array:
    return flag


@_in_any_lane.def_vmap
def _reduced(axis_size, batched, flag):
    return _in_any_lane(flag.any(axis=0) if batched[0] else flag), False
