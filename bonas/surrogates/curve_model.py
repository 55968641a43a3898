"""What a search on learning curves knows of a model: fit, sample. And what several such models share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset, clean, within
from bonas.gp.gpar import Known
from bonas.infer import Target, maximise
from bonas.linalg import mask_covariance
from bonas.surrogates.interface import FitInfo


@jax.tree_util.register_static
@dataclass(frozen=True)
class CurveModel:
    """A model of learning curves, values at c checkpoints of training. Static: it may be passed to any jitted function.

    init: (capacity, d, times (c,)) -> state, a warm start of the right shape; times are shares of the whole training.
    fit: (key, Dataset (n, d) and (n, c), state) -> (state, FitInfo), warm-started from the last state.
    sample: (key, state, x (m, d), known, k) -> (k, m, c) joint draws of the curves, without noise, given what is known of
        these m networks, which was among the data of the last fit.
    """

    init: Callable[[int, int, Array], Any]
    fit: Callable[[Array, Dataset, Any], tuple[Any, FitInfo]]
    sample: Callable[[Array, Any, Array, Known, int], Array]


def climb(
    key: Array, target_of: Callable[..., Target], data: Dataset, last: Any, steps: int, *rest: Any
) -> tuple[Any, FitInfo]:
    """The most probable parameters z near the last ones, and a report; the last where they, or their density, are not finite.

    target_of(data, *rest) is what they are probable under.
    """

    def infer_from(data, key, last, *rest):
        return maximise(key, target_of(data, *rest).maximising, last, steps=steps)

    z, info = within(infer_from, data, key, last, *rest)
    fine = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((z, info.log_density))]).all()
    z = jax.tree.map(lambda new, old: jnp.where(fine, new[0], old), z, last)
    converged = fine & (info.accept > 0.0).all()
    return z, FitInfo(info.log_density.mean(), converged, fine, jnp.zeros((), info.log_density.dtype))


def standard(data: Dataset) -> tuple[Dataset, Array, Array]:
    """Curves on one scale for all checkpoints, mean 0 and variance 1 over all that was seen; and the mean and deviation."""
    data = clean(data)
    seen = jnp.maximum(data.mask.sum(), 1)
    level = data.y.sum() / seen
    away = jnp.where(data.mask, data.y - level, 0.0)
    # curves that are equal but for rounding have no scale of their own
    least = 8 * jnp.finfo(data.y.dtype).eps * jnp.abs(data.y).max()
    spread = jnp.sqrt((away**2).sum() / seen)
    scale = jnp.where(spread > least, jnp.maximum(spread, jnp.finfo(spread.dtype).tiny), 1.0)
    return data._replace(y=away / scale), level, scale


class Message(NamedTuple):
    """All that a curve y = 1 f + N(mean, cov) says of f, as one observation of it, and the evidence beside that."""

    value: Array  # () observed of f ...
    noise: Array  # () ... with this variance
    rest: Array  # () log p(y | f) − log N(value; f, noise), the same for every f


def message(cov: Array, residual: Array, mask: Array) -> Message:
    """What the seen places of y − mean (c,) say of f, for a covariance (c, c) that includes noise.

    With W = cov⁻¹ over what was seen, noise = 1/1ᵀW1 and value = noise 1ᵀWy: Swersky, Snoek & Adams 2014, eqs 15 to 18,
    where these are Λ⁻¹ and Λ⁻¹γ. Where nothing was seen it is an observation of 0 with variance 1, to be masked.
    """
    lower = jnp.linalg.cholesky(mask_covariance(cov, mask, jnp.zeros((), cov.dtype)))
    both = jnp.stack([mask.astype(cov.dtype), jnp.where(mask, residual, 0.0)], axis=1)
    one, white = jax.scipy.linalg.solve_triangular(lower, both, lower=True).T
    seen = mask.any()
    precision = jnp.where(seen, one @ one, 1.0)
    value = (one @ white) / precision
    log_2pi = jnp.log(2.0 * jnp.pi).astype(cov.dtype)
    whole = -0.5 * (white @ white + mask.sum() * log_2pi) - jnp.log(jnp.diagonal(lower)).sum()
    single = 0.5 * (jnp.log(precision) - log_2pi - precision * value**2)
    return Message(value, 1.0 / precision, jnp.where(seen, whole - single, 0.0))
