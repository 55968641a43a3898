"""Fast normal random numbers on CPUs, for the activations of variational networks.

On a CPU `jax.random.normal` takes several times as long: its generator is a loop with copies, and
its transform is the inverse error function. This module uses arithmetic that vectorizes: Threefry
with fewer rounds and the Box-Muller transform with a polynomial cosine. Results are as reproducible
from a key, under `jit` and `vmap` and on any device.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, PRNGKeyArray, UInt32

# The fewest rounds with known answers in Random123, whose generators pass BigCrush (Salmon et al.
# 2011). JAX uses 20.
_ROUNDS = 13
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA
# A quarter of a turn; a whole turn is 2³².
_QUARTER = 1 << 30
# Taylor coefficients of sin(π x), enough for the precision of float32.
_SERIES = [
    (-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(7)
]


def normal_pairs(
    key: PRNGKeyArray, rows: int, columns: int, pairs: int
) -> list[Float[Array, "rows columns"]]:
    """Draw 2 × pairs independent float32 arrays of N(0, 1) by the method of Box and Muller."""
    half = -(-rows * columns // 2)
    seed = jax.random.bits(key, (2,), jnp.uint32)

    def words(number: Array) -> tuple[Array, Array]:
        place = jax.lax.iota(jnp.uint32, half)
        return threefry(seed, place, jnp.full_like(place, number))

    def draw_pair(number: int) -> tuple[Array, Array]:
        # In a loop, because XLA would otherwise compute the words again for every use.
        bits = jax.lax.map(
            words, jnp.arange(2 * number, 2 * number + 2, dtype=jnp.uint32)
        )
        first, turn = (
            leaf.reshape(-1)[: rows * columns].reshape(rows, columns) for leaf in bits
        )
        radius = jnp.sqrt(-2.0 * jnp.log((first.astype(jnp.float32) + 0.5) * 2.0**-32))
        return radius * cosine(turn), radius * cosine(turn - jnp.uint32(_QUARTER))

    return [noise for number in range(pairs) for noise in draw_pair(number)]


def threefry(
    seed: UInt32[Array, "2"], first: UInt32[Array, "*n"], second: UInt32[Array, "*n"]
) -> tuple[UInt32[Array, "*n"], UInt32[Array, "*n"]]:
    """Hash pairs of words with Threefry-2×32 (Salmon et al. 2011, Section 4.2)."""
    keys = (seed[0], seed[1], seed[0] ^ seed[1] ^ jnp.uint32(_PARITY))
    first = first + keys[0]
    second = second + keys[1]
    for i in range(_ROUNDS):
        turn = _ROTATIONS[i % 8]
        first = first + second
        second = first ^ (
            (second << jnp.uint32(turn)) | (second >> jnp.uint32(32 - turn))
        )
        if i % 4 == 3:
            step = i // 4 + 1
            first = first + keys[step % 3]
            second = second + keys[(step + 1) % 3] + jnp.uint32(step)
    return first, second


def cosine(turn: UInt32[Array, "*n"]) -> Float32[Array, "*n"]:
    """Compute cos(2π turn / 2³²) as sin(π x) with x = 1/2 − |signed turn| / 2³¹, by its series."""
    signed = jax.lax.bitcast_convert_type(turn, jnp.int32).astype(jnp.float32)
    x = 0.5 - jnp.abs(signed * 2.0**-31)
    square = x * x
    total = jnp.zeros_like(x)
    for coefficient in reversed(_SERIES):
        total = total * square + coefficient
    return x * total
