"""Two more kernels for parameters that come and go, as other libraries have them: rivals of the arc.

`masked` shares nothing between points with different active columns but its parameters; `blocks` adds up what the groups
of columns contribute that two points have in common. `active` is what it is for `gp.arc`: a Space, or a function of a point.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.gp.conditional import without_order
from bonas.gp.kernel import Kernel, check_kernel, gram
from bonas.gp.kernels import matern52, on
from bonas.gp.relevance import Active, check_cube, check_relevance, columns_of, relevance
from bonas.spaces import Space

_WHICH = "which"  # the parameters of the kernel over the pattern of active groups


def masked(active: Active, base: Kernel | None = None) -> Kernel:
    """The base kernel on the active columns of two points where they are the same columns, and 0 where they are not.

    What SMAC3 does (`get_conditional_hyperparameters`, after Lévesque et al. 2017): inactive columns hold one constant, and
    a covariance is multiplied by 0 as soon as one column is active on one side only. So each pattern of active columns has
    a process of its own, with parameters in common. `base` is any kernel (default Matérn 5/2), and its parameters are all.
    """
    base = matern52() if base is None else base
    check_kernel(base)
    columns, categories = columns_of(active, ())
    return _masked(columns, without_order(base, categories))


@cache
def _masked(columns: Active, base: Kernel) -> Kernel:
    active = relevance(columns)

    def prior(d):
        check_relevance(columns, d)
        return base.prior(d)

    def split(x: Array) -> tuple[Array, Array]:
        here = active(x)
        return jnp.where(here, x, 0.0), here

    def value(params, a, b):
        (a, of_a), (b, of_b) = split(a), split(b)
        return jnp.where((of_a == of_b).all(), base.value(params, a, b), 0.0)

    def matrix(params, a, b):
        (a, of_a), (b, of_b) = jax.vmap(split)(a), jax.vmap(split)(b)
        return jnp.where(_equal_rows(of_a, of_b), gram(base, params, a, b), 0.0)

    def rebuild(change, categories):
        return _masked(columns, change(base, categories))

    return Kernel(prior, value, matrix, base.categories, rebuild, _check(columns))


def _equal_rows(a: Array, b: Array) -> Array:
    """(n, m) bool: which rows of a (n, d) and b (m, d) are equal, by counting the columns in which they differ."""
    a, b = a.astype(jnp.float32), b.astype(jnp.float32)
    return a @ (1.0 - b).T + (1.0 - a) @ b.T == 0.0


def blocks(active: Active, groups: Sequence[Sequence[int]], base: Kernel | None = None) -> Kernel:
    """Σ over the groups that are active in both points of the base kernel on their columns, plus a kernel over which are.

    groups: columns that come and go together, such as those of one layer. A group with an inactive column is inactive, and
    a column of no group does not count. After BoTorch (`MultiTaskConditionalKernel`, Deshwal et al. 2024; the kernel for
    hierarchical spaces of its release 0.18 is of the same kind): a Matérn 5/2 over the pattern of active groups, as 0 and
    1, gives each pattern a level of its own. There is no interaction between groups.
    Parameters: "0", "1", … for the groups, and "which" with variance and lengthscale (one a group).
    """
    base = matern52() if base is None else base
    check_kernel(base)
    chosen = tuple(tuple(int(column) for column in group) for group in groups)
    flat = [column for group in chosen for column in group]
    if not chosen or not all(chosen) or len(set(flat)) != len(flat):
        raise ValueError(f"expected groups of columns, each column in one group at most; got {chosen}")
    columns, categories = columns_of(active, ())
    parts = tuple(without_order(on(group, base), categories) for group in chosen)
    return _blocks(columns, chosen, parts, categories if any(categories) else None)


@cache
def _blocks(columns: Active, groups: tuple, parts: tuple[Kernel, ...], categories: tuple[int, ...] | None) -> Kernel:
    active, pattern = relevance(columns), matern52()
    members = [np.asarray(group) for group in groups]

    def prior(d):
        check_relevance(columns, d)
        own = {str(i): part.prior(d) for i, part in enumerate(parts)}
        return {**own, _WHICH: pattern.prior(len(groups))}

    def present(x: Array) -> Array:
        here = active(x)
        return jnp.stack([here[member].all() for member in members])

    def value(params, a, b):
        of_a, of_b = present(a), present(b)
        total = pattern.value(params[_WHICH], of_a.astype(a.dtype), of_b.astype(b.dtype))
        for i, part in enumerate(parts):
            total = total + jnp.where(of_a[i] & of_b[i], part.value(params[str(i)], a, b), 0.0)
        return total

    def matrix(params, a, b):
        of_a, of_b = jax.vmap(present)(a), jax.vmap(present)(b)
        total = gram(pattern, params[_WHICH], of_a.astype(a.dtype), of_b.astype(b.dtype))
        for i, part in enumerate(parts):
            both = of_a[:, i][:, None] & of_b[:, i][None, :]
            total = total + jnp.where(both, gram(part, params[str(i)], a, b), 0.0)
        return total

    def rebuild(change, categories):
        return _blocks(columns, groups, tuple(change(part, categories) for part in parts), categories)

    return Kernel(prior, value, matrix, categories, rebuild, _check(columns))


def _check(columns: Active) -> Callable[[np.ndarray], None] | None:
    """Points of a space are of the unit cube; a function may tell what is active among columns of any scale."""
    return partial(check_cube, columns) if isinstance(columns, Space) else None
