"""Bayesian networks: priors of weights and precisions, energy, and the conditionals of the precisions (Agrawal, Section 5)."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.data import Dataset, clean
from bonas.nets import stable
from bonas.nets.mlp import ACTIVATIONS

HIDDEN: dict[str, Callable[[Array], Array]] = {**ACTIVATIONS, "step": jnp.sign}


class Weights(NamedTuple):
    """The parameters of a network, or what they are written in, layer by layer."""

    kernels: tuple[Array, ...]  # (incoming, units) each
    biases: tuple[Array, ...]  # (units,) each


class Precisions(NamedTuple):
    """Inverse variances; of a weight that is not normal, its scale to the power −2."""

    weights: Array  # (groups,)
    noise: Array  # ()


@jax.tree_util.register_static
@dataclass(frozen=True)
class BNN:
    """A network and the priors of what is unknown about it. Static: it may be passed to any jitted function.

    widths: units of each hidden layer; none is linear regression. The output is linear (Agrawal, eqs. 2.1, 2.2).
    activation: of hidden units. "step" is −1 or 1 (G-E1): no trajectory feels a force through it, so it is for draws from
        the prior.
    index: of the stable prior of weights and biases, one for all or one a layer: 2 is normal, 1 Cauchy (`nets.stable`).
    shared: one precision for every weight and bias (G-D4), in place of one for the weights and one for the biases of
        each layer (Neal 1996).
    scaled: Neal's width scaling: weights from N hidden units are N^(1/index) times smaller than their precision says.
    weight_prior, noise_prior: (shape, rate) of the Gamma prior of every precision.
    whitened: trajectories move weights in units of their prior scale; without, the weights themselves (G-A2).
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

    def __post_init__(self):
        object.__setattr__(self, "widths", tuple(self.widths))
        if min(self.inputs, self.outputs, *self.widths) < 1:
            raise ValueError(f"a network has at least 1 input, 1 output and 1 unit a layer; got {self.sizes}")
        if self.activation not in HIDDEN:
            raise ValueError(f"an activation is one of {', '.join(HIDDEN)}; got {self.activation!r}")
        if isinstance(self.index, tuple) and len(self.index) != len(self.widths) + 1:
            raise ValueError(f"expected an index for each of the {len(self.widths) + 1} layers; got {self.index}")
        for index in self.indices:
            stable.check_index(index)
            if not self.whitened and not stable.has_density(index):
                raise ValueError(f"a stable prior of index {index} has no density, so its weights must be whitened")
        if min(*self.weight_prior, *self.noise_prior) <= 0.0:
            raise ValueError(f"shapes and rates must be positive; got {self.weight_prior} and {self.noise_prior}")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of every layer, from the inputs to the outputs."""
        return (self.inputs, *self.widths, self.outputs)

    @property
    def indices(self) -> tuple[float, ...]:
        """The index of the prior, layer by layer."""
        return self.index if isinstance(self.index, tuple) else (self.index,) * (len(self.widths) + 1)

    @property
    def groups(self) -> int:
        """How many precisions the weights have."""
        return 1 if self.shared else 2 * len(self.indices)

    @property
    def size(self) -> int:
        """How many parameters the network has."""
        return sum((before + 1) * units for before, units in pairwise(self.sizes))


def _layers(bnn: BNN, function: Callable[..., Array], *trees: Weights) -> Weights:
    """function(index, width scale, group, *leaves) of every parameter; of the first layers, where the trees have no more."""
    layers = len(bnn.indices)
    kernels, biases = [], []
    for i, index in enumerate(bnn.indices[: len(trees[0].kernels)]):
        width = stable.width_scale(index, bnn.sizes[i]) if bnn.scaled and i > 0 else 1.0
        group, of_bias = (0, 0) if bnn.shared else (i, layers + i)
        kernels.append(function(index, width, group, *(tree.kernels[i] for tree in trees)))
        biases.append(function(index, 1.0, of_bias, *(tree.biases[i] for tree in trees)))
    return Weights(tuple(kernels), tuple(biases))


def _total(terms: Weights) -> Array:
    return sum((term.sum() for term in jax.tree.leaves(terms)), jnp.zeros(()))


def draw_precisions(key: Array, bnn: BNN, dtype=None) -> Precisions:
    """Precisions from their prior."""
    dtype = jnp.result_type(float) if dtype is None else dtype
    shape, rate = (
        Precisions(jnp.full(bnn.groups, of_weights, dtype), jnp.asarray(of_noise, dtype))
        for of_weights, of_noise in zip(bnn.weight_prior, bnn.noise_prior, strict=True)
    )
    return _gamma(key, shape, rate)


def _gamma(key: Array, shape: Precisions, rate: Precisions) -> Precisions:
    """Draws of Gamma distributions, all at once: they are dear to compile."""
    shapes = jnp.append(shape.weights, shape.noise)
    drawn = jax.random.gamma(key, shapes, dtype=shapes.dtype)  # by default it is drawn in float64
    return Precisions(drawn[:-1] / rate.weights, drawn[-1] / rate.noise)


def draw_position(key: Array, bnn: BNN, precisions: Precisions) -> Weights:
    """A network from the prior, as trajectories see it; `weights_at` makes weights of it."""
    keys = iter(jax.random.split(key, 2 * len(bnn.indices)))
    dtype = precisions.weights.dtype

    def one(index, width, group, like):
        latent = stable.draw_latent(next(keys), index, like.shape, dtype)
        return latent if bnn.whitened else latent * width / jnp.sqrt(precisions.weights[group])

    kernels, biases = [jnp.empty(sizes) for sizes in pairwise(bnn.sizes)], [jnp.empty(units) for units in bnn.sizes[1:]]
    return _layers(bnn, one, Weights(tuple(kernels), tuple(biases)))


def weights_at(bnn: BNN, position: Weights, precisions: Precisions) -> Weights:
    """The weights of a position."""
    if not bnn.whitened:
        return position

    def one(index, width, group, latent):
        return stable.from_latent(index, latent) * (width / jnp.sqrt(precisions.weights[group]))

    return _layers(bnn, one, position)


def apply(bnn: BNN, weights: Weights, x: Array) -> Array:
    """Outputs (n, outputs) of one network for rows x (n, inputs): Agrawal, eqs. 2.1, 2.2, of any depth."""
    last = apply_hidden(bnn, without_output(weights), x)
    return last @ weights.kernels[-1] + weights.biases[-1][None, :]


def apply_hidden(bnn: BNN, hidden: Weights, x: Array) -> Array:
    """What the units of the last hidden layer say (n, units); `hidden` are the weights without those of the output."""
    if x.shape[1] != bnn.inputs:
        raise ValueError(f"expected rows of {bnn.inputs} inputs; got shape {x.shape}")
    for kernel, bias in zip(*hidden, strict=True):
        x = HIDDEN[bnn.activation](x @ kernel + bias[None, :])
    return x


def without_output(weights: Weights) -> Weights:
    """All layers but the last."""
    return Weights(weights.kernels[:-1], weights.biases[:-1])


def squared_error(bnn: BNN, weights: Weights, data: Dataset) -> Array:
    """The sum of squared residuals () over observed values."""
    data = clean(data)
    return jnp.sum(jnp.where(data.mask, data.y - apply(bnn, weights, data.x), 0.0) ** 2)


def energy(bnn: BNN, position: Weights, precisions: Precisions, data: Dataset) -> Array:
    """E = −log prior + τ_n Σ (y − f)² / 2 as a function of the position: Agrawal, Section 5.1, with his sum's logarithm (G-X3).

    For a normal prior the first term is τ_p Σ θ² / 2 (G-D5).
    """
    error = squared_error(bnn, weights_at(bnn, position, precisions), data)
    return 0.5 * precisions.noise * error - log_prior(bnn, position, precisions)


def log_prior(bnn: BNN, position: Weights, precisions: Precisions) -> Array:
    """Of a position, or of its first layers, up to what depends on the precisions alone."""

    def one(index, width, group, leaf):
        unit = leaf if bnn.whitened else leaf * (jnp.sqrt(precisions.weights[group]) / width)
        return stable.log_latent(index, unit)

    return _total(_layers(bnn, one, position))


def joint_log_density(bnn: BNN, position: Weights, logs: Precisions, data: Dataset) -> Array:
    """Of the position and the logarithms of the precisions together, up to what depends on neither."""
    precisions = jax.tree.map(jnp.exp, logs)
    of_data = 0.5 * data.mask.sum() * logs.noise
    return log_precisions(bnn, position, logs) + of_data - energy(bnn, position, precisions, data)


def log_precisions(bnn: BNN, position: Weights, logs: Precisions) -> Array:
    """The prior of the logarithms, and what the prior of the position lacks without them."""

    def volume(index, width, group, leaf):  # of a weight's own density, which is wider where the precision is small
        return 0.5 * leaf.size * logs.weights[group] * (not bnn.whitened)

    def gamma(prior, log):  # with the Jacobian of the logarithm
        return jnp.sum(prior[0] * log - prior[1] * jnp.exp(log))

    hyper = gamma(bnn.weight_prior, logs.weights) + gamma(bnn.noise_prior, logs.noise)
    return hyper + _total(_layers(bnn, volume, position))


class Conditional(NamedTuple):
    """The Gamma distributions of the precisions given the weights and the data."""

    shape: Precisions
    rate: Precisions


def conditional(bnn: BNN, weights: Weights, data: Dataset, mixing: Weights | None = None) -> Conditional:
    """Gamma(a + k/2, b + Σ θ²/2) and Gamma(a + n/2, b + Σ (y − f)²/2) (G-S2; Neal 1996).

    mixing: what each squared weight is multiplied by, where its prior is a mixture of normal ones.
    """
    mixing = mixing or jax.tree.map(jnp.ones_like, weights)
    halves, counts = jnp.zeros(bnn.groups, weights.biases[0].dtype), [0] * bnn.groups

    def add(index, width, group, leaf, factor):
        nonlocal halves
        halves = halves.at[group].add(0.5 * jnp.sum(factor * (leaf / width) ** 2))
        counts[group] += leaf.size
        return leaf

    _layers(bnn, add, weights, mixing)
    (a, b), (c, d) = bnn.weight_prior, bnn.noise_prior
    n, error = data.mask.sum(), squared_error(bnn, weights, data)
    return Conditional(
        Precisions(a + 0.5 * jnp.asarray(counts, halves.dtype), c + 0.5 * n.astype(halves.dtype)),
        Precisions(b + halves, d + 0.5 * error),
    )


def gibbs(key: Array, bnn: BNN, position: Weights, precisions: Precisions, data: Dataset) -> tuple[Weights, Precisions]:
    """New precisions given the weights, and the position of the same weights under them.

    A Cauchy weight is normal with a precision λ τ, λ ~ Gamma(1/2, 1/2): λ is drawn first, and forgotten.
    """
    weights = weights_at(bnn, position, precisions)
    mixing_key, precision_key = jax.random.split(key)
    keys = iter(jax.random.split(mixing_key, 2 * len(bnn.indices)))

    def mix(index, width, group, leaf):
        if index == stable.NORMAL:
            return jnp.ones_like(leaf)
        rate = 0.5 * (1.0 + precisions.weights[group] * (leaf / width) ** 2)
        return jax.random.exponential(next(keys), leaf.shape, leaf.dtype) / rate

    shape, rate = conditional(bnn, weights, data, _layers(bnn, mix, weights))
    drawn = _gamma(precision_key, shape, rate)
    drawn = jax.tree.map(lambda new, old: new.astype(old.dtype), drawn, precisions)
    if not bnn.whitened:
        return position, drawn

    def again(index, width, group, leaf):
        return leaf * (jnp.sqrt(drawn.weights[group]) / width)

    return _layers(bnn, again, weights), drawn
