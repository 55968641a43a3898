"""Conditional kernels of SMAC3 and BoTorch, for comparison with the arc kernel.

With `masked`, points with different active columns are uncorrelated; `blocks` is a sum over the
groups of columns that are active in both points.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from bonas.gp.composite_kernels import CompositeKernel, on_columns
from bonas.gp.conditional_kernels import (
    Active,
    active_mask,
    check_active,
    check_unit_cube,
    resolve_active,
)
from bonas.gp.default_kernels import matern52
from bonas.gp.kernel import Kernel, Params, check_kernel, gram, with_categories
from bonas.spaces import Space

_PATTERN = (
    "which"  # name of the parameters of the kernel over the pattern of active groups
)


@dataclass(frozen=True)
class Masked(CompositeKernel):
    """A kernel that is 0 between points with different active columns."""

    active: Active
    base: Kernel
    categories: tuple[int, ...] | None = None

    def prior(self, d: int) -> Params:
        check_active(self.active, d)
        return self.base.prior(d)

    def value(self, params: Params, a: Array, b: Array) -> Array:
        a, mask_a = self._split(a)
        b, mask_b = self._split(b)
        return jnp.where((mask_a == mask_b).all(), self.base.value(params, a, b), 0.0)

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        a, mask_a = jax.vmap(self._split)(a)
        b, mask_b = jax.vmap(self._split)(b)
        return jnp.where(
            _equal_rows(mask_a, mask_b), gram(self.base, params, a, b), 0.0
        )

    def check(self, x: np.ndarray) -> None:
        _check_space(self.active, x)

    def with_categories(self, categories: tuple[int, ...]) -> Kernel:
        return replace(
            self, base=with_categories(self.base, categories), categories=categories
        )

    def _split(self, x: Array) -> tuple[Array, Array]:
        """Return a point with 0 in its inactive columns, and which columns are active."""
        mask = active_mask(self.active, x)
        return jnp.where(mask, x, 0.0), mask


def masked(active: Active, base: Kernel | None = None) -> Kernel:
    """Create a kernel that is 0 between points with different active columns.

    As in SMAC3 (`get_conditional_hyperparameters`, after Lévesque et al. 2017): inactive columns
    are set to a constant, and the covariance is 0 if a column is active in only one of the points.
    Each pattern of active columns is thus modeled separately, with the same hyperparameters.

    Args:
        active: A Space, or a function active(x (d,)) -> (d,) bool.
        base: Any kernel (default: Matérn 5/2); the result has the same parameters.
    """
    base = matern52() if base is None else base
    check_kernel(base)
    function, categories = resolve_active(active)
    adapted = with_categories(base, categories)
    return Masked(function, adapted, adapted.categories)


def _equal_rows(a: Array, b: Array) -> Array:
    """Return which rows of a (n, d) and b (m, d) are equal, (n, m), by counting differences."""
    a = a.astype(jnp.float32)
    b = b.astype(jnp.float32)
    return a @ (1.0 - b).T + (1.0 - a) @ b.T == 0.0


@dataclass(frozen=True)
class Blocks(CompositeKernel):
    """A sum over the groups of columns that are active in both points."""

    active: Active
    groups: tuple[tuple[int, ...], ...]
    parts: tuple[Kernel, ...]
    pattern: Kernel
    categories: tuple[int, ...] | None = None

    def prior(self, d: int) -> Params:
        check_active(self.active, d)
        own = {str(i): part.prior(d) for i, part in enumerate(self.parts)}
        return {**own, _PATTERN: self.pattern.prior(len(self.groups))}

    def value(self, params: Params, a: Array, b: Array) -> Array:
        in_a = self._active_groups(a)
        in_b = self._active_groups(b)
        total = self.pattern.value(
            params[_PATTERN], in_a.astype(a.dtype), in_b.astype(b.dtype)
        )
        for i, part in enumerate(self.parts):
            total = total + jnp.where(
                in_a[i] & in_b[i], part.value(params[str(i)], a, b), 0.0
            )
        return total

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        in_a = jax.vmap(self._active_groups)(a)
        in_b = jax.vmap(self._active_groups)(b)
        total = gram(
            self.pattern, params[_PATTERN], in_a.astype(a.dtype), in_b.astype(b.dtype)
        )
        for i, part in enumerate(self.parts):
            in_both = in_a[:, i][:, None] & in_b[:, i][None, :]
            total = total + jnp.where(in_both, gram(part, params[str(i)], a, b), 0.0)
        return total

    def check(self, x: np.ndarray) -> None:
        _check_space(self.active, x)

    def with_categories(self, categories: tuple[int, ...]) -> Kernel:
        parts = tuple(with_categories(part, categories) for part in self.parts)
        return replace(self, parts=parts, categories=categories)

    def _active_groups(self, x: Array) -> Array:
        mask = active_mask(self.active, x)
        return jnp.stack([mask[np.asarray(group)].all() for group in self.groups])


def blocks(
    active: Active, groups: Sequence[Sequence[int]], base: Kernel | None = None
) -> Kernel:
    """Create a sum of kernels over the groups of columns that are active in both points.

    After BoTorch (`MultiTaskConditionalKernel`, Deshwal et al. 2024; the kernel for hierarchical
    spaces of its release 0.18 is of the same kind). A Matérn 5/2 kernel over the pattern of active
    groups, as zeros and ones, is added, so that each pattern has its own level. Groups do not
    interact.
    Parameters: "0", "1", … for the groups, and "which" with variance and lengthscale (one per
    group).

    Args:
        active: A Space, or a function active(x (d,)) -> (d,) bool.
        groups: Columns that are active together, such as the columns of one layer. A group with
            an inactive column is inactive, and a column in no group has no effect.
        base: The kernel of a group (default: Matérn 5/2).
    """
    base = matern52() if base is None else base
    check_kernel(base)
    chosen = tuple(tuple(int(column) for column in group) for group in groups)
    flat = [column for group in chosen for column in group]
    if not chosen or not all(chosen) or len(set(flat)) != len(flat):
        raise ValueError(
            f"expected groups of columns, each column in at most one group; got {chosen}"
        )
    function, categories = resolve_active(active)
    parts = tuple(
        with_categories(on_columns(group, base), categories) for group in chosen
    )
    options = categories if any(categories) else None
    return Blocks(function, chosen, parts, matern52(), options)


def _check_space(active: Active, x: np.ndarray) -> None:
    """Check points if `active` is a space; a function may have columns of any scale."""
    if isinstance(active, Space):
        check_unit_cube(active, x)
