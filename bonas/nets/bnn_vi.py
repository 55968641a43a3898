"""Variational Bayesian networks with a normal posterior of every weight (Hutchinson, Chapter 2).

Networks of different depth and width are padded as in `nets.mlp`: missing weights have mean and
standard deviation exactly zero, and do not contribute to the divergence from the prior.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.linalg import safe_sqrt
from bonas.nets.fast_normal import normal_pairs
from bonas.nets.mlp import Params, draw_params, select_activation
from bonas.nets.shapes import Architecture, Shape, depth_of

PRIORS = ("fixed", "layers", "published")
FORWARD = ("sampled", "deterministic")
_LOG_2PI = math.log(2.0 * math.pi)


class Variational(NamedTuple):
    """A mean-field Gaussian variational posterior q(w), and the noise of the likelihood.

    q(w) = Π N(w; mean, exp(log_std)²).
    """

    mean: Params
    log_std: Params
    # () log noise variance; with a variance head, an offset of the second output
    log_noise: Array


@jax.tree_util.register_static
@dataclass(frozen=True)
class VI:
    """Settings of variational inference.

    Args:
        prior: Prior of the weights.
            "fixed": N(0, prior_variance).
            "layers": one inverse-gamma variance per layer, at its optimum s* (Hutchinson, eq.
            2.17), with −log p(s*) in the bound, so that the gradient through s* is zero.
            "published": as in the published code, weights and biases of a layer have separate s*,
            the gradient flows through them, and −log p(s*) is omitted.
        forward: "sampled" draws activations by local reparameterization (Hutchinson, eqs. 2.10 to
            2.12). "deterministic" propagates means and variances as if activations were normal and
            independent (Wu et al. 2018).
        samples: Draws of the activations per update; Hutchinson uses 10.
        antithetic: Draw an even number of samples as pairs with opposite noise. The bound stays
            unbiased and needs half the random numbers, which saves about an eighth of an
            update. The gradient of the means varies less while standard deviations are small.
        head: Predict the log noise variance with a second output, so that the noise depends on x.
    """

    prior: str = "layers"
    forward: str = "sampled"
    samples: int = 10
    antithetic: bool = True
    head: bool = False

    def __post_init__(self) -> None:
        for name, choices in (("prior", PRIORS), ("forward", FORWARD)):
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}; got {value!r}"
                )
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1; got {self.samples}")
        if self.head and self.forward == "deterministic":
            raise ValueError(
                "a variance head (head=True) needs forward='sampled'; got 'deterministic'"
            )


def init(
    key: PRNGKeyArray,
    shape: Shape,
    mask: Params,
    *,
    spread: float = 0.1,
    log_std: float = -5.5,
    log_noise: ArrayLike = -6.0,
) -> Variational:
    """Draw an initial posterior; the defaults are from Hutchinson's published code.

    Args:
        key: Random key.
        shape: Shape that the network is padded to.
        mask: The weights that exist.
        spread: Scale of the means, N(0, spread²) truncated at two standard deviations.
        log_std: Log standard deviation of every weight.
        log_noise: Log noise variance.
    """
    dtype = jnp.result_type(float)

    def truncated_normal(key: Array, sizes: tuple[int, ...], dtype: Any) -> Array:
        return jax.random.truncated_normal(key, -2.0, 2.0, sizes, dtype)

    drawn = draw_params(truncated_normal, key, shape, dtype)
    mean = jax.tree.map(
        lambda leaf, live: jnp.where(live, spread * leaf, 0.0), drawn, mask
    )
    log_stds = jax.tree.map(lambda leaf: jnp.full(leaf.shape, log_std, dtype), drawn)
    return Variational(mean, log_stds, jnp.asarray(log_noise, dtype))


def variances(q: Variational, mask: Params) -> Params:
    """Return the variance of every weight; 0 for missing weights."""

    def variance(log_std: Array, live: Array) -> Array:
        return jnp.where(live, jnp.exp(2.0 * log_std), 0.0)

    return jax.tree.map(variance, q.log_std, mask)


def _forward(
    shape: Shape,
    q: Variational,
    mask: Params,
    architecture: Architecture,
    x: Any,
    linear: Callable[..., Any],
    activate: Callable[[Any], Any],
) -> Any:
    """Apply linear(number, h, mean, variance) and activate(h) layer by layer, as in `nets.mlp`."""
    variance = variances(q, mask)
    depth = depth_of(architecture)
    # h is kept before the activation, which is cheaper to compute again than to store.
    h = linear(0, x, q.mean["first"], variance["first"])
    for i in range(shape.depth - 1):
        mean_i, variance_i = (
            jax.tree.map(lambda leaf, i=i: leaf[i], tree["hidden"])
            for tree in (q.mean, variance)
        )
        deeper = linear(i + 1, activate(h), mean_i, variance_i)
        h = jax.tree.map(lambda new, old: jnp.where(depth > i + 1, new, old), deeper, h)

    def output(inputs: Any, rows: int) -> Any:
        mean_last, variance_last = (
            {"kernel": tree["last"]["kernel"][:rows], "bias": tree["last"]["bias"]}
            for tree in (q.mean, variance)
        )
        return linear(shape.depth, inputs, mean_last, variance_last)

    from_hidden = output(activate(h), shape.width)
    from_inputs = output(x, shape.inputs)
    return jax.tree.map(
        lambda a, b: jnp.where(depth > 0, a, b), from_hidden, from_inputs
    )


def sample_outputs(
    key: PRNGKeyArray,
    shape: Shape,
    q: Variational,
    mask: Params,
    architecture: Architecture,
    x: Float[Array, "n inputs"],
    k: int,
    *,
    antithetic: bool = False,
) -> Float[Array, "k n outputs"]:
    """Sample outputs by local reparameterization (Hutchinson, eqs. 2.10 to 2.12).

    Activations are drawn independently for every row. This is right for bounds and scores, which
    treat rows one by one; draws of functions need `draw_weights`.

    Args:
        key: Random key.
        shape: Shape that the network is padded to.
        q: Posterior of the weights.
        mask: The weights that exist.
        architecture: The network.
        x: Input rows.
        k: Number of samples.
        antithetic: If k is even, draw k / 2 samples and repeat them with opposite noise.
    """
    paired = antithetic and k % 2 == 0
    noise = _draw_noise(key, shape, (k // 2 if paired else k) * len(x), x.dtype)
    if paired:
        noise = [jnp.concatenate([leaf, -leaf]) for leaf in noise]

    # Samples and rows share one axis: with two, XLA transposes the factors of weight gradients.
    def linear(number: int, h: Array, mean: dict, variance: dict) -> Array:
        center = h @ mean["kernel"] + mean["bias"][None, :]
        std = safe_sqrt((h * h) @ variance["kernel"] + variance["bias"][None, :])
        # The moments of the first layer are the same for all samples.
        copies = (k * len(x) // len(h), 1)
        return jnp.tile(center, copies) + jnp.tile(std, copies) * noise[number]

    activate = select_activation(shape, architecture)
    outputs = _forward(shape, q, mask, architecture, x, linear, activate)
    return outputs.reshape(k, len(x), shape.outputs)


def _draw_noise(key: Array, shape: Shape, rows: int, dtype: Any) -> list[Array]:
    """Draw standard normal noise for the units of every layer, (rows, units) each."""
    hidden_key, output_key = jax.random.split(key)
    hidden = normal_pairs(hidden_key, rows, shape.width, -(-shape.depth // 2))[
        : shape.depth
    ]
    output = normal_pairs(output_key, rows, shape.outputs, 1)[0]
    return [leaf.astype(dtype) for leaf in (*hidden, output)]


def moments(
    shape: Shape,
    q: Variational,
    mask: Params,
    architecture: Architecture,
    x: Float[Array, "n inputs"],
) -> tuple[Float[Array, "n outputs"], Float[Array, "n outputs"]]:
    """Return mean and variance of the outputs, as if activations were independent normals.

    The method is that of Wu et al. (2018), and is implemented only for ReLU.
    """
    if shape.activations != ("relu",):
        raise ValueError(
            f"moments are implemented only for relu; the shape has activations {shape.activations}"
        )

    def linear(
        number: int, h: tuple, mean: dict, variance: dict
    ) -> tuple[Array, Array]:
        center, spread = h
        weights = mean["kernel"]
        weight_variance = variance["kernel"]
        from_spread = spread @ (weights**2 + weight_variance)
        total = from_spread + center**2 @ weight_variance + variance["bias"][None, :]
        return center @ weights + mean["bias"][None, :], total

    start = (x, jnp.zeros_like(x))
    return _forward(
        shape, q, mask, architecture, start, linear, lambda h: relu_moments(*h)
    )


def relu_moments(
    mean: Float[Array, "*shape"], variance: Float[Array, "*shape"]
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Return mean and variance of max(z, 0) for z ~ N(mean, variance).

    With r = mean / std and Φ, φ at r they are mean Φ + std φ and
    variance (Φ + r² Φ (1 − Φ) − r φ (2Φ − 1) − φ²). The second moment minus the squared mean is
    equal, but loses all digits if std is small compared with mean. For r below −2 this form loses
    some too: at r = −3, where the result is 10⁻⁴ of the variance, its float32 error is 10⁻⁴.
    """
    std = safe_sqrt(variance)
    ratio = mean / jnp.maximum(std, jnp.finfo(std.dtype).tiny ** 0.5)
    ratio = jnp.clip(ratio, -30.0, 30.0)
    density = jnp.exp(-0.5 * ratio**2) / math.sqrt(2.0 * math.pi)
    tail = jax.scipy.stats.norm.cdf(-jnp.abs(ratio))
    below = jnp.where(ratio > 0.0, 1.0 - tail, tail)
    above = jnp.where(ratio > 0.0, tail, 1.0 - tail)
    share = below * (1.0 + ratio**2 * above) - density * (
        ratio * (below - above) + density
    )
    return mean * below + std * density, variance * jnp.maximum(share, 0.0)


