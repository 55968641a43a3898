"""Variational Bayesian networks: a normal posterior for every weight, as arrays of one shape (Hutchinson, Chapter 2).

Networks of different depth and width are padded as in `nets.mlp`: what a network does not have has mean and deviation
exactly zero, and no part in the divergence.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from bonas.linalg import safe_sqrt
from bonas.nets.mlp import ACTIVATIONS, Architecture, Params, Shape, depth_of, draws
from bonas.nets.vi_noise import normal_pairs

HYPER_SHAPE = 4.4798  # of the inverse-gamma prior of a layer's variance (H-D2; Wu et al. 2018)
PRIORS = ("fixed", "layers", "published")
FORWARD = ("sampled", "deterministic")
_LOG_2PI = math.log(2.0 * math.pi)


class Variational(NamedTuple):
    """q(w) = Π N(w; mean, exp(log_std)²), and the noise of the likelihood."""

    mean: Params
    log_std: Params
    log_noise: Array  # () logarithm of the noise variance; an offset of the second output where that is a variance head


class Part(NamedTuple):
    """The weights or the biases of one layer."""

    mean: Array
    log_std: Array
    mask: Array  # bool


@jax.tree_util.register_static
@dataclass(frozen=True)
class VI:
    """How a variational network is made. Static: it may be passed to any jitted function.

    prior: "fixed", N(0, prior_variance); "layers", one inverse-gamma variance a layer, at its optimum s* (eq. 2.17), with
        −log p(s*) in the bound: the gradient through s* is then zero; or "published": weights and biases of a layer have
        their own s*, the gradient flows through it, and −log p(s*) is left out (H-S3).
    forward: "sampled", activations drawn by local reparameterisation (eqs. 2.10–2.12); or "deterministic", their means and
        variances handed on as if they were normal and uncorrelated (Wu et al. 2018; H-F10).
    samples: draws of the activations an update; the thesis has 10.
    antithetic: an even number of them are pairs, of which one has the noise of the other with its sign changed. The bound
        is as unbiased, and half as many random numbers are drawn, which would be a quarter of an update's work. Its gradient
        varies less in the means as long as deviations are small beside them, and about as much in the deviations.
    head: a second output is the logarithm of the noise variance (H-F8), which then differs from point to point.
    """

    prior: str = "layers"
    forward: str = "sampled"
    samples: int = 10
    antithetic: bool = True
    head: bool = False

    def __post_init__(self):
        if self.prior not in PRIORS or self.forward not in FORWARD:
            raise ValueError(f"expected a prior of {PRIORS} and a forward of {FORWARD}; got {self.prior!r}, {self.forward!r}")
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1; got {self.samples}")
        if self.head and self.forward == "deterministic":
            raise ValueError("a variance head needs sampled activations: forward='sampled'")


def init(key: Array, shape: Shape, mask: Params, *, spread: float = 0.1, log_std: float = -5.5, log_noise=-6.0) -> Variational:
    """Means N(0, spread²) within two deviations, small deviations, little noise: the numbers of H-S3."""
    dtype = jnp.result_type(float)

    def truncated(key, sizes, kind):
        return jax.random.truncated_normal(key, -2.0, 2.0, sizes, kind)

    drawn = draws(truncated, key, shape, dtype)
    mean = jax.tree.map(lambda leaf, live: jnp.where(live, spread * leaf, 0.0), drawn, mask)
    return Variational(
        mean, jax.tree.map(lambda leaf: jnp.full(leaf.shape, log_std, dtype), drawn), jnp.asarray(log_noise, dtype)
    )


def variances(q: Variational, mask: Params) -> Params:
    """Of every weight; 0 for those that a network does not have."""
    return jax.tree.map(lambda leaf, live: jnp.where(live, jnp.exp(2.0 * leaf), 0.0), q.log_std, mask)


# The divergence from the prior.


def kl_terms(mean: Array, log_std: Array, prior_variance: Array) -> Array:
    """KL(N(mean, std²) ‖ N(0, prior_variance)), weight by weight: eq. 2.8 with its trace put right (H-X4)."""
    return 0.5 * ((jnp.exp(2.0 * log_std) + mean**2) / prior_variance - 1.0 + jnp.log(prior_variance)) - log_std


def best_variance(total: Array, count: Array, prior_variance: Array) -> Array:
    """s* = (Σ(σ² + μ²) + 2β) / (N + 2α + 2), β = (1 + α) prior_variance: eq. 2.17; prior_variance is the prior's mode."""
    beta = (1.0 + HYPER_SHAPE) * prior_variance
    return (total + 2.0 * beta) / (count + 2.0 * HYPER_SHAPE + 2.0)


def log_inverse_gamma(value: Array, prior_variance: Array) -> Array:
    """The logarithm of the density of InvGamma(α, β) at a variance."""
    beta = (1.0 + HYPER_SHAPE) * prior_variance
    return HYPER_SHAPE * jnp.log(beta) - math.lgamma(HYPER_SHAPE) - (HYPER_SHAPE + 1.0) * jnp.log(value) - beta / value


