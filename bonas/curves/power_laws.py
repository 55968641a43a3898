"""Power-law learning curves: an ensemble over exponents, weighted by their fit to each network."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from bonas import gp
from bonas.curves.curve_model import CurveModel, PartialCurves, fit_parameters
from bonas.data import Dataset, clean, empty, standardize
from bonas.gp import Kernel, Posterior, exact, joint_predictions
from bonas.infer import Target, target
from bonas.surrogates import FitInfo

# Exponents b of c + a t^−b. The smallest is almost a logarithm.
_EXPONENTS = tuple(np.geomspace(0.03, 4.0, 64))
# Rounds of expectation maximization per fit, starting from the last population.
_ROUNDS = 10
# Prior noise, relative to the variance of all values, with the weight of one observation.
_NOISE = 1e-4
# Weight, in networks, of a uniform prior over shapes. With few networks, it gives probability to
# exponents that have not been observed.
_UNIFORM_NETWORKS = 8.0
# A curve that reduces the variance of its final value by less than this fraction is uninformative.
_LEAST_GAIN = 0.01


class Population(NamedTuple):
    """Distribution of the final value f and the amplitude a of curves over networks."""

    mean: Array  # (2,) of (f, a)
    cov: Array  # (2, 2) of (f, a)
    noise: Array  # () variance of values about their curve
    weight: Array  # (e,) probability of each shape


class PowerLawState(NamedTuple):
    """State of a power-law model: the population, and the posterior of the final values."""

    population: Population
    z: Any  # unconstrained kernel parameters
    final: Posterior
    level: Array  # () subtracted from every value
    scale: Array  # () divisor of every value
    times: Array  # (c,) share of the whole training at each checkpoint


class _Fits(NamedTuple):
    """Posterior moments of f and a of n networks under each of e shapes."""

    f: Array  # (n, e) mean of f
    a: Array  # (n, e) mean of a
    ff: Array  # (n, e) variance of f
    fa: Array  # (n, e) covariance of f and a
    aa: Array  # (n, e) variance of a
    log_share: Array  # (n, e) log probability of the shape
    error: Array  # (n, e) expected sum of squares about the curve


@dataclass(frozen=True)
class PowerLaw(CurveModel):
    """Power-law model of learning curves; see `curves.power_law`."""

    kernel: Kernel
    steps: int

    def init(
        self,
        capacity: int,
        d: int,
        times: Float[Array, " c"],
    ) -> PowerLawState:
        """Return a state without data, with parameters at the middle of the prior."""
        data = empty(capacity, d)
        noise = jnp.ones(capacity, data.y.dtype)
        e = len(_EXPONENTS)
        weight = jnp.full(e, 1.0 / e)
        population = Population(jnp.zeros(2), jnp.eye(2), jnp.asarray(0.01), weight)
        z = self.hyperposterior(data, noise).start
        final = self._condition(z, data, noise)
        return PowerLawState(
            population,
            z,
            final,
            jnp.zeros(()),
            jnp.ones(()),
            times,
        )

    def fit(
        self,
        key: PRNGKeyArray,
        data: Dataset,
        state: PowerLawState,
    ) -> tuple[PowerLawState, FitInfo]:
        """Fit the population, then the Gaussian process of final values, from the last state."""
        data, level, scale = standardize(clean(data))
        shapes = curve_shapes(state.times)

        def learn(_: Array, last: Population) -> Population:
            return _learn_population(last, shapes, data)

        population = jax.lax.fori_loop(0, _ROUNDS, learn, state.population)
        value, noise = _observe_final(population, shapes, data)
        rows = Dataset(
            data.x, value[:, None], data.mask.any(axis=1, keepdims=True), data.size
        )
        z, info = fit_parameters(
            key,
            self.hyperposterior,
            rows,
            state.z,
            self.steps,
            noise,
        )
        final = self._condition(z, rows, noise)
        fitted = PowerLawState(
            population,
            z,
            final,
            level,
            scale,
            state.times,
        )
        return fitted, info._replace(jitter=final.jitter)

    def sample(
        self,
        key: PRNGKeyArray,
        state: PowerLawState,
        x: Float[Array, "m d"],
        observed: PartialCurves,
        k: int,
    ) -> Float[Array, "k m c"]:
        """Draw k continuations of the curves at x, with jointly drawn final values."""
        final_key, shape_key, fall_key = jax.random.split(key, 3)
        population = state.population
        shapes = curve_shapes(state.times)
        f = population.mean[0] + joint_predictions.sample(final_key, state.final, x, k)
        y = jnp.where(observed.mask, (observed.y - state.level) / state.scale, 0.0)
        share = jnp.exp(_fit_shapes(population, shapes, y, observed.mask).log_share)
        cumulative = jnp.cumsum(share, axis=1)[:, :-1]
        uniform = jax.random.uniform(shape_key, (k, len(x)), x.dtype)
        shape = shapes[(uniform[:, :, None] > cumulative[None]).sum(axis=2)]
        mean, std = _amplitude_moments(
            population,
            shape,
            f,
            y,
            observed.mask,
        )
        a = mean + std * jax.random.normal(fall_key, mean.shape, mean.dtype)
        return state.level + state.scale * (f[:, :, None] + a[:, :, None] * shape)

    def hyperposterior(self, data: Dataset, noise: Float[Array, " capacity"]) -> Target:
        """Return the posterior of the kernel parameters given observed final values."""
        size = len(data.x)
        return target(
            self.kernel.prior(data.x.shape[1]),
            lambda params: exact.log_evidence(
                self.kernel, params, data, noise=noise[:size]
            ),
        )

    def _condition(
        self,
        z: Any,
        data: Dataset,
        noise: Float[Array, " n"],
    ) -> Posterior:
        params = self.hyperposterior(data, noise).constrain(z)
        return exact.condition(self.kernel, params, data, noise=noise)


def power_law(kernel: Kernel | None = None, *, steps: int = 10) -> PowerLaw:
    """Model learning curves by an ensemble of power laws, y(t) = f + a φ(t) + noise.

    The 64 shapes φ are powers t^−b, from almost a logarithm to b = 4, shifted to end at 0. Each is
    fitted to each network in closed form, and weighted by its evidence and its probability in the
    population of networks. The final value f and the amplitude a are jointly normal in the
    population, which is learned by expectation maximization, so the beginning of a curve is
    informative about its end. A curve is then one observation of f(x), a Gaussian process.

    Args:
        kernel: The kernel of the final values. Default: Matérn 5/2.
        steps: The number of density evaluations per fit, starting from the last optimum.
    """
    return PowerLaw(kernel or gp.matern52(), steps)


def curve_shapes(times: Float[Array, " c"]) -> Float[Array, "e c"]:
    """Return the shapes φ of `power_law` at the checkpoints.

    A shape is a power law that is 1 at the first checkpoint and 0 at the last. With a single
    checkpoint, which is the last, all shapes are 0.
    """
    if len(times) == 1:
        return jnp.zeros((len(_EXPONENTS), 1), times.dtype)
    raw = times[None, :] ** -jnp.asarray(_EXPONENTS, times.dtype)[:, None]
    return (raw - raw[:, -1:]) / (raw[:, :1] - raw[:, -1:])


def _fit_shapes(
    population: Population,
    shapes: Float[Array, "e c"],
    y: Float[Array, "n c"],
    mask: Bool[Array, "n c"],
) -> _Fits:
    """Fit every shape to every curve: Bayesian linear regression on the columns 1 and φ."""
    seen = mask.astype(y.dtype)
    noise = population.noise
    values = seen * y
    observed = seen.sum(axis=1, keepdims=True)
    total = values.sum(axis=1, keepdims=True)
    square = (values * y).sum(axis=1, keepdims=True)
    first = seen @ shapes.T
    second = seen @ (shapes**2).T
    along = values @ shapes.T
    prior = _inverse(population.cov)
    shift = prior @ population.mean
    precision_ff = prior[0, 0] + observed / noise
    precision_fa = prior[0, 1] + first / noise
    precision_aa = prior[1, 1] + second / noise
    shift_f = shift[0] + total / noise
    shift_a = shift[1] + along / noise
    determinant = precision_ff * precision_aa - precision_fa**2
    ff = precision_aa / determinant
    fa = -precision_fa / determinant
    aa = precision_ff / determinant
    f = ff * shift_f + fa * shift_a
    a = fa * shift_f + aa * shift_a
    # up to terms that are equal for all shapes of a curve
    evidence = 0.5 * (shift_f * f + shift_a * a - jnp.log(determinant))
    log_share = jax.nn.log_softmax(
        jnp.log(population.weight)[None, :] + evidence, axis=1
    )
    error = (
        square
        - 2.0 * (f * total + a * along)
        + (f**2 + ff) * observed
        + 2.0 * (f * a + fa) * first
        + (a**2 + aa) * second
    )
    return _Fits(
        f,
        a,
        ff,
        fa,
        aa,
        log_share,
        jnp.maximum(error, 0.0),
    )


def _learn_population(
    population: Population,
    shapes: Float[Array, "e c"],
    data: Dataset,
) -> Population:
    """Return the population after one round of EM, with a prior of the weight of one network."""
    fits = _fit_shapes(population, shapes, data.y, data.mask)
    observed = data.mask.any(axis=1)
    share = jnp.where(observed[:, None], jnp.exp(fits.log_share), 0.0)
    networks = observed.sum() + 1
    f = (share * fits.f).sum() / networks
    a = (share * fits.a).sum() / networks
    ff = (share * (fits.ff + (fits.f - f) ** 2)).sum() + 1.0
    fa = (share * (fits.fa + (fits.f - f) * (fits.a - a))).sum()
    aa = (share * (fits.aa + (fits.a - a) ** 2)).sum() + 1.0
    uniform = _UNIFORM_NETWORKS / len(shapes)
    return Population(
        mean=jnp.stack([f, a]),
        cov=jnp.stack([jnp.stack([ff, fa]), jnp.stack([fa, aa])]) / networks,
        noise=((share * fits.error).sum() + _NOISE) / (data.mask.sum() + 1),
        weight=(share.sum(axis=0) + uniform) / (networks - 1 + _UNIFORM_NETWORKS),
    )


def _observe_final(
    population: Population,
    shapes: Float[Array, "e c"],
    data: Dataset,
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Return each curve's observation of f minus the population's mean, and its variance.

    The posterior moments of f over all shapes combine the population's prior and one observation;
    this removes the prior.
    """
    fits = _fit_shapes(population, shapes, data.y, data.mask)
    share = jnp.exp(fits.log_share)
    mean = (share * fits.f).sum(axis=1)
    variance = (share * (fits.ff + (fits.f - mean[:, None]) ** 2)).sum(axis=1)
    gain = jnp.maximum(1.0 - variance / population.cov[0, 0], _LEAST_GAIN)
    return (mean - population.mean[0]) / gain, variance / gain


