"""The posterior of a Gaussian process's hyperparameters, for any method of `bonas.infer`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist

from bonas.data import Dataset
from bonas.gp import priors
from bonas.gp.exact import Posterior, check_data, condition, log_evidence
from bonas.gp.kernel import Kernel, Params, check_kernel
from bonas.gp.means import Mean, zero
from bonas.infer.target import Target, Tree, target

Noise = Any  # a number, a NumPyro distribution, or a function of nothing that makes one


def hyperposterior(kernel: Kernel, data: Dataset, *, noise: Noise = priors.log_normal_noise, mean: Mean = zero) -> Target:
    """p(params | data) over {"kernel": ..., "noise": ..., "mean": ...}, unconstrained and constrained.

    noise: a prior over the noise variance, or a number where it is known (there is then no "noise" to infer).
    """
    prior = hyperprior(kernel, data.x.shape[1], noise=noise, mean=mean)
    check_data(kernel, data)

    def log_likelihood(params):
        return log_evidence(kernel, params["kernel"], data, **_rest(params, noise, mean))

    return target(prior, log_likelihood)


def hyperprior(kernel: Kernel, d: int, *, noise: Noise = priors.log_normal_noise, mean: Mean = zero) -> Tree:
    """The prior over everything unknown, for points of d columns."""
    check_kernel(kernel)
    spread = {"noise": noise if isinstance(noise, dist.Distribution) else noise()} if _is_unknown(noise) else {}
    return {"kernel": kernel.prior(d), **spread, "mean": mean.prior(d)}


def _is_unknown(noise: Noise) -> bool:
    return isinstance(noise, dist.Distribution) or callable(noise)


def condition_all(
    kernel: Kernel, params: Params, data: Dataset, *, noise: Noise = priors.log_normal_noise, mean: Mean = zero
) -> Posterior:
    """One posterior for each of s hyperparameter samples, leaves (s, ...): what `infer` gives, constrained.

    noise and mean are those given to `hyperposterior`.
    """
    inferred = set(params.get("mean", {})), "noise" in params
    if inferred != (set(mean.prior(data.x.shape[1])), _is_unknown(noise)):
        raise ValueError("pass the same noise= and mean= as to hyperposterior: these samples were inferred with others")
    return jax.vmap(lambda p: condition(kernel, p["kernel"], data, **_rest(p, noise, mean)))(params)


def _rest(params, noise, mean):
    level = params["noise"] if "noise" in params else jnp.asarray(noise)
    return {"noise": level, "mean": mean, "mean_params": params["mean"]}
