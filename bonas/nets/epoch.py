"""One epoch of a training run: every row once, in batches, with dropout, schedules and limits on weights."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.nets.losses import named
from bonas.nets.mlp import Architecture, Params, Shape, apply, flat, unflat
from bonas.nets.optimisers import decayed, direction, keep_mask, learning_rates, limited
from bonas.nets.settings import Examples, Hyper, Settings

FOR_MASK, FOR_START, FOR_ORDER, FOR_INPUTS, FOR_UNITS = range(5)  # what the key of a run is folded with for each of its uses


class Run(NamedTuple):
    """Everything that stays the same during a run."""

    key: Array
    shape: Shape
    settings: Settings
    architecture: Architecture
    hyper: Hyper
    data: Examples
    mask: Params


def limit(run: Run) -> Array:
    """The epochs that this network may train."""
    most = jnp.asarray(run.settings.max_epochs, jnp.int32)
    return most if run.hyper.epochs is None else jnp.minimum(jnp.asarray(run.hyper.epochs, jnp.int32), most)


def one_epoch(run: Run, params: Array, moments: Any, epoch: Array) -> tuple[Array, Any, Array]:
    """Parameters and the optimiser's state after every row was used once, and the mean loss of the rows.

    params: flat. epoch: () how many were before.
    """
    data, settings, hyper, dtype = run.data, run.settings, run.hyper, run.data.x.dtype
    weight = jnp.ones(len(data.x), dtype) if data.weight is None else data.weight.astype(dtype)
    order_key = jax.random.fold_in(jax.random.fold_in(run.key, FOR_ORDER), epoch)
    rows, weights = batches(order_key, weight, settings.batch or len(data.x), settings.shuffle)
    mask, rates = flat(run.mask), learning_rates(settings.optimiser, hyper, run.shape, dtype)
    steps = (limit(run) * len(rows)).astype(dtype)

    def update(carry, batch):
        params, moments = carry
        i, index, weight = batch
        step = epoch * len(rows) + i
        now = _scheduled(run, step.astype(dtype), steps)
        x, y = (data.x, data.y) if len(rows) == 1 else (data.x[index], data.y[index])
        loss, gradient = jax.value_and_grad(_loss)(params, now, step, x, y, weight)
        optimiser = direction(settings.optimiser, now.hyper, dtype)
        updates, moments = optimiser.update(jnp.where(mask, gradient, 0.0), moments, params)
        factor = settings.schedule(step.astype(dtype), steps)
        params = limited(params - factor * rates * decayed(updates, params, hyper, run.shape), hyper, run.shape)
        return (params, moments), loss * jnp.sum(weight)

    numbered = (jnp.arange(len(rows), dtype=jnp.int32), rows, weights)
    (params, moments), losses = jax.lax.scan(update, (params, moments), numbered)
    return params, moments, jnp.sum(losses) / jnp.sum(weights)


def _scheduled(run: Run, step: Array, steps: Array) -> Run:
    """The run with the momentum and the dropout of one update."""
    settings = run.settings

    def times(value, schedule):
        return None if value is None else jnp.asarray(value, step.dtype) * schedule(step, steps)

    hyper = run.hyper._replace(
        momentum=times(run.hyper.momentum, settings.momentum_schedule),
        dropout=times(run.hyper.dropout, settings.dropout_schedule),
        input_dropout=times(run.hyper.input_dropout, settings.dropout_schedule),
    )
    return run._replace(hyper=hyper)


def batches(key: Array, weight: Array, size: int, shuffle: bool) -> tuple[Array, Array]:
    """Each of the n rows once, as batches (n / size, size), and how much they count, from weight (n,).

    The last batch is filled with rows that count nothing.
    """
    n = len(weight)
    count = -(-n // size)
    order = jnp.arange(n)
    if shuffle and count > 1:
        order = jnp.argsort(jax.random.bits(key, (n,)))
        weight = weight[order]
    room = (0, count * size - n)
    return jnp.pad(order, room).reshape(count, size), jnp.pad(weight, room).reshape(count, size)


def _loss(params: Array, run: Run, step: Array, x: Array, y: Array, weight: Array) -> Array:
    """The weighted mean of the rows' losses, with units dropped if any are."""
    shape, hyper, dtype, keep = run.shape, run.hyper, x.dtype, None
    if hyper.input_dropout is not None:
        drop_key = jax.random.fold_in(jax.random.fold_in(run.key, FOR_INPUTS), step)
        x = x * keep_mask(drop_key, jnp.asarray(hyper.input_dropout, dtype)[None], (1, len(x), shape.inputs), dtype)[0]
    if hyper.dropout is not None:
        drop_key = jax.random.fold_in(jax.random.fold_in(run.key, FOR_UNITS), step)
        rates = jnp.broadcast_to(jnp.asarray(hyper.dropout, dtype), (shape.depth,))
        keep = keep_mask(drop_key, rates, (shape.depth, len(x), shape.width), dtype)
    losses = named(run.settings.loss)(apply(shape, unflat(params, shape), x, run.architecture, keep), y)
    return jnp.sum(losses * weight) / jnp.maximum(jnp.sum(weight), jnp.finfo(dtype).tiny)
