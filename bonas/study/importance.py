"""How much each parameter decides about the value, by the model that a search would have of it."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.data import dataset, standardise
from bonas.spaces import Space
from bonas.study.subset import MOST, of_subset
from bonas.surrogates import gp

_DRAWS = 1024  # random points, each moved along one parameter at a time: shares are then good to a few hundredths
_FITS = 5  # one after the other, each from the last: an optimum of the hyperparameters, and not the start of a way there
_ENOUGH = 4  # values, below which nothing can be said


def importance(space: Space, u: np.ndarray, values: np.ndarray, key: Array) -> dict[str, float]:
    """Shares of the parameters in the variance of the value over the space, the greatest first; they sum up to 1.

    A share is the total effect of a parameter (Jansen 1999; Saltelli et al. 2010, Table 2 f), E[(f(x) − f(x'))²] / 2, where x'
    is x with that parameter drawn anew, and f the mean of a GP that was fitted to the values; interactions count for all who
    take part. Empty where there are fewer than 4 values; all equal where the value does not change.
    """
    if len(values) < _ENOUGH:
        return {}
    effects = np.asarray(_effects(space, jnp.asarray(u), jnp.asarray(values), key))
    total = effects.sum()
    shares = effects / total if total > 0.0 else np.full(space.dim, 1.0 / space.dim)
    return {space.names[i]: float(shares[i]) for i in np.argsort(-shares, kind="stable")}


def _effects(space: Space, u: Array, values: Array, key: Array) -> Array:
    fit_key, one_key, other_key = jax.random.split(key, 3)
    model = of_subset(gp(), MOST)
    model = model.adapt(space) if model.adapt else model
    room = max(64, 1 << (len(values) - 1).bit_length())  # as a study's capacity: few shapes, few compilations
    data, _, _ = standardise(dataset(u, values, room))
    state, fit = model.init(room, space.dim, 1), jax.jit(model.fit)
    for i in range(_FITS):
        state, _ = fit(jax.random.fold_in(fit_key, i), data, state)
    draws = jax.random.uniform(one_key, (_DRAWS, space.dim))
    others = jax.random.uniform(other_key, (_DRAWS, space.dim))

    @jax.jit
    def mean(points: Array) -> Array:
        return model.predict(state, space.spread(points)).mean.mean(axis=0)

    here = mean(draws)
    moved = [mean(draws.at[:, i].set(others[:, i])) for i in range(space.dim)]
    return jnp.stack([jnp.mean((here - there) ** 2) / 2 for there in moved])
