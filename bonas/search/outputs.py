"""Scales on which a search models its values: increasing functions of them, fitted to what has been observed.

The surrogate sees standardised values of the new scale, and the acquisition is computed there. Which scale suits is one
more unknown: given several, the one under which the observed values are most probable is used, ask by ask.
"""

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset, standardise
from bonas.search.door import check_fitted
from bonas.surrogates import FitInfo, Surrogate

Output = Callable[[Dataset], tuple[Dataset, Array]]  # data -> data on another scale, and the sum of log slopes ()


def plain(data: Dataset) -> tuple[Dataset, Array]:
    """The values as they are."""
    return data, jnp.zeros((), data.y.dtype)


def log(data: Dataset) -> tuple[Dataset, Array]:
    """log y: for positive values over several orders of magnitude, such as losses. A value of 0 or less has failed."""
    there = data.mask & (data.y > 0.0)
    logs = jnp.log(jnp.where(there, data.y, 1.0))
    return data._replace(y=logs, mask=there), -logs.sum()


def tails(data: Dataset) -> tuple[Dataset, Array]:
    """Values above the median m drawn in, y -> m + w log(1 + (y − m)/w) with w = m − least: for heavy upper tails.

    A few huge values would otherwise set the scale of everything, and differences among good points would be lost.
    """
    values = jnp.where(data.mask, data.y, jnp.nan)
    middle, least = jnp.nanmedian(values), jnp.nanmin(values)
    width = middle - least
    width = jnp.where(width > 0.0, width, 1.0)
    above = data.mask & (data.y > middle)
    excess = jnp.log1p(jnp.where(above, data.y - middle, 0.0) / width)
    return data._replace(y=jnp.where(above, middle + width * excess, data.y)), -excess.sum()


OUTPUTS: dict[str, Output] = {"plain": plain, "log": log, "tails": tails}


def outputs_of(given: str | Output | tuple | None, model: Surrogate) -> tuple[Output, ...]:
    """The scales that `bayes(output=)` names; without a name, both of plain and tails where the model can tell which."""
    if given is None:
        given = ("plain", "tails") if model.refresh is not None else "plain"
    several = given if isinstance(given, tuple) else (given,)
    for one in several:
        if not callable(one) and one not in OUTPUTS:
            raise ValueError(f"output is one of {', '.join(OUTPUTS)}, a function of a Dataset, or several of them; got {one!r}")
    if len(several) > 1 and model.refresh is None:
        raise ValueError("this surrogate has no evidence to choose between outputs by: give one")
    return tuple(OUTPUTS[one] if isinstance(one, str) else one for one in several)


def fit_on(
    outputs: tuple[Output, ...], model: Surrogate, key: Array, data: Dataset, states: Any
) -> tuple[Dataset, Any, FitInfo, Array, Any]:
    """Standardised data, fit and report on the most probable scale, its position (), and all fits (k, ...) for the next ask.

    One scale is fitted an ask, in turn, and the others are given the new data with the parameters they have: two asks
    old at most for two scales, and half the price.
    """
    k = len(outputs)
    scaled, slopes = zip(*(_standard(output, data) for output in outputs), strict=True)
    every = jax.tree.map(lambda *leaves: jnp.stack(leaves), *scaled)
    turn = (data.size + jnp.arange(k)) % k  # the first is fitted
    first, rest = (jax.tree.map(lambda leaf: leaf[rows], (every, states)) for rows in (turn[0], turn[1:]))
    fitted, info = model.fit(key, *first)
    check_fitted(first[1], fitted)
    fits, infos = jax.tree.map(lambda leaf: leaf[None], (fitted, info))
    if k > 1:
        kept, others = jax.vmap(cast(Callable, model.refresh))(*rest)
        back = jnp.argsort(turn)
        fits, infos = jax.tree.map(lambda a, b: jnp.concatenate([a, b])[back], (fits, infos), (kept, others))
    chosen = jnp.argmax(infos.log_density + jnp.stack(slopes))
    data, fitted, info = jax.tree.map(lambda leaf: leaf[chosen], (every, fits, infos))
    return data, fitted, info, chosen, fits


def _standard(output: Output, data: Dataset) -> tuple[Dataset, Array]:
    """Standardised values and the sum of log slopes from the original ones."""
    warped, slope = output(data)
    scaled, _, scale = standardise(warped)
    return scaled, slope - warped.mask.sum() * jnp.log(scale)
