"""The noise variance of a fitted Gaussian process."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bonas.data import Dataset
from bonas.gp import resolve_noise
from bonas.infer import Target, is_distribution


def noise_samples(
    surrogate: Any, make_target: Callable[[Dataset], Target], state: Any
) -> Float[Array, " s"]:
    """Return the noise variance of each hyperparameter sample, inferred or fixed.

    Args:
        surrogate: A Gaussian process with a field `noise`.
        make_target: Function from data to the posterior of the hyperparameters.
        state: The state of the surrogate, with the fields `z` (s, ...) and `posterior` (s, ...).
    """
    alpha = state.posterior.alpha
    variance = resolve_noise(surrogate.noise)
    if not is_distribution(variance):
        return jnp.full(len(alpha), variance, alpha.dtype)
    data = jax.tree.map(lambda leaf: leaf[0], state.posterior.data)
    samples: Array = jax.vmap(make_target(data).constrain)(state.z)["noise"]
    return samples