def _amplitude_moments(
    population: Population,
    shape: Float[Array, "k m c"],
    f: Float[Array, "k m"],
    y: Float[Array, "m c"],
    mask: Bool[Array, "m c"],
) -> tuple[Float[Array, "k m"], Float[Array, "k m"]]:
    """Return mean and standard deviation of a given f, the shape and the observed values."""
    slope = population.cov[0, 1] / population.cov[0, 0]
    variance = _determinant(population.cov) / population.cov[0, 0]
    mean = population.mean[1] + slope * (f - population.mean[0])
    precision = 1.0 / variance + (mask[None] * shape**2).sum(axis=2) / population.noise
    fit = (mask[None] * shape * (y[None] - f[:, :, None])).sum(
        axis=2
    ) / population.noise
    return (mean / variance + fit) / precision, 1.0 / jnp.sqrt(precision)


def _determinant(cov: Float[Array, "2 2"]) -> Float[Array, ""]:
    """Return the determinant of a 2 × 2 matrix."""
    return cov[0, 0] * cov[1, 1] - cov[0, 1] * cov[1, 0]


def _inverse(cov: Float[Array, "2 2"]) -> Float[Array, "2 2"]:
    """Return the inverse of a 2 × 2 matrix."""
    first = jnp.stack([cov[1, 1], -cov[0, 1]])
    second = jnp.stack([-cov[1, 0], cov[0, 0]])
    return jnp.stack([first, second]) / _determinant(cov)
