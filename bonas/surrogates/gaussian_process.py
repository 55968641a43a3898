"""Gaussian processes as surrogates, with hyperparameters inferred by optimization or sampling."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from bonas import gp as gaussian
from bonas.data import Dataset, empty
from bonas.gp import Kernel, Mean, Noise, Posterior, check_noise, priors
from bonas.half_capacity import call_on_half
from bonas.infer import Info, Target, all_finite, choose, maximize
from bonas.spaces import Space
from bonas.static_settings import check_counts, check_not_negative, check_option
from bonas.surrogates.hyperparameter_samplers import METHODS, Infer, choose_sampler
from bonas.surrogates.noise_samples import noise_samples
from bonas.surrogates.surrogate import FitInfo, PosteriorSurrogate, replicate

# From this number of observations on, one more hardly changes the hyperparameters. An optimization
# then begins with a short step, as the density is narrow, and ends when the next step would
# increase the log density by less than the second number.
_MANY = 64
_LEAST_GAIN = 0.02


class GPState(NamedTuple):
    """State of a Gaussian process: hyperparameter samples and the posterior given each."""

    z: Any  # (s, ...) unconstrained hyperparameters
    scale: Array  # (k,) widths of slice sampling, one for each of k hyperparameters
    posterior: Posterior  # (s, ...)


@dataclass(frozen=True)
class GaussianProcess(PosteriorSurrogate):
    """Gaussian process surrogate; see `gp`."""

    kernel: Kernel | None = None
    noise: Noise = priors.log_normal_noise
    mean: Mean = gaussian.zero
    infer: Infer = "map"
    samples: int = 16
    steps: int = 10
    restarts: int = 0
    burn: int | None = None

    has_evidence = True

    def init(self, capacity: int, d: int, p: int = 1) -> GPState:
        data = empty(capacity, d, p)
        start = self._target(data).start
        z = replicate(start, 1 if self.infer == "map" else self.samples)
        size = sum(leaf.size for leaf in jax.tree.leaves(start))
        return GPState(z, jnp.ones(size), self._condition(z, data))

    def fit(
        self, key: PRNGKeyArray, data: Dataset, state: GPState
    ) -> tuple[GPState, FitInfo]:
        last = jax.tree.map(lambda leaf: leaf[-1], state.z)
        z, info = call_on_half(self._infer, data, key, last, state.scale)
        finite = all_finite(z) & jnp.isfinite(info.log_density).all()
        z = choose(finite, z, state.z)
        posterior = self._condition(z, data)
        converged = info.accept.all() if self.infer == "map" else ~info.diverging.any()
        scale = info.scale if self.infer == "slice" else state.scale
        return GPState(z, scale, posterior), FitInfo(
            info.log_density.mean(), finite & converged, finite, posterior.jitter.max()
        )

    def update(self, data: Dataset, state: GPState) -> GPState:
        return state._replace(posterior=self._condition(state.z, data))

    def refresh(self, data: Dataset, state: GPState) -> tuple[GPState, FitInfo]:
        target = self._target(data)
        log_density = target.maximizing if self.infer == "map" else target.sampling
        density = jax.vmap(log_density)(state.z).mean()
        state = self.update(data, state)
        finite = jnp.isfinite(density)
        return state, FitInfo(density, finite, finite, state.posterior.jitter.max())

    def noise_variance(self, state: GPState) -> Array:
        return noise_samples(self, self._target, state)

    def adapt(self, space: Space) -> "GaussianProcess":
        kernel = (
            gaussian.with_categories(self.kernel, space.categories)
            if self.kernel
            else default_kernel(space)
        )
        # Raises a ValueError if the kernel was made for another space.
        gaussian.hyperprior(kernel, space.dim, noise=self.noise, mean=self.mean)
        return replace(self, kernel=kernel)

    def _target(self, data: Dataset) -> Target:
        kernel = self.kernel or gaussian.blend()
        return gaussian.hyperposterior(kernel, data, noise=self.noise, mean=self.mean)

    def _condition(self, z: Any, data: Dataset) -> Posterior:
        kernel = self.kernel or gaussian.blend()
        params = jax.vmap(self._target(data).constrain)(z)
        return gaussian.condition_all(
            kernel, params, data, noise=self.noise, mean=self.mean
        )

    def _infer(
        self, data: Dataset, key: PRNGKeyArray, last: Any, scale: Array
    ) -> tuple[Any, Info]:
        """Return hyperparameters (s, ...) and diagnostics."""
        target = self._target(data)
        if self.infer == "map":
            few = data.size < _MANY
            return maximize(
                key,
                target.maximizing,
                last,
                draw=target.draw,
                restarts=self.restarts,
                steps=self.steps,
                first_step=jnp.where(few, 1.0, (4.0 / data.size).astype(data.y.dtype)),
                stop_below=_LEAST_GAIN * ~few,
            )
        sampler = choose_sampler(self.infer, scale, self.samples, self.burn)
        return sampler(key, target.sampling, last)


def gp(
    kernel: Kernel | None = None,
    *,
    noise: Noise = priors.log_normal_noise,
    mean: Mean = gaussian.zero,
    infer: Infer = "map",
    samples: int = 16,
    steps: int = 10,
    restarts: int = 0,
    burn: int | None = None,
) -> GaussianProcess:
    """Model the objective by a Gaussian process whose hyperparameters are inferred at every fit.

    Args:
        kernel: The kernel. Default: `default_kernel(space)`. A search adapts a given kernel to its
            space, so that the options of a Choice are unordered.
        noise: The noise variance of the standardized values, which have mean 0 and variance 1: a
            number, an array () that may be traced, a prior, or a function without arguments that
            returns one of these. For the noise of each observation see `bayes(known_noise=True)`.
        mean: The mean function.
        infer: "map" maximizes the posterior; "slice", "hmc" and "nuts" draw samples, over which
            acquisitions are averaged. Inference starts from the hyperparameters of the last fit.
        samples: The number of hyperparameter samples of "slice", "hmc" and "nuts".
        steps: The number of density evaluations of each optimization of "map".
        restarts: The number of additional optimizations of "map", started from draws of the prior.
        burn: The number of samples to discard first. Default: 2 for "slice", which also adapt its
            widths, `samples` for "hmc" and four times as many for "nuts".
    """
    check_option("infer", infer, METHODS)
    check_counts(samples=samples, steps=steps)
    check_not_negative(restarts=restarts, burn=burn)
    return GaussianProcess(
        kernel, check_noise(noise), mean, infer, samples, steps, restarts, burn
    )


def default_kernel(space: Space) -> Kernel:
    """Return the default kernel for a space.

    It is `gp.arc(space)` if the space has conditional parameters, else `gp.blend()` with unordered
    options.
    """
    if space.conditions:
        return gaussian.arc(space)
    return gaussian.with_categories(gaussian.blend(), space.categories)
