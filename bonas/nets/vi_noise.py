"""Normal noise for the activations of variational networks, by arithmetic that a CPU does on many numbers at a time.

`jax.random.normal` takes several times as long there: its generator is a loop with copies, and its transform the inverse
error function. These are as reproducible from a key, under `jit` and `vmap` and on any device.
"""

import math

import jax
import jax.numpy as jnp
from jax import Array

# The fewest of which Random123 has known answers; its generators pass all of BigCrush (Salmon et al. 2011). JAX has 20.
_ROUNDS = 13
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_QUARTER = 1 << 30  # of a turn, which is 2³²
_SERIES = [(-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(7)]  # to float32's rounding


def normal_pairs(key: Array, rows: int, columns: int, pairs: int) -> list[Array]:
    """Independent draws of N(0, 1), 2 × pairs arrays (rows, columns) of float32, by Box and Muller (1958)."""
    half = -(-rows * columns // 2)
    seed = jax.random.bits(key, (2,), jnp.uint32)

    def words(part):
        place = jax.lax.iota(jnp.uint32, half)
        return threefry(seed, place, jnp.full_like(place, part))

    def pair(number):
        # a loop, so that they are made once: XLA would otherwise make them again wherever they are used
        made = jax.lax.map(words, jnp.arange(2 * number, 2 * number + 2, dtype=jnp.uint32))
        first, turn = (leaf.reshape(-1)[: rows * columns].reshape(rows, columns) for leaf in made)
        radius = jnp.sqrt(-2.0 * jnp.log((first.astype(jnp.float32) + 0.5) * 2.0**-32))
        return radius * cosine(turn), radius * cosine(turn - jnp.uint32(_QUARTER))

    return [noise for number in range(pairs) for noise in pair(number)]


def threefry(seed: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Two random words, uint32, for every pair of words: Threefry-2×32 (Salmon et al. 2011, section 4.2); seed (2,)."""
    keys = (seed[0], seed[1], seed[0] ^ seed[1] ^ jnp.uint32(_PARITY))
    first, second = first + keys[0], second + keys[1]
    for i in range(_ROUNDS):
        turn = _ROTATIONS[i % 8]
        first = first + second
        second = first ^ ((second << jnp.uint32(turn)) | (second >> jnp.uint32(32 - turn)))
        if i % 4 == 3:
            step = i // 4 + 1
            first, second = first + keys[step % 3], second + keys[(step + 1) % 3] + jnp.uint32(step)
    return first, second


def cosine(turn: Array) -> Array:
    """cos(2π turn / 2³²), float32, of words uint32: sin(π x) for x = 1/2 − |signed turn| / 2³¹, by its series."""
    signed = jax.lax.bitcast_convert_type(turn, jnp.int32).astype(jnp.float32)
    x = 0.5 - jnp.abs(signed * 2.0**-31)
    square, total = x * x, jnp.zeros_like(x)
    for coefficient in reversed(_SERIES):
        total = total * square + coefficient
    return x * total
