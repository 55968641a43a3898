"""What each member of an ensemble is trained on: everything, a bootstrap sample, some of the inputs, or a piece of their space.

Members that see different things err differently: the correlation in Wilton, eq. 5, falls, and with it the least variance
that averaging can reach. Pieces are for functions that jump: no network has to bend where none of its rows is (W-F1).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.nets.settings import Examples


class View(NamedTuple):
    """What one member sees."""

    weight: Array  # (n,) how much each training row counts
    columns: Array  # (inputs,) bool: the inputs that it is connected to
    group: Array  # () int: where it answers; see Views.group


@jax.tree_util.register_static
@dataclass(frozen=True)
class Views:
    """What members see. Static: it may be passed to any jitted function.

    plan: (Examples, members ()) -> what the members share, such as the pieces; any pytree.
    view: (key, number (), plan, Examples) -> View of the member of that number.
    group: (plan, x (m, inputs)) -> (m,) int, the group of members that answers at each point.
    """

    plan: Callable[[Examples, Array], Any]
    view: Callable[[Array, Array, Any, Examples], View]
    group: Callable[[Any, Array], Array]


class Boxes(NamedTuple):
    """Pieces of the input space, x in (low, high] by column; one that is not used holds nothing."""

    low: Array  # (k, inputs)
    high: Array  # (k, inputs)
    used: Array  # () int


def _weight(data: Examples) -> Array:
    return jnp.ones(len(data.x), data.x.dtype) if data.weight is None else data.weight.astype(data.x.dtype)


def _no_plan(data: Examples, members: Array) -> tuple:
    return ()


def _one_group(plan: Any, x: Array) -> Array:
    return jnp.zeros(len(x), jnp.int32)


def _view(data: Examples, weight: Array | None = None, columns: Array | None = None, group: Array | None = None) -> View:
    return View(
        weight=_weight(data) if weight is None else weight,
        columns=jnp.ones(data.x.shape[1], bool) if columns is None else columns,
        group=jnp.zeros((), jnp.int32) if group is None else group.astype(jnp.int32),
    )


# Every row and every input, as Wilton's members: they differ by where they start and by the weights they lost (W-D4).
everything = Views(_no_plan, lambda key, number, plan, data: _view(data), _one_group)


def _resampled(key: Array, number: Array, plan: Any, data: Examples) -> View:
    weight = _weight(data)
    n, rows = len(weight), jnp.sum(weight > 0.0)
    drawn = jax.random.choice(key, n, (n,), p=weight / jnp.sum(weight))
    counts = jnp.zeros_like(weight).at[drawn].add(jnp.where(jnp.arange(n) < rows, 1.0, 0.0).astype(weight.dtype))
    return _view(data, weight=counts)


# Each member on as many rows as there are, drawn with replacement by their weights: bagging.
bootstrap = Views(_no_plan, _resampled, _one_group)


@cache
def random_features(share: float = 0.5) -> Views:
    """Each member sees a random share of the inputs, at least one: the weights from the others do not exist."""
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share is a part of the inputs, above 0 and at most 1; got {share}")

    def view(key, number, plan, data):
        inputs = data.x.shape[1]
        places = jnp.argsort(jax.random.bits(key, (inputs,)))
        return _view(data, columns=places < max(1, round(share * inputs)))

    return Views(_no_plan, view, _one_group)


@cache
def pieces(cells: int = 4, *, overlap: float = 0.0, least: int = 8, window: int = 14, surprise: float = 3.5) -> Views:
    """Members in turn take one of at most `cells` boxes of the input space, see its rows, and alone answer there (W-F1).

    The boxes are the leaves of a tree. Where a function is smooth, parabolas through the next rows on either side of a
    place meet there; the next split is in the leaf, the column and the place where they miss each other most, in standard
    errors of the gap, and there is none where that is less than `surprise`. There are never more boxes than members.

    overlap: how far beyond its box a member sees, in standard deviations of each input: a help where the function goes on
        smoothly, and a harm where it jumps.
    least: rows in a box. window: rows that a parabola goes through.
    """
    if cells < 1 or least < 4 or window < least or not (overlap >= 0.0 and surprise >= 0.0):
        raise ValueError(
            "expected cells >= 1, least >= 4, window >= least, overlap >= 0 and surprise >= 0; "
            f"got {cells}, {least}, {window}, {overlap} and {surprise}"
        )

    def plan(data, members):
        margin = overlap * jnp.std(data.x, axis=0, where=(_weight(data) > 0.0)[:, None])
        return _boxes(data, jnp.minimum(members, cells), cells, least, window, surprise), margin

    def view(key, number, plan, data):
        (low, high, used), margin = plan
        mine = number % used
        inside = (data.x > low[mine][None, :] - margin[None, :]) & (data.x <= high[mine][None, :] + margin[None, :])
        return _view(data, weight=jnp.where(inside.all(axis=1), _weight(data), 0.0), group=mine)

    return Views(plan, view, lambda plan, x: jnp.argmax(_within(plan[0], x), axis=0).astype(jnp.int32))


def _within(boxes: Boxes, x: Array) -> Array:
    """Whether each box holds each row x (m, inputs): (k, m)."""
    return ((x[None] > boxes.low[:, None]) & (x[None] <= boxes.high[:, None])).all(axis=2)


def _boxes(data: Examples, most: Array, cells: int, least: int, window: int, surprise: float) -> Boxes:
    """At most `most` boxes, split at the most surprising jump first."""
    none = jnp.full((cells, data.x.shape[1]), jnp.inf, data.x.dtype)
    whole = Boxes(none.at[0].set(-jnp.inf), none, jnp.ones((), jnp.int32))

    def split(i, boxes):
        inside = _within(boxes, data.x) & (_weight(data) > 0.0)[None, :]
        along = jax.vmap(partial(_jumps, least=least, window=window), (1, None, None))
        gaps, places = jax.vmap(along, (None, None, 0))(data.x, data.y, inside)  # (k, inputs, n)
        at = jnp.argmax(gaps)
        leaf, column, _ = jnp.unravel_index(at, gaps.shape)
        place = places.reshape(-1)[at]
        parted = Boxes(
            low=boxes.low.at[boxes.used].set(boxes.low[leaf].at[column].set(place)),
            high=boxes.high.at[boxes.used].set(boxes.high[leaf]).at[leaf, column].set(place),
            used=boxes.used + 1,
        )
        worth = (boxes.used < most) & (gaps.reshape(-1)[at] > surprise)
        return jax.tree.map(lambda new, old: jnp.where(worth, new, old), parted, boxes)

    return jax.lax.fori_loop(1, cells, split, whole)


def _jumps(column: Array, y: Array, inside: Array, *, least: int, window: int) -> tuple[Array, Array]:
    """The gap (n,) between parabolas through rows inside on either side of each place, in standard errors; -1 at the ends.

    The i-th place, of places (n,), is half-way between the i-th and the next row in the order of the column (n,).
    """
    order = jnp.argsort(jnp.where(inside, column, jnp.inf))
    u, v, n = column[order], y[order], jnp.sum(inside)
    i, near = jnp.arange(len(u)), jnp.arange(window)
    places = 0.5 * (u + u[jnp.minimum(i + 1, len(u) - 1)])

    def parabola(rows):
        """Height (n, c) at the places, its variance (n,) for noise of variance 1, squared error (n,), rows used (n,)."""
        there, rows = (rows >= 0) & (rows < n), jnp.clip(rows, 0, len(u) - 1)
        x = jnp.where(there, u[rows] - places[:, None], 0.0)
        x = x / jnp.maximum(jnp.max(jnp.abs(x), axis=1), jnp.finfo(u.dtype).tiny)[:, None]
        powers = jnp.where(there[..., None], jnp.stack([jnp.ones_like(x), x, x**2], axis=-1), 0.0)
        targets = jnp.where(there[..., None], v[rows], 0.0)
        ridge = jnp.finfo(u.dtype).eps * window * jnp.eye(3, dtype=u.dtype)  # rows at one place define no parabola
        inverse = jnp.linalg.inv(jnp.einsum("nwi,nwj->nij", powers, powers) + ridge[None])
        weights = jnp.einsum("nij,nwj,nwc->nic", inverse, powers, targets)
        error = jnp.sum((targets - powers @ weights) ** 2, axis=(1, 2))
        return weights[:, 0], inverse[:, 0, 0], error, jnp.sum(there, axis=1)

    left, right = parabola(i[:, None] - near[None, :]), parabola(i[:, None] + 1 + near[None, :])
    freedom = jnp.maximum(left[3] + right[3] - 6, 1).astype(u.dtype) * y.shape[1]
    noise = jnp.maximum((left[2] + right[2]) / freedom, jnp.finfo(u.dtype).tiny)
    gap = jnp.sqrt(jnp.mean((right[0] - left[0]) ** 2, axis=1) / (noise * (left[1] + right[1])))
    parts = (i + 1 >= least) & (n - i - 1 >= least) & (places > u)
    return jnp.where(parts, gap, -1.0), places
