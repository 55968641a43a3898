"""Find and remove the inactive units of variational networks (Hutchinson, Section 5.3).

The bound is highest if the incoming weights of an unused unit equal the prior: their divergence
falls to nearly zero, and the outgoing weights are near zero. A threshold on the mean divergence
separates active from inactive units, although their values may overlap.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bonas.nets.bnn_vi import VI, Variational
from bonas.nets.mlp import Params
from bonas.nets.shapes import Shape
from bonas.nets.vi_prior import Part, kl_terms, prior_variances

# Mean divergence in nats per weight above which a unit is active, for the first layer and for later
# layers; from Hutchinson's published code.
THRESHOLDS = (0.3, 0.1)


def unit_divergence(
    vi: VI, q: Variational, mask: Params, prior_variance: Float[Array, ""]
) -> Float[Array, "depth width"]:
    """Return the mean KL divergence of the incoming weights of each unit, in nats per weight.

    Biases do not count. The divergence of missing units is 0.

    Args:
        vi: Settings of variational inference.
        q: Posterior of the weights.
        mask: The weights that exist.
        prior_variance: Variance of the prior, or the mode of its inverse-gamma prior.
    """
    variance = prior_variances(vi, q, mask, prior_variance)[:-1]
    first, hidden = (
        Part(q.mean[name]["kernel"], q.log_std[name]["kernel"], mask[name]["kernel"])
        for name in ("first", "hidden")
    )
    rows = [_mean_incoming(first, variance[0])]
    for i in range(len(hidden.mean)):
        layer = Part(*(leaf[i] for leaf in hidden))
        rows.append(_mean_incoming(layer, variance[i + 1]))
    return jnp.stack(rows)


def _mean_incoming(kernel: Part, variance: Array) -> Array:
    terms = kl_terms(kernel.mean, kernel.log_std, variance)
    divergence = jnp.where(kernel.mask, terms, 0.0)
    return divergence.sum(axis=0) / jnp.maximum(kernel.mask.sum(axis=0), 1)


def active(
    divergence: Float[Array, "*batch depth width"],
    thresholds: tuple[float, float] = THRESHOLDS,
) -> Bool[Array, "*batch depth width"]:
    """Return whether the mean divergence of each unit exceeds a threshold.

    Args:
        divergence: Mean divergence of each unit; see `unit_divergence`.
        thresholds: Thresholds for the first hidden layer and for later layers, in nats per weight.
    """
    depth = divergence.shape[-2]
    level = jnp.asarray(
        [thresholds[0], *[thresholds[1]] * (depth - 1)], divergence.dtype
    )
    return divergence > jnp.broadcast_to(level[:, None], divergence.shape)


def prune(
    shape: Shape, q: Variational, mask: Params, kept: Bool[Array, "depth width"]
) -> tuple[Variational, Params]:
    """Remove inactive units, with their incoming and outgoing weights.

    Args:
        shape: Shape that the network is padded to.
        q: Posterior of the weights.
        mask: The weights that exist.
        kept: The units to keep; see `active`.

    Returns:
        The posterior and the mask of the pruned network.
    """
    hidden = kept[:-1, :, None] & kept[1:, None, :]
    last = jnp.pad(
        _kept_in_last_layer(mask, kept), (0, shape.sizes["last"][0] - shape.width)
    )
    first_kernel = jnp.broadcast_to(kept[0], mask["first"]["kernel"].shape)
    last_kernel = jnp.broadcast_to(last[:, None], mask["last"]["kernel"].shape)
    kept_weights = {
        "first": {"kernel": first_kernel, "bias": kept[0]},
        "hidden": {"kernel": hidden, "bias": kept[1:]},
        "last": {"kernel": last_kernel, "bias": mask["last"]["bias"]},
    }
    mask = jax.tree.map(jnp.logical_and, mask, kept_weights)
    mean = jax.tree.map(lambda leaf, live: jnp.where(live, leaf, 0.0), q.mean, mask)
    return q._replace(mean=mean), mask


def _kept_in_last_layer(mask: Params, kept: Array) -> Array:
    """Return which units of the last existing hidden layer are kept, (width,)."""
    exists = jnp.concatenate([mask["first"]["bias"][None, :], mask["hidden"]["bias"]])
    depth = jnp.sum(exists.any(axis=1))
    return kept[jnp.maximum(depth, 1) - 1]
