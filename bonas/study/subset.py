"""The default search of a study: Bayesian optimisation whose model is fitted to a subset once there are many trials."""

from functools import cache

import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset
from bonas.search.bayes import bayes
from bonas.search.types import Search
from bonas.spaces import Space
from bonas.surrogates import Surrogate, gp

# An exact GP costs the cube of its rows: a fit to 512 takes a second or two, one to 2048 would take a minute.
MOST = 512


def default_search(space: Space) -> Search:
    """`bonas.bayes(space)`; beyond 512 trials its GP is fitted to the 256 best and the 256 latest of the others."""
    return bayes(space, surrogate=of_subset(gp(), MOST))


def said(ended: int) -> dict[str, str]:
    """What the info of a trial says of the fit, after so many trials have ended."""
    if ended <= MOST:
        return {}
    return {
        "subset": f"fitted to {MOST} of {ended} trials: the {MOST // 2} best and the {MOST - MOST // 2} latest of the others"
    }


@cache
def of_subset(model: Surrogate, most: int) -> Surrogate:
    """The model, fitted to the best half and the latest half of `most` rows where the data have more; else the model itself.

    Its state is the model's, for min(capacity, most) rows.
    """
    refresh = model.refresh
    return Surrogate(
        init=lambda capacity, d, p: model.init(min(capacity, most), d, p),
        fit=lambda key, data, state: model.fit(key, subset(data, most), state),
        update=lambda data, state: model.update(subset(data, most), state),
        predict=model.predict,
        covariance=model.covariance,
        sample=model.sample,
        adapt=(lambda space: of_subset(model.adapt(space), most)) if model.adapt else None,  # type: ignore[misc]
        refresh=(lambda data, state: refresh(subset(data, most), state)) if refresh else None,
    )


def subset(data: Dataset, most: int) -> Dataset:
    """The rows with the `most // 2` least values and the latest others, in their order: `most` rows, or all there are.

    As long as no more rows are used these are the first rows, and nothing changes.
    """
    n = len(data.x)
    if n <= most:
        return data
    rows = jnp.sort(_chosen(data, most))
    return Dataset(data.x[rows], data.y[rows], data.mask[rows], jnp.minimum(data.size, most))


def _chosen(data: Dataset, most: int) -> Array:
    """Positions (most,) of the rows: the best, then the latest observed, then whatever comes first."""
    n, there = len(data.x), data.mask[:, 0]
    order = jnp.argsort(jnp.where(there, data.y[:, 0], jnp.inf))
    rank = jnp.zeros(n, int).at[order].set(jnp.arange(n))
    row = jnp.arange(n)
    urgency = jnp.where(there & (rank < most // 2), 2 * n, jnp.where(there, n + row, -row))
    return jnp.argsort(-urgency)[:most]
