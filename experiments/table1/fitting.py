"""Fits of one model to one fold, each compiled once: most probable or sampled hyperparameters, and other likelihoods."""

from functools import partial

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

import bonas
from bonas import gp, infer, surrogates
from bonas.data import standardise

MEAN = gp.learned_constant()
# Of values of variance 1. All ten searches begin with the same two networks, whose errors are equal to the last digit: without
# a floor the evidence grows beyond bounds as the noise goes to 0, and hyperparameters are chosen for those twenty rows.
NOISE = dist.Uniform(1e-4, 1.0)
LONGEST = 5  # a trajectory of NUTS has at most 2 to this power steps
ROUNDS = 4  # of fit and new weights, for likelihoods that are not Gaussian
FREEDOM = 4.0  # degrees of freedom of Student's t: heavy tails that still have a variance


@partial(jax.jit, static_argnames=("config", "kernel", "inference", "likelihood"))
def learn(config, kernel: gp.Kernel, inference: str, likelihood: str, data: bonas.Dataset, at: Array, start, width: Array):
    """Hyperparameters (last sample), their density, slice widths, and mean and variance of values at the points."""
    data, centre, scale = standardise(data)
    if likelihood != "Gaussian":
        z, density, mean, variance = _reweighted(config, kernel, likelihood, data, at, start, centre / scale)
        return z, density, width, centre + scale * mean, scale**2 * variance
    target = gp.hyperposterior(kernel, data, noise=NOISE, mean=MEAN)
    key = jax.random.key(0)
    if inference == "map":
        z, info = infer.maximise(key, target.maximising, start, steps=config.evaluations)
    elif inference == "nuts":
        z, info = infer.nuts(key, target.sampling, start, samples=config.trajectories, burn=config.warmup, depth=LONGEST)
    else:
        z, info = infer.slice_sample(key, target.sampling, start, samples=config.samples, burn=config.burn, width=width)
        width = info.scale

    def predict(one):
        params = target.constrain(one)
        posterior = gp.condition(kernel, params["kernel"], data, noise=params["noise"], mean=MEAN, mean_params=params["mean"])
        found = gp.predict(posterior, at)
        return found.mean, found.std**2 + params["noise"]

    mean, variance = jax.lax.map(predict, z)
    last = jax.tree.map(lambda leaf: leaf[-1], z)
    spread = variance.mean(axis=0) + mean.var(axis=0)
    return last, info.log_density.mean(), width, centre + scale * mean.mean(axis=0), scale**2 * spread


def _reweighted(config, kernel: gp.Kernel, likelihood: str, data: bonas.Dataset, at: Array, start, offset: Array):
    """As a GP whose noise differs from row to row, found in turn with the hyperparameters; noise at `at` is that of weight 1.

    Student's t: the EM of a scale mixture (Lange, Little & Taylor 1989), with latent values for residuals. Growing noise: its
    standard deviation is proportional to the error predicted, which is `offset` above the standardised one.
    """

    def target_at(relative):
        def log_likelihood(params):
            rest = {"noise": params["noise"] * relative, "mean": MEAN, "mean_params": params["mean"]}
            return gp.log_evidence(kernel, params["kernel"], data, **rest)

        return infer.target(gp.hyperprior(kernel, data.x.shape[1], noise=NOISE, mean=MEAN), log_likelihood)

    def posterior_of(params, relative):
        noise = params["noise"] * relative
        return gp.condition(kernel, params["kernel"], data, noise=noise, mean=MEAN, mean_params=params["mean"])

    def turn(carry, _):
        z, relative = carry
        target = target_at(relative)
        found, info = infer.maximise(jax.random.key(0), target.maximising, z, steps=config.evaluations)
        z = jax.tree.map(lambda leaf: leaf[0], found)
        params = target.constrain(z)
        here = gp.predict(posterior_of(params, relative), data.x)
        if likelihood == "Student":
            square = (data.y[:, 0] - here.mean) ** 2 + here.std**2
            changed = (FREEDOM + square / params["noise"]) / (FREEDOM + 1.0)
        else:
            changed = jnp.maximum(here.mean / offset + 1.0, 0.1) ** 2  # no less than a tenth of the mean error
        return (z, changed), (info.log_density[0], relative)

    (z, _), (density, relatives) = jax.lax.scan(turn, (start, jnp.ones(len(data.y))), length=ROUNDS)
    params = target_at(relatives[-1]).constrain(z)
    found = gp.predict(posterior_of(params, relatives[-1]), at)
    return z, density[-1], found.mean, found.std**2 + params["noise"]


@partial(jax.jit, static_argnames="surrogate")
def learn_networks(surrogate: surrogates.Surrogate, data: bonas.Dataset, at: Array):
    """The same by a surrogate that has its own way of learning: no hyperparameters, and no widths."""
    data, centre, scale = standardise(data)
    state, info = surrogate.fit(jax.random.key(0), data, surrogate.init(*data.x.shape, 1))
    found = surrogate.predict(state, at)
    return {}, info.log_density, jnp.zeros(0), centre + scale * found.mean[0], (scale * found.std[0]) ** 2
