"""Bayesian networks: priors of weights and precisions, and their energy.

The model follows Agrawal (2016, Section 5), with more general priors (Neal 1996). A position is the
point where a sampler is: the latent variables of the weights if the network is whitened, otherwise
the weights. `weights_at` converts it to weights.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset, clean
from bonas.nets import stable_prior
from bonas.nets.shapes import ACTIVATIONS

HIDDEN: dict[str, Callable[[Array], Array]] = {**ACTIVATIONS, "step": jnp.sign}


class Weights(NamedTuple):
    """Weights and biases of a network, or their latent variables, layer by layer."""

    kernels: tuple[Array, ...]  # (incoming, units) each
    biases: tuple[Array, ...]  # (units,) each


class Precisions(NamedTuple):
    """Precisions of the weights and of the noise: scale⁻², which is 1 / variance if normal."""

    weights: Array  # (groups,)
    noise: Array  # ()


@jax.tree_util.register_static
@dataclass(frozen=True)
class BNN:
    """Bayesian network with a linear output layer, and its priors (Agrawal, eqs. 2.1 and 2.2).

    Args:
        inputs: Number of inputs.
        widths: Units of each hidden layer; empty for linear regression.
        outputs: Number of outputs.
        activation: Activation of hidden units. "step" is the sign function; it has no gradient, so
            use it only for draws from the prior.
        index: Index of the stable prior of weights and biases, one for all layers or one per layer:
            2 is normal, 1 is Cauchy; see `nets.stable_prior`.
        shared: Use one precision for every weight and bias (Agrawal, Section 5), instead of one for
            the weights and one for the biases of each layer (Neal 1996).
        scaled: Divide the scale of weights from N hidden units by N^(1/index) (Neal 1996).
        weight_prior: (shape, rate) of the Gamma prior of every precision of weights.
        noise_prior: (shape, rate) of the Gamma prior of the noise precision.
        whitened: Sample weights in units of their prior scale, rather than the weights themselves
            (Agrawal, Section 3).
    """

    inputs: int
    widths: tuple[int, ...] = (50, 50, 50)
    outputs: int = 1
    activation: str = "tanh"
    index: float | tuple[float, ...] = 2.0
    shared: bool = False
    scaled: bool = True
    weight_prior: tuple[float, float] = (2.0, 8.0)
    noise_prior: tuple[float, float] = (10.0, 0.02)
    whitened: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))
        if min(self.inputs, self.outputs, *self.widths) < 1:
            raise ValueError(
                f"inputs, outputs and the width of every layer must be at least 1; got {self.sizes}"
            )
        if self.activation not in HIDDEN:
            known = ", ".join(HIDDEN)
            raise ValueError(
                f"activation must be one of {known}; got {self.activation!r}"
            )
        self._check_indices()
        if min(*self.weight_prior, *self.noise_prior) <= 0.0:
            raise ValueError(
                "weight_prior and noise_prior are (shape, rate) and must be positive; got "
                f"weight_prior={self.weight_prior}, noise_prior={self.noise_prior}"
            )

    def _check_indices(self) -> None:
        if isinstance(self.index, list):
            object.__setattr__(self, "index", tuple(self.index))
        if isinstance(self.index, tuple) and len(self.index) != len(self.widths) + 1:
            raise ValueError(
                f"index must have an entry for each of the {len(self.widths) + 1} layers; "
                f"got {self.index}"
            )
        for index in self.indices:
            stable_prior.check_index(index)
            if not self.whitened and not stable_prior.has_density(index):
                raise ValueError(
                    f"a stable prior of index {index} has no density; use whitened=True"
                )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of every layer, from the inputs to the outputs."""
        return (self.inputs, *self.widths, self.outputs)

    @property
    def indices(self) -> tuple[float, ...]:
        """Index of the prior of each layer."""
        if isinstance(self.index, tuple):
            return self.index
        return (self.index,) * (len(self.widths) + 1)

    @property
    def groups(self) -> int:
        """Number of precisions of the weights."""
        return 1 if self.shared else 2 * len(self.indices)

    @property
    def size(self) -> int:
        """Number of weights and biases."""
        return sum((before + 1) * units for before, units in pairwise(self.sizes))


def map_layers(bnn: BNN, function: Callable[..., Array], *trees: Weights) -> Weights:
    """Map a function over the weights and biases of all layers, with the settings of their prior.

    Args:
        bnn: The network.
        function: Called as function(index, width_scale, precision_group, leaf, ...).
        *trees: Weights with the same layers, possibly only the first layers of the network.
    """
    layers = len(bnn.indices)
    kernels = []
    biases = []
    for i, index in enumerate(bnn.indices[: len(trees[0].kernels)]):
        width = (
            stable_prior.width_scale(index, bnn.sizes[i])
            if bnn.scaled and i > 0
            else 1.0
        )
        kernel_group, bias_group = (0, 0) if bnn.shared else (i, layers + i)
        kernels.append(
            function(index, width, kernel_group, *(tree.kernels[i] for tree in trees))
        )
        biases.append(
            function(index, 1.0, bias_group, *(tree.biases[i] for tree in trees))
        )
    return Weights(tuple(kernels), tuple(biases))


def _total(terms: Weights) -> Array:
    return sum((term.sum() for term in jax.tree.leaves(terms)), jnp.zeros(()))


def draw_precisions(key: PRNGKeyArray, bnn: BNN, dtype: Any = None) -> Precisions:
    """Draw the precisions of the weights and of the noise from their Gamma priors."""
    dtype = jnp.result_type(float) if dtype is None else dtype
    shape, rate = (
        Precisions(
            jnp.full(bnn.groups, weight_value, dtype), jnp.asarray(noise_value, dtype)
        )
        for weight_value, noise_value in zip(
            bnn.weight_prior, bnn.noise_prior, strict=True
        )
    )
    return draw_gamma(key, shape, rate)


