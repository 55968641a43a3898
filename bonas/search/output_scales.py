"""Output scales: increasing transformations of the values that a search models.

The surrogate is fitted to standardized values on the new scale, and the acquisition is computed
there. Given several scales, every ask uses the one with the highest evidence.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset, standardize_in_range
from bonas.extreme_values import divide_positive, into_range
from bonas.search.argument_types import Output, OutputScale
from bonas.search.checks import check_fitted, check_output
from bonas.surrogates import FitInfo, Surrogate


class ScaledFit(NamedTuple):
    """A fit on the most probable output scale."""

    data: Dataset  # standardized values on that scale
    state: Any  # the surrogate's state on that scale
    info: FitInfo
    scale: Array  # () int: the position of the scale
    states: Any  # (k, ...) the states on all k scales


def plain(data: Dataset) -> tuple[Dataset, Float[Array, ""]]:
    """Leave the values unchanged; the output scale "plain"."""
    return data, jnp.zeros((), data.y.dtype)


def log(data: Dataset) -> tuple[Dataset, Float[Array, ""]]:
    """Take logarithms of positive values, such as losses over several orders of magnitude.

    Values of zero or less are masked.
    """
    positive = data.mask & (data.y > 0.0)
    logs = jnp.log(jnp.where(positive, data.y, 1.0))
    return data._replace(y=logs, mask=positive), -logs.sum()


def tails(data: Dataset) -> tuple[Dataset, Float[Array, ""]]:
    """Compress values above the median, for values with a heavy upper tail.

    y becomes m + w log(1 + (y − m)/w), where m is the median and w the median minus the minimum.
    Without it, a few huge values hide the differences between good points.
    """
    data, factor = into_range(data)
    median, width = median_and_width(data)
    above = data.mask & (data.y > median)
    excess = jnp.log1p(jnp.where(above, data.y - median, 0.0) / width)
    compressed = jnp.where(above, median + width * excess, data.y)
    return data._replace(y=compressed / factor), -excess.sum()


def median_and_width(data: Dataset) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return m and w of `tails`; w is 1 if it would be 0."""
    values = jnp.where(data.mask, data.y, jnp.nan)
    median = jnp.nanmedian(values)
    width = median - jnp.nanmin(values)
    return median, jnp.where(width > 0.0, width, 1.0)


# The scales that `bayes(output=)` accepts by name.
OUTPUT_SCALES: dict[str, OutputScale] = {"plain": plain, "log": log, "tails": tails}


def resolve_scales(output: Output | None, model: Surrogate) -> tuple[OutputScale, ...]:
    """Return the scales that `bayes(output=)` names; by default plain and tails for a GP."""
    if output is None:
        output = ("plain", "tails") if model.has_evidence else "plain"
    several: tuple[Any, ...] = output if isinstance(output, tuple) else (output,)
    check_output(several, OUTPUT_SCALES, model)
    return tuple(one if callable(one) else OUTPUT_SCALES[one] for one in several)


def fit_scales(
    scales: tuple[OutputScale, ...],
    model: Surrogate,
    key: PRNGKeyArray,
    *,
    data: Dataset,
    states: Any,
) -> ScaledFit:
    """Fit the surrogate and choose the scale with the highest evidence.

    The scales are fitted in turn, one per ask; the others are conditioned on the new data with
    their last parameters. With two scales this halves the cost, and parameters are at most two
    asks old.
    """
    k = len(scales)
    scaled, _, _, log_slopes = zip(
        *(standardize_on(scale, data) for scale in scales), strict=True
    )
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *scaled)
    order = (data.size + jnp.arange(k)) % k  # the first is fitted
    first, rest = (
        jax.tree.map(lambda leaf: leaf[rows], (stacked, states))
        for rows in (order[0], order[1:])
    )
    fitted, info = model.fit(key, *first)
    check_fitted(first[1], fitted)
    fits = jax.tree.map(lambda leaf: leaf[None], (fitted, info))
    if k > 1:
        inverse = jnp.argsort(order)
        others = jax.vmap(model.refresh)(*rest)
        fits = jax.tree.map(lambda a, b: jnp.concatenate([a, b])[inverse], fits, others)
    states, infos = fits
    evidence = infos.log_density + jnp.stack(log_slopes)
    best = jnp.argmax(jnp.where(jnp.isnan(evidence), -jnp.inf, evidence))
    # only one scale was fitted, so this is the fit that converged or not
    converged = info.converged
    data, fitted, info = jax.tree.map(lambda leaf: leaf[best], (stacked, states, infos))
    info = info._replace(converged=converged)
    return ScaledFit(data, fitted, info, best, states)


def standardize_on(
    scale: OutputScale, data: Dataset
) -> tuple[Dataset, Array, Array, Array]:
    """Return standardized values on a scale, their mean and deviation, and log derivatives."""
    warped, log_slope = scale(data)
    if data.noise is not None:
        from bonas.search.known_noise import scale_noise

        warped = scale_noise(scale, data, warped)
    warped, factor = into_range(warped)
    standardized, mean, std = standardize_in_range(warped)
    # not the logarithm of std / factor, which rounds otherwise where the factor is 1
    log_std = jnp.log(std) - jnp.log(factor)
    log_slope = log_slope - warped.mask.sum() * log_std
    return standardized, mean / factor, divide_positive(std, factor), log_slope
