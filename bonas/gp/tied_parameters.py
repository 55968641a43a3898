"""Kernels in which several columns share parameters, such as the widths of all layers."""

from collections.abc import Iterable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpyro.distributions import Distribution, ExpandedDistribution

from bonas.gp.composite_kernels import CompositeKernel
from bonas.gp.kernel import Kernel, Params, check_kernel, check_points, gram, one_hot
from bonas.infer import is_distribution

# Columns by group.
Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Tied(CompositeKernel):
    """A kernel whose per-column parameters have one entry per group of columns."""

    kernel: Kernel
    groups: Groups
    categories: tuple[int, ...] | None = None

    def prior(self, d: int) -> Params:
        entries = int(self._entries(d).max()) + 1

        def reduce(distribution: Distribution) -> Distribution:
            if distribution.shape() != (d,):
                return distribution
            return expand_prior(distribution, entries)

        prior: Params = jax.tree.map(
            reduce, self.kernel.prior(d), is_leaf=is_distribution
        )
        return prior

    def value(self, params: Params, a: Array, b: Array) -> Array:
        return self.kernel.value(self._expand(params, len(a)), a, b)

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        return gram(self.kernel, self._expand(params, a.shape[1]), a, b)

    def check(self, x: np.ndarray) -> None:
        self._entries(x.shape[1])
        check_points(self.kernel, x)

    def with_categories(self, categories: tuple[int, ...]) -> Kernel:
        if self.kernel.categories is not None or isinstance(
            self.kernel, CompositeKernel
        ):
            raise ValueError(
                "in a space with Choices, tie a kernel that supports them, such as gp.arc(space), "
                "or tie each part of a sum or product"
            )
        if not self.kernel.one_hot:
            return self
        return one_hot(
            categories, tied(self.kernel, one_hot_groups(self.groups, categories))
        )

    def _entries(self, d: int) -> np.ndarray:
        """Return the position (d,) of each column's entry."""
        last = max(column for group in self.groups for column in group)
        if last >= d:
            raise ValueError(
                f"expected points of at least {last + 1} columns, as in the groups; got {d}"
            )
        first = {column: min(group) for group in self.groups for column in group}
        return np.unique(
            [first.get(column, column) for column in range(d)], return_inverse=True
        )[1]

    def _expand(self, params: Params, d: int) -> Params:
        """Return the parameters of the kernel, with one entry per column."""
        entries = self._entries(d)

        def expand(distribution: Distribution, leaf: Array) -> Array:
            per_column = distribution.shape() == (d,) and jnp.ndim(leaf) > 0
            return jnp.asarray(leaf)[entries] if per_column else leaf

        prior = self.kernel.prior(d)
        expanded: Params = jax.tree.map(expand, prior, params, is_leaf=is_distribution)
        return expanded


def tied(kernel: Kernel, groups: Iterable[Iterable[int]]) -> Kernel:
    """Create a kernel in which the columns of a group share their parameters.

    For example, one length scale for the units of all layers and one for their rates reduce the
    number of length scales. ``gp.arc(space) + gp.tied(gp.arc(space), groups)`` models what layers
    have in common and how they differ.

    Args:
        kernel: The kernel. Its per-column parameters, such as length scales, get one entry per
            group, and one for each column in no group, in the order of their first columns. The
            options of a Choice in a group share an entry.
        groups: Disjoint groups of column indices, from 0.
    """
    check_kernel(kernel)
    chosen = tuple(tuple(int(column) for column in group) for group in groups)
    flat = [column for group in chosen for column in group]
    if not flat or not all(chosen) or len(set(flat)) != len(flat) or min(flat) < 0:
        raise ValueError(
            "expected non-empty groups of column indices (from 0), with each column in at most one "
            f"group; got {chosen}"
        )
    return Tied(kernel, chosen, kernel.categories)


def expand_prior(distribution: Distribution, size: int) -> Distribution:
    """Return a prior of `size` entries from a prior that is the same for every column."""
    if (
        not isinstance(distribution, ExpandedDistribution)
        or distribution.base_dist.shape() != ()
    ):
        raise ValueError(
            "expected one prior for all columns, made by expand([d]); "
            "columns with different priors cannot be grouped"
        )
    return distribution.base_dist.expand([size])


def one_hot_groups(groups: Groups, categories: tuple[int, ...]) -> Groups:
    """Return groups of columns as groups of their positions after one-hot encoding."""
    positions = _one_hot_columns(categories)
    return tuple(
        tuple(i for column in group for i in positions[column]) for group in groups
    )


def _one_hot_columns(categories: tuple[int, ...]) -> list[range]:
    """Return the positions of each column after one-hot encoding."""
    ends = np.cumsum([max(m, 1) for m in categories])
    return [
        range(end - max(m, 1), end) for end, m in zip(ends, categories, strict=True)
    ]
