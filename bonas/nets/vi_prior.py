"""Priors of variational networks, and the divergence of a posterior from them."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bonas.nets.bnn_vi import VI, Variational
from bonas.nets.mlp import Params

# α of the inverse-gamma prior of the variance of a layer (Hutchinson, eqs. 2.13 to 2.17; Wu et al.
# 2018).
HYPER_SHAPE = 4.4798


class Part(NamedTuple):
    """The weights or the biases of one layer."""

    mean: Array  # (incoming, units) or (units,)
    log_std: Array  # like mean
    mask: Array  # like mean, bool


def kl_terms(
    mean: Float[Array, "*shape"], log_std: Float[Array, "*shape"], prior_variance: Array
) -> Float[Array, "*shape"]:
    """Return KL(N(mean, std²) ‖ N(0, prior_variance)) of every weight.

    This is Hutchinson, eq. 2.8, with the trace corrected to Tr(S2⁻¹ S1).
    """
    scaled = (jnp.exp(2.0 * log_std) + mean**2) / prior_variance
    return 0.5 * (scaled - 1.0 + jnp.log(prior_variance)) - log_std


def best_variance(
    total: Array, count: Array, prior_variance: Array
) -> Float[Array, ""]:
    """Return the optimal prior variance of a group of weights (Hutchinson, eq. 2.17).

    It is s* = (Σ(σ² + μ²) + 2β) / (N + 2α + 2) with β = (1 + α) prior_variance.

    Args:
        total: Σ(σ² + μ²) over the weights.
        count: Number N of weights.
        prior_variance: Mode of the inverse-gamma prior.
    """
    beta = (1.0 + HYPER_SHAPE) * prior_variance
    return (total + 2.0 * beta) / (count + 2.0 * HYPER_SHAPE + 2.0)


def log_inverse_gamma(value: Array, prior_variance: Array) -> Float[Array, ""]:
    """Return the log density at a variance of the inverse-gamma prior with mode prior_variance."""
    beta = (1.0 + HYPER_SHAPE) * prior_variance
    normalizer = HYPER_SHAPE * jnp.log(beta) - math.lgamma(HYPER_SHAPE)
    return normalizer - (HYPER_SHAPE + 1.0) * jnp.log(value) - beta / value


def variance_groups(vi: VI, q: Variational, mask: Params) -> list[list[Part]]:
    """Group the weights and biases that share a prior variance, from input to output."""

    def layer(name: str, number: int | None = None) -> list[Part]:
        trees = (q.mean[name], q.log_std[name], mask[name])
        return [
            Part(
                *(
                    tree[kind] if number is None else tree[kind][number]
                    for tree in trees
                )
            )
            for kind in ("kernel", "bias")
        ]

    hidden = [layer("hidden", i) for i in range(len(mask["hidden"]["bias"]))]
    layers = [layer("first"), *hidden, layer("last")]
    if vi.prior == "published":
        return [[part] for group in layers for part in group]
    return layers


def _second_moments(group: list[Part]) -> tuple[Float[Array, ""], Int[Array, ""]]:
    """Return Σ(σ² + μ²) over the weights of a group, and their number."""
    squares = [
        jnp.where(part.mask, jnp.exp(2.0 * part.log_std) + part.mean**2, 0.0).sum()
        for part in group
    ]
    counts = [part.mask.sum() for part in group]
    return jnp.stack(squares).sum(), jnp.stack(counts).sum()


def prior_variances(
    vi: VI, q: Variational, mask: Params, prior_variance: Float[Array, ""]
) -> Float[Array, " layers"]:
    """Return the prior variance of the weights of each layer, with the output layer last.

    It is `prior_variance` for the prior "fixed", and otherwise the optimum of `best_variance`.
    """
    layers = len(mask["hidden"]["bias"]) + 2
    if vi.prior == "fixed":
        return jnp.broadcast_to(prior_variance, (layers,))
    groups = variance_groups(vi, q, mask)
    if vi.prior == "published":  # leave out the biases, which have their own
        groups = groups[::2]
    return jnp.stack(
        [best_variance(*_second_moments(group), prior_variance) for group in groups]
    )


def divergence(
    vi: VI, q: Variational, mask: Params, prior_variance: Float[Array, ""]
) -> Float[Array, ""]:
    """Return KL(q ‖ prior), and for the prior "layers" add − Σ log p(s*).

    These are Hutchinson, eqs. 2.15 and 2.16, with − log s corrected to − log p(s).
    """
    total = jnp.zeros((), prior_variance.dtype)
    for group in variance_groups(vi, q, mask):
        variance = prior_variance
        if vi.prior != "fixed":
            squares, count = _second_moments(group)
            variance = best_variance(squares, count, prior_variance)
            if vi.prior == "layers":  # a missing layer has no variance
                log_density = log_inverse_gamma(variance, prior_variance)
                total -= jnp.where(count > 0, log_density, 0.0)
        for part in group:
            total += jnp.where(
                part.mask, kl_terms(part.mean, part.log_std, variance), 0.0
            ).sum()
    return total
