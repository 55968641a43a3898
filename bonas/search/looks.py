"""What advancing a network is worth, from draws of its learning curve: scores of a search on learning curves."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.acquire.analytic import ei, lcb, log_ei, log_pi, pi

Closed = Callable[..., Array]  # mean (s, m), std (s, m), best () -> scores (m,)
# Hutchinson, Section 2.2.2, eq. 2.42 (H-D4): for UCB kappa = 1
PLAIN: dict[str, Closed] = {"ei": ei, "pi": pi, "ucb": lambda mean, std, best: lcb(mean, std, best, kappa=1.0)}
LOGS: dict[str, Closed] = {"ei": log_ei, "pi": log_pi}

_NODES = np.linspace(-8.0, 8.0, 65)  # what a look may show, in standard deviations: wide, because gains are in the tails
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
_HALVINGS = 30


def final_score(gain: Closed, draws: Array, best: Array) -> Array:
    """An acquisition (m,) of the final value, from mean and deviation of draws (k, m, c): Hutchinson, Algorithm 2."""
    final = draws[:, :, -1]
    return gain(final.mean(axis=0)[None, :], final.std(axis=0)[None, :], best)


def rate_score(log_gain: Closed, draws: Array, best: Array, at: Array, steps: Array) -> Array:
    """log of the gain per training step to the end (m,), for networks that have `at` (m,) checkpoints behind them."""
    return final_score(log_gain, draws, best) - jnp.log(_to_go(at, steps)[:, -1])


def look_score(log_gain: Closed, draws: Array, best: Array, at: Array, steps: Array) -> Array:
    """log of the most gain per training step (m,) that training, a look at one checkpoint, and the choice to stop there give.

    A look at checkpoint j, reached at cost δ, moves the mean of the final value by N(0, r²s²), where r is its correlation
    with the final value, and leaves a deviation √(1 − r²) s. Going on costs R more, and is worth it where the gain then
    expected is above λR. The score is the λ at which all this breaks even, E max(gain' − λR, 0) = λδ: an index as Gittins',
    for one look. Without looks it is the gain per step to the end; it is more where a cheap look tells much.
    """
    final, nodes, weights = draws[:, :, -1], jnp.asarray(_NODES, draws.dtype), jnp.asarray(_WEIGHTS, draws.dtype)
    mean, std = final.mean(axis=0), final.std(axis=0)
    base = log_gain(mean[None, :], std[None, :], best)
    price = _to_go(at, steps)  # (m, c)
    rest = price[:, -1:] - price
    told = _correlation(draws)  # (m, c)
    means = mean[:, None, None] + (told * std[:, None])[:, :, None] * nodes[None, None, :]
    left = jnp.sqrt(jnp.maximum(1.0 - told**2, 1e-6)) * std[:, None]
    spread = jnp.broadcast_to(left[:, :, None], means.shape)
    later = log_gain(means.reshape(1, -1), spread.reshape(1, -1), best).reshape(means.shape)
    # shares of the gain: on average they are 1
    share = jax.nn.softmax(later + jnp.log(weights)[None, None, :], axis=2)

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        value = jnp.maximum(share - (middle * rest)[:, :, None] * weights[None, None, :], 0.0).sum(axis=2) - middle * price
        return jnp.where(value > 0.0, middle, low), jnp.where(value > 0.0, high, middle)

    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (1.0 / price[:, -1:] + 0.0 * price, 1.0 / price))
    ahead = jnp.arange(len(steps))[None, :] >= at[:, None]
    return base + jnp.max(jnp.where(ahead, jnp.log(0.5 * (low + high)), -jnp.inf), axis=1)


def _to_go(at: Array, steps: Array) -> Array:
    """Training steps (m, c) from where networks are to each checkpoint; 1 for those that they have behind them."""
    behind = jnp.where(at > 0, steps[jnp.maximum(at - 1, 0)], 0)
    return jnp.maximum(steps[None, :] - behind[:, None], 1).astype(float)


def _correlation(draws: Array) -> Array:
    """Of each checkpoint with the last, over draws (k, m, c): (m, c); 1 for the last itself."""
    away = draws - draws.mean(axis=0)[None]
    tiny = jnp.finfo(draws.dtype).tiny
    norm = jnp.sqrt(jnp.maximum((away**2).sum(axis=0), tiny))
    found = (away * away[:, :, -1:]).sum(axis=0) / (norm * norm[:, -1:])
    return jnp.clip(found, -1.0, 1.0).at[:, -1].set(1.0)
