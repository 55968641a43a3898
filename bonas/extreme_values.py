"""Numbers near the ends of the range of their precision, whose squares or differences overflow."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

# Exact, and small enough for the difference of any two numbers.
_SMALL = 2.0**-64


def range_factor(y: Float[Array, "*n"], mask: Bool[Array, "*n"]) -> Float[Array, ""]:
    """Return a power of two by which to multiply values so that their squares are finite and not 0.

    The factor is 1 unless the squares of the unmasked values could overflow or underflow. It is
    also 1 if all of these values are 0.
    """
    largest = jnp.max(jnp.where(mask, jnp.abs(y), 0.0))
    edge = 2.0 ** (5 * jnp.finfo(largest.dtype).maxexp // 16)
    tiny = (largest < 1.0 / edge) & (largest > 0.0)
    tiny_or_ordinary = jnp.where(tiny, edge**2, 1.0)
    factor = jnp.where(largest > edge, edge**-2, tiny_or_ordinary)
    return factor.astype(largest.dtype)


def into_range(data: Any) -> tuple[Any, Float[Array, ""]]:
    """Multiply the values of a dataset by their `range_factor`.

    Returns:
        The scaled dataset and the factor.
    """
    factor = range_factor(data.y, data.mask)
    noise = None if data.noise is None else data.noise * factor * factor
    return data._replace(y=data.y * factor, noise=noise), factor


def divide_positive(std: Array, factor: Array) -> Array:
    """Return std / factor, which is positive even if it underflows."""
    return jnp.maximum(std / factor, jnp.finfo(std.dtype).tiny)


def interpolate(low: float, high: float, u: Array) -> Array:
    """Return low + u (high − low), without overflow if the range is wide."""
    if _is_wide(low, high, u):
        return low * (1.0 - u) + high * u
    return low + u * (high - low)


def fraction_between(low: float, high: float, number: Array) -> Array:
    """Return (number − low) / (high − low), without overflow if the range is wide."""
    if _is_wide(low, high, number):
        number = number * _SMALL
        low = low * _SMALL
        high = high * _SMALL
    fraction: Array = (number - low) / (high - low)
    return fraction


def _is_wide(low: float, high: float, u: Array) -> bool:
    """Return whether high − low overflows in the precision of u, or its reciprocal underflows.

    XLA may multiply by the reciprocal instead of dividing.
    """
    largest = float(jnp.finfo(jnp.result_type(u, float)).max)
    return high - low > largest / 4
