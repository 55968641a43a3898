"""Training data of each ensemble member: all rows, a bootstrap sample, random inputs, or a region.

Members that train on different data make different errors, which lowers the correlation in Wilton,
eq. 5, and the variance of the average. With regions of the input space, no network has to fit both
sides of a jump (Wilton, future work).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bonas.nets.epoch import row_weights
from bonas.nets.settings import Examples


class MemberData(NamedTuple):
    """The part of the data that one member trains on."""

    weight: Array  # (n,) weight of each training row
    columns: Array  # (inputs,) bool: the inputs that the member is connected to
    # () int: the group of members that predict together; see Subsampling.group
    group: Array


@jax.tree_util.register_static
@dataclass(frozen=True)
class Subsampling:
    """Base class of rules that select the training data of each member; it selects all data.

    Subclass it and override any of the three methods.
    """

    def plan(self, data: Examples, members: Int[Array, ""]) -> Any:
        """Return a pytree that all members share, such as the regions of the input space.

        Args:
            data: Training rows.
            members: Number of members in use.
        """
        return ()

    def member(
        self, key: PRNGKeyArray, number: Int[Array, ""], plan: Any, data: Examples
    ) -> MemberData:
        """Select the training data of one member.

        Args:
            key: Random key of the member.
            number: Number of the member, from 0.
            plan: Result of `plan`.
            data: Training rows.
        """
        return _member(data)

    def group(self, plan: Any, x: Float[Array, "m inputs"]) -> Int[Array, " m"]:
        """Return the number of the group of members that predicts at each point."""
        return jnp.zeros(len(x), jnp.int32)


@jax.tree_util.register_static
@dataclass(frozen=True)
class Bootstrap(Subsampling):
    """Bootstrap sampling: rows are drawn with replacement, in proportion to their weights."""

    def member(
        self, key: PRNGKeyArray, number: Int[Array, ""], plan: Any, data: Examples
    ) -> MemberData:
        weight = row_weights(data)
        n = len(weight)
        rows = jnp.sum(weight > 0.0)
        drawn = jax.random.choice(key, n, (n,), p=weight / jnp.sum(weight))
        counted = jnp.where(jnp.arange(n) < rows, 1.0, 0.0).astype(weight.dtype)
        return _member(data, weight=jnp.zeros_like(weight).at[drawn].add(counted))


@jax.tree_util.register_static
@dataclass(frozen=True)
class RandomFeatures(Subsampling):
    """Random subspaces: each member uses a random fraction `share` of the inputs, at least one."""

    share: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ValueError(f"share must be above 0 and at most 1; got {self.share}")

    def member(
        self, key: PRNGKeyArray, number: Int[Array, ""], plan: Any, data: Examples
    ) -> MemberData:
        inputs = data.x.shape[1]
        places = jnp.argsort(jax.random.bits(key, (inputs,)))
        return _member(data, columns=places < max(1, round(self.share * inputs)))


class Boxes(NamedTuple):
    """Regions of the input space: low < x <= high in every column. Unused boxes are empty."""

    low: Array  # (k, inputs)
    high: Array  # (k, inputs)
    used: Array  # () int: number of boxes in use


@jax.tree_util.register_static
@dataclass(frozen=True)
class Regions(Subsampling):
    """Boxes of the input space, one for each member; see `regions`."""

    cells: int = 4
    overlap: float = 0.0
    min_rows: int = 8
    fit_rows: int = 14
    min_jump: float = 3.5

    def __post_init__(self) -> None:
        valid = (
            self.cells >= 1 and self.min_rows >= 4 and self.fit_rows >= self.min_rows
        )
        if not valid or not (self.overlap >= 0.0 and self.min_jump >= 0.0):
            raise ValueError(
                "cells must be >= 1, min_rows >= 4, fit_rows >= min_rows, overlap >= 0 and "
                f"min_jump >= 0; got cells={self.cells}, min_rows={self.min_rows}, "
                f"fit_rows={self.fit_rows}, overlap={self.overlap}, min_jump={self.min_jump}"
            )

    def plan(self, data: Examples, members: Int[Array, ""]) -> tuple[Boxes, Array]:
        margin = self.overlap * jnp.std(
            data.x, axis=0, where=(row_weights(data) > 0.0)[:, None]
        )
        return _split_boxes(self, data, jnp.minimum(members, self.cells)), margin

    def member(
        self, key: PRNGKeyArray, number: Int[Array, ""], plan: Any, data: Examples
    ) -> MemberData:
        (low, high, used), margin = plan
        box = number % used
        above = data.x > low[box][None, :] - margin[None, :]
        below = data.x <= high[box][None, :] + margin[None, :]
        inside = above & below
        weight = jnp.where(inside.all(axis=1), row_weights(data), 0.0)
        return _member(data, weight=weight, group=box)

    def group(self, plan: Any, x: Float[Array, "m inputs"]) -> Int[Array, " m"]:
        boxes, _ = plan
        return jnp.argmax(_inside(boxes, x), axis=0).astype(jnp.int32)


# All rows and inputs for every member. Members differ in their initial and their missing weights
# (Wilton, Section 3.3).
all_data = Subsampling()
# Bagging: n of n rows, drawn with replacement.
bootstrap = Bootstrap()


def random_features(share: float = 0.5) -> RandomFeatures:
    """Return a rule that connects each member to a random fraction of the inputs, at least one."""
    return RandomFeatures(share)


def regions(
    cells: int = 4,
    *,
    overlap: float = 0.0,
    min_rows: int = 8,
    fit_rows: int = 14,
    min_jump: float = 3.5,
) -> Regions:
    """Return a rule that splits the input space at jumps and trains each member in one box.

    The boxes are the leaves of a tree. Parabolas are fitted to the rows on either side of a point;
    if the function is smooth, they agree there. The next split is at the point and column with the
    largest difference between them, in standard errors. Members are assigned to the boxes in turn,
    and there are never more boxes than members.

    Args:
        cells: Largest number of boxes.
        overlap: Width of the margin around a box whose rows a member also uses, in standard
            deviations of each input. It improves fits of smooth functions and worsens fits at
            jumps.
        min_rows: Smallest number of rows in a box.
        fit_rows: Number of rows that each parabola is fitted to.
        min_jump: Smallest difference that causes a split, in standard errors.
    """
    return Regions(cells, overlap, min_rows, fit_rows, min_jump)


def _member(
    data: Examples,
    weight: Array | None = None,
    columns: Array | None = None,
    group: Array | None = None,
) -> MemberData:
    """Build the data of one member; by default all rows and inputs, in group 0."""
    return MemberData(
        weight=row_weights(data) if weight is None else weight,
        columns=jnp.ones(data.x.shape[1], bool) if columns is None else columns,
        group=jnp.zeros((), jnp.int32) if group is None else group.astype(jnp.int32),
    )


def _inside(boxes: Boxes, x: Array) -> Array:
    """Return whether each box contains each row of x (m, inputs), (k, m)."""
    return ((x[None] > boxes.low[:, None]) & (x[None] <= boxes.high[:, None])).all(
        axis=2
    )


def _split_boxes(regions: Regions, data: Examples, max_boxes: Array) -> Boxes:
    """Split the input space into at most `max_boxes` boxes, at the largest jump first."""
    cells = regions.cells
    empty = jnp.full((cells, data.x.shape[1]), jnp.inf, data.x.dtype)
    whole = Boxes(empty.at[0].set(-jnp.inf), empty, jnp.ones((), jnp.int32))
    find_jumps = partial(_jumps, min_rows=regions.min_rows, fit_rows=regions.fit_rows)

    def split(i: Array, boxes: Boxes) -> Boxes:
        inside = _inside(boxes, data.x) & (row_weights(data) > 0.0)[None, :]
        by_column = jax.vmap(find_jumps, (1, None, None))
        # Both (k, inputs, n).
        gaps, places = jax.vmap(by_column, (None, None, 0))(data.x, data.y, inside)
        best = jnp.argmax(gaps)
        leaf, column, _ = jnp.unravel_index(best, gaps.shape)
        place = places.reshape(-1)[best]
        halves = Boxes(
            low=boxes.low.at[boxes.used].set(boxes.low[leaf].at[column].set(place)),
            high=boxes.high.at[boxes.used]
            .set(boxes.high[leaf])
            .at[leaf, column]
            .set(place),
            used=boxes.used + 1,
        )
        accept = (boxes.used < max_boxes) & (gaps.reshape(-1)[best] > regions.min_jump)
        return jax.tree.map(lambda new, old: jnp.where(accept, new, old), halves, boxes)

    return jax.lax.fori_loop(1, cells, split, whole)


def _jumps(
    column: Array, y: Array, inside: Array, *, min_rows: int, fit_rows: int
) -> tuple[Array, Array]:
    """Measure the jump of y between consecutive rows in the order of a column (n,).

    Returns:
        The difference (n,) between the parabolas on either side, in standard errors, -1 where too
        few rows are on one side; and the positions (n,) half-way between consecutive rows.
    """
    order = jnp.argsort(jnp.where(inside, column, jnp.inf))
    u = column[order]
    v = y[order]
    n = jnp.sum(inside)
    i = jnp.arange(len(u))
    near = jnp.arange(fit_rows)
    places = 0.5 * (u + u[jnp.minimum(i + 1, len(u) - 1)])
    fit = partial(_fit_parabolas, u, v, n, places)
    left = fit(i[:, None] - near[None, :])
    right = fit(i[:, None] + 1 + near[None, :])
    freedom = jnp.maximum(left.rows + right.rows - 6, 1).astype(u.dtype) * y.shape[1]
    noise = jnp.maximum((left.error + right.error) / freedom, jnp.finfo(u.dtype).tiny)
    square = jnp.mean((right.height - left.height) ** 2, axis=1)
    gap = jnp.sqrt(square / (noise * (left.variance + right.variance)))
    allowed = (i + 1 >= min_rows) & (n - i - 1 >= min_rows) & (places > u)
    return jnp.where(allowed, gap, -1.0), places


class _Parabolas(NamedTuple):
    """Parabolas fitted at n positions."""

    height: Array  # (n, c) value at the position
    variance: Array  # (n,) variance of the height for noise of variance 1
    error: Array  # (n,) sum of squared residuals
    rows: Array  # (n,) int: rows used


def _fit_parabolas(
    u: Array, v: Array, n: Array, places: Array, rows: Array
) -> _Parabolas:
    """Fit a parabola at each position to v (n, c) at rows (n, fit_rows) of u (n,)."""
    exists = (rows >= 0) & (rows < n)
    fit_rows = rows.shape[1]
    rows = jnp.clip(rows, 0, len(u) - 1)
    x = jnp.where(exists, u[rows] - places[:, None], 0.0)
    x = x / jnp.maximum(jnp.max(jnp.abs(x), axis=1), jnp.finfo(u.dtype).tiny)[:, None]
    powers = jnp.where(
        exists[..., None], jnp.stack([jnp.ones_like(x), x, x**2], axis=-1), 0.0
    )
    targets = jnp.where(exists[..., None], v[rows], 0.0)
    # Rows at a single position do not define a parabola.
    ridge = jnp.finfo(u.dtype).eps * fit_rows * jnp.eye(3, dtype=u.dtype)
    inverse = jnp.linalg.inv(jnp.einsum("nwi,nwj->nij", powers, powers) + ridge[None])
    weights = jnp.einsum("nij,nwj,nwc->nic", inverse, powers, targets)
    error = jnp.sum((targets - powers @ weights) ** 2, axis=(1, 2))
    return _Parabolas(weights[:, 0], inverse[:, 0, 0], error, jnp.sum(exists, axis=1))
