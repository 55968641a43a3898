"""Select a subset of the rows of a data set: those with the best values and the latest others."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from bonas.data import Dataset


def select_rows(data: Dataset, rows: int) -> Dataset:
    """Select the rows with the lowest values and the latest of the others, keeping their order.

    Args:
        data: The data.
        rows: The number of rows to select, of which `rows // 2` have the lowest values. Data with
            at most this many rows are returned unchanged.
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
    """Return the positions of the rows that `select_rows` selects.

    If fewer than `rows` rows are observed, the first unobserved rows fill the rest.
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
