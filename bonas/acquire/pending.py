"""Values assumed at pending points, so that a batch can be chosen before it is evaluated."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset
from bonas.surrogates import Surrogate

# A function (key, model, state, data) -> values (n,); only values of pending rows are used.
PendingStrategy = Callable[[PRNGKeyArray, Surrogate, Any, Dataset], Array]


def believer(
    key: PRNGKeyArray, model: Surrogate, state: Any, data: Dataset
) -> Float[Array, " n"]:
    """Impute pending values by the posterior mean (kriging believer, Ginsbourger et al. 2008)."""
    return model.predict(state, data.x).mean.mean(axis=0)


def assume_values(data: Dataset, pending: Array, values: Float[Array, " n"]) -> Dataset:
    """Return the data with values assumed at pending points.

    Args:
        data: The data.
        pending: Mask (n,) of the pending rows.
        values: Values (n,) to assume; those of other rows are ignored.
    """
    rows = pending[:, None]
    return data._replace(
        y=jnp.where(rows, values[:, None], data.y), mask=data.mask | rows
    )
