"""What a surrogate believes of the trials of a study: along each parameter, and of each trial without that trial."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.data import Dataset, dataset, standardise
from bonas.linalg import solve_lower
from bonas.search.outputs import log, plain, tails
from bonas.spaces import Choice, Space
from bonas.spaces.parameters import Parameter
from bonas.study.subset import MOST as LIMIT
from bonas.study.subset import of_subset
from bonas.surrogates import Surrogate, gp

FEWEST = 5  # trials that a fit is made of
MOST = 256  # of more, the better half of so many and the latest others: a fit takes a second at most
_FITS = 5  # one after the other, each from the last
_FINE = 61  # places along a parameter


class Model(NamedTuple):
    """A Gaussian process given trials, on the scale that makes their values most probable."""

    space: Space
    data: Dataset  # standardised on that scale
    surrogate: Surrogate
    state: Any
    original: Callable[[np.ndarray], np.ndarray]  # standardised values to values as they were told
    scale: str  # its name
    rows: tuple[int, ...]  # which of the trials it was fitted to


class Quantiles(NamedTuple):
    """The median and the ends of the central 95 %, in values as they were told."""

    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray


class Slice(NamedTuple):
    """A model along one parameter, the others held."""

    at: list[Any]  # values of the parameter
    values: Quantiles


def fit(space: Space, u: Sequence[Sequence[float]], values: Sequence[float], *, sign: float = 1.0, seed: int = 0) -> Model:
    """The model of values at rows u (n, d), of which sign * value is to be small."""
    costs = sign * np.asarray(values, float)
    rows = chosen(costs)
    y = costs[list(rows)]
    # as for the importance of parameters, and so not compiled twice
    data = dataset(np.asarray(u)[list(rows)], y, max(64, 1 << (len(rows) - 1).bit_length()))
    surrogate = of_subset(gp(), LIMIT).adapt(space)  # type: ignore[misc]
    fits = []
    for name, output in [("plain", plain), ("tails", tails), *([("log", log)] if (y > 0).all() else [])]:
        warped, slope = output(data)
        scaled, mean, std = standardise(warped)
        state, density = _fitted(surrogate, jax.random.key(seed), scaled)
        density += float(slope) - len(y) * float(jnp.log(std))
        fits.append((density, name, scaled, state, _inverse(name, y, float(mean), float(std), sign)))
    _, name, scaled, state, original = max(fits, key=lambda each: each[0])
    return Model(space, scaled, surrogate, state, original, name, rows)


def chosen(costs: np.ndarray) -> tuple[int, ...]:
    """Which rows a model is fitted to, in their order: all, or the better ones and the latest others."""
    if len(costs) <= MOST:
        return tuple(range(len(costs)))
    order = np.argsort(costs, kind="stable")
    others = np.sort(order[MOST // 2 :])[-(MOST - MOST // 2) :]
    return tuple(sorted([*order[: MOST // 2].tolist(), *others.tolist()]))


def _fitted(surrogate: Surrogate, key: Array, data: Dataset) -> tuple[Any, float]:
    """The fit, and the log density of it."""
    state, fit = surrogate.init(len(data.x), data.x.shape[1], 1), jax.jit(surrogate.fit)
    for i in range(_FITS):
        state, info = fit(jax.random.fold_in(key, i), data, state)
    return state, float(info.log_density)


def _inverse(name: str, y: np.ndarray, mean: float, std: float, sign: float) -> Callable[[np.ndarray], np.ndarray]:
    """The way back from a standardised output of `bonas.search.outputs`."""
    middle = float(np.median(y))
    width = middle - float(y.min()) or 1.0

    def original(standard: np.ndarray) -> np.ndarray:
        value = mean + std * standard
        if name == "log":
            value = np.exp(value)
        if name == "tails":
            value = np.where(value > middle, middle + width * np.expm1(np.maximum(value - middle, 0.0) / width), value)
        return sign * value

    return original


def along(model: Model, best: Sequence[float]) -> dict[str, Slice]:
    """The model along every parameter that is active at a point, through that point.

    What becomes active on the way is in the middle of its range.
    """
    space, base = model.space, jnp.asarray(best)
    active = space.active(base)
    start = jnp.where(active, base, 0.5)
    places = {name: _places(space.parameters[name]) for name, here in zip(space.names, active, strict=True) if here}
    rows = [jnp.tile(start[None, :], (len(at), 1)).at[:, space.names.index(name)].set(at) for name, at in places.items()]
    prediction = model.surrogate.predict(model.state, space.snap(jnp.concatenate(rows)))  # at once: one shape to compile
    mean, std = (np.asarray(each)[0] for each in prediction)
    slices, begin = {}, 0
    for name, at in places.items():
        here, begin = slice(begin, begin + len(at)), begin + len(at)
        parameter = space.parameters[name]
        values = np.asarray(parameter.value(at))
        slices[name] = Slice([parameter.decode(value) for value in values], _quantiles(model, mean[here], std[here]))
    return slices


def _places(parameter: Parameter) -> Array:
    """Column values from one end to the other: every option, or enough for a smooth line."""
    n = parameter.options if isinstance(parameter, Choice) else _FINE
    return jnp.unique(parameter.snap(jnp.linspace(0.0, 1.0, n)))


def left_out(model: Model) -> tuple[np.ndarray, Quantiles]:
    """For each trial, what the others say of it: its standardised residual, and the quantiles.

    Rasmussen & Williams 2006, eqs 5.10–5.12; the hyperparameters are those of the fit to all.
    """
    posterior = model.state.posterior
    seen = np.asarray(model.data.mask[:, 0])
    half = np.asarray(solve_lower(posterior.lower[0], jnp.eye(len(seen))))
    precision = (half**2).sum(axis=0)[seen]
    residual, std = np.asarray(posterior.alpha[0])[seen] / precision, 1.0 / np.sqrt(precision)
    mean = np.asarray(model.data.y[:, 0])[seen] - residual
    return residual / std, _quantiles(model, mean, std)


def _quantiles(model: Model, mean: np.ndarray, std: np.ndarray) -> Quantiles:
    ends = sorted((model.original(mean - 1.96 * std), model.original(mean + 1.96 * std)), key=lambda each: each.sum())
    return Quantiles(ends[0], model.original(mean), ends[1])
