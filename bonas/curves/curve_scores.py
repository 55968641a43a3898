"""Scores of networks to train further in a search on learning curves, from drawn curves."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bonas.acquire import ei, lcb, log_ei, log_pi, pi

# mean (s, m), std (s, m), best () -> scores (m,)
ClosedForm = Callable[..., Array]


def _ucb(
    mean: Array,
    std: Array,
    best: Array,
) -> Array:
    """Return the confidence bound with kappa = 1 of Hutchinson, Section 2.2.2, eq. 2.42."""
    return lcb(mean, std, best, kappa=1.0)


ACQUISITIONS: dict[str, ClosedForm] = {"ei": ei, "pi": pi, "ucb": _ucb}
LOG_ACQUISITIONS: dict[str, ClosedForm] = {"ei": log_ei, "pi": log_pi}

# Possible shifts of the predicted final value after observing a checkpoint, in standard deviations.
# The range is wide because improvements lie in the tails.
_NODES = np.linspace(-8.0, 8.0, 65)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
_BISECTIONS = 30


def final_score(
    acquisition: ClosedForm,
    draws: Float[Array, "k m c"],
    best: Float[Array, ""],
) -> Float[Array, " m"]:
    """Return the acquisition of the final value, from the moments of drawn curves.

    Hutchinson, Algorithm 2.

    Args:
        acquisition: A function of mean (s, m), std (s, m) and best ().
        draws: Drawn curves.
        best: The lowest final value so far.
    """
    final = draws[:, :, -1]
    return acquisition(final.mean(axis=0)[None, :], final.std(axis=0)[None, :], best)


def rate_score(
    log_acquisition: ClosedForm,
    draws: Float[Array, "k m c"],
    best: Float[Array, ""],
    reached: Int[Array, " m"],
    steps: Int[Array, " c"],
) -> Float[Array, " m"]:
    """Return the log of the acquisition per training step that is left to the end.

    Args:
        log_acquisition: The logarithm of an acquisition, as a function of mean, std and best.
        draws: Drawn curves.
        best: The lowest final value so far.
        reached: The number of checkpoints that each network has passed.
        steps: The number of training steps up to each checkpoint.
    """
    left = _steps_left(reached, steps)[:, -1]
    return final_score(log_acquisition, draws, best) - jnp.log(left)


def checkpoint_score(
    log_acquisition: ClosedForm,
    draws: Float[Array, "k m c"],
    best: Float[Array, ""],
    reached: Int[Array, " m"],
    steps: Int[Array, " c"],
) -> Float[Array, " m"]:
    """Return the log of the highest expected gain per training step, with one optional stop.

    The plan is to train up to checkpoint j, observe the value there, and then either stop or train
    to the end. Reaching the checkpoint costs δ steps. The observation shifts the mean of the final
    value by N(0, r²s²), where r is the correlation of the two values, and reduces the standard
    deviation to √(1 − r²) s. Continuing costs R more steps, and pays off if the expected gain is
    then above λR. The score is the λ that breaks even, E max(gain' − λR, 0) = λδ, maximized over j:
    a Gittins index with one stop. Without a stop, λ is the gain per step to the end.

    See `rate_score` for the arguments.
    """
    final = draws[:, :, -1]
    nodes = jnp.asarray(_NODES, draws.dtype)
    weights = jnp.asarray(_WEIGHTS, draws.dtype)
    mean = final.mean(axis=0)
    std = final.std(axis=0)
    log_gain = log_acquisition(mean[None, :], std[None, :], best)
    cost = _steps_left(reached, steps)  # (m, c)
    rest = cost[:, -1:] - cost
    correlation = _correlation_with_last(draws)  # (m, c)
    shift = (correlation * std[:, None])[:, :, None] * nodes[None, None, :]
    means = mean[:, None, None] + shift
    std_left = jnp.sqrt(jnp.maximum(1.0 - correlation**2, 1e-6)) * std[:, None]
    stds = jnp.broadcast_to(std_left[:, :, None], means.shape)
    later = log_acquisition(means.reshape(1, -1), stds.reshape(1, -1), best).reshape(
        means.shape
    )
    # The gain after each possible observation, relative to the gain before; its mean is 1.
    relative = jax.nn.softmax(later + jnp.log(weights)[None, None, :], axis=2)

    def bisect(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        threshold = (middle * rest)[:, :, None] * weights[None, None, :]
        value = jnp.maximum(relative - threshold, 0.0).sum(axis=2) - middle * cost
        return jnp.where(value > 0.0, middle, low), jnp.where(value > 0.0, high, middle)

    bounds = (1.0 / cost[:, -1:] + 0.0 * cost, 1.0 / cost)
    low, high = jax.lax.fori_loop(0, _BISECTIONS, bisect, bounds)
    ahead = jnp.arange(len(steps))[None, :] >= reached[:, None]
    log_rate = jnp.where(ahead, jnp.log(0.5 * (low + high)), -jnp.inf)
    return log_gain + jnp.max(log_rate, axis=1)


def _steps_left(
    reached: Int[Array, " m"], steps: Int[Array, " c"]
) -> Float[Array, "m c"]:
    """Return the training steps that each network needs to each checkpoint; 1 if it is reached."""
    done = jnp.where(reached > 0, steps[jnp.maximum(reached - 1, 0)], 0)
    return jnp.maximum(steps[None, :] - done[:, None], 1).astype(float)


def _correlation_with_last(draws: Float[Array, "k m c"]) -> Float[Array, "m c"]:
    """Return the correlation over draws of each checkpoint with the last; 1 for the last."""
    residual = draws - draws.mean(axis=0)[None]
    tiny = jnp.finfo(draws.dtype).tiny
    norm = jnp.sqrt(jnp.maximum((residual**2).sum(axis=0), tiny))
    covariance = (residual * residual[:, :, -1:]).sum(axis=0)
    correlation = covariance / (norm * norm[:, -1:])
    return jnp.clip(correlation, -1.0, 1.0).at[:, -1].set(1.0)
