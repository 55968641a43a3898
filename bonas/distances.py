"""Squared distances between rows, with a derivative that consists of matrix products."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Up to this many columns, squared distances are sums of exact differences; beyond, a matrix
# product.
_MAX_EXACT_COLUMNS = 16


@jax.custom_jvp
def squared_distances(
    a: Float[Array, "n d"], b: Float[Array, "m d"]
) -> Float[Array, "n m"]:
    """Return the squared Euclidean distances ‖a_i − b_j‖² between the rows of two matrices.

    With up to sixteen columns they are sums of squared differences, exactly 0 between equal rows.
    With more columns they are ‖a‖² − 2 a·b + ‖b‖² about a common center, computed by one matrix
    product, with an error of the order of the rounding error of ‖a‖². The derivative consists of
    matrix products in either case.
    """
    if a.shape[1] <= _MAX_EXACT_COLUMNS:
        columns = (
            jnp.square(a[:, i][:, None] - b[:, i][None, :]) for i in range(a.shape[1])
        )
        return sum(columns)  # type: ignore[return-value]
    a, b = _centered(a, b)
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :]
    return jnp.maximum(squares - 2.0 * (a @ b.T), 0.0)


def _centered(a: Array, b: Array) -> tuple[Array, Array]:
    center = a.mean(axis=0)[None, :]
    return a - center, b - center


@squared_distances.defjvp
def _squared_distances_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    """2 (a_i − b_j)·(da_i − db_j), expanded into two matrix products."""
    a, b = _centered(*primals)
    da, db = tangents

    def widen(first: Array, rest: Array) -> Array:
        return jnp.concatenate([first[:, None], rest], axis=1)

    one_a = jnp.ones(len(a), a.dtype)
    one_b = jnp.ones(len(b), b.dtype)
    from_a = widen((a * da).sum(1), -da) @ widen(one_b, b).T
    from_b = widen(one_a, a) @ widen((b * db).sum(1), -db).T
    return squared_distances(*primals), 2.0 * (from_a + from_b)