def _groups(vi: VI, q: Variational, mask: Params) -> list[list[Part]]:
    """The parts that share a prior variance; the stack of hidden layers is taken apart."""

    def layer(name: str, which: int | None = None) -> list[Part]:
        trees = (q.mean[name], q.log_std[name], mask[name])
        return [Part(*(tree[kind] if which is None else tree[kind][which] for tree in trees)) for kind in ("kernel", "bias")]

    deep = [layer("hidden", i) for i in range(len(mask["hidden"]["bias"]))]
    layers = [layer("first"), *deep, layer("last")]
    return [[part] for group in layers for part in group] if vi.prior == "published" else layers


def _total(group: list[Part]) -> tuple[Array, Array]:
    """Σ(σ² + μ²) over the weights of a group, and how many they are."""
    squares = [jnp.where(part.mask, jnp.exp(2.0 * part.log_std) + part.mean**2, 0.0).sum() for part in group]
    return jnp.stack(squares).sum(), jnp.stack([part.mask.sum() for part in group]).sum()


def prior_variances(vi: VI, q: Variational, mask: Params, prior_variance: Array) -> Array:
    """The prior variance of the weights of each layer, s* where it has a hyper-prior: (layers,), the output last."""
    layers = len(mask["hidden"]["bias"]) + 2
    if vi.prior == "fixed":
        return jnp.broadcast_to(prior_variance, (layers,))
    groups = _groups(vi, q, mask)
    groups = groups[::2] if vi.prior == "published" else groups  # without the biases' own
    return jnp.stack([best_variance(*_total(group), prior_variance) for group in groups])


def divergence(vi: VI, q: Variational, mask: Params, prior_variance: Array) -> Array:
    """KL(q ‖ prior), (), and for "layers" − Σ log p(s*) too (eqs. 2.15, 2.16, as mended in H-X5)."""
    found = jnp.zeros((), prior_variance.dtype)
    for group in _groups(vi, q, mask):
        variance = prior_variance
        if vi.prior != "fixed":
            total, count = _total(group)
            variance = best_variance(total, count, prior_variance)
            if vi.prior == "layers":  # a layer that is not there has no variance either
                found -= jnp.where(count > 0, log_inverse_gamma(variance, prior_variance), 0.0)
        for part in group:
            found += jnp.where(part.mask, kl_terms(part.mean, part.log_std, variance), 0.0).sum()
    return found


# The network.


def _pass(shape: Shape, q: Variational, mask: Params, architecture: Architecture, x, linear, activate):
    """The layers one after the other, linear(number, h, mean, variance) and activate(h); as in `nets.mlp`."""
    spread, depth = variances(q, mask), depth_of(architecture)

    h = linear(0, x, q.mean["first"], spread["first"])  # before the activation, which is cheaper to repeat than to keep
    for i in range(shape.depth - 1):
        mean, variance = (jax.tree.map(lambda leaf, i=i: leaf[i], tree["hidden"]) for tree in (q.mean, spread))
        there = linear(i + 1, activate(h), mean, variance)
        h = jax.tree.map(lambda new, old: jnp.where(depth > i + 1, new, old), there, h)

    def last(inputs, rows):
        mean, variance = ({"kernel": tree["last"]["kernel"][:rows], "bias": tree["last"]["bias"]} for tree in (q.mean, spread))
        return linear(shape.depth, inputs, mean, variance)

    deep, shallow = last(activate(h), shape.width), last(x, shape.inputs)
    return jax.tree.map(lambda a, b: jnp.where(depth > 0, a, b), deep, shallow)


