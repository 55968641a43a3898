"""Where an acquisition is highest: candidates over the whole space and around the best points, the most promising refined."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.stats
from jax import Array

from bonas.spaces import Float, Space

# How far copies of the best points are moved, as shares of the range: from a tenth down to Spearmint's 0.001 (R-S7).
_NEAR = (0.1, 0.03, 0.01, 0.001)
# A spread of scores below this, relative to their size, tells nothing about where to go.
_FLAT = 1e-9
# Points that are drawn jointly: the Cholesky of their covariance takes some milliseconds, of twice as many eight times that.
_JOINT = 384


class Pick(NamedTuple):
    """The point chosen and what there is to say about it."""

    x: Array  # (d,)
    score: Array  # ()
    flat: Array  # () bool
    duplicates: Array  # () int: better candidates passed over because they were tried before


@jax.tree_util.register_static
@dataclass(frozen=True)
class Maximiser:
    """Where to look for the maximum of a score. Static: it may be passed to any jitted function.

    maximise: (key, score, around (k, d), tried (n, d), counts (n,)) -> Pick; score maps (m, d) to (m,).
    candidates: (key, around (k, d)) -> (m, d), few enough to draw jointly: for Thompson sampling and its like.
    """

    maximise: Callable[..., Pick]
    candidates: Callable[[Array, Array], Array]


def sobol(n: int, d: int) -> np.ndarray:
    """The first n points (n, d) of the Sobol sequence, a constant; shift it at random before use (`shifted`)."""
    return scipy.stats.qmc.Sobol(d, scramble=False).random(1 << max(n - 1, 0).bit_length())[:n]


def shifted(key: Array, points: np.ndarray) -> Array:
    """Points in the unit cube moved by one random vector, around the edges (Cranley & Patterson 1976)."""
    return (jnp.asarray(points) + jax.random.uniform(key, (1, points.shape[1]))) % 1.0


@cache
def refined(
    space: Space, *, candidates: int | None = None, near: int | None = None, starts: int | None = None, steps: int = 10
) -> Maximiser:
    """Sobol candidates and moved copies of the best points; the best of each of `starts` groups of them climbs.

    Without numbers there are 64 candidates a column, at most 1024, a quarter as many copies, and two starts a column, at
    least 4 and at most 10. Climbing is `steps` of Adam inside the box. Only real columns climb; integers and options take
    steps to their neighbours' instead, before. Groups are faster to find than the best of all, and lie further apart.
    """
    candidates = min(64 * space.dim, 1024) if candidates is None else candidates
    near = max(candidates // 4, 1) if near is None else near
    starts = min(max(2 * space.dim, 4), 10) if starts is None else starts
    if min(candidates, near, starts, steps) < 1 or starts > candidates:
        raise ValueError(
            f"every count is at least 1 and starts at most candidates; got {candidates}, {near}, {starts}, {steps}"
        )
    grid = sobol(candidates, space.dim)
    climbs = np.array([isinstance(p, Float) and p.low < p.high for p in space.parameters.values()])
    scales = np.array(_NEAR)[np.arange(near) % len(_NEAR)][:, None]

    def spread(key, around, far=grid, moves=scales):
        """Points over the whole space, and copies of the best ones moved a little."""
        far_key, near_key = jax.random.split(key)
        base = around[np.arange(len(moves)) // len(_NEAR) % len(around)]  # each point with each scale
        copies = space.snap(jnp.clip(base + moves * jax.random.normal(near_key, base.shape), 0.0, 1.0))
        return jnp.concatenate([space.spread(shifted(far_key, far)), copies])

    def climb(score, points):
        """The best that projected Adam on the live real columns of points (k, d) comes across, and its scores (k,)."""
        adam, slope = (
            optax.adam(0.01),
            jax.value_and_grad(lambda z: (lambda each: (-jnp.sum(each), each))(score(z)), has_aux=True),
        )
        live = climbs[None, :] & space.active(points)

        def step(carry, _):
            z, state, best, top = carry
            (_, scores), gradient = slope(z)
            better = _finite(scores) > top
            best, top = jnp.where(better[:, None], z, best), jnp.where(better, scores, top)
            move, state = adam.update(jnp.where(live, jnp.nan_to_num(gradient), 0.0), state)
            return (jnp.clip(z + jnp.where(live, move, 0.0), 0.0, 1.0), state, best, top), None

        nothing = jnp.full(len(points), -jnp.inf, points.dtype)
        (_, _, best, top), _ = jax.lax.scan(step, (points, adam.init(points), points, nothing), None, length=steps + 1)
        return best, top

    def maximise(key, score, around, tried, counts) -> Pick:
        points = spread(key, around)
        scores = _finite(score(points))
        best = points[_best_of_groups(scores, starts)]
        if not climbs.all():
            best = jnp.concatenate([best, jax.vmap(space.neighbours)(best).reshape(-1, space.dim)])
            best = best[jax.lax.top_k(_finite(score(best)), starts)[1]]
        best, found = climb(score, best)
        if not climbs.all():  # points may have been tried: then the next best are wanted
            best, found = jnp.concatenate([best, points]), jnp.concatenate([found, scores])
        return choose(best, found, tried, counts)._replace(flat=_is_flat(scores))

    def few(key, around):
        share = _JOINT // 2
        return spread(key, around, grid[:share], scales[:share])

    return Maximiser(maximise, few)


@cache
def uniform(space: Space, *, candidates: int = 1000) -> Maximiser:
    """The best of uniform random candidates: Twist, Algorithm 4; Wilton 2020 (W-A3)."""

    def maximise(key, score, around, tried, counts) -> Pick:
        points = space.sample(key, candidates)
        return choose(points, _finite(score(points)), tried, counts)

    return Maximiser(maximise, lambda key, around: space.sample(key, min(candidates, _JOINT)))


@cache
def enumerated(space: Space) -> Maximiser:
    """The best point of a finite space, by going through all of them."""
    everything = np.asarray(space.points())

    def maximise(key, score, around, tried, counts) -> Pick:
        points = jax.random.permutation(key, jnp.asarray(everything))  # ties fall at random
        return choose(points, _finite(score(points)), tried, counts)

    def few(key, around):
        return jax.random.permutation(key, jnp.asarray(everything))[:_JOINT]

    return Maximiser(maximise, few)


def choose(points: Array, scores: Array, tried: Array, counts: Array) -> Pick:
    """The best-scored of points (m, d) that is none of the rows tried (n, d) that count (n,); the best one if all are."""
    gap = jnp.max(jnp.abs(points[:, None, :] - tried[None, :, :]), axis=-1)
    known = ((gap < max(_SAME, 8 * float(jnp.finfo(gap.dtype).eps))) & counts[None, :]).any(axis=1)
    fresh = jnp.where(known & ~known.all(), -jnp.inf, scores)
    i = jnp.argmax(fresh)
    return Pick(x=points[i], score=scores[i], flat=_is_flat(scores), duplicates=jnp.sum(known & (scores > fresh[i])))


def _is_flat(scores: Array) -> Array:
    """Whether scores (m,) are all the same but for rounding; −inf everywhere is flat too."""
    return ~(jnp.max(scores) - jnp.min(scores) > _FLAT * jnp.maximum(jnp.max(jnp.abs(scores)), 1.0))


def _best_of_groups(scores: Array, k: int) -> Array:
    """Positions (k,) of the best in each of k groups of neighbours in the order of scores (m,)."""
    size = -(-len(scores) // k)
    groups = jnp.pad(scores, (0, k * size - len(scores)), constant_values=-jnp.inf).reshape(k, size)
    return jnp.minimum(jnp.arange(k) * size + jnp.argmax(groups, axis=1), len(scores) - 1)


# Columns of integers differ by at least 1e-7 of the range; rounding of the same integer by much less. What comes back
# through a configuration is less exact: `bonas.search.record.SAME`.
_SAME = 1e-9


def _finite(scores: Array) -> Array:
    """NaN never wins."""
    return jnp.where(jnp.isnan(scores), -jnp.inf, scores)
