"""The output layer of a Bayesian network integrated out: it is linear, so given the hidden layers it is a normal variable.

What is left to sample is the hidden layers, under the evidence of a Gaussian process whose features they are. That density
is far smoother than the one of all weights: hidden layers need not fit the data, the output layer does it for them.
"""

import math

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset, clean
from bonas.linalg import factorise, log_gaussian, mask_covariance, solve_lower, solve_upper
from bonas.nets import stable
from bonas.nets.bnn import BNN, Precisions, Weights, apply_hidden, log_precisions, log_prior, weights_at

# So many times more data than features make the matrix of the features the cheaper one. It loses more digits where there is
# next to no noise, which so many data seldom are without.
_MANY = 4


def check(bnn: BNN) -> None:
    """A ValueError for a network whose output layer has no closed form, or that would have nothing left."""
    if not bnn.widths or bnn.indices[-1] != stable.NORMAL:
        raise ValueError(
            "an output layer can be integrated out where there is a hidden one and its own prior is normal (index 2); "
            f"got widths {bnn.widths} and index {bnn.indices[-1]}"
        )


def scales(bnn: BNN, precisions: Precisions) -> tuple[Array, Array]:
    """The prior standard deviations () of a weight and of a bias of the output layer."""
    layers = len(bnn.indices)
    width = stable.width_scale(stable.NORMAL, bnn.widths[-1]) if bnn.scaled else 1.0
    of_weight, of_bias = (0, 0) if bnn.shared else (layers - 1, 2 * layers - 1)
    return width / jnp.sqrt(precisions.weights[of_weight]), 1.0 / jnp.sqrt(precisions.weights[of_bias])


def design(bnn: BNN, hidden: Weights, precisions: Precisions, x: Array) -> Array:
    """Features (n, units + 1) whose sums with standard normal weights are the outputs; in the default precision."""
    of_weight, of_bias = scales(bnn, precisions)
    units = apply_hidden(bnn, hidden, x) * of_weight
    # the algebra below loses digits in proportion to signal over noise
    return jnp.concatenate([units, jnp.broadcast_to(of_bias, (len(x), 1))], axis=1).astype(jnp.result_type(float))


def energy(bnn: BNN, position: Weights, precisions: Precisions, data: Dataset) -> Array:
    """−log prior of the hidden layers − log N(y; 0, ΦΦᵀ + I / τ_n) at a position without the output layer."""
    data = clean(data)
    features = design(bnn, weights_at(bnn, position, precisions), precisions, data.x)
    noise = 1.0 / precisions.noise.astype(features.dtype)
    evidence = _by_features if len(features) > _MANY * features.shape[1] else _by_rows
    total = -log_prior(bnn, position, precisions).astype(features.dtype)
    for y, mask in zip(data.y.T.astype(features.dtype), data.mask.T, strict=True):  # not by vmap: many solves are slow
        total -= evidence(features, y, mask, noise)
    return total


def _by_rows(features: Array, y: Array, mask: Array, noise: Array) -> Array:
    """log N(y; 0, ΦΦᵀ + noise I) over the observed rows, () from a matrix of as many rows as there are data."""
    return log_gaussian(mask_covariance(features @ features.T, mask, noise), y, mask)


def _by_features(features: Array, y: Array, mask: Array, noise: Array) -> Array:
    """The same from ΦᵀΦ + noise I, which has a row a feature: for many more data than units."""
    seen, k = jnp.where(mask[:, None], features, 0.0), features.shape[1]
    lower = factorise(seen.T @ seen + noise * jnp.eye(k, dtype=features.dtype), jnp.ones(k, bool)).lower
    explained = solve_lower(lower, seen.T @ y)
    n = mask.sum()
    determinant = 2.0 * jnp.log(jnp.diagonal(lower)).sum() + (n - k) * jnp.log(noise)
    return -0.5 * ((y @ y - explained @ explained) / noise + determinant + n * math.log(2.0 * math.pi))


def joint_log_density(bnn: BNN, position: Weights, logs: Precisions, data: Dataset) -> Array:
    """Of such a position and the logarithms of the precisions together, up to what depends on neither."""
    return log_precisions(bnn, position, logs) - energy(bnn, position, jax.tree.map(jnp.exp, logs), data)


def complete(key: Array, bnn: BNN, position: Weights, precisions: Precisions, data: Dataset) -> Weights:
    """The position with an output layer drawn given the rest.

    By Matheron's rule: a draw w from the prior, made to agree with the data, is w + Φᵀ(ΦΦᵀ + I / τ_n)⁻¹(y − Φw − noise).
    """
    data = clean(data)
    features = design(bnn, weights_at(bnn, position, precisions), precisions, data.x)
    covariance, noise = features @ features.T, 1.0 / precisions.noise.astype(features.dtype)

    def one(key, y, mask):
        prior_key, noise_key = jax.random.split(key)
        drawn = jax.random.normal(prior_key, (features.shape[1],))
        imagined = features @ drawn + jnp.sqrt(noise) * jax.random.normal(noise_key, y.shape)
        lower = factorise(mask_covariance(covariance, mask, noise), mask).lower
        return drawn + features.T @ solve_upper(lower, solve_lower(lower, jnp.where(mask, y - imagined, 0.0)))

    keys = jax.random.split(key, bnn.outputs)
    drawn = jax.vmap(one, in_axes=(0, 1, 1), out_axes=1)(keys, data.y.astype(features.dtype), data.mask)
    if not bnn.whitened:
        of_weight, of_bias = scales(bnn, precisions)
        drawn = drawn * jnp.append(jnp.broadcast_to(of_weight, bnn.widths[-1]), of_bias)[:, None]
    drawn = drawn.astype(position.biases[0].dtype)
    return Weights((*position.kernels, drawn[:-1]), (*position.biases, drawn[-1]))
