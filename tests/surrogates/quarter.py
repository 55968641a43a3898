"""Values in one quarter of the unit square: what the tests of surrogates fit, and where they look."""

import jax.numpy as jnp
import numpy as np

import bonas

_RNG = np.random.default_rng(0)
_X = _RNG.uniform(size=(8, 2)) * 0.5
_Y = np.sin(6.0 * _X[:, 0]) + _X[:, 1]
DATA = bonas.dataset(_X, (_Y - _Y.mean()) / _Y.std(), capacity=12)  # of mean 0 and variance 1
POINTS = jnp.asarray(_RNG.uniform(size=(30, 2)))  # anywhere in the square
