"""Count and list the points of a finite space."""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import jaxtyping as jt
import numpy as np
from jax import Array

if TYPE_CHECKING:
    from bonas.spaces.space import Space

MAX_POINTS = 1_000_000


def count_points(space: "Space") -> int:
    """Return the number of distinct points of a space without continuous parameters.

    Only the parameters on which conditions depend are enumerated. The others contribute the product
    of their numbers of values.
    """
    parents = {parent for names in space.parents.values() for parent in names}
    deciding = sorted(parents, key=space.names.index)
    with jax.ensure_compile_time_eval():  # a number, also inside `jit`
        rows = _grid(space, deciding)
        active = np.asarray(space.active(jnp.asarray(rows)))
    columns = [space.names.index(name) for name in deciding]
    distinct = ((rows[:, columns] == 0) | active[:, columns]).all(axis=1)
    free = [i for i, name in enumerate(space.names) if name not in deciding]
    counts = [_count(space, name) for name in space.names]
    return sum(math.prod(counts[i] for i in free if row[i]) for row in active[distinct])


def all_points(space: "Space") -> jt.Float[Array, "n d"]:
    """Return all distinct points of a finite space, in lexicographic order.

    Raises:
        ValueError: If there are more than a million points.
    """
    if space.size > MAX_POINTS:
        raise ValueError(
            f"cannot enumerate a space of {space.size} points; the maximum is {MAX_POINTS}"
        )
    with jax.ensure_compile_time_eval():
        placed = np.asarray(space.snap(jnp.asarray(_grid(space, space.names))))
        return jnp.asarray(np.unique(placed, axis=0))


def _count(space: "Space", name: str) -> int:
    """Return the number of values of a parameter; a Float with low == high has one."""
    size = space.parameters[name].size
    return 1 if size == math.inf else int(size)


def _grid(space: "Space", names: Sequence[str]) -> np.ndarray:
    """Return every combination of the named columns as rows (k, d), with 0 in the other columns."""
    total = math.prod(_count(space, name) for name in names)
    if total > 10 * MAX_POINTS:
        raise ValueError(
            f"cannot enumerate {total} combinations of {list(names)}; "
            f"the maximum is {10 * MAX_POINTS}"
        )
    columns = [
        np.asarray(p.grid()) if name in names else np.zeros(1)
        for name, p in space.parameters.items()
    ]
    return np.array(list(itertools.product(*columns)))
