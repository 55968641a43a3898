"""Sums of functions of few columns each, f(x) = Σ_j f_j(x_j), for search in many dimensions.

Agrawal, eq. 4.1; Kandasamy, Schneider & Póczos 2015. The groups of columns are disjoint, and each
term has the same kernel on its own columns. The posterior of the sum gives the posterior of each
term: `predict_parts`.

An unknown grouping is represented by an order of the columns, split into groups of fixed sizes. The
array has one shape for every grouping, so that the code is compiled once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray

from bonas.gp.composite_kernels import CompositeKernel
from bonas.gp.default_kernels import matern52
from bonas.gp.exact import Posterior, Prediction, nonnegative_variance
from bonas.gp.kernel import Kernel, Params, check_kernel, gram, one_hot
from bonas.gp.tied_parameters import Groups, expand_prior, one_hot_groups
from bonas.infer import is_distribution
from bonas.linalg import safe_sqrt, solve_lower

# name of the parameter (d,) that orders the columns by group, if the grouping is not fixed
ORDER = "order"


class SumKernel(Kernel):
    """A kernel that is a sum of terms."""

    one_hot = True

    def parts(self, params: Params, a: Array, b: Array) -> Array:
        """Return the covariance matrices (g, n, m) of the g terms at points a (n, d), b (m, d)."""
        raise NotImplementedError

    def value(self, params: Params, a: Array, b: Array) -> Array:
        return self.parts(params, a[None], b[None]).sum()

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        return self.parts(params, a, b).sum(axis=0)


@dataclass(frozen=True)
class Grouped(SumKernel):
    """A sum over groups of columns, with the grouping among the parameters."""

    sizes: tuple[int, ...]
    base: Kernel

    def prior(self, d: int) -> Params:
        """Return the prior of the base for the largest group, with an entry for every column."""
        self._check_width(d)
        prior: Params = jax.tree.map(
            lambda own, each: expand_prior(each, d) if own else each,
            self._per_column(),
            self.base.prior(self.sizes[0]),
        )
        return prior

    def parts(self, params: Params, a: Array, b: Array) -> Array:
        self._check_width(a.shape[1])
        rest = {name: params[name] for name in self._per_column()}
        groups = by_size(params[ORDER], self.sizes)
        matrices = [self._grams(rest, columns, a, b) for columns in groups]
        return jnp.concatenate(matrices) / len(self.sizes)

    def check(self, x: np.ndarray) -> None:
        self._check_width(x.shape[1])

    def _grams(self, params: Params, columns: Array, a: Array, b: Array) -> Array:
        """Return the matrices (k, n, m) of groups (k, size) of one size."""
        per_column = self._per_column()

        def one(chosen: Array) -> Array:
            own = jax.tree.map(
                lambda own, leaf: _entries(own, leaf, chosen), per_column, params
            )
            return gram(self.base, own, a[:, chosen], b[:, chosen])

        return jax.vmap(one)(columns)

    def _per_column(self) -> dict[str, Any]:
        """Return for each parameter of the base whether it has one entry per column."""
        widest = self.sizes[0]
        prior = self.base.prior(widest)
        per_column: dict[str, Any] = jax.tree.map(
            lambda each: each.shape() == (widest,), prior, is_leaf=is_distribution
        )
        return per_column

    def _check_width(self, d: int) -> None:
        if d != sum(self.sizes):
            raise ValueError(
                f"expected points of {sum(self.sizes)} columns, as in the groups; got {d}"
            )


def grouped(sizes: Sequence[int], base: Kernel) -> SumKernel:
    """Create an additive kernel whose grouping of the columns is a parameter; see `additive`.

    params["order"] (d,) is split into groups of these sizes, largest first. The order has no prior:
    it is chosen by `regroup`, not inferred. Columns must be numbers.
    """
    check_kernel(base)
    sizes = tuple(sizes)
    if not sizes or min(sizes) < 1 or list(sizes) != sorted(sizes, reverse=True):
        raise ValueError(
            "sizes must be one or more integers of at least 1 in descending order; "
            f"got {sizes}"
        )
    return Grouped(sizes, base)


@dataclass(frozen=True)
class Additive(SumKernel, CompositeKernel):
    """A sum over fixed groups of columns."""

    groups: Groups
    base: Kernel

    def prior(self, d: int) -> Params:
        return self._grouped().prior(d)

    def parts(self, params: Params, a: Array, b: Array) -> Array:
        order = np.asarray([column for group in self._ordered() for column in group])
        return self._grouped().parts({**params, ORDER: order}, a, b)

    def check(self, x: np.ndarray) -> None:
        self._grouped().check(x)

    def with_categories(self, categories: tuple[int, ...]) -> Kernel:
        if not self.base.one_hot:
            return self
        return one_hot(
            categories, Additive(one_hot_groups(self.groups, categories), self.base)
        )

    def _ordered(self) -> list[tuple[int, ...]]:
        return sorted(self.groups, key=len, reverse=True)

    def _grouped(self) -> Grouped:
        return Grouped(tuple(len(group) for group in self._ordered()), self.base)


def additive(groups: Iterable[Iterable[int]], base: Kernel | None = None) -> SumKernel:
    """Create an additive kernel, (1/g) Σ_j base(columns of group j) for g groups of columns.

    Args:
        groups: Disjoint groups of column indices that together contain every column.
        base: Any kernel (default: Matérn 5/2). The result has the same parameters: one entry per
            column for parameters such as length scales, and one value for all groups for others,
            such as the variance of the sum.
    """
    base = matern52() if base is None else base
    check_kernel(base)
    chosen = tuple(tuple(index(column) for column in group) for group in groups)
    check_groups(chosen)
    return Additive(chosen, base)


def _entries(own: bool, leaf: ArrayLike, columns: Array) -> ArrayLike:
    return jnp.asarray(leaf)[columns] if own and jnp.ndim(leaf) else leaf


def by_size(order: ArrayLike, sizes: Sequence[int]) -> list[Int[Array, "k size"]]:
    """Split an order (d,) of the columns into groups, one array (k, size) per group size."""
    order = jnp.asarray(order)
    start = 0
    arrays = []
    for size in dict.fromkeys(sizes):
        end = start + size * sizes.count(size)
        arrays.append(order[start:end].reshape(-1, size))
        start = end
    return arrays


def groups_of(order: ArrayLike, sizes: Sequence[int]) -> Groups:
    """Return the groups of an order of the columns as sorted tuples; not under `jit`."""
    rows = [
        group for same in by_size(order, sizes) for group in np.asarray(same).tolist()
    ]
    return tuple(sorted(tuple(sorted(group)) for group in rows))


def owners(order: ArrayLike, sizes: Sequence[int]) -> Int[Array, " d"]:
    """Return the group number (d,) of each column."""
    which = np.repeat(np.arange(len(sizes)), sizes)
    return jnp.zeros(len(which), int).at[jnp.asarray(order)].set(which)


def even_sizes(d: int, size: int) -> tuple[int, ...]:
    """Return the sizes of groups of `size` columns, and of one group of the remaining columns."""
    if not 1 <= size <= d:
        raise ValueError(
            f"a group must have at least 1 and at most {d} columns; got {size}"
        )
    rest = d % size
    return (size,) * (d // size) + ((rest,) if rest else ())


def check_groups(groups: Groups, d: int | None = None) -> None:
    """Raise a ValueError if the groups are not a partition of the columns 0 … d − 1."""
    flat = [column for group in groups for column in group]
    if not flat or not all(groups):
        raise ValueError(
            f"expected one or more groups, each of one or more columns; got {groups}"
        )
    d = len(set(flat)) if d is None else d
    repeated = sorted(column for column in set(flat) if flat.count(column) > 1)
    unknown = sorted({column for column in flat if not 0 <= column < d})
    missing = sorted(set(range(d)) - set(flat))
    if repeated:
        raise ValueError(
            f"groups must be disjoint; column {repeated[0]} is in more than one of {groups}"
        )
    if unknown:
        raise ValueError(
            f"columns must be 0 … {d - 1}, each in a group; got column {unknown[0]} in {groups}"
        )
    if missing:
        raise ValueError(
            f"every column must be in a group, which may have one column; column {missing[0]} is "
            f"not in {groups}"
        )


def predict_parts(posterior: Posterior, x: ArrayLike) -> Prediction:
    """Predict the mean and standard deviation (g, m) of each of g terms of the sum at x (m, d).

    Kandasamy et al. 2015, Section 3.2. With the mean function zero, the sum of the means is the
    mean of `gp.predict`. The variances do not add up, since the terms are correlated given the
    data.
    """
    points = jnp.asarray(x)
    if not isinstance(posterior.kernel, SumKernel):
        raise ValueError(
            "expected the posterior of a kernel made by gp.additive; "
            f"got {type(posterior.kernel).__name__}"
        )
    if points.ndim != 2 or posterior.alpha.ndim != 1:
        raise ValueError(
            "expected one posterior and points (m, d); "
            f"got {posterior.alpha.shape} and {points.shape}"
        )
    prediction: Prediction = _predict_parts(posterior, points)
    return prediction


@jax.jit
def _predict_parts(posterior: Posterior, x: Array) -> Prediction:
    kernel = posterior.kernel
    assert isinstance(kernel, SumKernel)
    params = posterior.params
    data = posterior.data
    observed = data.mask[:, 0][None, :, None]
    cross = jnp.where(observed, kernel.parts(params, data.x, x), 0.0)  # (g, n, m)
    g, n, m = cross.shape
    columns = jnp.swapaxes(cross, 0, 1).reshape(n, g * m)
    white = solve_lower(posterior.lower, columns).reshape(n, g, m)
    prior = jax.vmap(
        lambda point: kernel.parts(params, point[None], point[None])[:, 0, 0]
    )(x).T
    variance = nonnegative_variance(prior, white)
    return Prediction(
        jnp.einsum("n,gnm->gm", posterior.alpha, cross), safe_sqrt(variance)
    )


def regroup(
    key: PRNGKeyArray,
    evidence: Callable[[Array], Array],
    order: Int[Array, " d"],
    sizes: Sequence[int],
    *,
    draws: int = 8,
    moves: int = 100,
) -> tuple[Int[Array, " d"], Float[Array, ""]]:
    """Search for the grouping of the columns with the highest evidence.

    Random groupings are compared as in Kandasamy et al. 2015, Section 4.2. From the best one a
    chain for groups of fixed sizes (Gardner et al. 2017) makes Metropolis steps, each an exchange
    of two columns of different groups. Good groupings are too rare to be drawn at random, but a few
    exchanges often improve one.

    Args:
        key: Random key.
        evidence: Function from an order (d,) to its log evidence ().
        order: The order of the columns to start from; consecutive columns form a group.
        sizes: The sizes of the groups.
        draws: Number of random orders to compare.
        moves: Number of Metropolis steps.

    Returns:
        The best order (d,) and its log evidence ().
    """
    d = sum(sizes)
    if len(sizes) == 1:
        return order, evidence(order)
    # one random draw for all uses: several would take longer to compile than the rest
    uniforms = jax.random.uniform(key, (draws * d + 3 * moves,))

    def value(order: Array) -> Array:
        found = evidence(order)
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    def step(
        carry: tuple[Array, Array, Array, Array], uniforms: Array
    ) -> tuple[Any, None]:
        order, current, best, highest = carry
        proposal = _exchange(order, uniforms, sizes)
        proposed = value(proposal)
        accept = jnp.log1p(-uniforms[2]) < proposed - current
        order = jnp.where(accept, proposal, order)
        current = jnp.where(accept, proposed, current)
        higher = current > highest
        best = jnp.where(higher, order, best)
        return (order, current, best, jnp.where(higher, current, highest)), None

    random = jnp.argsort(uniforms[: draws * d].reshape(draws, d), axis=1).astype(
        order.dtype
    )
    starts = jnp.concatenate([order[None], random])
    values = jax.lax.map(value, starts)
    best = jnp.argmax(values)
    start = starts[best], values[best]
    steps = uniforms[draws * d :].reshape(moves, 3)
    (_, _, order, highest), _ = jax.lax.scan(step, (*start, *start), steps)
    return order, highest


def _exchange(order: Array, uniforms: Array, sizes: Sequence[int]) -> Array:
    """Exchange a random column with a random column of another group."""
    d = sum(sizes)
    widths = np.repeat(sizes, sizes)  # the size of the group at each position
    starts = np.repeat(np.cumsum((0, *sizes))[:-1], sizes)  # and its first position
    first = jnp.floor(uniforms[0] * d).astype(int)
    width = jnp.asarray(widths)[first]
    start = jnp.asarray(starts)[first]
    second = jnp.floor(uniforms[1] * (d - width)).astype(int)
    # skip the group of the first
    second = second + jnp.where(second >= start, width, 0)
    return order.at[first].set(order[second]).at[second].set(order[first])
