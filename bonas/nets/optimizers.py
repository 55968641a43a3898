"""Optimizers, weight decay, limits on norms, and dropout, for padded parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from jaxtyping import Array

from bonas.nets.mlp import draw_padded, flatten, unflatten
from bonas.nets.settings import LEARNING_RATES, Hyperparameters
from bonas.nets.shapes import Shape


def gradient_transformation(
    optimizer: str, hyper: Hyperparameters, dtype: Any
) -> optax.GradientTransformation:
    """Return the optimizer without its learning rate; zero gradients give zero updates."""
    if optimizer == "adam":
        return optax.scale_by_adam()
    if optimizer == "adadelta":
        return optax.scale_by_adadelta()
    if hyper.momentum is None:
        return optax.identity()
    return optax.trace(decay=jnp.asarray(hyper.momentum, dtype))


def split_by_layer(value: ArrayLike, shape: Shape, dtype: Any) -> dict[str, Array]:
    """Return a value for all layers (), or one per layer (depth + 1,), as a tree of layers."""
    layers = jnp.broadcast_to(jnp.asarray(value, dtype), (shape.depth + 1,))
    return {"first": layers[0], "hidden": layers[1:-1], "last": layers[-1]}


def learning_rates(
    optimizer: str, hyper: Hyperparameters, shape: Shape, dtype: Any
) -> Array:
    """Return one learning rate () for all layers, or one per parameter (k,), flattened."""
    rate = (
        LEARNING_RATES[optimizer]
        if hyper.learning_rate is None
        else hyper.learning_rate
    )
    value = jnp.asarray(rate, dtype)
    if value.ndim == 0:
        return value
    rates = split_by_layer(value, shape, dtype)

    def expand(name: str, sizes: dict[str, tuple[int, ...]]) -> dict[str, Array]:
        bias = jnp.broadcast_to(rates[name][..., None], sizes["bias"])
        kernel = jnp.broadcast_to(rates[name][..., None, None], sizes["kernel"])
        return {"kernel": kernel, "bias": bias}

    return flatten(
        {name: expand(name, sizes) for name, sizes in shape.layer_sizes.items()}
    )


def add_weight_decay(
    updates: Array, params: Array, hyper: Hyperparameters, shape: Shape
) -> Array:
    """Add decoupled decay of weights to updates (k,) (Loshchilov and Hutter 2019)."""
    if hyper.weight_decay is None:
        return updates
    layers = unflatten(params, shape)
    weights = flatten(
        {
            name: {**layer, "bias": jnp.zeros_like(layer["bias"])}
            for name, layer in layers.items()
        }
    )
    return updates + jnp.asarray(hyper.weight_decay, params.dtype) * weights


def limit_norms(params: Array, hyper: Hyperparameters, shape: Shape) -> Array:
    """Scale down the incoming weights of units in params (k,) whose norm exceeds max_norm."""
    if hyper.max_norm is None:
        return params
    limits = split_by_layer(hyper.max_norm, shape, params.dtype)
    layers = unflatten(params, shape)
    return flatten(
        {
            name: {**layer, "kernel": _limit_columns(layer["kernel"], limits[name])}
            for name, layer in layers.items()
        }
    )


def _limit_columns(kernel: Array, max_norm: Array) -> Array:
    """Scale down the columns of a kernel (..., incoming, units) that are longer than max_norm."""
    norm = jnp.sqrt(jnp.sum(kernel**2, axis=-2, keepdims=True))
    limit = jnp.broadcast_to(max_norm[..., None, None], norm.shape)
    return kernel * (
        limit / jnp.maximum(norm, jnp.maximum(limit, jnp.finfo(kernel.dtype).tiny))
    )


def dropout_factors(
    key: Array, rates: Array, sizes: tuple[int, int, int], dtype: Any
) -> Array:
    """Draw dropout factors (layers, n, units).

    A factor is 0 with probability rates (layers,), else 1 / (1 - rate), so that its mean is 1.
    """
    layers, n, units = sizes
    rate = jnp.broadcast_to(rates[:, None, None], sizes)
    uniform = draw_padded(jax.random.uniform, key, (layers, units, n), dtype).swapaxes(
        1, 2
    )
    return jnp.where(uniform >= rate, 1.0 / (1.0 - rate), 0.0)
