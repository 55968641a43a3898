"""Bayesian networks with the output layer integrated out.

The output layer is linear, so given the hidden layers its weights are normal. Only the hidden
layers are sampled, under the evidence of a Gaussian process with their units as features. This
density is much smoother than the density of all weights, because the output layer fits the data.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset, clean
from bonas.gaussian_density import log_gaussian
from bonas.linalg import (
    factorize,
    mask_covariance,
    solve_lower,
    solve_upper,
)
from bonas.nets import stable_prior
from bonas.nets.bnn import (
    BNN,
    Precisions,
    Weights,
    hidden_features,
    log_precisions,
    log_prior,
    weights_at,
)

# With this many times more rows than features, the matrix of the features is cheaper. It loses more
# digits if there is almost no noise, which is rare with large data.
_ROWS_PER_FEATURE = 4


def check(bnn: BNN) -> None:
    """Raise a ValueError unless the output layer can be integrated out."""
    if not bnn.widths or bnn.indices[-1] != stable_prior.NORMAL:
        raise ValueError(
            "integrating out the output layer needs a hidden layer and a normal prior (index 2) "
            f"of the output layer; got widths {bnn.widths} and index {bnn.indices[-1]}"
        )


def output_scales(
    bnn: BNN, precisions: Precisions
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the prior standard deviations of a weight and of a bias of the output layer."""
    layers = len(bnn.indices)
    width = (
        stable_prior.width_scale(stable_prior.NORMAL, bnn.widths[-1])
        if bnn.scaled
        else 1.0
    )
    weight_group, bias_group = (0, 0) if bnn.shared else (layers - 1, 2 * layers - 1)
    weight_scale = width / jnp.sqrt(precisions.weights[weight_group])
    bias_scale = 1.0 / jnp.sqrt(precisions.weights[bias_group])
    return weight_scale, bias_scale


def design_matrix(
    bnn: BNN, hidden: Weights, precisions: Precisions, x: Float[Array, "n inputs"]
) -> Float[Array, "n features"]:
    """Return the features Φ of rows x such that the outputs are Φ w with standard normal w.

    The features are the units of the last hidden layer and a constant, times their prior scales.
    They have the default floating-point type of JAX, because the linear algebra loses digits in
    proportion to the ratio of signal to noise.
    """
    weight_scale, bias_scale = output_scales(bnn, precisions)
    units = hidden_features(bnn, hidden, x) * weight_scale
    features = jnp.concatenate(
        [units, jnp.broadcast_to(bias_scale, (len(x), 1))], axis=1
    )
    return features.astype(jnp.result_type(float))


def energy(
    bnn: BNN, position: Weights, precisions: Precisions, data: Dataset
) -> Float[Array, ""]:
    """Return −log prior − log N(y; 0, ΦΦᵀ + I / τ_n) at a position of the hidden layers."""
    data = clean(data)
    features = design_matrix(
        bnn, weights_at(bnn, position, precisions), precisions, data.x
    )
    noise = 1.0 / precisions.noise.astype(features.dtype)
    many_rows = len(features) > _ROWS_PER_FEATURE * features.shape[1]
    evidence = _evidence_by_features if many_rows else _evidence_by_rows
    total = -log_prior(bnn, position, precisions).astype(features.dtype)
    # A loop instead of vmap, because batched solves are slow.
    for y, mask in zip(data.y.T.astype(features.dtype), data.mask.T, strict=True):
        total -= evidence(features, y, mask, noise)
    return total


def _evidence_by_rows(features: Array, y: Array, mask: Array, noise: Array) -> Array:
    """Return log N(y; 0, ΦΦᵀ + noise I) over observed rows, from an n × n matrix."""
    return log_gaussian(mask_covariance(features @ features.T, mask, noise), y, mask)


def _evidence_by_features(
    features: Array, y: Array, mask: Array, noise: Array
) -> Array:
    """Return the same evidence from ΦᵀΦ + noise I, for many more rows than features."""
    observed = jnp.where(mask[:, None], features, 0.0)
    k = features.shape[1]
    matrix = observed.T @ observed + noise * jnp.eye(k, dtype=features.dtype)
    lower = factorize(matrix, jnp.ones(k, bool)).lower
    explained = solve_lower(lower, observed.T @ y)
    n = mask.sum()
    log_determinant = 2.0 * jnp.log(jnp.diagonal(lower)).sum() + (n - k) * jnp.log(
        noise
    )
    residual = (y @ y - explained @ explained) / noise
    return -0.5 * (residual + log_determinant + n * math.log(2.0 * math.pi))


def joint_log_density(
    bnn: BNN, position: Weights, logs: Precisions, data: Dataset
) -> Float[Array, ""]:
    """Return the joint log density of hidden layers and log precisions, up to a constant."""
    log_hyper = log_precisions(bnn, position, logs)
    precisions = jax.tree.map(jnp.exp, logs)
    return log_hyper - energy(bnn, position, precisions, data)


def complete(
    key: PRNGKeyArray,
    bnn: BNN,
    position: Weights,
    precisions: Precisions,
    data: Dataset,
) -> Weights:
    """Draw the output layer given the hidden layers and the data, and add it to the position.

    By Matheron's rule, a draw w from the prior becomes the posterior draw
    w + Φᵀ(ΦΦᵀ + I / τ_n)⁻¹(y − Φw − noise).
    """
    data = clean(data)
    features = design_matrix(
        bnn, weights_at(bnn, position, precisions), precisions, data.x
    )
    covariance = features @ features.T
    noise = 1.0 / precisions.noise.astype(features.dtype)

    def draw(key: Array, y: Array, mask: Array) -> Array:
        prior_key, noise_key = jax.random.split(key)
        prior = jax.random.normal(prior_key, (features.shape[1],))
        simulated = features @ prior + jnp.sqrt(noise) * jax.random.normal(
            noise_key, y.shape
        )
        lower = factorize(mask_covariance(covariance, mask, noise), mask).lower
        transposed = features.T
        residual = solve_lower(lower, jnp.where(mask, y - simulated, 0.0))
        return prior + transposed @ solve_upper(lower, residual)

    keys = jax.random.split(key, bnn.outputs)
    targets = data.y.astype(features.dtype)
    drawn = jax.vmap(draw, in_axes=(0, 1, 1), out_axes=1)(keys, targets, data.mask)
    if not bnn.whitened:
        weight_scale, bias_scale = output_scales(bnn, precisions)
        scale = jnp.append(jnp.broadcast_to(weight_scale, bnn.widths[-1]), bias_scale)
        drawn = drawn * scale[:, None]
    drawn = drawn.astype(position.biases[0].dtype)
    return Weights((*position.kernels, drawn[:-1]), (*position.biases, drawn[-1]))
