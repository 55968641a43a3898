"""Importance of parameters: total effects on the mean of a GP fitted to the values."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.checked_data import dataset
from bonas.data import standardize
from bonas.spaces import Space
from bonas.study.default_search import MAX_ROWS, SubsetSurrogate
from bonas.study.records import TrialRecord
from bonas.surrogates import gp

# Number of random points; shares are then accurate to a few hundredths.
_DRAWS = 1024
# Fits, each started from the last one, so that the hyperparameters reach an optimum.
_FITS = 5
_MIN_VALUES = 4


def importance_of_trials(
    space: Space, trials: Sequence[TrialRecord], seed: int
) -> dict[str, float]:
    """Return the importance of each parameter for the values of trials; see `importance`.

    Trials without a value are ignored.
    """
    with_value = [trial for trial in trials if trial.value is not None]
    u = np.array([trial.u for trial in with_value])
    values = np.array([trial.value for trial in with_value], float)
    return importance(space, u, values, jax.random.key(seed))


def importance(
    space: Space,
    u: Float[np.ndarray, "n d"],
    values: Float[np.ndarray, " n"],
    key: PRNGKeyArray,
) -> dict[str, float]:
    """Return the share of each parameter in the variance of the value over the space.

    Each share is the total effect E[(f(x) − f(x'))²] / 2 (Jansen 1999; Saltelli et al. 2010,
    Table 2f), divided by the sum of all. x' is x with that parameter drawn again, and f the mean
    of a GP fitted to the values. An interaction is part of the shares of all its parameters.

    Args:
        space: The space.
        u: Points of the unit cube.
        values: Values of the objective at these points.
        key: Random key.

    Returns:
        Shares by name, the largest first, which sum to 1; equal shares if the value is constant;
        empty for fewer than 4 values.
    """
    if len(values) < _MIN_VALUES:
        return {}
    effects = np.asarray(
        _total_effects(space, np.asarray(u), divide_huge(values)[0], key)
    )
    total = effects.sum()
    shares = effects / total if total > 0.0 else np.full(space.dim, 1.0 / space.dim)
    return {
        space.names[i]: float(shares[i]) for i in np.argsort(-shares, kind="stable")
    }


def divide_huge(
    values: Float[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, " n"], float]:
    """Divide huge values by a power of 2, so that their squares do not overflow.

    Returns:
        The quotients, which are exact, and the divisor, which is 1 if no value is huge.
    """
    values = np.asarray(values, float)
    largest = float(np.abs(values).max())
    if largest <= float(jnp.finfo(jnp.result_type(float)).max) ** 0.25:
        return values, 1.0
    power = 2.0 ** (math.frexp(largest)[1] - 1)
    return values / power, power


def _total_effects(
    space: Space, u: np.ndarray, values: np.ndarray, key: PRNGKeyArray
) -> Float[Array, " d"]:
    fit_key, draw_key, other_key = jax.random.split(key, 3)
    model = SubsetSurrogate(gp(), MAX_ROWS).adapt(space)
    # A power of 2, as a study's capacity: few shapes, few compilations.
    capacity = max(64, 1 << (len(values) - 1).bit_length())
    data, _, _ = standardize(dataset(u, values, capacity))
    state = model.init(capacity, space.dim, 1)
    fit = jax.jit(model.fit)
    for i in range(_FITS):
        state, _ = fit(jax.random.fold_in(fit_key, i), data, state)
    draws = jax.random.uniform(draw_key, (_DRAWS, space.dim))
    others = jax.random.uniform(other_key, (_DRAWS, space.dim))

    @jax.jit
    def mean(points: Float[Array, "m d"]) -> Float[Array, " m"]:
        return model.predict(state, space.spread(points)).mean.mean(axis=0)

    before = mean(draws)
    after = [mean(draws.at[:, i].set(others[:, i])) for i in range(space.dim)]
    return jnp.stack([jnp.mean((before - moved) ** 2) / 2 for moved in after])
