"""The hyperparameters of a fitted Gaussian process, by name."""

from typing import Any

import jax

from bonas.surrogates.gaussian_process import GaussianProcess
from bonas.surrogates.saas_gp import SAAS
from bonas.surrogates.surrogate import Surrogate


def hyperparameters(surrogate: Surrogate, state: Any) -> dict[str, Any]:
    """Return the hyperparameters of a fitted Gaussian process in nested dicts.

    They are the hyperparameters of the kernel (such as "lengthscale") and of the mean, and the
    noise variance unless it is fixed.

    Args:
        surrogate: The surrogate, made by `gp` or `saas`, or a subclass.
        state: Its state after a fit.

    Returns:
        Arrays with a leading axis of hyperparameter samples (s, ...). For other surrogates, an
        empty dict.
    """
    if not isinstance(surrogate, (GaussianProcess, SAAS)):
        return {}
    data = jax.tree.map(lambda leaf: leaf[0], state.posterior.data)
    found: dict[str, Any] = jax.vmap(surrogate._target(data).constrain)(state.z)
    found.pop("unused", None)  # of a model without unknown hyperparameters
    return found
