"""Choose some rows of many: the best and the latest others."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from bonas.data import Dataset


def select_rows(data: Dataset, rows: int) -> Dataset:
    """Return the rows with the `rows // 2` lowest values and the latest others, in their order.

    Data with at most `rows` rows are unchanged.
    """
    n = len(data.x)
    if n <= rows:
        return data
    chosen = choose_rows(data, rows)
    part: Dataset = jax.tree.map(
        lambda leaf: leaf[chosen] if leaf.ndim else jnp.minimum(leaf, rows), data
    )
    return part


def choose_rows(data: Dataset, rows: int) -> Int[Array, " rows"]:
    """Return the positions of the `rows // 2` best rows and the latest others, in their order.

    If too few rows are observed, the first of the others are added.
    """
    n = len(data.x)
    observed = data.mask[:, 0]
    order = jnp.argsort(jnp.where(observed, data.y[:, 0], jnp.inf))
    rank = jnp.zeros(n, int).at[order].set(jnp.arange(n))
    row = jnp.arange(n)
    is_best = observed & (rank < rows // 2)
    priority = jnp.where(is_best, 2 * n, jnp.where(observed, n + row, -row))
    chosen: Array = jnp.sort(jnp.argsort(-priority)[:rows])
    return chosen
