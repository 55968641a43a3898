"""The box of a trust region: its shape, and candidates in it."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.acquire import Maximizer, Score, Selection, choose, random_shift
from bonas.spaces import Space
from bonas.surrogates import GPState

# The average number of coordinates of the best point that a candidate changes.
_CHANGED = 20.0


@dataclass(frozen=True, eq=False)
class Box(Maximizer):
    """Maximizer over candidates in a box; used within one trace, because the box is traced."""

    space: Space
    center: Array  # (d,)
    half: Array  # (d,) half the sides
    grid: np.ndarray  # (m, d) Sobol points

    def maximize(
        self, key: PRNGKeyArray, score: Score, around: Array, tried: Array, valid: Array
    ) -> Selection:
        points = self.candidates(key, around)
        scores = jnp.nan_to_num(score(points), nan=jnp.nan, neginf=-jnp.inf)
        return choose(points, scores, tried, valid)

    def candidates(self, key: PRNGKeyArray, around: Array) -> Array:
        return sample_box(key, self.space, self.center, self.half, grid=self.grid)


def sample_box(
    key: PRNGKeyArray,
    space: Space,
    center: Float[Array, " d"],
    half: Float[Array, " d"],
    *,
    grid: np.ndarray,
) -> Float[Array, "m d"]:
    """Return copies of the center with some coordinates moved within center ± half.

    Each coordinate moves with probability min(1, 20/d), and at least one does, to its value in the
    shifted grid (m, d) scaled to the box. The box is clipped to the unit cube.
    """
    m, d = grid.shape
    sobol_key, which_key, one_key = jax.random.split(key, 3)
    low = jnp.clip(center - half, 0.0, 1.0)
    high = jnp.clip(center + half, 0.0, 1.0)
    anywhere = low[None, :] + (high - low)[None, :] * random_shift(sobol_key, grid)
    moved = jax.random.uniform(which_key, (m, d)) < min(1.0, _CHANGED / d)
    one = jax.random.randint(one_key, (m, 1), 0, d) == jnp.arange(d)[None, :]
    moved = moved | (one & ~moved.any(axis=1, keepdims=True))
    return space.snap(jnp.where(moved, anywhere, center[None, :]))


def side_ratios(fitted: Any, d: int) -> Float[Array, " d"]:
    """Return the relative side lengths of the trust region: length scales / their geometric mean.

    They are 1 unless the surrogate is a GP with one length scale per column.
    """
    params = fitted.posterior.params if isinstance(fitted, GPState) else {}
    scales = params.get("lengthscale")
    if scales is None or scales.shape[1:] != (d,):
        return jnp.ones(d)
    logs = jnp.log(scales).mean(axis=0)
    return jnp.exp(logs - logs.mean())


def integer_steps(space: Space) -> np.ndarray:
    """Return the largest step (d,) between integers as a fraction of the range; 0 for reals."""
    steps = np.zeros(space.dim)
    with jax.ensure_compile_time_eval():
        for i, parameter in enumerate(space.parameters.values()):
            if 1 < parameter.size < math.inf:
                # On a logarithmic scale the first step is the largest.
                steps[i] = float(parameter.unit(parameter.low + 1.0))
    return steps
