"""Learning curves c + a t^−b: an ensemble over powers b, weighted by how well each suits a network."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas import gp
from bonas.data import Dataset, empty
from bonas.gp import Kernel, Posterior, exact
from bonas.gp.gpar import Known
from bonas.infer import Target
from bonas.infer.target import target
from bonas.surrogates.curve_model import CurveModel, climb, standard
from bonas.surrogates.interface import FitInfo

_POWERS = tuple(np.geomspace(0.03, 4.0, 64))  # b of c + a t^−b; the least is a logarithm in all but name
_ROUNDS = 10  # of expectation and maximisation a fit, from where the last one ended
_NOISE = 1e-4  # of the variance of all values: what noise is expected to be, worth one observation
_EVEN = 8.0  # networks that an even share of all forms is worth: powers between those of a few networks stay likely
_LEAST_GAIN = 0.01  # a curve that says less of where it ends says nothing


class Population(NamedTuple):
    """Where curves end, f, and how far they fall from the first checkpoint to there, a: what is common to all networks."""

    mean: Array  # (2,) of (f, a)
    cov: Array  # (2, 2) of (f, a)
    noise: Array  # () variance of values about their curve
    weight: Array  # (e,) share of each form


class PowerLawState(NamedTuple):
    """The population, and the ends of curves given data."""

    population: Population
    z: Any  # unconstrained parameters of the kernel
    ends: Posterior
    level: Array  # () what was subtracted from every value ...
    scale: Array  # () ... and what it was divided by
    times: Array  # (c,) shares of the whole training


def forms(times: Array) -> Array:
    """The shapes (e, c) of curves: 1 at the first checkpoint, 0 at the last, in between as a power of the time falls.

    A single checkpoint is the last: there is nothing to fall from.
    """
    if len(times) == 1:
        return jnp.zeros((len(_POWERS), 1), times.dtype)
    raw = times[None, :] ** -jnp.asarray(_POWERS, times.dtype)[:, None]
    return (raw - raw[:, -1:]) / (raw[:, :1] - raw[:, -1:])


@cache
def power_law(kernel: Kernel | None = None, *, steps: int = 10) -> CurveModel:
    """Curves y(t) = f + a φ(t) + noise, of 64 forms φ: powers t^−b from a logarithm to b = 4, moved to end at 0.

    The forms are an ensemble: each is fitted to each network in closed form, and counts by its evidence and its share of
    all networks. f and a are normal in the population, and correlated, so that the beginning of a curve tells of its end; the
    population is learned by expectation and maximisation. What a curve says of its end, over all forms, is one observation
    of f(x), a GP (default: Matérn 5/2) which is fitted by `steps` evaluations from the last optimum.
    """
    space_kernel = kernel or gp.matern52()

    def target_of(data: Dataset, noise: Array) -> Target:
        prior = space_kernel.prior(data.x.shape[1]) if callable(space_kernel.prior) else space_kernel.prior
        size = len(data.x)
        return target(prior, lambda params: exact.log_evidence(space_kernel, params, data, noise=noise[:size]))

    def init(capacity: int, d: int, times: Array) -> PowerLawState:
        data = empty(capacity, d)
        one = jnp.ones(capacity, data.y.dtype)
        e = len(_POWERS)
        start = Population(jnp.zeros(2), jnp.eye(2), jnp.asarray(0.01), jnp.full(e, 1.0 / e))
        z = target_of(data, one).start
        ends = exact.condition(space_kernel, target_of(data, one).constrain(z), data, noise=one)
        return PowerLawState(start, z, ends, jnp.zeros(()), jnp.ones(()), times)

    def fit(key: Array, data: Dataset, state: PowerLawState) -> tuple[PowerLawState, FitInfo]:
        data, level, scale = standard(data)
        shapes = forms(state.times)
        population = jax.lax.fori_loop(0, _ROUNDS, lambda _, last: _learned(last, shapes, data), state.population)
        value, noise = _ends(population, shapes, data)
        rows = Dataset(data.x, value[:, None], data.mask.any(axis=1, keepdims=True), data.size)
        z, info = climb(key, target_of, rows, state.z, steps, noise)
        ends = exact.condition(space_kernel, target_of(rows, noise).constrain(z), rows, noise=noise)
        return PowerLawState(population, z, ends, level, scale, state.times), info._replace(jitter=ends.jitter)

    def sample(key: Array, state: PowerLawState, x: Array, known: Known, k: int) -> Array:
        f_key, form_key, fall_key = jax.random.split(key, 3)
        population, shapes = state.population, forms(state.times)
        f = population.mean[0] + exact.sample(f_key, state.ends, x, k)
        y = jnp.where(known.mask, (known.y - state.level) / state.scale, 0.0)
        below = jnp.cumsum(jnp.exp(_each(population, shapes, y, known.mask).log_share), axis=1)[:, :-1]
        chance = jax.random.uniform(form_key, (k, len(x)), x.dtype)
        shape = shapes[(chance[:, :, None] > below[None]).sum(axis=2)]
        mean, std = _fall(population, shape, f, y, known.mask)
        a = mean + std * jax.random.normal(fall_key, mean.shape, mean.dtype)
        return state.level + state.scale * (f[:, :, None] + a[:, :, None] * shape)

    return CurveModel(init, fit, sample)


class _Fits(NamedTuple):
    """f and a of n networks under each of e forms: means and covariances."""

    f: Array  # (n, e)
    a: Array  # (n, e)
    ff: Array  # (n, e)
    fa: Array  # (n, e)
    aa: Array  # (n, e)
    log_share: Array  # (n, e) log probability of the form
    error: Array  # (n, e) expected sum of squares about the curve


def _each(population: Population, shapes: Array, y: Array, mask: Array) -> _Fits:
    """Every form fitted to every curve: Bayesian linear regression on two columns, 1 and φ, written out."""
    seen, noise = mask.astype(y.dtype), population.noise
    values = seen * y
    (count, total, square) = (each.sum(axis=1, keepdims=True) for each in (seen, values, values * y))
    first, second, along = seen @ shapes.T, seen @ (shapes**2).T, values @ shapes.T
    prior = _inverse(population.cov)
    start = prior @ population.mean
    pff, pfa, paa = prior[0, 0] + count / noise, prior[0, 1] + first / noise, prior[1, 1] + second / noise
    rf, ra = start[0] + total / noise, start[1] + along / noise
    determinant = pff * paa - pfa**2
    ff, fa, aa = paa / determinant, -pfa / determinant, pff / determinant
    f, a = ff * rf + fa * ra, fa * rf + aa * ra
    evidence = 0.5 * (rf * f + ra * a - jnp.log(determinant))  # up to what the forms of a curve have in common
    log_share = jax.nn.log_softmax(jnp.log(population.weight)[None, :] + evidence, axis=1)
    error = square - 2.0 * (f * total + a * along) + (f**2 + ff) * count + 2.0 * (f * a + fa) * first + (a**2 + aa) * second
    return _Fits(f, a, ff, fa, aa, log_share, jnp.maximum(error, 0.0))


def _learned(population: Population, shapes: Array, data: Dataset) -> Population:
    """The population after one round: averages over networks, with a prior worth one network."""
    fits = _each(population, shapes, data.y, data.mask)
    here = data.mask.any(axis=1)
    share = jnp.where(here[:, None], jnp.exp(fits.log_share), 0.0)
    count = here.sum() + 1
    f, a = (share * fits.f).sum() / count, (share * fits.a).sum() / count
    ff = (share * (fits.ff + (fits.f - f) ** 2)).sum() + 1.0
    fa = (share * (fits.fa + (fits.f - f) * (fits.a - a))).sum()
    aa = (share * (fits.aa + (fits.a - a) ** 2)).sum() + 1.0
    return Population(
        mean=jnp.stack([f, a]),
        cov=jnp.stack([jnp.stack([ff, fa]), jnp.stack([fa, aa])]) / count,
        noise=((share * fits.error).sum() + _NOISE) / (data.mask.sum() + 1),
        weight=(share.sum(axis=0) + _EVEN / len(shapes)) / (count - 1 + _EVEN),
    )


def _ends(population: Population, shapes: Array, data: Dataset) -> tuple[Array, Array]:
    """What each curve says of its end, about the population's mean: values (n,) and their variances (n,).

    The moments of f over all forms are those of the population's prior and one observation; this takes the prior out.
    """
    fits = _each(population, shapes, data.y, data.mask)
    share = jnp.exp(fits.log_share)
    mean = (share * fits.f).sum(axis=1)
    variance = (share * (fits.ff + (fits.f - mean[:, None]) ** 2)).sum(axis=1)
    gain = jnp.maximum(1.0 - variance / population.cov[0, 0], _LEAST_GAIN)
    return (mean - population.mean[0]) / gain, variance / gain


def _fall(population: Population, shape: Array, f: Array, y: Array, mask: Array) -> tuple[Array, Array]:
    """Mean and deviation (k, m) of a given f (k, m), the form (k, m, c) and what was seen."""
    slope = population.cov[0, 1] / population.cov[0, 0]
    variance = _determinant(population.cov) / population.cov[0, 0]
    first = population.mean[1] + slope * (f - population.mean[0])
    precision = 1.0 / variance + (mask[None] * shape**2).sum(axis=2) / population.noise
    told = (mask[None] * shape * (y[None] - f[:, :, None])).sum(axis=2) / population.noise
    return (first / variance + told) / precision, 1.0 / jnp.sqrt(precision)


def _determinant(cov: Array) -> Array:
    """That of a matrix (2, 2)."""
    return cov[0, 0] * cov[1, 1] - cov[0, 1] * cov[1, 0]


def _inverse(cov: Array) -> Array:
    """That of a matrix (2, 2)."""
    swapped = jnp.stack([jnp.stack([cov[1, 1], -cov[0, 1]]), jnp.stack([-cov[1, 0], cov[0, 0]])])
    return swapped / _determinant(cov)
