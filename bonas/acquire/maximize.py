"""Maximizers of a score over a space, and gradient ascent from candidates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.stats
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from bonas.acquire.argument_checks import ascent_settings
from bonas.spaces import Space

# Standard deviations of the perturbed copies of the best points, as shares of the range: from a
# tenth down to 0.001, which is Spearmint's.
_PERTURBATIONS = (0.1, 0.03, 0.01, 0.001)
# If the range of the scores, relative to their size, is below this, they are practically equal.
_FLAT = 1e-9
# Largest number of points of a joint draw. The Cholesky factorization of their covariance takes
# some milliseconds, in proportion to the cube of their number.
MOST_JOINT = 384
# Integer columns differ by at least 1e-7 of the range, and rounding errors of one integer by much
# less. Points that pass through a configuration are less exact: see `bonas.search.observations`.
_SAME_POINT = 1e-9

Score = Callable[[Array], Array]  # points (m, d) -> scores (m,), to be maximized


class Selection(NamedTuple):
    """A selected point, and diagnostics of the selection."""

    x: Float[Array, " d"]  # the point
    # its score; NaN if all scores were NaN, and the point is arbitrary
    score: Float[Array, ""]
    flat: Bool[Array, ""]  # whether all candidates had practically the same score
    # number of better candidates that were skipped because they were tried before
    duplicates: Int[Array, ""]


class Maximizer:
    """Base class of methods that maximize a score over a space.

    To define one, write a frozen dataclass that overrides both methods. Maximizers are static: they
    may be passed to any jitted function.
    """

    def __init_subclass__(cls) -> None:
        jax.tree_util.register_static(cls)

    def maximize(
        self,
        key: PRNGKeyArray,
        score: Score,
        around: Float[Array, "k d"],
        tried: Float[Array, "n d"],
        valid: Bool[Array, " n"],
    ) -> Selection:
        """Return the point with the highest score, preferring points not tried before.

        Args:
            key: Random key.
            score: Function from points (m, d) to scores (m,).
            around: Good points, near which candidates are placed.
            tried: Points proposed before, in the rows that are `valid`.
            valid: Which rows of `tried` are in use.
        """
        raise NotImplementedError

    def candidates(
        self, key: PRNGKeyArray, around: Float[Array, "k d"]
    ) -> Float[Array, "m d"]:
        """Draw points of the space, few enough for a joint posterior draw, as by Thompson sampling.

        Args:
            key: Random key.
            around: Good points, near which some of the candidates are placed.
        """
        raise NotImplementedError


def sobol(n: int, d: int) -> np.ndarray:
    """Return the first n points (n, d) of the unscrambled Sobol sequence.

    Randomize them with `random_shift`.
    """
    size = 1 << max(n - 1, 0).bit_length()
    points: np.ndarray = scipy.stats.qmc.Sobol(d, scramble=False).random(size)
    return points[:n]


def random_shift(key: PRNGKeyArray, points: np.ndarray) -> Float[Array, "n d"]:
    """Shift points of the unit cube by one random vector, modulo 1 (Cranley & Patterson 1976)."""
    return (jnp.asarray(points) + jax.random.uniform(key, (1, points.shape[1]))) % 1.0


@dataclass(frozen=True)
class GradientAscent(Maximizer):
    """A maximizer by gradient ascent from Sobol points and perturbed copies of the best points."""

    space: Space
    far: int  # Sobol points
    near: int  # perturbed copies
    starts: int
    steps: int

    def maximize(
        self, key: PRNGKeyArray, score: Score, around: Array, tried: Array, valid: Array
    ) -> Selection:
        points = self._candidates(key, around, self.far + self.near)
        scores = score(points)
        best = points[_best_of_groups(without_nan(scores), self.starts)]
        has_steps = not self._continuous().all()
        if has_steps:
            neighbors = jax.vmap(self.space.neighbors)(best).reshape(-1, self.space.dim)
            best = jnp.concatenate([best, neighbors])
            best = best[jax.lax.top_k(without_nan(score(best)), self.starts)[1]]
        best, found = self._ascend(score, best)
        if has_steps:  # keep all points, because the best may have been tried before
            best = jnp.concatenate([best, points])
            found = jnp.concatenate([found, scores])
        return choose(best, found, tried, valid)._replace(flat=_is_flat(scores))

    def candidates(self, key: PRNGKeyArray, around: Array) -> Array:
        return self._candidates(key, around, MOST_JOINT // 2)

    def _candidates(self, key: PRNGKeyArray, around: Array, most: int) -> Array:
        """Return Sobol points and perturbed copies of the best points, at most `most` of each."""
        far_key, near_key = jax.random.split(key)
        far = sobol(self.far, self.space.dim)[:most]
        copies = np.arange(self.near)[:most]
        scales = np.array(_PERTURBATIONS)[copies % len(_PERTURBATIONS)][:, None]
        # each point with each scale
        base = around[copies // len(_PERTURBATIONS) % len(around)]
        moved = base + scales * jax.random.normal(near_key, base.shape)
        near = self.space.snap(jnp.clip(moved, 0.0, 1.0))
        return jnp.concatenate([self.space.spread(random_shift(far_key, far)), near])

    def _continuous(self) -> np.ndarray:
        """Return a mask (d,) of the continuous columns."""
        return np.array([p.continuous for p in self.space.parameters.values()])

    def _ascend(self, score: Score, points: Array) -> tuple[Array, Array]:
        """Return the best points (k, d) on the paths of projected Adam, and their scores (k,)."""
        adam = optax.adam(0.01)
        free = self._continuous()[None, :] & self.space.active(points)

        def loss(x: Array) -> tuple[Array, Array]:
            scores = score(x)
            return -jnp.sum(scores), scores

        def step(carry: tuple[Array, Any, Array, Array], _: None) -> tuple[Any, None]:
            x, state, best, top = carry
            (_, scores), gradient = jax.value_and_grad(loss, has_aux=True)(x)
            better = (scores > top) | jnp.isnan(top)
            best = jnp.where(better[:, None], x, best)
            top = jnp.where(better, scores, top)
            move, state = adam.update(
                jnp.where(free, jnp.nan_to_num(gradient), 0.0), state
            )
            x = jnp.clip(x + jnp.where(free, move, 0.0), 0.0, 1.0)
            return (x, state, best, top), None

        # a constant of NumPy, for jax_debug_nans
        nothing: Any = np.full(len(points), np.nan, points.dtype)
        first = (points, adam.init(points), points, nothing)
        (_, _, best, top), _ = jax.lax.scan(step, first, None, length=self.steps + 1)
        return best, top


def gradient_ascent(
    space: Space,
    *,
    candidates: int | None = None,
    near: int | None = None,
    starts: int | None = None,
    steps: int = 10,
) -> Maximizer:
    """Create a maximizer by gradient ascent from the best of a set of candidates.

    The candidates are Sobol points and perturbed copies of the best points so far. They are split
    into `starts` groups, and the best of each group is a starting point: this is faster than
    finding the best of all, and the starting points are further apart. Integers and options first
    move to their best neighbors; then Adam moves the active continuous columns within their bounds.

    Args:
        space: The space.
        candidates: Number of Sobol points (default: 64 per column, at most 1024).
        near: Number of perturbed copies (default: a quarter of `candidates`).
        starts: Number of points to refine (default: two per column, between 4 and 10).
        steps: Number of steps of Adam.
    """
    far, near, starts = ascent_settings(space.dim, candidates, near, starts, steps)
    return GradientAscent(space, far, near, starts, steps)


def choose(
    points: Float[Array, "m d"],
    scores: Float[Array, " m"],
    tried: Float[Array, "n d"],
    valid: Bool[Array, " n"],
) -> Selection:
    """Select the point with the highest score among those that were not tried before.

    If all points were tried before, select the one with the highest score. A score of NaN counts as
    the lowest. If no other is left, the selected point is arbitrary and `Selection.score` is NaN.

    Args:
        points: The points (m, d) to select from.
        scores: Their scores (m,).
        tried: Points (n, d) proposed before, in the rows that are `valid`.
        valid: Which rows of `tried` are in use.
    """
    gap = jnp.max(jnp.abs(points[:, None, :] - tried[None, :, :]), axis=-1)
    tolerance = max(_SAME_POINT, 8 * float(jnp.finfo(gap.dtype).eps))
    repeated = ((gap < tolerance) & valid[None, :]).any(axis=1)
    skipped = repeated & ~repeated.all() | jnp.isnan(scores)
    fresh = jnp.where(skipped, -jnp.inf, scores)
    i = jnp.argmax(fresh)
    return Selection(
        x=points[i],
        score=jnp.where(skipped.all(), jnp.nan, without_nan(scores[i])),
        flat=_is_flat(scores),
        duplicates=jnp.sum(repeated & (scores > fresh[i])),
    )


def _is_flat(scores: Array) -> Array:
    """Return whether finite scores among (m,) are equal up to rounding, or all are infinite."""
    finite = jnp.isfinite(scores)
    high = jnp.max(jnp.where(finite, scores, -jnp.inf))
    low = jnp.min(jnp.where(finite, scores, jnp.inf))
    unmixed = finite.all() == finite.any()
    size = jnp.maximum(jnp.maximum(high, -low), 1.0)
    return unmixed & ~(high - low > _FLAT * size)


def _best_of_groups(scores: Array, k: int) -> Array:
    """Split scores (m,) into k consecutive groups; return the position (k,) of the best of each."""
    size = -(-len(scores) // k)
    padded = jnp.pad(scores, (0, k * size - len(scores)), constant_values=-jnp.inf)
    best = jnp.arange(k) * size + jnp.argmax(padded.reshape(k, size), axis=1)
    return jnp.minimum(best, len(scores) - 1)


def without_nan(scores: Array) -> Array:
    """Replace NaN by −inf, so that it is never the maximum."""
    return jnp.where(jnp.isnan(scores), -jnp.inf, scores)
