"""Fit on half the rows of a dataset while they hold all observations.

The cost of a Gaussian process grows with the cube of the capacity, for any number of observations.
With a second program, compiled for half the capacity, the first half of a search costs an eighth.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset

# From this capacity on, the second program is worth its compilation.
_MIN_CAPACITY = 32


def call_on_half(function: Callable[..., Any], data: Dataset, *rest: Any) -> Any:
    """Call a function of a dataset on the first half of its rows if the rest are unused.

    Under `vmap`, only one of the two programs runs: the one for half the rows if they suffice for
    every lane.

    Args:
        function: Function of a dataset and further arguments, whose result does not depend on the
            capacity.
        data: The dataset.
        *rest: The further arguments.
    """
    half = len(data.x) // 2
    if len(data.x) < _MIN_CAPACITY:
        return function(data, *rest)

    def on_half(data: Dataset, *rest: Any) -> Any:
        rows = jax.tree.map(lambda leaf: leaf[:half] if leaf.ndim else leaf, data)
        return function(rows, *rest)

    def choose(suffices: Array, data: Dataset, *rest: Any) -> Any:
        return jax.lax.cond(suffices, on_half, function, data, *rest)

    # `custom_vmap` does not support closing over batched values, so constants become arguments
    program, shape = jax.make_jaxpr(choose, return_shape=True)(True, data, *rest)

    def call(suffices: Array, operands: tuple[Any, ...]) -> Any:
        leaves = jax.tree.leaves(operands[1:])
        results = jax.core.eval_jaxpr(program.jaxpr, operands[0], suffices, *leaves)
        return jax.tree.unflatten(jax.tree.structure(shape), results)

    @jax.custom_batching.custom_vmap
    def one(operands: tuple[Any, ...]) -> Any:
        return call(operands[1].size <= half, operands)

    @one.def_vmap
    def many(
        axis_size: int, batched: Any, operands: tuple[Any, ...]
    ) -> tuple[Any, Any]:
        # not batched, so `cond` stays a branch
        suffices = jnp.all(operands[1].size <= half)
        axes = jax.tree.map(
            lambda is_batched: 0 if is_batched else None, tuple(batched[0])
        )
        lanes: Any = jax.vmap(
            lambda each: call(suffices, each), (axes,), axis_size=axis_size
        )
        result = lanes(operands)
        return result, jax.tree.map(lambda _: True, result)

    return one((program.consts, data, *rest))
