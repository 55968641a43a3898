"""Noise of variational networks: the generator's known answers, and a normal distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bonas.nets import fast_normal

KEY = jax.random.key(0)
# The counter, the key and the words of threefry2x32 with 13 rounds, in Random123's kat_vectors.
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x9D1C5EC6, 0x8BD50731)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0xFD36D048, 0x2D17272C)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xBA3E4725, 0xF27D669E)),
]


@pytest.mark.parametrize(("counter", "seed", "words"), KNOWN)
def test_the_generator_has_its_known_answers(counter, seed, words):
    found = fast_normal.threefry(
        *(jnp.asarray(each, jnp.uint32) for each in (seed, *counter))
    )
    assert tuple(int(word) for word in found) == words


def test_the_cosine_of_a_turn():
    turn = np.append(
        np.arange(0, 1 << 32, 9_999_991), [1 << 30, 1 << 31, (1 << 32) - 1]
    ).astype(np.uint32)
    np.testing.assert_allclose(
        fast_normal.cosine(turn), np.cos(2.0 * np.pi * (turn / 2.0**32)), atol=4e-7
    )


def test_noise_is_normal_and_independent():
    """400,000 draws an array: bounds are five standard errors, and a distance that one sample in
    10⁵ exceeds.
    """
    found = np.asarray(fast_normal.normal_pairs(KEY, 4000, 100, 2), np.float64).reshape(
        4, -1
    )
    n = found.shape[1]
    for noise in found:
        assert stats.kstest(noise, "norm").pvalue > 1e-5
        assert abs(np.mean(noise**4) - 3.0) < 5.0 * (96.0 / n) ** 0.5
        assert 4.0 < np.abs(noise).max() < 6.8
        assert abs(np.mean(noise[1:] * noise[:-1])) < 5.0 / n**0.5
        assert abs(np.mean(noise[: n // 2] * noise[n // 2 :])) < 5.0 / (n / 2) ** 0.5
    # the two of a pair share a radius: their squares would show it
    for power in (1, 2):
        np.testing.assert_allclose(
            np.corrcoef(found**power), np.eye(4), atol=5.0 / n**0.5
        )


def test_every_key_has_its_noise_under_vmap_too():
    keys = jax.random.split(KEY, 3)
    together = jax.vmap(lambda key: jnp.stack(fast_normal.normal_pairs(key, 5, 3, 1)))(
        keys
    )
    alone = [jnp.stack(fast_normal.normal_pairs(key, 5, 3, 1)) for key in keys]
    np.testing.assert_allclose(together, np.stack(alone), rtol=1e-5, atol=1e-6)
    assert len(np.unique(together)) == together.size
