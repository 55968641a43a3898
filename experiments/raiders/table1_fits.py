"""Fit one model to one fold, compiled once per model."""

from functools import partial

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

import bonas
from bonas import gp, infer, surrogates
from bonas.data import standardize

MEAN = gp.learned_constant()
# Noise variance of values with variance 1. All ten searches start with the same two networks, whose
# errors are equal to the last digit. Without a floor the evidence is unbounded as the noise goes to
# 0, and hyperparameters are fitted to those twenty rows.
NOISE = dist.Uniform(1e-4, 1.0)
LONGEST = 5  # a trajectory of NUTS has at most 2 to this power steps
ROUNDS = 4  # iterations of fitting and reweighting for non-Gaussian likelihoods
# degrees of freedom of Student's t: heavy tails that still have a variance
FREEDOM = 4.0


@partial(jax.jit, static_argnames=("config", "kernel", "inference", "likelihood"))
def learn(
    config,
    kernel: gp.Kernel,
    inference: str,
    likelihood: str,
    data: bonas.Dataset,
    at: Array,
    start,
    width: Array,
):
    """Return the last hyperparameters, their density, slice widths, and predictions."""
    data, center, scale = standardize(data)
    if likelihood != "Gaussian":
        z, density, mean, variance = _reweighted(
            config, kernel, likelihood, data, at, start, center / scale
        )
        return z, density, width, center + scale * mean, scale**2 * variance
    target = gp.hyperposterior(kernel, data, noise=NOISE, mean=MEAN)
    key = jax.random.key(0)
    if inference == "map":
        z, info = infer.maximize(
            key, target.maximizing, start, steps=config.evaluations
        )
    elif inference == "nuts":
        z, info = infer.nuts(
            key,
            target.sampling,
            start,
            samples=config.trajectories,
            burn=config.warmup,
            depth=LONGEST,
        )
    else:
        z, info = infer.slice_sample(
            key,
            target.sampling,
            start,
            samples=config.samples,
            burn=config.burn,
            width=width,
        )
        width = info.scale

    def predict(one):
        params = target.constrain(one)
        posterior = gp.condition(
            kernel,
            params["kernel"],
            data,
            noise=params["noise"],
            mean=MEAN,
            mean_params=params["mean"],
        )
        found = gp.predict(posterior, at)
        return found.mean, found.std**2 + params["noise"]

    mean, variance = jax.lax.map(predict, z)
    last = jax.tree.map(lambda leaf: leaf[-1], z)
    spread = variance.mean(axis=0) + mean.var(axis=0)
    return (
        last,
        info.log_density.mean(),
        width,
        center + scale * mean.mean(axis=0),
        scale**2 * spread,
    )


def _reweighted(
    config,
    kernel: gp.Kernel,
    likelihood: str,
    data: bonas.Dataset,
    at: Array,
    start,
    offset: Array,
):
    """Alternate between fitting hyperparameters and reweighting the noise of each row.

    Student's t is the EM of a scale mixture (Lange, Little & Taylor 1989) with latent values for
    residuals. Growing noise has a standard deviation proportional to the predicted error, which is
    `offset` above the standardized one. Predictions have the noise of weight 1.
    """

    def target_at(relative):
        def log_likelihood(params):
            rest = {
                "noise": params["noise"] * relative,
                "mean": MEAN,
                "mean_params": params["mean"],
            }
            return gp.log_evidence(kernel, params["kernel"], data, **rest)

        return infer.target(
            gp.hyperprior(kernel, data.x.shape[1], noise=NOISE, mean=MEAN),
            log_likelihood,
        )

    def posterior_of(params, relative):
        noise = params["noise"] * relative
        return gp.condition(
            kernel,
            params["kernel"],
            data,
            noise=noise,
            mean=MEAN,
            mean_params=params["mean"],
        )

    def turn(carry, _):
        z, relative = carry
        target = target_at(relative)
        found, info = infer.maximize(
            jax.random.key(0), target.maximizing, z, steps=config.evaluations
        )
        z = jax.tree.map(lambda leaf: leaf[0], found)
        params = target.constrain(z)
        here = gp.predict(posterior_of(params, relative), data.x)
        if likelihood == "Student":
            square = (data.y[:, 0] - here.mean) ** 2 + here.std**2
            changed = (FREEDOM + square / params["noise"]) / (FREEDOM + 1.0)
        else:
            # at least a tenth of the mean error
            changed = jnp.maximum(here.mean / offset + 1.0, 0.1) ** 2
        return (z, changed), (info.log_density[0], relative)

    (z, _), (density, relatives) = jax.lax.scan(
        turn, (start, jnp.ones(len(data.y))), length=ROUNDS
    )
    params = target_at(relatives[-1]).constrain(z)
    found = gp.predict(posterior_of(params, relatives[-1]), at)
    return z, density[-1], found.mean, found.std**2 + params["noise"]


@partial(jax.jit, static_argnames="surrogate")
def learn_networks(surrogate: surrogates.Surrogate, data: bonas.Dataset, at: Array):
    """Fit a surrogate that is not a GP; it has no hyperparameters and no slice widths."""
    data, center, scale = standardize(data)
    state, info = surrogate.fit(
        jax.random.key(0), data, surrogate.init(*data.x.shape, 1)
    )
    found = surrogate.predict(state, at)
    return (
        {},
        info.log_density,
        jnp.zeros(0),
        center + scale * found.mean[0],
        (scale * found.std[0]) ** 2,
    )
