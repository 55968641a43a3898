"""The hyperparameters of a fitted Gaussian process, by name."""

from typing import Any

import jax

from bonas.surrogates.gaussian_process import GaussianProcess
from bonas.surrogates.saas_gp import SAAS
from bonas.surrogates.surrogate import Surrogate


def hyperparameters(surrogate: Surrogate, state: Any) -> dict[str, Any]:
    """Return the hyperparameter samples (s, ...) of a Gaussian process in nested dicts.

    The hyperparameters are the kernel's (such as "lengthscale"), the mean's, and the noise variance
    unless it is fixed. For other surrogates the dict is empty.
    """
    if not isinstance(surrogate, (GaussianProcess, SAAS)):
        return {}
    data = jax.tree.map(lambda leaf: leaf[0], state.posterior.data)
    found: dict[str, Any] = jax.vmap(surrogate._target(data).constrain)(state.z)
    found.pop("unused", None)  # of a model without unknown hyperparameters
    return found