def draw_weights(
    key: PRNGKeyArray, shape: Shape, q: Variational, mask: Params
) -> Params:
    """Draw one network from the posterior, as parameters for `nets.apply`."""
    noise = draw_params(jax.random.normal, key, shape, q.log_noise.dtype)

    def draw(mean: Array, variance: Array, noise: Array) -> Array:
        return mean + jnp.sqrt(variance) * noise

    return jax.tree.map(draw, q.mean, variances(q, mask), noise)


def expected_log_likelihood(
    key: PRNGKeyArray,
    vi: VI,
    shape: Shape,
    q: Variational,
    mask: Params,
    architecture: Architecture,
    x: Float[Array, "n inputs"],
    y: Float[Array, " n"],
) -> Float[Array, " n"]:
    """Return E_q log N(y; f(x), noise) of each row (Hutchinson, eqs. 2.6 and 2.7).

    It is estimated from samples of the outputs, or exact in their moments if `vi.forward` is
    "deterministic".
    """
    if vi.forward == "deterministic":
        mean, variance = moments(shape, q, mask, architecture, x)
        square = (y[:, None] - mean[:, :1]) ** 2 + variance[:, :1]
        return -0.5 * (_LOG_2PI + q.log_noise + square[:, 0] * jnp.exp(-q.log_noise))
    outputs = sample_outputs(
        key, shape, q, mask, architecture, x, vi.samples, antithetic=vi.antithetic
    )
    return _log_likelihood(vi, q, outputs, y).mean(axis=0)


