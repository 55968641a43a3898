"""Compiled queries of the posterior after a run, which keep few programs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.extreme_values import range_factor
from bonas.gp import Prediction
from bonas.search.compiled_runs import ProgramCache

# Nodes of the integrals over a standard normal variable. They reach far up because values on the
# log scale have heavy upper tails.
_NODES = np.arange(-10.0, 30.0, 0.05)
# Each halves the interval of a quantile.
_HALVINGS = 60


def predict(posterior: Any, x: Float[Array, "m d"]) -> Prediction:
    """Return mean and standard deviation (m,); see `RunPosterior.predict`."""
    found: Prediction = _predictions(posterior.search)(_arrays(posterior), x)
    return found


def quantile(posterior: Any, x: Float[Array, "m d"], q: float) -> Float[Array, " m"]:
    """Return a quantile (m,); see `RunPosterior.quantile`."""
    found: Array = _quantiles(posterior.search)(_arrays(posterior), x, q)
    return found


def sample(
    posterior: Any, key: PRNGKeyArray, x: Float[Array, "m d"], k: int
) -> Float[Array, "k m"]:
    """Return k joint samples; see `RunPosterior.sample`."""
    found: Array = _samples(posterior.search, k)(_arrays(posterior), key, x)
    return found


def lowest_mean_of(posterior: Any) -> tuple[Float[Array, " d"], Float[Array, ""]]:
    """Return the result of `lowest_mean`, compiled."""
    found: tuple[Array, Array] = _lowest(posterior.search)(_arrays(posterior))
    return found


def lowest_mean(posterior: Any) -> tuple[Float[Array, " d"], Float[Array, ""]]:
    """Return the evaluated point with the lowest standardized mean, and that mean, or NaN."""
    x = posterior.data.x
    means = posterior.search.surrogate.predict(posterior.state, x).mean.mean(axis=0)
    known = posterior.evaluated & jnp.isfinite(means)
    best = jnp.argmin(jnp.where(known, means, jnp.inf))
    exists = known.any()
    return (
        jnp.where(exists, x[best], jnp.nan),
        jnp.where(exists, means[best], jnp.nan),
    )


def _arrays(posterior: Any) -> Any:
    """Return the posterior without its search, which is static."""
    return posterior._replace(search=None)


def _predict(search: Any, arrays: Any, x: Float[Array, "m d"]) -> Prediction:
    """Integrate values over the standardized prediction, a mixture of normal distributions."""
    posterior = arrays._replace(search=search)
    mean, std = posterior.search.surrogate.predict(posterior.state, x)
    # so that squares are finite
    factor = range_factor(posterior.data.y, posterior.data.mask)
    center = posterior.values(mean) * factor

    def add(moments: tuple[Array, Array], node: Array) -> tuple[Any, None]:
        gap = posterior.values(mean + std * node) * factor - center
        weight = norm.pdf(node) * (_NODES[1] - _NODES[0])
        first, second = moments
        return (first + weight * gap, second + weight * gap**2), None

    nothing = jnp.zeros_like(mean)
    nodes = jnp.asarray(_NODES, mean.dtype)
    (first, second), _ = jax.lax.scan(add, (nothing, nothing), nodes)
    total = (center + first).mean(axis=0, keepdims=True)
    variance = (second - first**2 + (center + first - total) ** 2).mean(axis=0)
    std = jnp.sqrt(jnp.maximum(variance, 0.0))
    return Prediction(total[0] / factor, std / factor)


def _quantile(search: Any, arrays: Any, x: Float[Array, "m d"], q: Array) -> Array:
    """Return a quantile of the mixture by bisection; scales are increasing."""
    posterior = arrays._replace(search=search)
    mean, std = posterior.search.surrogate.predict(posterior.state, x)
    std = jnp.maximum(std, jnp.finfo(std.dtype).tiny)
    level = jnp.where(posterior.sign > 0.0, q, 1.0 - q)
    each = mean + std * ndtri(level)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        below = norm.cdf((middle[None, :] - mean) / std).mean(axis=0) < level
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    ends = each.min(axis=0), each.max(axis=0)
    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, ends)
    lost = jnp.isnan(each).any(axis=0)  # the ends need not be NaN in large arrays
    found: Array = posterior.values(jnp.where(lost, jnp.nan, 0.5 * (low + high)))
    return found


def _sample(search: Any, k: int, arrays: Any, key: PRNGKeyArray, x: Array) -> Array:
    posterior = arrays._replace(search=search)
    draws = search.surrogate.sample(key, posterior.state, x, k)
    found: Array = posterior.values(draws)
    return found


def _lowest_mean(search: Any, arrays: Any) -> tuple[Array, Array]:
    return lowest_mean(arrays._replace(search=search))


_predictions = ProgramCache(_predict)
_quantiles = ProgramCache(_quantile)
_samples = ProgramCache(_sample)
_lowest = ProgramCache(_lowest_mean)
