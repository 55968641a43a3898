"""Which units a variational network has switched off (Hutchinson, Section 5.3).

A unit that is of no use costs least when its incoming weights are the prior: their divergence from it falls to nearly zero,
and the outgoing weights are near zero. A threshold of the divergences of units tells which is which; between the two there need
be no gap.
"""

import jax
import jax.numpy as jnp
from jax import Array

from bonas.nets.bnn_vi import VI, Variational, kl_terms, prior_variances
from bonas.nets.mlp import Params, Shape

# The mean divergence, in nats a weight, from which a unit is active: of the first layer, and of those after it (H-S5).
THRESHOLDS = (0.3, 0.1)


def unit_divergence(vi: VI, q: Variational, mask: Params, prior_variance: Array) -> Array:
    """The mean divergence of each unit's incoming weights, without its bias, (depth, width); 0 for units that are not there."""
    variance = prior_variances(vi, q, mask, prior_variance)[:-1]
    first, deep = ({kind: tree[name]["kernel"] for kind, tree in _trees(q, mask)} for name in ("first", "hidden"))
    rows = [_mean_incoming(first, variance[0])]
    rows += [_mean_incoming({kind: leaf[i] for kind, leaf in deep.items()}, variance[i + 1]) for i in range(len(deep["mean"]))]
    return jnp.stack(rows)


def _trees(q: Variational, mask: Params):
    return ("mean", q.mean), ("log_std", q.log_std), ("mask", mask)


def _mean_incoming(kernel: dict[str, Array], variance: Array) -> Array:
    each = jnp.where(kernel["mask"], kl_terms(kernel["mean"], kernel["log_std"], variance), 0.0)
    return each.sum(axis=0) / jnp.maximum(kernel["mask"].sum(axis=0), 1)


def active(divergence: Array, thresholds: tuple[float, float] = THRESHOLDS) -> Array:
    """Which units (..., depth, width) are in use, by their mean divergence."""
    depth = divergence.shape[-2]
    level = jnp.asarray([thresholds[0], *[thresholds[1]] * (depth - 1)], divergence.dtype)
    return divergence > jnp.broadcast_to(level[:, None], divergence.shape)


def prune(shape: Shape, q: Variational, mask: Params, kept: Array) -> tuple[Variational, Params]:
    """The network without the units that are not in kept (depth, width): neither they nor what leaves them counts any more."""
    deep = kept[:-1, :, None] & kept[1:, None, :]
    last = jnp.pad(_last(mask, kept), (0, shape.sizes["last"][0] - shape.width))
    there = {
        "first": {"kernel": jnp.broadcast_to(kept[0], mask["first"]["kernel"].shape), "bias": kept[0]},
        "hidden": {"kernel": deep, "bias": kept[1:]},
        "last": {"kernel": jnp.broadcast_to(last[:, None], mask["last"]["kernel"].shape), "bias": mask["last"]["bias"]},
    }
    mask = jax.tree.map(jnp.logical_and, mask, there)
    return q._replace(mean=jax.tree.map(lambda leaf, live: jnp.where(live, leaf, 0.0), q.mean, mask)), mask


def _last(mask: Params, kept: Array) -> Array:
    """Which units of the last hidden layer that a network has are kept, (width,)."""
    there = jnp.concatenate([mask["first"]["bias"][None, :], mask["hidden"]["bias"]])
    depth = jnp.sum(there.any(axis=1))
    return kept[jnp.maximum(depth, 1) - 1]
