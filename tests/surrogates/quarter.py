"""Data in one quarter of the unit square, and points of the whole square to predict at."""

from collections.abc import Callable, Mapping
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import bonas
from bonas.surrogates import Surrogate

KEY = jax.random.key(0)
_RNG = np.random.default_rng(0)
_X = _RNG.uniform(size=(8, 2)) * 0.5
_Y = np.sin(6.0 * _X[:, 0]) + _X[:, 1]
# mean 0 and variance 1
DATA = bonas.dataset(_X, (_Y - _Y.mean()) / _Y.std(), capacity=12)
POINTS = jnp.asarray(_RNG.uniform(size=(30, 2)))  # anywhere in the square


def programs(models: Mapping[str, Surrogate]) -> tuple[Callable, Callable, Callable]:
    """Return functions of a model's name: its compiled fit, its predict, and its fit to DATA."""

    @cache
    def fit(name):
        return jax.jit(lambda key, data, state: models[name].fit(key, data, state))

    @cache
    def predict(name):
        return jax.jit(models[name].predict)

    @cache
    def fitted(name):
        return fit(name)(KEY, DATA, models[name].init(12, 2, 1))

    return fit, predict, fitted
