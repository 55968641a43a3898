"""One set of parameters for columns of one kind: layers that have little to say each have more to say together."""

from collections.abc import Iterable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions import Distribution, ExpandedDistribution

from bonas.gp.conditional import one_hot
from bonas.gp.kernel import Kernel, Params, check_kernel, check_points, gram
from bonas.infer.target import is_distribution


def shared(kernel: Kernel, groups: Iterable[Iterable[int]]) -> Kernel:
    """The kernel with one entry of each per-column parameter for all columns of a group, and one for every column in none.

    With a length scale for the units of all layers and one for their rates, a kernel of 24 columns has eight to learn. The
    sum of such a kernel and one with parameters of their own for all columns is what layers have in common and what they
    have not: gp.arc(space) + gp.shared(gp.arc(space), groups). Entries are in the order of the first columns. Options of a
    Choice in a group share its entry.
    """
    check_kernel(kernel)
    return _shared(kernel, tuple(tuple(int(column) for column in group) for group in groups))


@cache
def _shared(kernel: Kernel, groups: tuple[tuple[int, ...], ...]) -> Kernel:
    flat = [column for group in groups for column in group]
    if not flat or not all(groups) or len(set(flat)) != len(flat) or min(flat) < 0:
        raise ValueError(f"expected groups of columns, counted from 0, each column in one group at most; got {groups}")

    def owners(d: int) -> np.ndarray:
        """The position (d,) of each column's entry."""
        if max(flat) >= d:
            raise ValueError(f"column {max(flat)} does not exist in points of {d} columns")
        first = {column: min(group) for group in groups for column in group}
        return np.unique([first.get(column, column) for column in range(d)], return_inverse=True)[1]

    def prior(d: int) -> Params:
        entries = int(owners(d).max()) + 1

        def fewer(distribution: Distribution) -> Distribution:
            if distribution.shape() != (d,):
                return distribution
            if not isinstance(distribution, ExpandedDistribution) or distribution.base_dist.shape() != ():
                raise ValueError(
                    "columns with priors of their own cannot share a parameter; expand([d]) makes one prior for all"
                )
            return distribution.base_dist.expand([entries])

        return jax.tree.map(fewer, kernel.prior(d), is_leaf=is_distribution)

    def spread(params: Params, d: int) -> Params:
        """The parameters of the kernel itself."""
        position = owners(d)

        def more(distribution: Distribution, leaf: Array) -> Array:
            per_column = distribution.shape() == (d,) and jnp.ndim(leaf) > 0
            return jnp.asarray(leaf)[position] if per_column else leaf

        return jax.tree.map(more, kernel.prior(d), params, is_leaf=is_distribution)

    def value(params: Params, a: Array, b: Array) -> Array:
        return kernel.value(spread(params, len(a)), a, b)

    def matrix(params: Params, a: Array, b: Array) -> Array:
        return gram(kernel, spread(params, a.shape[1]), a, b)

    def rebuild(change, categories):
        if kernel.categories == categories:
            return _shared(kernel, groups)
        if kernel.categories is not None or kernel.rebuild is not None:
            raise ValueError("of a space with Choices share a kernel that knows them, such as gp.arc(space), or each part")
        inputs = inputs_of(categories)
        return one_hot(categories, _shared(kernel, tuple(tuple(i for c in group for i in inputs[c]) for group in groups)))

    def check(x: np.ndarray) -> None:
        owners(x.shape[1])
        check_points(kernel, x)

    return Kernel(prior, value, matrix, kernel.categories, rebuild, check)


def inputs_of(categories: tuple[int, ...]) -> list[range]:
    """The inputs that `one_hot` makes of each column."""
    ends = np.cumsum([max(options, 1) for options in categories])
    return [range(end - max(options, 1), end) for end, options in zip(ends, categories, strict=True)]
