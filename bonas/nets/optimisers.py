"""From gradients to the next parameters: optimisers, schedules, weight decay and limits on incoming weights."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.typing import ArrayLike

from bonas.nets.mlp import Shape, flat, growing, unflat

if TYPE_CHECKING:
    from bonas.nets.settings import Hyper

Schedule = Callable[[Array, Array], Array]  # (updates done, updates of the whole run) -> factor

# Learning rates by default: those of the authors' papers, and Twist's for SGD.
OPTIMISERS = {"sgd": 0.05, "adam": 1e-3, "adadelta": 1.0}


def constant(step: Array, steps: Array) -> Array:
    """1: the learning rate stays."""
    return jnp.ones_like(step)


def cosine(step: Array, steps: Array) -> Array:
    """½ (1 + cos(π step / steps)): to zero at the end of the run, whatever its length."""
    return 0.5 * (1.0 + jnp.cos(jnp.pi * step / steps))


def linear(step: Array, steps: Array) -> Array:
    """1 - step / steps."""
    return 1.0 - step / steps


@cache
def inverse_time(half_life: float) -> Schedule:
    """1 / (1 + step / half_life): half after so many updates."""

    def schedule(step: Array, steps: Array) -> Array:
        return 1.0 / (1.0 + step / half_life)

    return schedule


@cache
def rising(start: float, updates: int) -> Schedule:
    """From start to 1 in so many updates, and 1 from then on: for momentum (Sutskever et al. 2013)."""

    def schedule(step: Array, steps: Array) -> Array:
        return start + (1.0 - start) * jnp.minimum(step / updates, 1.0)

    return schedule


@cache
def without_last(updates: int) -> Schedule:
    """1, and 0 in the last so many updates of a run: for dropout, so that the network settles without it."""

    def schedule(step: Array, steps: Array) -> Array:
        return jnp.where(step < steps - updates, 1.0, 0.0)

    return schedule


def direction(optimiser: str, hyper: "Hyper", dtype) -> optax.GradientTransformation:
    """Gradients to what is subtracted, times the learning rate, from the parameters. It leaves zeros zero."""
    if optimiser == "adam":
        return optax.scale_by_adam()
    if optimiser == "adadelta":
        return optax.scale_by_adadelta()
    return optax.identity() if hyper.momentum is None else optax.trace(decay=jnp.asarray(hyper.momentum, dtype))


def by_layer(value: ArrayLike, shape: Shape, dtype) -> dict[str, Array]:
    """A value for all layers (), or one a layer (depth + 1,), as a tree over the layers."""
    every = jnp.broadcast_to(jnp.asarray(value, dtype), (shape.depth + 1,))
    return {"first": every[0], "hidden": every[1:-1], "last": every[-1]}


def learning_rates(optimiser: str, hyper: "Hyper", shape: Shape, dtype) -> Array:
    """The learning rate of every parameter: () where layers share it, else (k,) like flat parameters."""
    value = jnp.asarray(OPTIMISERS[optimiser] if hyper.learning_rate is None else hyper.learning_rate, dtype)
    if value.ndim == 0:
        return value
    rates = by_layer(value, shape, dtype)

    def spread(name, sizes):
        rate = rates[name]
        bias = jnp.broadcast_to(rate[..., None], (*sizes[:-2], sizes[-1]))
        return {"kernel": jnp.broadcast_to(rate[..., None, None], sizes), "bias": bias}

    return flat({name: spread(name, sizes) for name, sizes in shape.sizes.items()})


def decayed(updates: Array, params: Array, hyper: "Hyper", shape: Shape) -> Array:
    """The updates (k,) with the decay of the weights added, apart from the gradient (Loshchilov and Hutter 2019)."""
    if hyper.weight_decay is None:
        return updates
    tree = unflat(params, shape)
    weights = flat({name: {**layer, "bias": jnp.zeros_like(layer["bias"])} for name, layer in tree.items()})
    return updates + jnp.asarray(hyper.weight_decay, params.dtype) * weights


def limited(params: Array, hyper: "Hyper", shape: Shape) -> Array:
    """The parameters (k,) with each unit's incoming weights shortened to Hyper.max_norm, where they are longer."""
    if hyper.max_norm is None:
        return params
    longest = by_layer(hyper.max_norm, shape, params.dtype)
    tree = unflat(params, shape)
    return flat({name: {**layer, "kernel": _within(layer["kernel"], longest[name])} for name, layer in tree.items()})


def _within(kernel: Array, longest: Array) -> Array:
    """The kernel (..., incoming, units) with no column longer than that."""
    length = jnp.sqrt(jnp.sum(kernel**2, axis=-2, keepdims=True))
    limit = jnp.broadcast_to(longest[..., None, None], length.shape)
    return kernel * (limit / jnp.maximum(length, jnp.maximum(limit, jnp.finfo(kernel.dtype).tiny)))


def keep_mask(key: Array, rates: Array, sizes: tuple[int, int, int], dtype) -> Array:
    """Multipliers (layers, n, units) for dropout: 0 with chance rates (layers,), else 1 / (1 - rate): the mean is kept."""
    layers, n, units = sizes
    chance = jnp.broadcast_to(rates[:, None, None], sizes)
    kept = growing(jax.random.uniform, key, (layers, units, n), dtype).swapaxes(1, 2) >= chance
    return jnp.where(kept, 1.0 / (1.0 - chance), 0.0)
