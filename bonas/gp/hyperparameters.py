"""The posterior of a Gaussian process's hyperparameters, for any method of `bonas.infer`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist

from bonas.data import Dataset
from bonas.gp.exact import (
    Mean,
    Posterior,
    check_data,
    check_mean,
    condition,
    log_evidence,
    zero,
)
from bonas.gp.kernel import Kernel, Params, check_kernel
from bonas.gp.noise_settings import Noise, resolve_noise
from bonas.gp.starting_point import has_centered_leaf, leave_saddle
from bonas.infer import Target, Tree, is_distribution, target


def log_normal_noise() -> dist.Distribution:
    """Return the default prior of the noise variance, with median 3e-4.

    It is log-normal, with 95% of its mass within a factor of 50 of the median.
    """
    return dist.LogNormal(-8.0, 2.0)


def hyperposterior(
    kernel: Kernel,
    data: Dataset,
    *,
    noise: Noise = log_normal_noise,
    mean: Mean = zero,
) -> Target:
    """Return the posterior of the hyperparameters, for the methods of `bonas.infer`.

    The hyperparameters are nested dicts {"kernel": ..., "noise": ..., "mean": ...}.

    Args:
        kernel: The kernel.
        data: Observations of one output.
        noise: The prior of the noise variance, or a number or an array if it is known, in which
            case "noise" is not among the hyperparameters.
        mean: The prior mean.
    """
    prior = hyperprior(kernel, data.x.shape[1], noise=noise, mean=mean)
    check_data(kernel, data)

    def log_likelihood(params: Params, data: Dataset = data) -> jax.Array:
        return log_evidence(
            kernel, params["kernel"], data, **_noise_and_mean(params, noise, mean)
        )

    posterior = target(prior, log_likelihood)
    if has_centered_leaf(prior):  # such as the weights of a network
        return leave_saddle(posterior, prior, log_likelihood, data.x)
    return posterior


def hyperprior(
    kernel: Kernel, d: int, *, noise: Noise = log_normal_noise, mean: Mean = zero
) -> Tree:
    """Return the prior of all unknown hyperparameters, for points of d columns.

    Arguments as in `hyperposterior`.
    """
    check_kernel(kernel)
    check_mean(mean)
    prior = {"kernel": kernel.prior(d), "mean": mean.prior(d)}
    variance = resolve_noise(noise)
    if is_distribution(variance):
        prior["noise"] = variance
    if not jax.tree.leaves(prior, is_leaf=is_distribution):
        prior["unused"] = dist.Uniform()  # samplers need a parameter
    return prior


def condition_all(
    kernel: Kernel,
    params: Params,
    data: Dataset,
    *,
    noise: Noise = log_normal_noise,
    mean: Mean = zero,
) -> Posterior:
    """Return the posterior of the function for each of s samples of the hyperparameters.

    Args:
        kernel: The kernel.
        params: Constrained hyperparameters with leaves (s, ...), nested dicts as in
            `hyperposterior`.
        data: Observations of one output.
        noise, mean: Those given to `hyperposterior`.

    Returns:
        A posterior with leaves (s, ...).
    """
    inferred = set(params.get("mean", {})), "noise" in params
    is_unknown = is_distribution(resolve_noise(noise))
    if inferred != (set(mean.prior(data.x.shape[1])), is_unknown):
        raise ValueError(
            "params do not match noise= and mean=; "
            "pass the noise= and mean= that were given to hyperposterior"
        )

    def condition_one(sample: Params) -> Posterior:
        return condition(
            kernel, sample["kernel"], data, **_noise_and_mean(sample, noise, mean)
        )

    return jax.vmap(condition_one)(params)


def _noise_and_mean(params: Params, noise: Any, mean: Mean) -> dict[str, Any]:
    variance = (
        params["noise"] if "noise" in params else jnp.asarray(resolve_noise(noise))
    )
    return {"noise": variance, "mean": mean, "mean_params": params["mean"]}
