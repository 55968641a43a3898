"""Sums of functions of few columns each: f(x) = Σ_j f_j(x_j), for search in many dimensions (Agrawal, eq. 4.1; G-D8).

Kandasamy, Schneider & Póczos 2015. The groups are disjoint, and each term has the same kernel on its own columns. A posterior
of the sum is one of each term, given all the data: `predict_parts`.

Which columns go together may be unknown. A grouping is then an order of the columns, cut into groups of fixed sizes: an array
of one shape, whatever the groups, so that one compilation serves them all.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, ExpandedDistribution

from bonas.gp.conditional import one_hot
from bonas.gp.exact import Posterior, Prediction
from bonas.gp.kernel import Kernel, Params, check_kernel, gram
from bonas.gp.kernels import matern52
from bonas.gp.shared import inputs_of
from bonas.infer.target import is_distribution
from bonas.linalg import safe_sqrt, solve_lower

ORDER = "order"  # the parameter (d,) that says which columns go together, where that is not fixed
_ROUNDING = 16.0  # units of rounding that remain of a posterior variance, as in `gp.predict`

Groups = tuple[tuple[int, ...], ...]


@jax.tree_util.register_static
@dataclass(frozen=True)
class SumKernel(Kernel):
    """A kernel that is a sum, and its terms: parts(params, a (n, d), b (m, d)) -> (g, n, m)."""

    parts: Callable[[Params, Array, Array], Array] | None = None

    @property
    def terms(self) -> Callable[[Params, Array, Array], Array]:
        """terms(params, a (n, d), b (m, d)) -> (g, n, m), the Gram matrix of each term."""
        return cast(Callable, self.parts)


def additive(groups: Iterable[Iterable[int]], base: Kernel | None = None) -> SumKernel:
    """(1/g) Σ_j base(columns of group j): every column is in one of the g groups.

    base: any kernel (default Matérn 5/2). Its parameters are all there are: those with one entry a column have one here too,
    and others, such as the variance, which is that of the sum, serve all groups. Params need no order.
    """
    base = matern52() if base is None else base
    check_kernel(base)
    return _fixed(tuple(tuple(index(column) for column in group) for group in groups), base)


@cache
def _fixed(groups: Groups, base: Kernel) -> SumKernel:
    check_groups(groups)
    ordered = sorted(groups, key=len, reverse=True)
    order = np.asarray([column for group in ordered for column in group])
    free = grouped(tuple(len(group) for group in ordered), base)

    def known(function):
        return lambda params, a, b: function({**params, ORDER: order}, a, b)

    def rebuild(change, categories):
        if not any(categories):
            return _fixed(groups, base)
        inputs = inputs_of(categories)
        wider = tuple(tuple(i for column in group for i in inputs[column]) for group in groups)
        return one_hot(categories, _fixed(wider, base))

    parts, value, matrix = known(free.parts), known(free.value), known(free.gram)
    return SumKernel(free.prior, value, matrix, None, rebuild, free.check, parts)


@cache
def grouped(sizes: tuple[int, ...], base: Kernel) -> SumKernel:
    """`additive` with the grouping among its parameters: params["order"] (d,), cut into groups of these sizes, largest first.

    Its prior leaves the order out: that is chosen (`regroup`), not inferred. Numbers only: a Choice has no place of its own.
    """
    check_kernel(base)
    if not sizes or min(sizes) < 1 or list(sizes) != sorted(sizes, reverse=True):
        raise ValueError(f"expected the sizes of one or more groups, at least 1, largest first; got {sizes}")
    d, g, widest = sum(sizes), len(sizes), sizes[0]
    per_column = jax.tree.map(lambda each: each.shape() == (widest,), base.prior(widest), is_leaf=is_distribution)

    def check_width(width: int) -> None:
        if width != d:
            raise ValueError(f"these groups are of {d} columns; the points have {width}")

    def prior(width: int) -> Params:
        """That of a group: a term is no smoother for there being others."""
        check_width(width)
        return jax.tree.map(lambda own, each: _expanded(each, d) if own else each, per_column, base.prior(widest))

    def parts(params: Params, a: Array, b: Array) -> Array:
        check_width(a.shape[1])
        rest = {name: params[name] for name in per_column}
        return jnp.concatenate([alike(rest, columns, a, b) for columns in by_size(params[ORDER], sizes)]) / g

    def alike(params: Params, columns: Array, a: Array, b: Array) -> Array:
        """The Grams (k, n, m) of groups (k, size) of one size."""

        def one(chosen: Array) -> Array:
            own = jax.tree.map(lambda own, leaf: _entries(own, leaf, chosen), per_column, params)
            return gram(base, own, a[:, chosen], b[:, chosen])

        return jax.vmap(one)(columns)

    def value(params: Params, a: Array, b: Array) -> Array:
        return parts(params, a[None], b[None]).sum()

    def matrix(params: Params, a: Array, b: Array) -> Array:
        return parts(params, a, b).sum(axis=0)

    return SumKernel(prior, value, matrix, None, None, lambda x: check_width(x.shape[1]), parts)


def _expanded(distribution: Distribution, d: int) -> Distribution:
    if not isinstance(distribution, ExpandedDistribution) or distribution.base_dist.shape() != ():
        raise ValueError("columns with priors of their own cannot be grouped anew; expand([d]) makes one prior for all")
    return distribution.base_dist.expand([d])


def _entries(own: bool, leaf: ArrayLike, columns: Array) -> ArrayLike:
    return jnp.asarray(leaf)[columns] if own and jnp.ndim(leaf) else leaf


def by_size(order: ArrayLike, sizes: Sequence[int]) -> list[Array]:
    """The order (d,) of the columns as groups (k, size), one array a size."""
    start, arrays, order = 0, [], jnp.asarray(order)
    for size in dict.fromkeys(sizes):
        end = start + size * sizes.count(size)
        arrays.append(order[start:end].reshape(-1, size))
        start = end
    return arrays


def groups_of(order: ArrayLike, sizes: Sequence[int]) -> Groups:
    """The groups that an order stands for, sorted: for people and comparisons, outside `jit` alone."""
    rows = [group for alike in by_size(order, sizes) for group in np.asarray(alike).tolist()]
    return tuple(sorted(tuple(sorted(group)) for group in rows))


def owners(order: ArrayLike, sizes: Sequence[int]) -> Array:
    """The group (d,) of each column."""
    which = np.repeat(np.arange(len(sizes)), sizes)
    return jnp.zeros(len(which), int).at[jnp.asarray(order)].set(which)


def even_sizes(d: int, size: int) -> tuple[int, ...]:
    """Groups of `size` columns, and one of the rest."""
    if not 1 <= size <= d:
        raise ValueError(f"a group has at least 1 and at most {d} columns; got {size}")
    rest = d % size
    return (size,) * (d // size) + ((rest,) if rest else ())


def check_groups(groups: Groups, d: int | None = None) -> None:
    """A ValueError where the groups are not a partition of the columns 0 … d − 1."""
    flat = [column for group in groups for column in group]
    if not flat or not all(groups):
        raise ValueError(f"expected one or more groups, each of one or more columns; got {groups}")
    d = len(set(flat)) if d is None else d
    twice = sorted(column for column in set(flat) if flat.count(column) > 1)
    beyond = sorted({column for column in flat if not 0 <= column < d})
    missing = sorted(set(range(d)) - set(flat))
    if twice:
        raise ValueError(f"groups are disjoint; column {twice[0]} is in more than one of {groups}")
    if beyond:
        raise ValueError(f"columns are 0 … {d - 1}, each in a group; got column {beyond[0]} in {groups}")
    if missing:
        raise ValueError(f"every column is in a group, be it one of its own; column {missing[0]} is in none of {groups}")


def predict_parts(posterior: Posterior, x: ArrayLike) -> Prediction:
    """Mean and standard deviation (g, m) of each term of the sum at x (m, d), given all the data.

    The means add up to that of `gp.predict` (with the mean function zero); the variances do not: terms are known together.
    Kandasamy et al. 2015, Section 3.2.
    """
    points, kernel = jnp.asarray(x), posterior.kernel
    if not isinstance(kernel, SumKernel):
        raise ValueError("only a kernel that is a sum has parts: gp.additive")
    if points.ndim != 2 or posterior.alpha.ndim != 1:
        raise ValueError(f"expected one posterior and points (m, d); got {posterior.alpha.shape} and {points.shape}")
    return _predict_parts(posterior, points)


@jax.jit
def _predict_parts(posterior: Posterior, x: Array) -> Prediction:
    parts, params, data = cast(SumKernel, posterior.kernel).terms, posterior.params, posterior.data
    cross = jnp.where(data.mask[:, 0][None, :, None], parts(params, data.x, x), 0.0)  # (g, n, m)
    g, n, m = cross.shape
    white = solve_lower(posterior.lower, jnp.swapaxes(cross, 0, 1).reshape(n, g * m)).reshape(n, g, m)
    prior = jax.vmap(lambda point: parts(params, point[None], point[None])[:, 0, 0])(x).T
    left = jnp.maximum(prior - jnp.sum(white * white, axis=0), _ROUNDING * jnp.finfo(prior.dtype).eps * prior)
    return Prediction(jnp.einsum("n,gnm->gm", posterior.alpha, cross), safe_sqrt(left))


def regroup(
    key: Array, evidence: Callable[[Array], Array], order: Array, sizes: Sequence[int], *, draws: int = 8, moves: int = 100
) -> tuple[Array, Array]:
    """The most probable order (d,) met, and its evidence (): the given one, `draws` random ones, and a chain from the best.

    evidence: order (d,) -> (), the logarithm. Random groupings are what Kandasamy et al. 2015, Section 4.2, choose among. The
    chain is that of Gardner et al. 2017 for groups of fixed sizes: `moves` Metropolis steps, each the exchange of two columns
    of different groups. There are too many groupings to meet a good one by chance, and few exchanges away is a better one.
    """
    d = sum(sizes)
    if len(sizes) == 1:
        return order, evidence(order)
    widths = np.repeat(sizes, sizes)  # of the group at each position, and where it begins
    starts = np.repeat(np.cumsum((0, *sizes))[:-1], sizes)
    # all that is random in one draw: several would take longer to compile than all the rest
    chance = jax.random.uniform(key, (draws * d + 3 * moves,))

    def value(order: Array) -> Array:
        found = evidence(order)
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    def step(carry: tuple[Array, Array, Array, Array], chance: Array):
        order, here, best, top = carry
        first = jnp.floor(chance[0] * d).astype(int)
        width, start = jnp.asarray(widths)[first], jnp.asarray(starts)[first]
        second = jnp.floor(chance[1] * (d - width)).astype(int)
        second = second + jnp.where(second >= start, width, 0)  # past the group of the first
        other = order.at[first].set(order[second]).at[second].set(order[first])
        there = value(other)
        taken = jnp.log1p(-chance[2]) < there - here
        order, here = jnp.where(taken, other, order), jnp.where(taken, there, here)
        higher = here > top
        return (order, here, jnp.where(higher, order, best), jnp.where(higher, here, top)), None

    drawn = jnp.argsort(chance[: draws * d].reshape(draws, d), axis=1).astype(order.dtype)
    begun = jnp.concatenate([order[None], drawn])
    values = jax.lax.map(value, begun)
    best = jnp.argmax(values)
    start = begun[best], values[best]
    (_, _, order, top), _ = jax.lax.scan(step, (*start, *start), chance[draws * d :].reshape(moves, 3))
    return order, top
