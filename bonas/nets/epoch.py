"""Train for one epoch: every row once, in batches.

An update uses an optimizer, schedules, weight decay, limits on norms, and dropout, all for padded
parameters.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bonas.nets.losses import get_loss
from bonas.nets.mlp import Params, apply, draw_padded, flatten, unflatten
from bonas.nets.settings import LEARNING_RATES, Examples, Hyperparameters, Settings
from bonas.nets.shapes import Architecture, Shape

# Numbers folded into the key of a run, one for each use of randomness.
FOR_MASK, FOR_START, FOR_ORDER, FOR_INPUTS, FOR_UNITS = range(5)


class Run(NamedTuple):
    """The inputs of a training run, which do not change during the run."""

    key: Array  # () random key
    shape: Shape  # static
    settings: Settings  # static
    architecture: Architecture
    hyper: Hyperparameters
    data: Examples
    mask: Params  # bool: the parameters that exist


def epoch_limit(run: Run) -> Int[Array, ""]:
    """Return the largest number of epochs of a run, `hyper.epochs` or `settings.max_epochs`."""
    max_epochs = jnp.asarray(run.settings.max_epochs, jnp.int32)
    if run.hyper.epochs is None:
        return max_epochs
    return jnp.minimum(jnp.asarray(run.hyper.epochs, jnp.int32), max_epochs)


def row_weights(data: Examples) -> Float[Array, " n"]:
    """Return the weight of every training row in the precision of the inputs."""
    dtype = data.x.dtype
    return (
        jnp.ones(len(data.x), dtype)
        if data.weight is None
        else data.weight.astype(dtype)
    )


def train_epoch(
    run: Run, params: Float[Array, " k"], moments: Any, epoch: Int[Array, ""]
) -> tuple[Float[Array, " k"], Any, Float[Array, ""]]:
    """Train a network for one epoch.

    Args:
        run: Inputs of the run.
        params: Flattened parameters.
        moments: State of the optimizer.
        epoch: Number of epochs before this one.

    Returns:
        Parameters, optimizer state, and the mean training loss of the epoch.
    """
    data = run.data
    settings = run.settings
    dtype = data.x.dtype
    weight = row_weights(data)
    order_key = jax.random.fold_in(jax.random.fold_in(run.key, FOR_ORDER), epoch)
    rows, weights = split_batches(
        order_key, weight, settings.batch or len(data.x), settings.shuffle
    )
    mask = flatten(run.mask)
    rates = learning_rates(settings.optimizer, run.hyper, run.shape, dtype)
    steps = (epoch_limit(run) * len(rows)).astype(dtype)

    def update(carry: tuple, batch: tuple) -> tuple[tuple, Array]:
        params, moments = carry
        i, index, weight = batch
        step = epoch * len(rows) + i
        now = _apply_schedules(run, step.astype(dtype), steps)
        x, y = (data.x, data.y) if len(rows) == 1 else (data.x[index], data.y[index])
        loss, gradient = jax.value_and_grad(_loss)(params, now, step, x, y, weight)
        optimizer = gradient_transformation(settings.optimizer, now.hyper, dtype)
        updates, moments = optimizer.update(
            jnp.where(mask, gradient, 0.0), moments, params
        )
        factor = settings.schedule(step.astype(dtype), steps)
        change = (
            factor * rates * add_weight_decay(updates, params, run.hyper, run.shape)
        )
        params = limit_norms(params - change, run.hyper, run.shape)
        return (params, moments), loss * jnp.sum(weight)

    numbered = (jnp.arange(len(rows), dtype=jnp.int32), rows, weights)
    (params, moments), losses = jax.lax.scan(update, (params, moments), numbered)
    return params, moments, jnp.sum(losses) / jnp.sum(weights)


def _apply_schedules(run: Run, step: Array, steps: Array) -> Run:
    """Return the run with the momentum and dropout rates of one update."""
    settings = run.settings

    def scale(value: Any, schedule: Any) -> Array | None:
        return (
            None
            if value is None
            else jnp.asarray(value, step.dtype) * schedule(step, steps)
        )

    hyper = run.hyper._replace(
        momentum=scale(run.hyper.momentum, settings.momentum_schedule),
        dropout=scale(run.hyper.dropout, settings.dropout_schedule),
        input_dropout=scale(run.hyper.input_dropout, settings.dropout_schedule),
    )
    return run._replace(hyper=hyper)


def split_batches(
    key: PRNGKeyArray, weight: Float[Array, " n"], size: int, shuffle: bool
) -> tuple[Int[Array, "batches size"], Float[Array, "batches size"]]:
    """Split n rows into batches; the last batch is filled with rows of weight zero.

    Args:
        key: Random key of the permutation.
        weight: Weight of each row.
        size: Rows per batch.
        shuffle: Permute the rows, unless there is only one batch.

    Returns:
        Row numbers and row weights of every batch.
    """
    n = len(weight)
    batches = -(-n // size)
    order = jnp.arange(n)
    if shuffle and batches > 1:
        order = jnp.argsort(jax.random.bits(key, (n,)))
        weight = weight[order]
    padding = (0, batches * size - n)
    rows = jnp.pad(order, padding).reshape(batches, size)
    return rows, jnp.pad(weight, padding).reshape(batches, size)


def _loss(
    params: Array, run: Run, step: Array, x: Array, y: Array, weight: Array
) -> Array:
    """Return the weighted mean loss () of rows, with dropout."""
    shape = run.shape
    hyper = run.hyper
    dtype = x.dtype
    keep = None
    if hyper.input_dropout is not None:
        drop_key = jax.random.fold_in(jax.random.fold_in(run.key, FOR_INPUTS), step)
        rate = jnp.asarray(hyper.input_dropout, dtype)[None]
        x = x * dropout_factors(drop_key, rate, (1, len(x), shape.inputs), dtype)[0]
    if hyper.dropout is not None:
        drop_key = jax.random.fold_in(jax.random.fold_in(run.key, FOR_UNITS), step)
        rates = jnp.broadcast_to(jnp.asarray(hyper.dropout, dtype), (shape.depth,))
        keep = dropout_factors(
            drop_key, rates, (shape.depth, len(x), shape.width), dtype
        )
    outputs = apply(shape, unflatten(params, shape), x, run.architecture, keep)
    losses = get_loss(run.settings.loss)(outputs, y)
    return jnp.sum(losses * weight) / jnp.maximum(
        jnp.sum(weight), jnp.finfo(dtype).tiny
    )


# Parts of an update


def gradient_transformation(
    optimizer: str, hyper: Hyperparameters, dtype: Any
) -> optax.GradientTransformation:
    """Return the optax transformation of an optimizer, without its learning rate.

    Zero gradients give zero updates, so missing parameters stay zero.
    """
    if optimizer == "adam":
        return optax.scale_by_adam()
    if optimizer == "adadelta":
        return optax.scale_by_adadelta()
    if hyper.momentum is None:
        return optax.identity()
    return optax.trace(decay=jnp.asarray(hyper.momentum, dtype))


def split_by_layer(value: ArrayLike, shape: Shape, dtype: Any) -> dict[str, Array]:
    """Split a value () for all layers, or (depth + 1,) with one per layer, by layer name."""
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
    """Scale the incoming weights of every unit in params (k,) to a norm of at most max_norm."""
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
    """Draw dropout factors (layers, n, units), whose mean is 1.

    A factor is 0 with the probability of its layer, else 1 / (1 - rate).

    Args:
        key: Random key.
        rates: Probability (layers,) of dropping a unit in each layer.
        sizes: Numbers of layers, rows and units.
        dtype: Floating-point type.
    """
    layers, n, units = sizes
    rate = jnp.broadcast_to(rates[:, None, None], sizes)
    uniform = draw_padded(jax.random.uniform, key, (layers, units, n), dtype).swapaxes(
        1, 2
    )
    return jnp.where(uniform >= rate, 1.0 / (1.0 - rate), 0.0)