def _log_likelihood(vi: VI, q: Variational, outputs: Array, y: Array) -> Array:
    """Return log N(y; f, noise) of every sample and row, (k, n)."""
    log_noise = q.log_noise + outputs[:, :, 1] if vi.head else q.log_noise
    square = (y[None, :] - outputs[:, :, 0]) ** 2
    return -0.5 * (_LOG_2PI + log_noise + square * jnp.exp(-log_noise))


class Scores(NamedTuple):
    """Scores on held-out rows, in the units of the given values; see `unscale_scores`."""

    # () mean over rows of the log of the mean density over samples
    log_likelihood: Array
    rmse: Array  # () root-mean-square error of the mean prediction
    # () root-mean-square error over rows and samples, which includes the predictive variance
    rmse_published: Array


def scores(
    vi: VI, q: Variational, outputs: Float[Array, "k n outputs"], y: Float[Array, " n"]
) -> Scores:
    """Score the posterior on n rows.

    Args:
        vi: Settings of variational inference.
        q: Posterior of the weights, with the noise.
        outputs: Samples of the outputs for the rows; see `sample_outputs`.
        y: Targets of the rows.
    """
    density = jax.nn.logsumexp(_log_likelihood(vi, q, outputs, y), axis=0) - math.log(
        len(outputs)
    )
    residual = outputs[:, :, 0] - y[None, :]
    return Scores(
        log_likelihood=density.mean(),
        rmse=jnp.sqrt(jnp.mean(residual.mean(axis=0) ** 2)),
        rmse_published=jnp.sqrt(jnp.mean(residual**2)),
    )


def unscale_scores(scaled: Scores, y_scale: ArrayLike) -> Scores:
    """Convert scores computed on targets divided by y_scale to the original units."""
    return Scores(
        log_likelihood=scaled.log_likelihood - jnp.log(y_scale),
        rmse=scaled.rmse * y_scale,
        rmse_published=scaled.rmse_published * y_scale,
    )