def draw_gamma(key: Array, shape: Precisions, rate: Precisions) -> Precisions:
    """Draw precisions from Gamma distributions.

    One call draws all of them, because the sampler is slow to compile.
    """
    shapes = jnp.append(shape.weights, shape.noise)
    # Without dtype, JAX draws in float64.
    drawn = jax.random.gamma(key, shapes, dtype=shapes.dtype)
    return Precisions(drawn[:-1] / rate.weights, drawn[-1] / rate.noise)


def draw_position(key: PRNGKeyArray, bnn: BNN, precisions: Precisions) -> Weights:
    """Draw a network from the prior, in the variables of the sampler; see `weights_at`."""
    keys = iter(jax.random.split(key, 2 * len(bnn.indices)))
    dtype = precisions.weights.dtype

    def draw(index: float, width: float, group: int, like: Array) -> Array:
        latent = stable_prior.draw_latent(next(keys), index, like.shape, dtype)
        return (
            latent
            if bnn.whitened
            else latent * width / jnp.sqrt(precisions.weights[group])
        )

    kernels = tuple(jnp.empty(sizes) for sizes in pairwise(bnn.sizes))
    biases = tuple(jnp.empty(units) for units in bnn.sizes[1:])
    return map_layers(bnn, draw, Weights(kernels, biases))


def weights_at(bnn: BNN, position: Weights, precisions: Precisions) -> Weights:
    """Convert a position of the sampler to weights.

    Positions of a whitened network are latent variables; otherwise they are the weights.
    """
    if not bnn.whitened:
        return position

    def unwhiten(index: float, width: float, group: int, latent: Array) -> Array:
        scale = width / jnp.sqrt(precisions.weights[group])
        return stable_prior.from_latent(index, latent) * scale

    return map_layers(bnn, unwhiten, position)


def apply(
    bnn: BNN, weights: Weights, x: Float[Array, "n inputs"]
) -> Float[Array, "n outputs"]:
    """Compute the outputs of one network for rows x (Agrawal, eqs. 2.1 and 2.2, of any depth)."""
    features = hidden_features(bnn, hidden_weights(weights), x)
    return features @ weights.kernels[-1] + weights.biases[-1][None, :]


def hidden_features(
    bnn: BNN, hidden: Weights, x: Float[Array, "n inputs"]
) -> Float[Array, "n units"]:
    """Compute the activations of the last hidden layer from the weights of all hidden layers."""
    if x.shape[1] != bnn.inputs:
        raise ValueError(f"expected x of shape (n, {bnn.inputs}); got {x.shape}")
    for kernel, bias in zip(*hidden, strict=True):
        x = HIDDEN[bnn.activation](x @ kernel + bias[None, :])
    return x


def hidden_weights(weights: Weights) -> Weights:
    """Return the weights of all layers except the output layer."""
    return Weights(weights.kernels[:-1], weights.biases[:-1])


def squared_error(bnn: BNN, weights: Weights, data: Dataset) -> Float[Array, ""]:
    """Return the sum of squared residuals over observed values."""
    data = clean(data)
    return jnp.sum(jnp.where(data.mask, data.y - apply(bnn, weights, data.x), 0.0) ** 2)


def energy(
    bnn: BNN, position: Weights, precisions: Precisions, data: Dataset
) -> Float[Array, ""]:
    """Return E = −log prior + τ_n Σ (y − f)² / 2 at a position (Agrawal, Section 5.1).

    For a normal prior the first term is τ_p Σ θ² / 2. The sum over the data in Agrawal, eq. 5.4,
    lacks a logarithm, which is included here.
    """
    error = squared_error(bnn, weights_at(bnn, position, precisions), data)
    return 0.5 * precisions.noise * error - log_prior(bnn, position, precisions)


def log_prior(bnn: BNN, position: Weights, precisions: Precisions) -> Float[Array, ""]:
    """Return the log prior of a position or of its first layers.

    Terms that depend only on the precisions are omitted; see `log_precisions`.
    """

    def log_density(index: float, width: float, group: int, leaf: Array) -> Array:
        latent = (
            leaf
            if bnn.whitened
            else leaf * (jnp.sqrt(precisions.weights[group]) / width)
        )
        return stable_prior.log_latent(index, latent)

    return _total(map_layers(bnn, log_density, position))


def joint_log_density(
    bnn: BNN, position: Weights, logs: Precisions, data: Dataset
) -> Float[Array, ""]:
    """Return the joint log density of a position and the log precisions, up to a constant."""
    precisions = jax.tree.map(jnp.exp, logs)
    normalizer = 0.5 * data.mask.sum() * logs.noise
    log_hyper = log_precisions(bnn, position, logs)
    return log_hyper + normalizer - energy(bnn, position, precisions, data)


def log_precisions(bnn: BNN, position: Weights, logs: Precisions) -> Float[Array, ""]:
    """Return the log prior of the log precisions, plus the terms that `log_prior` omits."""

    def log_volume(index: float, width: float, group: int, leaf: Array) -> Array:
        # The normalizer of the density of the weights themselves.
        return 0.5 * leaf.size * logs.weights[group] * (not bnn.whitened)

    def log_gamma(prior: tuple[float, float], log: Array) -> Array:
        # With the Jacobian of the logarithm.
        return jnp.sum(prior[0] * log - prior[1] * jnp.exp(log))

    hyper = log_gamma(bnn.weight_prior, logs.weights) + log_gamma(
        bnn.noise_prior, logs.noise
    )
    return hyper + _total(map_layers(bnn, log_volume, position))
