"""Gibbs draws of the precisions of a Bayesian network (Agrawal, Section 5; Neal 1996)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from bonas.data import Dataset
from bonas.nets import stable_prior
from bonas.nets.bnn import (
    BNN,
    Precisions,
    Weights,
    draw_gamma,
    map_layers,
    squared_error,
    weights_at,
)


class Conditional(NamedTuple):
    """Gamma distributions of the precisions given the weights and the data."""

    shape: Precisions
    rate: Precisions


def conditional(
    bnn: BNN, weights: Weights, data: Dataset, mixing: Weights | None = None
) -> Conditional:
    """Return the conditional distributions of the precisions (Agrawal, Section 5; Neal 1996).

    They are Gamma(a + k/2, b + Σ θ²/2) for k weights and Gamma(a + n/2, b + Σ (y − f)²/2) for the
    noise.

    Args:
        bnn: The network.
        weights: Weights of the network.
        data: Observed values.
        mixing: Factor λ of each squared weight, if its prior is a scale mixture of normals (see
            `gibbs`); 1 if None.
    """
    mixing = mixing or jax.tree.map(jnp.ones_like, weights)
    halves = jnp.zeros(bnn.groups, weights.biases[0].dtype)
    counts = [0] * bnn.groups

    def add(
        index: float, width: float, group: int, leaf: Array, factor: Array
    ) -> Array:
        nonlocal halves
        halves = halves.at[group].add(0.5 * jnp.sum(factor * (leaf / width) ** 2))
        counts[group] += leaf.size
        return leaf

    map_layers(bnn, add, weights, mixing)
    weight_shape, weight_rate = bnn.weight_prior
    noise_shape, noise_rate = bnn.noise_prior
    n = data.mask.sum()
    error = squared_error(bnn, weights, data)
    sizes = jnp.asarray(counts, halves.dtype)
    return Conditional(
        Precisions(
            weight_shape + 0.5 * sizes, noise_shape + 0.5 * n.astype(halves.dtype)
        ),
        Precisions(weight_rate + halves, noise_rate + 0.5 * error),
    )


def gibbs(
    key: PRNGKeyArray,
    bnn: BNN,
    position: Weights,
    precisions: Precisions,
    data: Dataset,
) -> tuple[Weights, Precisions]:
    """Draw the precisions given the weights and the data.

    The weights do not change. The position of a whitened network changes, because it is relative to
    the precisions. A Cauchy weight is normal with precision λ τ, λ ~ Gamma(1/2, 1/2): λ is drawn
    first and discarded.

    Returns:
        The position of the same weights, and the new precisions.
    """
    weights = weights_at(bnn, position, precisions)
    mixing_key, precision_key = jax.random.split(key)
    keys = iter(jax.random.split(mixing_key, 2 * len(bnn.indices)))

    def mix(index: float, width: float, group: int, leaf: Array) -> Array:
        if index == stable_prior.NORMAL:
            return jnp.ones_like(leaf)
        rate = 0.5 * (1.0 + precisions.weights[group] * (leaf / width) ** 2)
        return jax.random.exponential(next(keys), leaf.shape, leaf.dtype) / rate

    shape, rate = conditional(bnn, weights, data, map_layers(bnn, mix, weights))
    drawn = draw_gamma(precision_key, shape, rate)
    drawn = jax.tree.map(lambda new, old: new.astype(old.dtype), drawn, precisions)
    if not bnn.whitened:
        return position, drawn

    def whiten(index: float, width: float, group: int, leaf: Array) -> Array:
        return leaf * (jnp.sqrt(drawn.weights[group]) / width)

    return map_layers(bnn, whiten, weights), drawn
