"""Gaussian processes as surrogates, by any method of inference."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas import gp as gaussian
from bonas.data import Dataset, empty, within
from bonas.gp import Kernel, Mean, Posterior, Prediction, priors
from bonas.gp.hyper import Noise
from bonas.infer import Info, Target, hmc, maximise, nuts, slice_sample
from bonas.spaces import Space
from bonas.surrogates.interface import FitInfo, Surrogate
from bonas.surrogates.posteriors import covariance_each, predict_each, sample_in_turn


class GPState(NamedTuple):
    """Hyperparameter samples and the posteriors under them."""

    z: Any  # (s, ...) unconstrained hyperparameters
    scale: Array  # widths of slice sampling, where it is used
    posterior: Posterior  # (s, ...)


@cache
def gp(
    kernel: Kernel | None = None,
    *,
    noise: Noise = priors.log_normal_noise,
    mean: Mean = gaussian.zero,
    infer: str = "map",
    samples: int = 16,
    steps: int = 10,
    restarts: int = 0,
    burn: int | None = None,
) -> Surrogate:
    """A Gaussian process with its hyperparameters inferred anew at every fit, from the last fit's.

    kernel: by default the one that suits the space of the search (`default_kernel`). A given one is told by the search
        which columns are options, so none is taken for a number.
    infer: "map" (the optimum found by `steps` evaluations from the last one, at first the middle of the prior, and by as
        many from each of `restarts` draws of the prior), "slice", "hmc" or "nuts" (`samples` draws, over which
        acquisitions are averaged).
    burn: draws that are thrown away first, from where the last fit ended: by default 2 sweeps of "slice", which also adapt
        its widths, as many as `samples` for "hmc" and four times as many for "nuts".
    """
    if infer not in _METHODS:
        raise ValueError(f"infer is one of {', '.join(_METHODS)}; got {infer!r}")
    chosen = kernel or gaussian.blend()
    s = 1 if infer == "map" else samples

    def target_of(data: Dataset) -> Target:
        return gaussian.hyperposterior(chosen, data, noise=noise, mean=mean)

    def condition(target: Target, z, data: Dataset) -> Posterior:
        return gaussian.condition_all(chosen, jax.vmap(target.constrain)(z), data, noise=noise, mean=mean)

    def init(capacity: int, d: int, p: int = 1) -> GPState:
        data = empty(capacity, d, p)
        target = target_of(data)
        z = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (s, *leaf.shape)), target.start)
        width = sum(leaf.size for leaf in jax.tree.leaves(target.start))
        return GPState(z, jnp.ones(width), condition(target, z, data))

    def fit(key: Array, data: Dataset, state: GPState) -> tuple[GPState, FitInfo]:
        def infer_from(data, key, last, scale):
            return _METHODS[infer](key, target_of(data), last, scale, samples=s, steps=steps, restarts=restarts, burn=burn)

        z, info, scale = within(infer_from, data, key, jax.tree.map(lambda leaf: leaf[-1], state.z), state.scale)
        fine = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(z)]).all()
        z = jax.tree.map(lambda new, old: jnp.where(fine, new, old), z, state.z)
        posterior = condition(target_of(data), z, data)
        converged = fine & jnp.where(infer == "map", info.accept.all(), ~info.diverging.any())
        return GPState(z, scale, posterior), FitInfo(info.log_density.mean(), converged, fine, posterior.jitter.max())

    def update(data: Dataset, state: GPState) -> GPState:
        return state._replace(posterior=condition(target_of(data), state.z, data))

    def refresh(data: Dataset, state: GPState) -> tuple[GPState, FitInfo]:
        target, yes = target_of(data), jnp.asarray(True)
        density = jax.vmap(target.maximising if infer == "map" else target.sampling)(state.z).mean()  # the one that fit reports
        state = update(data, state)
        return state, FitInfo(density, yes, yes, state.posterior.jitter.max())

    def predict(state: GPState, x: Array) -> Prediction:
        return predict_each(state.posterior, x)

    def covariance(state: GPState, x: Array, at: Array) -> Array:
        return covariance_each(state.posterior, x, at)

    def sample(key: Array, state: GPState, x: Array, k: int) -> Array:
        return sample_in_turn(key, state.posterior, x, k)

    def adapt(space: Space) -> Surrogate:
        fitting = gaussian.without_order(kernel, space.categories) if kernel else default_kernel(space)
        gaussian.hyperprior(fitting, space.dim, noise=noise, mean=mean)  # a kernel for another space is refused here
        return gp(fitting, noise=noise, mean=mean, infer=infer, samples=samples, steps=steps, restarts=restarts, burn=burn)

    return Surrogate(init, fit, update, predict, covariance, sample, adapt, refresh)


def default_kernel(space: Space) -> Kernel:
    """A blend of smooth and rough, or Matérn 5/2 on arcs where parameters come and go; options have no order."""
    if any(parameter.when is not None for parameter in space.parameters.values()):
        return gaussian.arc(space)
    return gaussian.without_order(gaussian.blend(), space.categories)


def _map(key, target, last, scale, *, samples, steps, restarts, burn) -> tuple[Any, Info, Array]:
    """The optimum near the last one, or near a draw from the prior."""
    z, info = maximise(key, target.maximising, last, draw=target.draw, restarts=restarts, steps=steps)
    return z, info, scale


def _slice(key, target, last, scale, *, samples, steps, restarts, burn):
    z, info = slice_sample(key, target.sampling, last, samples=samples, burn=2 if burn is None else burn, width=scale)
    return z, info, info.scale


def _hmc(key, target, last, scale, *, samples, steps, restarts, burn):
    z, info = hmc(key, target.sampling, last, samples=samples, burn=samples if burn is None else burn, step_size=0.05)
    return z, info, scale


def _nuts(key, target, last, scale, *, samples, steps, restarts, burn):
    z, info = nuts(key, target.sampling, last, samples=samples, burn=4 * samples if burn is None else burn)
    return z, info, scale


_METHODS = {"map": _map, "slice": _slice, "hmc": _hmc, "nuts": _nuts}
