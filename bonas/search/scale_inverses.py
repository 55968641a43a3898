"""Inverses of output scales: from the scale on which values are modeled back to the values."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from bonas.data import Dataset
from bonas.extreme_values import into_range
from bonas.search.argument_types import OutputScale
from bonas.search.output_scales import log, median_and_width, plain, tails

# Maps values on an output scale, of any shape, to values of the objective.
Inverse = Callable[[Any], Any]


def invert_scale(
    scale: OutputScale, data: Dataset, *, largest: float | None = None, xp: Any = jnp
) -> Inverse:
    """Return the inverse of an output scale as it was applied to some data.

    A user-defined scale needs an attribute `inverse`: a function of the data, before they were
    scaled, that returns the inverse.

    Args:
        scale: The output scale.
        data: The data, neither scaled nor standardized.
        largest: The largest absolute value to return. Default: the largest number of the precision,
            so that no value is infinite.
        xp: `jax.numpy`, or `numpy` for values outside of JAX.

    Returns:
        A function from values on the scale, of any shape, to values of the objective.
    """
    largest = float(jnp.finfo(data.y.dtype).max) if largest is None else largest
    if scale is plain:
        return lambda values: xp.clip(values, -largest, largest)
    if scale is log:
        return lambda values: xp.minimum(
            xp.exp(xp.minimum(values, math.log(largest))), largest
        )
    if scale is tails:
        return _inverse_of_tails(data, largest, xp)
    given = getattr(scale, "inverse", None)
    if given is None:
        name = getattr(scale, "__name__", "scale")
        raise ValueError(
            f"the output scale {name} has no inverse: set {name}.inverse, a function of a Dataset "
            'that returns a function of values, or use output="plain", "log" or "tails"'
        )
    inverse: Inverse = given(data)
    return inverse


def _inverse_of_tails(data: Dataset, largest: float, xp: Any) -> Inverse:
    scaled, factor = into_range(data)
    factor, median, width = map(xp.asarray, (factor, *median_and_width(scaled)))
    bound = largest * xp.minimum(factor, 1.0)
    # keeps width * expm1(excess) below the largest value
    limit = math.log(largest) - xp.maximum(xp.log(width), 0.0)

    def inverse(values: Any) -> Any:
        values = values * factor
        excess = xp.clip(values - median, 0.0, limit * width) / width
        above = xp.where(values > median, median + width * xp.expm1(excess), values)
        return xp.clip(above, -bound, bound) / factor

    return inverse
