"""What a search knows of a model: fit, update, predict, sample."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
from jax import Array

from bonas.data import Dataset
from bonas.gp import Prediction
from bonas.spaces import Space


class FitInfo(NamedTuple):
    """What a person wants to know about a fit."""

    log_density: Array  # () of the hyperparameters, the mean over samples
    converged: Array  # () bool: an optimum was reached, or no trajectory diverged
    finite: Array  # () bool: false where the last good parameters were kept, because new ones or their density are no numbers
    jitter: Array  # () the largest added to a covariance; 0 where none was needed


@jax.tree_util.register_static
@dataclass(frozen=True)
class Surrogate:
    """A model. Static: it may be passed to any jitted function.

    init: (capacity, d, p) -> state, a warm start of the right shape before any data.
    fit: (key, Dataset, state) -> (state, FitInfo), warm-started from the last state.
    update: (Dataset, state) -> state: the same parameters given other data, such as values imagined at pending points.
    predict: (state, x (m, d)) -> Prediction(mean (s, m), std (s, m)); s hyperparameter samples for a GP.
    covariance: (state, x (m, d), at (k, d)) -> (s, m, k) of the latent values between the two sets of points.
    sample: (key, state, x (m, d), k) -> (k, m) joint draws.
    adapt: space -> Surrogate, the same model told which columns are options and when they count; a search calls it.
    refresh: (Dataset, state) -> (state, FitInfo), as fit with the parameters it has: for models whose FitInfo.log_density
        is a density of the data, by which scales of the output can be compared.
    """

    init: Callable[[int, int, int], Any]
    fit: Callable[[Array, Dataset, Any], tuple[Any, FitInfo]]
    update: Callable[[Dataset, Any], Any]
    predict: Callable[[Any, Array], Prediction]
    covariance: Callable[[Any, Array, Array], Array]
    sample: Callable[[Array, Any, Array, int], Array]
    adapt: Callable[[Space], "Surrogate"] | None = None
    refresh: Callable[[Dataset, Any], tuple[Any, FitInfo]] | None = None
