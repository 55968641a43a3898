"""The units of learning curves inside a GPAR.

In a search, bad networks stop early. The mean and standard deviation over the others describe only
good networks, so `prior_slope` extrapolates the units that all curves would have had.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bonas.data import Dataset, clean
from bonas.extreme_values import into_range

Units = tuple[Float[Array, ""], Float[Array, ""]]  # level and scale of one output


def scale_outputs(
    data: Dataset, prior_slope: float = 0.0
) -> tuple[Dataset, Float[Array, " p"], Float[Array, " p"]]:
    """Subtract a level from every output and divide it by a scale.

    Args:
        data: Learning curves, with outputs (n, p).
        prior_slope: The prior slope of the GPAR. With 0, level and scale are the mean and standard
            deviation of each output; otherwise those it would have if all curves had continued.

    Returns:
        The scaled data, the levels (p,) and the scales (p,).
    """
    data, factor = into_range(clean(data))
    observed = jnp.maximum(data.mask.sum(axis=0), 1)
    level = data.y.sum(axis=0) / observed
    residual = jnp.where(data.mask, data.y - level[None, :], 0.0)
    variance = (residual**2).sum(axis=0) / observed
    rounding = 8 * jnp.finfo(data.y.dtype).eps * jnp.abs(data.y).max(axis=0)
    scale = jnp.sqrt(jnp.where(variance <= rounding**2, 1.0, variance))
    if prior_slope:
        level, scale = _extrapolate_units(data, prior_slope, level, scale)
    y = jnp.where(data.mask, (data.y - level[None, :]) / scale[None, :], 0.0)
    return data._replace(y=y), level / factor, scale / factor


def _extrapolate_units(
    data: Dataset,
    prior_slope: float,
    level: Float[Array, " p"],
    scale: Float[Array, " p"],
) -> tuple[Float[Array, " p"], Float[Array, " p"]]:
    """Return the levels and scales that outputs would have if all curves had continued.

    From one checkpoint to the next, the scale changes by the ratio observed on the curves with both
    values, and on one pseudo-curve without change. The level is the mean of these curves, minus the
    part of their earlier lead that carries over.
    """

    def next_units(
        last: Units,
        columns: tuple[Float[Array, " n"], Float[Array, " n"], Bool[Array, " n"]],
    ) -> tuple[Units, Units]:
        y, y_last, mask = columns
        last_level, last_scale = last
        both = jnp.maximum(mask.sum(), 1)
        mean = jnp.where(mask, y, 0.0).sum() / both
        mean_last = jnp.where(mask, y_last, 0.0).sum() / both
        residual = jnp.where(mask, y - mean, 0.0)
        residual_last = jnp.where(mask, y_last - mean_last, 0.0)
        spread = residual @ residual + last_scale**2
        spread_last = residual_last @ residual_last + last_scale**2
        ratio = jnp.sqrt(spread / spread_last)
        new = mean - prior_slope * ratio * (mean_last - last_level), ratio * last_scale
        new = jax.tree.map(
            lambda one, other: jnp.where(mask.any(), one, other), new, last
        )
        return new, new

    pairs = (data.y.T[1:], data.y.T[:-1], (data.mask[:, 1:] & data.mask[:, :-1]).T)
    _, (levels, scales) = jax.lax.scan(next_units, (level[0], scale[0]), pairs)
    return jnp.concatenate([level[:1], levels]), jnp.concatenate([scale[:1], scales])
