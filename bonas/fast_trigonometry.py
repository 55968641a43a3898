"""Sine and cosine as polynomials, which XLA vectorizes on a CPU."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@jax.jit  # an ask calls it more than twenty times, and traces each shape once
def sine_and_cosine(
    angle: Float[Array, "*n"],
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Return the sine and cosine of angles between −2π and 2π, to a few units of rounding.

    This is several times faster on a CPU than `jnp.sin` and `jnp.cos`, which call a library
    function for each number. Polynomials give the sine and cosine of a quarter of the angle, and
    two steps of the double-angle formulas those of the angle.
    """
    return _sine_and_cosine(angle)


@jax.custom_jvp
def _sine_and_cosine(angle: Array) -> tuple[Array, Array]:
    quarter = 0.25 * angle
    square = quarter * quarter
    sine = quarter * _series(square, 1)
    cosine = _series(square, 0)
    for _ in range(2):
        sine, cosine = 2.0 * sine * cosine, (cosine - sine) * (cosine + sine)
    return sine, cosine


@_sine_and_cosine.defjvp
def _sine_and_cosine_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    sine, cosine = _sine_and_cosine(*primals)
    (change,) = tangents
    return (sine, cosine), (cosine * change, -sine * change)


def _series(square: Array, first: int) -> Array:
    """Return Σ (−1)^k square^k / (2k + first)!, exact to rounding for angles up to π/2."""
    total = jnp.zeros_like(square)
    for k in reversed(range(12)):
        total = total * square + (-1.0) ** k / math.factorial(2 * k + first)
    return total
