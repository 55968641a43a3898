"""Infer the capacity of a search's state from its shapes."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import keystr, tree_leaves_with_path

from bonas.configuration import precision_error
from bonas.search.search import Search

# To find which shapes of a state depend on the capacity, the shapes at these two are compared.
_PROBES = (16, 24)


def paths_of(state: Any) -> list[str]:
    """Return the paths of the leaves of a state."""
    return [keystr(path) for path, _ in tree_leaves_with_path(state)]


def match_state(
    search: Search, paths: list[str], leaves: list[Any], *, runs: tuple[int, ...] = ()
) -> tuple[Any, int | None]:
    """Return the state of a search that has the given leaves, and its capacity.

    The capacity is None if it does not affect the shapes of states. Static parts of the state,
    such as a kernel, are taken from the search.

    Args:
        search: The search.
        paths: The paths of the leaves.
        leaves: Arrays, each with the leading axes `runs`.
        runs: The leading axes.

    Raises:
        ValueError: If the search does not have such states.
    """
    low, high = (_template(search, capacity) for capacity in _PROBES)
    _check_paths(paths_of(low), paths)
    shapes = [leaf.shape[len(runs) :] for leaf in leaves]
    capacity = _capacity(jax.tree.leaves(low), jax.tree.leaves(high), shapes)
    expected = low if capacity is None else _template(search, capacity)
    leaves = [
        _wrap_key(leaf, wanted.dtype)
        for leaf, wanted in zip(leaves, jax.tree.leaves(expected), strict=True)
    ]
    for path, wanted, leaf in zip(
        paths, jax.tree.leaves(expected), leaves, strict=True
    ):
        shape = (*runs, *wanted.shape)
        if leaf.shape == shape and _differ_in_precision(leaf.dtype, wanted.dtype):
            raise ValueError(precision_error("the state was computed"))
        if (leaf.dtype, leaf.shape) != (wanted.dtype, shape):
            raise ValueError(
                f"the state does not belong to this search: {path} must be {wanted.dtype}"
                f"{list(shape)}; got {leaf.dtype}{list(leaf.shape)}"
            )
    return jax.tree.unflatten(jax.tree.structure(expected), leaves), capacity


def _template(search: Search, capacity: int) -> Any:
    """Return the shapes of a state with this capacity, without computing one."""
    return jax.eval_shape(lambda key: search.init(key, capacity), jax.random.key(0))


def _wrap_key(leaf: Any, dtype: Any) -> Any:
    """Convert the numbers that a file stores for random keys back to keys."""
    is_key = jnp.issubdtype(dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(leaf) if is_key and leaf.dtype != dtype else leaf


def _differ_in_precision(found: Any, expected: Any) -> bool:
    kinds = (jnp.floating, jnp.integer)
    return found != expected and any(
        jnp.issubdtype(found, kind) and jnp.issubdtype(expected, kind) for kind in kinds
    )


def _check_paths(expected: list[str], found: list[str]) -> None:
    if expected == found:
        return
    lists = (expected, found)
    single = [
        path for each in lists for path in each if sum(path in x for x in lists) < 2
    ]
    difference = (
        f"{', '.join(single[:3])} exist in only one of the two"
        if single
        else "their leaves are in different orders"
    )
    raise ValueError(
        f"the state does not belong to this search: {difference}; "
        "pass the search that created the state"
    )


def _capacity(
    low: list[Any], high: list[Any], shapes: list[tuple[int, ...]]
) -> int | None:
    """Return the capacity that explains the shapes; None if no dimension grows with it."""
    for small, large, shape in zip(low, high, shapes, strict=True):
        for a, b, n in zip(small.shape, large.shape, shape, strict=False):
            if b > a:
                slope = (_PROBES[1] - _PROBES[0]) / (b - a)
                return max(int(_PROBES[0] + slope * (n - a)), 1)
    return None
