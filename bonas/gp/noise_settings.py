"""The noise variance as a setting: a number, an array, a prior, or a function that returns one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bonas.infer import is_distribution
from bonas.traced_settings import as_setting, setting_value

# The noise variance: a number, an array (), also a traced one, its prior, or a function without
# arguments that returns one of these.
Noise = Any

_EXPECTED = (
    "the noise variance must be a number of at least 0, an array of shape (), a "
    "distribution, or a function without arguments that returns one of these"
)


def check_noise(noise: Noise) -> Noise:
    """Convert a noise variance to a hashable setting.

    Raises:
        ValueError: If it is not a valid noise variance.
    """
    if is_distribution(noise):
        if noise.shape() != ():
            raise ValueError(
                f"expected a prior of one noise variance; got one of shape {noise.shape()}"
            )
        return noise
    if callable(noise):
        return noise
    _check_variance(noise)
    if jnp.ndim(noise):
        raise ValueError(
            f"expected one noise variance; got an array of shape {jnp.shape(noise)}. For the noise "
            "of each observation, use bayes(known_noise=True) and Observation(x, y, noise=...)"
        )
    return as_setting("noise", noise)


def resolve_noise(noise: Noise) -> Any:
    """Evaluate a noise setting: return the variance if it is known, else its prior."""
    if is_distribution(noise):
        return noise
    found = noise() if callable(noise) else setting_value(noise)
    if not is_distribution(found):
        _check_variance(found)
    return found


def _check_variance(variance: Any) -> None:
    """Raise a ValueError unless a variance, or an array of them, is real and at least 0."""
    kinds = (int, float, np.ndarray, np.generic, jax.Array)
    is_number = isinstance(variance, kinds) and not isinstance(variance, bool)
    if not is_number or not (
        jnp.issubdtype(jnp.result_type(variance), jnp.floating)
        or jnp.issubdtype(jnp.result_type(variance), jnp.integer)
    ):
        raise ValueError(f"{_EXPECTED}; got {variance!r}")
    if not isinstance(variance, jax.core.Tracer):
        values = np.asarray(variance)
        if not (np.isfinite(values) & (values >= 0.0)).all():
            raise ValueError(f"{_EXPECTED}; got {variance!r}")
