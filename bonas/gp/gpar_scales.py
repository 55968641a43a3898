"""The units in which an autoregressive model sees learning curves, some of which end early because they are not worth it."""

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset, clean


def scaled(data: Dataset, carry: float = 0.0) -> tuple[Dataset, Array, Array]:
    """Every output less a level and divided by a scale (p,), and these: without carry its own mean and deviation."""
    data = clean(data)
    count = jnp.maximum(data.mask.sum(axis=0), 1)
    level = data.y.sum(axis=0) / count
    away = jnp.where(data.mask, data.y - level[None, :], 0.0)
    variance = (away**2).sum(axis=0) / count
    flat = variance <= (8 * jnp.finfo(data.y.dtype).eps * jnp.abs(data.y).max(axis=0)) ** 2
    scale = jnp.sqrt(jnp.where(flat, 1.0, variance))
    if carry:
        level, scale = _of_all(data, carry, level, scale)
    return data._replace(y=jnp.where(data.mask, (data.y - level[None, :]) / scale[None, :], 0.0)), level, scale


def _of_all(data: Dataset, carry: float, level: Array, scale: Array) -> tuple[Array, Array]:
    """Levels and scales (p,) that outputs would have if all curves had gone on, not those alone that were worth it.

    From checkpoint to checkpoint, the scale changes as it does for the curves that have both, which are counted together
    with one more that does not change; the level is theirs, less what is carried on of their lead before.
    """

    def step(before, given):
        y, last, mask = given
        count = jnp.maximum(mask.sum(), 1)
        now, then = (jnp.where(mask, column, 0.0).sum() / count for column in (y, last))
        spread, spread_then = (
            jnp.where(mask, column - mean, 0.0) @ jnp.where(mask, column - mean, 0.0) + before[1] ** 2
            for column, mean in ((y, now), (last, then))
        )
        ratio = jnp.sqrt(spread / spread_then)
        new = now - carry * ratio * (then - before[0]), ratio * before[1]
        new = jax.tree.map(lambda one, other: jnp.where(mask.any(), one, other), new, before)
        return new, new

    pairs = (data.y.T[1:], data.y.T[:-1], (data.mask[:, 1:] & data.mask[:, :-1]).T)
    _, (levels, scales) = jax.lax.scan(step, (level[0], scale[0]), pairs)
    return jnp.concatenate([level[:1], levels]), jnp.concatenate([scale[:1], scales])
