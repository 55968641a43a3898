"""A conditional for expensive, rare computations that remains a conditional under `vmap`."""

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array, Bool

from bonas.infer import choose


def lazy_cond(
    due: Bool[Array, ""], work: Callable[[], Any], otherwise: Callable[[], Any]
) -> Any:
    """Return `work()` if `due` is true, else `otherwise()`, and skip unneeded work under `vmap`.

    Under `vmap`, `jax.lax.cond` with a batched condition always computes both branches. This
    function computes `work` only if it is due in any lane, so parallel searches at the same step
    compute it as rarely as a single search. Both functions must return the same shapes.
    """
    return jax.lax.cond(
        _any_lane(due), lambda: choose(due, work(), otherwise()), otherwise
    )


@jax.custom_batching.custom_vmap
def _any_lane(flag: Array) -> Array:
    return flag


@_any_lane.def_vmap
def _reduce(axis_size: int, in_batched: list[bool], flag: Array) -> tuple[Array, bool]:
    return _any_lane(flag.any(axis=0) if in_batched[0] else flag), False
