"""Fit a Gaussian process to the trials of a study, for slices and leave-one-out predictions."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from bonas.checked_data import dataset
from bonas.data import Dataset, standardize
from bonas.linalg import solve_lower
from bonas.search import OUTPUT_SCALES, invert_scale
from bonas.spaces import Space, column_values, rows_along
from bonas.study import MAX_ROWS, SubsetSurrogate, divide_huge
from bonas.surrogates import Surrogate, gp

# Smallest number of trials of a fit.
MIN_TRIALS = 5
# A fit uses at most this number of trials, so that it takes about a second: half of them are the
# best, the others the latest.
MAX_TRIALS = 256
# Number of fits in sequence, each starting from the last.
_N_FITS = 5
# Number of points along a parameter.
_N_POINTS = 61


class FittedModel(NamedTuple):
    """A Gaussian process fitted to trial values, on the output scale with the highest evidence."""

    space: Space
    data: Dataset  # standardized on that scale
    surrogate: Surrogate
    state: Any
    # from standardized outputs to trial values
    to_values: Callable[[np.ndarray], np.ndarray]
    scale: str  # "plain", "log" or "tails"
    rows: tuple[int, ...]  # the trials it was fitted to


class Quantiles(NamedTuple):
    """The median and the ends of the central 95% interval of predictions, as trial values."""

    low: Float[np.ndarray, " n"]
    middle: Float[np.ndarray, " n"]
    high: Float[np.ndarray, " n"]


class Slice(NamedTuple):
    """Predictions of the model along one parameter, with all others fixed."""

    at: list[Any]  # values of the parameter
    values: Quantiles


def fit_model(
    space: Space,
    u: Sequence[Sequence[float]],
    values: Sequence[float],
    *,
    sign: float = 1.0,
    seed: int = 0,
) -> FittedModel:
    """Fit a Gaussian process to trial values, on the output scale with the highest evidence.

    Args:
        space: The search space.
        u: Points of the unit cube, (n, d).
        values: Trial values, (n,).
        sign: 1 if low values are good, -1 if high values are.
        seed: The random seed of the fit.
    """
    costs = sign * np.asarray(values, float)
    rows = select_rows(costs)
    y, unit = divide_huge(costs[list(rows)])
    # The capacity of the importance estimate, which therefore shares the compiled program.
    capacity = max(64, 1 << (len(rows) - 1).bit_length())
    data = dataset(np.asarray(u)[list(rows)], y, capacity)
    surrogate = SubsetSurrogate(gp(), MAX_ROWS).adapt(space)
    scales = {name: OUTPUT_SCALES[name] for name in ("plain", "tails")}
    if (y > 0).all():
        scales["log"] = OUTPUT_SCALES["log"]
    fits = []
    for name, to_scale in scales.items():
        warped, slope = to_scale(data)
        scaled, mean, std = standardize(warped)
        state, density = _fit(surrogate, jax.random.key(seed), scaled)
        density += float(slope) - len(y) * float(jnp.log(std))
        to_values = inverse_scale(name, y, float(mean), float(std), sign * unit)
        model = FittedModel(space, scaled, surrogate, state, to_values, name, rows)
        fits.append((density, model))
    return max(fits, key=lambda fit: fit[0])[1]


def select_rows(costs: Float[np.ndarray, " n"]) -> tuple[int, ...]:
    """Return the rows to fit, in order: all, or the better ones and the latest others."""
    if len(costs) <= MAX_TRIALS:
        return tuple(range(len(costs)))
    half = MAX_TRIALS // 2
    order = np.argsort(costs, kind="stable")
    latest = np.sort(order[half:])[-(MAX_TRIALS - half) :]
    return tuple(sorted([*order[:half].tolist(), *latest.tolist()]))


def _fit(surrogate: Surrogate, key: PRNGKeyArray, data: Dataset) -> tuple[Any, float]:
    """Return the fitted state and its log density."""
    state = surrogate.init(len(data.x), data.x.shape[1], 1)
    fit = jax.jit(surrogate.fit)
    for i in range(_N_FITS):
        state, info = fit(jax.random.fold_in(key, i), data, state)
    return state, float(info.log_density)


def inverse_scale(
    name: str, y: Float[np.ndarray, " n"], mean: float, std: float, factor: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from standardized outputs on a scale to trial values.

    It limits values that would be infinite.

    Args:
        name: Name of the scale, one of `bonas.search.OUTPUT_SCALES`.
        y: Values that were scaled.
        mean: Mean of the scaled values.
        std: Standard deviation of the scaled values.
        factor: Factor from values of `y` to trial values.
    """
    largest = sys.float_info.max / max(abs(factor), 1.0)
    n = len(y)
    rows = Dataset._make([np.zeros((n, 1)), y[:, None], np.ones((n, 1), bool), n, None])
    inverse = invert_scale(OUTPUT_SCALES[name], rows, largest=largest, xp=np)

    def to_values(standardized: np.ndarray) -> np.ndarray:
        values: np.ndarray = inverse(mean + std * standardized)
        return factor * values

    return to_values


def slice_model(model: FittedModel, point: Sequence[float]) -> dict[str, Slice]:
    """Evaluate the model along every parameter that is active at a point, through that point.

    A parameter that becomes active along a slice takes its middle value.
    """
    space = model.space
    base = jnp.asarray(point)
    columns = {
        name: column_values(space.parameters[name], _N_POINTS)
        for name, is_active in zip(space.names, space.active(base), strict=True)
        if is_active
    }
    rows = [rows_along(space, base, name, at) for name, at in columns.items()]
    # One prediction for all parameters, so that one shape is compiled.
    prediction = model.surrogate.predict(model.state, space.snap(jnp.concatenate(rows)))
    mean, std = (np.asarray(each)[0] for each in prediction)
    slices = {}
    start = 0
    for name, at in columns.items():
        part = slice(start, start + len(at))
        start = part.stop
        parameter = space.parameters[name]
        numbers = parameter.value(jnp.asarray(at))
        values = [parameter.decode(each) for each in np.asarray(numbers)]
        slices[name] = Slice(values, _quantiles(model, mean[part], std[part]))
    return slices


def leave_one_out(model: FittedModel) -> tuple[Float[np.ndarray, " n"], Quantiles]:
    """Predict each trial from the others: standardized residuals, and quantiles.

    Rasmussen & Williams 2006, eqs. 5.10-5.12, with the hyperparameters of the fit to all trials.
    """
    posterior = model.state.posterior
    used = np.asarray(model.data.mask[:, 0])
    half = np.asarray(solve_lower(posterior.lower[0], jnp.eye(len(used))))
    precision = (half**2).sum(axis=0)[used]
    residual = np.asarray(posterior.alpha[0])[used] / precision
    std = 1.0 / np.sqrt(precision)
    mean = np.asarray(model.data.y[:, 0])[used] - residual
    return residual / std, _quantiles(model, mean, std)


def _quantiles(model: FittedModel, mean: np.ndarray, std: np.ndarray) -> Quantiles:
    one, other = (model.to_values(mean + side * 1.96 * std) for side in (-1, 1))
    # the order is reversed if values are maximized
    return Quantiles(
        np.minimum(one, other), model.to_values(mean), np.maximum(one, other)
    )
