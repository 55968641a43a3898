"""A Gaussian process with a sparse prior over columns, sampled by NUTS: for many dimensions."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from bonas import gp as gaussian
from bonas.data import Dataset, empty
from bonas.gp import Kernel, Noise, Posterior, priors
from bonas.half_capacity import call_on_half
from bonas.infer import Target, all_finite, choose, nuts
from bonas.spaces import Space
from bonas.static_settings import check_counts, check_not_negative
from bonas.surrogates.lazy_cond import lazy_cond
from bonas.surrogates.noise_samples import noise_samples
from bonas.surrogates.surrogate import FitInfo, PosteriorSurrogate, replicate


class SAASState(NamedTuple):
    """State of `saas`: hyperparameter samples and the posterior given each."""

    z: Any  # (s, ...) unconstrained hyperparameters
    posterior: Posterior  # (s, ...)
    diverging: Array  # () bool: whether a trajectory of the last chain diverged
    fits: Array  # () int: the number of fits, with or without a new chain


@dataclass(frozen=True)
class SAAS(PosteriorSurrogate):
    """Gaussian process surrogate with a sparse prior over columns; see `saas`."""

    kernel: Kernel
    noise: Noise = priors.log_normal_noise
    samples: int = 16
    thin: int = 4
    burn: int = 128
    depth: int = 6
    every: int = 10

    has_evidence = True

    def init(self, capacity: int, d: int, p: int = 1) -> SAASState:
        data = empty(capacity, d, p)
        z = replicate(self._target(data).start, self.samples)
        return SAASState(
            z, self._condition(z, data), jnp.asarray(False), jnp.asarray(0)
        )

    def fit(
        self, key: PRNGKeyArray, data: Dataset, state: SAASState
    ) -> tuple[SAASState, FitInfo]:
        last = jax.tree.map(lambda leaf: leaf[-1], state.z)
        fits = state.fits
        power_of_two = fits & (fits - 1) == 0
        z, diverging = lazy_cond(
            (fits % self.every == 0) | ((fits < self.every) & power_of_two),
            lambda: call_on_half(self._run_chain, data, key, last),
            lambda: (state.z, state.diverging),
        )
        finite = all_finite(z)
        z = choose(finite, z, state.z)
        state, info = self.refresh(
            data, SAASState(z, state.posterior, diverging, fits + 1)
        )
        finite = finite & info.finite
        return state, info._replace(converged=finite & ~diverging, finite=finite)

    def update(self, data: Dataset, state: SAASState) -> SAASState:
        return state._replace(posterior=self._condition(state.z, data))

    def refresh(self, data: Dataset, state: SAASState) -> tuple[SAASState, FitInfo]:
        state = self.update(data, state)
        evidence = _log_evidence(state.posterior).mean()
        finite = jnp.isfinite(evidence)
        return state, FitInfo(
            log_density=evidence,
            converged=finite & ~state.diverging,
            finite=finite,
            jitter=state.posterior.jitter.max(),
        )

    def noise_variance(self, state: SAASState) -> Float[Array, " s"]:
        return noise_samples(self, self._target, state)

    def adapt(self, space: Space) -> "SAAS":
        if any(parameter.when is not None for parameter in space.parameters.values()):
            raise ValueError(
                "surrogates.saas does not support conditional parameters; use surrogates.gp()"
            )
        return replace(
            self, kernel=gaussian.with_categories(self.kernel, space.categories)
        )

    def _target(self, data: Dataset) -> Target:
        return gaussian.hyperposterior(self.kernel, data, noise=self.noise)

    def _condition(self, z: Any, data: Dataset) -> Posterior:
        params = jax.vmap(self._target(data).constrain)(z)
        return gaussian.condition_all(self.kernel, params, data, noise=self.noise)

    def _run_chain(
        self, data: Dataset, key: PRNGKeyArray, last: Any
    ) -> tuple[Any, Array]:
        z, info = nuts(
            key,
            self._target(data).sampling,
            last,
            samples=self.samples,
            burn=self.burn,
            thin=self.thin,
            depth=self.depth,
        )
        return z, info.diverging.any()


def saas(
    *,
    alpha: ArrayLike = 0.1,
    noise: Noise = priors.log_normal_noise,
    samples: int = 16,
    thin: int = 4,
    burn: int = 128,
    depth: int = 6,
    every: int = 10,
) -> SAAS:
    """Model the objective by a Matérn 5/2 GP with a sparse prior over columns, sampled by NUTS.

    This is the SAAS prior of Eriksson & Jankowiak 2021, who keep 16 of 256 draws after 512 draws of
    burn-in at every ask. The options of a Choice are unordered; conditional parameters are not
    supported.

    `FitInfo.log_density` is the mean log evidence over the draws, because the log density of the
    hyperparameters varies between draws by about the number of columns.

    Args:
        alpha: The scale of the half-Cauchy prior of the global shrinkage, as in `gp.saas`.
        noise: The noise variance, as in `surrogates.gp`.
        samples: The number of draws to keep, over which acquisitions are averaged.
        thin: Keep one in `thin` draws.
        burn: The number of draws to discard first. A chain starts where the last one ended.
        depth: The maximum tree depth of NUTS; a trajectory has at most 2^depth leapfrog steps.
        every: Run a chain at every `every`-th fit, and before that at intervals that double from 1;
            other fits condition the draws on the new data. A few new values change the
            hyperparameters less the more data there are.
    """
    check_counts(samples=samples, thin=thin, depth=depth, every=every)
    check_not_negative(burn=burn)
    variance = gaussian.check_noise(noise)
    return SAAS(gaussian.saas(alpha), variance, samples, thin, burn, depth, every)


def _log_evidence(posterior: Posterior) -> Float[Array, " s"]:
    """Return the log evidence of each sample from its Cholesky factor."""
    data = posterior.data  # (s, n, ...)
    n = data.mask[:, :, 0].sum(axis=1)
    half_log_det = jnp.log(jnp.diagonal(posterior.lower, axis1=1, axis2=2)).sum(axis=1)
    quadratic = jnp.einsum("sn,sn->s", data.y[:, :, 0], posterior.alpha)
    return -0.5 * (quadratic + n * math.log(2.0 * math.pi)) - half_log_det
