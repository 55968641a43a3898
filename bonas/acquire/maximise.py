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


class Choice(NamedTuple):
    """The point chosen and what there is to say about it."""

    x: Array  # (d,)
    score: Array  # ()
    flat: Array  # () bool
    duplicates: Array  # () int: better candidates passed over because they were tried before


@jax.tree_util.register_static
@dataclass(frozen=True)
class Maximiser:
    """maximise(key, score, around (k, d), tried (n, d), counts (n,)) -> Choice; score maps (m, d) to (m,)."""

    maximise: Callable[..., Choice]


def sobol(n: int, d: int) -> np.ndarray:
    """The first n points (n, d) of the Sobol sequence, a constant; shift it at random before use (`shifted`)."""
    return scipy.stats.qmc.Sobol(d, scramble=False).random(1 << max(n - 1, 0).bit_length())[:n]


def shifted(key: Array, points: np.ndarray) -> Array:
    """Points in the unit cube moved by one random vector, around the edges (Cranley & Patterson 1976)."""
    return (jnp.asarray(points) + jax.random.uniform(key, (1, points.shape[1]))) % 1.0


@cache
def refined(space: Space, *, candidates: int = 512, near: int = 256, starts: int = 8, steps: int = 20) -> Maximiser:
    """Sobol candidates and moved copies of the best points; the `starts` best climb by `steps` of Adam inside the box.

    Only real columns climb; integers and options take steps to their neighbours' instead, before.
    """
    grid = sobol(candidates, space.dim)
    climbs = np.array([isinstance(p, Float) and p.low < p.high for p in space.parameters.values()])
    scales = np.array(_NEAR)[np.arange(near) % len(_NEAR)][:, None]

    def climb(score, points):
        """Projected Adam on the real columns of points (k, d), all at once."""
        adam, slope = optax.adam(0.01), jax.grad(lambda z: -jnp.sum(score(z)))

        def step(carry, _):
            z, state = carry
            gradient = jnp.where(climbs[None, :], jnp.nan_to_num(slope(z)), 0.0)
            move, state = adam.update(gradient, state)
            return (jnp.clip(z + jnp.where(climbs[None, :], move, 0.0), 0.0, 1.0), state), None

        (points, _), _ = jax.lax.scan(step, (points, adam.init(points)), None, length=steps)
        return space.snap(points)

    def maximise(key, score, around, tried, counts) -> Choice:
        far_key, near_key, pick_key = jax.random.split(key, 3)
        base = around[jax.random.randint(pick_key, (near,), 0, len(around))]
        copies = space.snap(jnp.clip(base + scales * jax.random.normal(near_key, base.shape), 0.0, 1.0))
        points = jnp.concatenate([space.spread(shifted(far_key, grid)), copies])
        scores = _finite(score(points))
        best = points[jax.lax.top_k(scores, starts)[1]]
        if not climbs.all():
            moves = jax.vmap(space.neighbours)(best).reshape(-1, space.dim)
            best = jnp.concatenate([best, moves])[jax.lax.top_k(_finite(score(jnp.concatenate([best, moves]))), starts)[1]]
        final = jnp.concatenate([climb(score, best), best, points]) if climbs.any() else jnp.concatenate([best, points])
        return choose(final, _finite(score(final)), tried, counts)

    return Maximiser(maximise)


@cache
def uniform(space: Space, *, candidates: int = 1000) -> Maximiser:
    """The best of uniform random candidates: Twist, Algorithm 4; Wilton 2020 (W-A3)."""

    def maximise(key, score, around, tried, counts) -> Choice:
        points = space.sample(key, candidates)
        return choose(points, _finite(score(points)), tried, counts)

    return Maximiser(maximise)


@cache
def enumerated(space: Space) -> Maximiser:
    """The best point of a finite space, by going through all of them."""
    everything = np.asarray(space.points())

    def maximise(key, score, around, tried, counts) -> Choice:
        points = jax.random.permutation(key, jnp.asarray(everything))  # ties fall at random
        return choose(points, _finite(score(points)), tried, counts)

    return Maximiser(maximise)


def choose(points: Array, scores: Array, tried: Array, counts: Array) -> Choice:
    """The best-scored of points (m, d) that is none of the rows tried (n, d) that count (n,); the best one if all are."""
    gap = jnp.max(jnp.abs(points[:, None, :] - tried[None, :, :]), axis=-1)
    known = ((gap < _SAME) & counts[None, :]).any(axis=1)
    fresh = jnp.where(known & ~known.all(), -jnp.inf, scores)
    i = jnp.argmax(fresh)
    size = jnp.maximum(jnp.max(jnp.abs(scores)), 1.0)
    return Choice(
        x=points[i],
        score=scores[i],
        flat=(jnp.max(scores) - jnp.min(scores)) <= _FLAT * size,
        duplicates=jnp.sum(known & (scores > fresh[i])),
    )


# Columns of integers differ by at least 1e-7 of the range; rounding of the same integer by much less.
_SAME = 1e-9


def _finite(scores: Array) -> Array:
    """NaN never wins."""
    return jnp.where(jnp.isnan(scores), -jnp.inf, scores)