def sample_outputs(
    key: Array,
    shape: Shape,
    q: Variational,
    mask: Params,
    architecture: Architecture,
    x: Array,
    k: int,
    *,
    antithetic: bool = False,
) -> Array:
    """Outputs (k, n, outputs) whose activations are drawn anew for every row: local reparameterisation, eqs. 2.10–2.12.

    For bounds and scores, which take rows one by one; draws of functions need `draw_weights`. Antithetic ones, if k is even,
    are k / 2 and then those with the opposite noise.
    """
    functions = [ACTIVATIONS[name] for name in shape.activations]
    paired = antithetic and k % 2 == 0
    rows = (k // 2 if paired else k) * len(x)
    hidden_key, output_key = jax.random.split(key)
    hidden = normal_pairs(hidden_key, rows, shape.width, -(-shape.depth // 2))[: shape.depth]
    noise = [leaf.astype(x.dtype) for leaf in (*hidden, normal_pairs(output_key, rows, shape.outputs, 1)[0])]
    if paired:
        noise = [jnp.concatenate([leaf, -leaf]) for leaf in noise]

    # draws and rows are one axis: with two, XLA transposes what the gradients of the weights are products of
    def linear(number, h, mean, variance):
        centre = h @ mean["kernel"] + mean["bias"][None, :]
        std = safe_sqrt((h * h) @ variance["kernel"] + variance["bias"][None, :])
        copies = (k * len(x) // len(h), 1)  # the moments of the first layer are those of all draws
        return jnp.tile(centre, copies) + jnp.tile(std, copies) * noise[number]

    def activate(z):
        return functions[0](z) if len(functions) == 1 else jax.lax.switch(architecture.activation, functions, z)

    return _pass(shape, q, mask, architecture, x, linear, activate).reshape(k, len(x), shape.outputs)


def moments(shape: Shape, q: Variational, mask: Params, architecture: Architecture, x: Array) -> tuple[Array, Array]:
    """Means and variances (n, outputs) of the outputs, handed from layer to layer as those of independent normals."""
    if shape.activations != ("relu",):
        raise ValueError(f"moments are known for ReLU alone; this shape has the activations {shape.activations}")

    def linear(number, h, mean, variance):
        centre, spread = h
        weights, of_weights = mean["kernel"], variance["kernel"]
        total = spread @ (weights**2 + of_weights) + centre**2 @ of_weights + variance["bias"][None, :]
        return centre @ weights + mean["bias"][None, :], total

    return _pass(shape, q, mask, architecture, (x, jnp.zeros_like(x)), linear, lambda h: relu_moments(*h))


def relu_moments(mean: Array, variance: Array) -> tuple[Array, Array]:
    """The mean and the variance of max(z, 0), z ~ N(mean, variance): with r = mean / std and Φ, φ at r, mean Φ + std φ and
    variance (Φ + r² Φ (1 − Φ) − r φ (2Φ − 1) − φ²).

    The second moment less the square of the first is the same, but has no digits left where std is a small part of mean.
    For r below −2 this form loses some too: at −3, where the variance is 10⁻⁴ of what came in, float32 is within 10⁻⁴ of it.
    """
    std = safe_sqrt(variance)
    ratio = mean / jnp.maximum(std, jnp.finfo(std.dtype).tiny ** 0.5)
    ratio = jnp.clip(ratio, -30.0, 30.0)
    density, tail = jnp.exp(-0.5 * ratio**2) / math.sqrt(2.0 * math.pi), jax.scipy.stats.norm.cdf(-jnp.abs(ratio))
    below, above = jnp.where(ratio > 0.0, 1.0 - tail, tail), jnp.where(ratio > 0.0, tail, 1.0 - tail)
    share = below * (1.0 + ratio**2 * above) - density * (ratio * (below - above) + density)
    return mean * below + std * density, variance * jnp.maximum(share, 0.0)


def draw_weights(key: Array, shape: Shape, q: Variational, mask: Params) -> Params:
    """One network from q; `nets.apply` takes it."""
    noise = draws(jax.random.normal, key, shape, q.log_noise.dtype)
    spread = variances(q, mask)
    return jax.tree.map(lambda mean, variance, draw: mean + jnp.sqrt(variance) * draw, q.mean, spread, noise)


# The bound, and what a network is scored by.


def expected_log_likelihood(
    key: Array, vi: VI, shape: Shape, q: Variational, mask: Params, architecture: Architecture, x: Array, y: Array
) -> Array:
    """E_q log N(y; f(x), noise), row by row (n,): the first term of the bound, eqs. 2.6 and 2.7."""
    if vi.forward == "deterministic":
        mean, variance = moments(shape, q, mask, architecture, x)
        square = (y[:, None] - mean[:, :1]) ** 2 + variance[:, :1]
        return -0.5 * (_LOG_2PI + q.log_noise + square[:, 0] * jnp.exp(-q.log_noise))
    outputs = sample_outputs(key, shape, q, mask, architecture, x, vi.samples, antithetic=vi.antithetic)
    return _log_normal(vi, q, outputs, y).mean(axis=0)


def _log_normal(vi: VI, q: Variational, outputs: Array, y: Array) -> Array:
    """log N(y; f, noise) of every draw and row (k, n)."""
    log_noise = q.log_noise + outputs[:, :, 1] if vi.head else q.log_noise
    return -0.5 * (_LOG_2PI + log_noise + (y[None, :] - outputs[:, :, 0]) ** 2 * jnp.exp(-log_noise))


class Scores(NamedTuple):
    """Of held-out rows, in the units of the values that were given; `unscale_scores` has them in others."""

    log_likelihood: Array  # () the mean over rows of the log of the average density over draws
    rmse: Array  # () of the mean prediction
    rmse_published: Array  # () √ of the mean square over rows and draws, which holds the predictive variance too (H-S3)


def scores(vi: VI, q: Variational, outputs: Array, y: Array) -> Scores:
    """How well q predicts values y (n,), by k draws of its outputs (k, n, outputs) at their rows."""
    density = jax.nn.logsumexp(_log_normal(vi, q, outputs, y), axis=0) - math.log(len(outputs))
    away = outputs[:, :, 0] - y[None, :]
    return Scores(density.mean(), jnp.sqrt(jnp.mean(away.mean(axis=0) ** 2)), jnp.sqrt(jnp.mean(away**2)))


def unscale_scores(found: Scores, y_scale: ArrayLike) -> Scores:
    """The scores of values that had been divided by y_scale, in their own units: log p(y) = log p(y / s) − log s."""
    errors = (found.rmse * y_scale, found.rmse_published * y_scale)
    return Scores(found.log_likelihood - jnp.log(y_scale), *errors)
