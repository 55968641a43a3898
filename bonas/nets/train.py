"""Whole training runs as one loop inside the graph.

The loop over epochs ends when the network does: after its own number of epochs, when it has settled, or when it diverged.
One network at a time that costs exactly the epochs trained, layers that are not there are branches not taken, and the
parameters stay in the processor's cache. Under `vmap` lanes run until the last one ends, with masked updates; give the name
of the mapped axis as `axis`, and the loop keeps its own count of epochs, so that validation is still skipped between
checkpoints. A scan of fixed length would cost max_epochs always, and save nothing but the test whether a lane is left.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.typing import ArrayLike

from bonas.nets.epoch import FOR_MASK, FOR_START, Run, limit, one_epoch
from bonas.nets.mlp import Architecture, Params, Shape, apply, check_architecture, flat, init, masks, unflat
from bonas.nets.optimisers import direction
from bonas.nets.settings import Examples, Hyper, Settings, check

# How a run ended; Result.status is a position in this list.
STATUSES = (
    "running",
    "all epochs",
    "settled: the training loss no longer changes",
    "stale: validation no longer improves",
    "diverged",
)
RUNNING, COMPLETE, SETTLED, STALE, DIVERGED = range(len(STATUSES))


class Result(NamedTuple):
    """A training run. Of a diverged one the parameters are the last finite ones, and `final` is NaN."""

    params: Params
    losses: Array  # (max_epochs,) mean training loss of each epoch, each batch before its update; NaN after the end
    metrics: Array | None  # (c, k) validation at Settings.checkpoint_epochs; NaN after the end; None without validation rows
    final: Array | None  # (k,) validation of `params`
    epochs: Array  # () int: the epoch at which the run ended
    kept: Array  # () int: the epoch that `params` are from: the last, the best for patience, the one before divergence
    status: Array  # () int: position in STATUSES


class Best(NamedTuple):
    """The best parameters so far, for patience."""

    value: Array  # () of the first metric
    params: Array  # (k,)
    epoch: Array  # ()
    stale: Array  # () checkpoints since


class State(NamedTuple):
    """What the next epoch needs."""

    epoch: Array  # () epochs that the loop has gone through
    epochs: Array  # () epochs that this network was trained
    status: Array  # ()
    params: Array  # (k,) flat, so that an update is one pass over one array and not one a layer
    moments: Any  # the optimiser's
    losses: Array  # (max_epochs,)
    metrics: Array | None  # (c, k)
    best: Best | None


def train(
    key: Array,
    shape: Shape,
    settings: Settings,
    architecture: Architecture,
    hyper: Hyper,
    data: Examples,
    *,
    params: Params | None = None,
    axis: str | None = None,
) -> Result:
    """Train one network: a pure function for `jit` and `vmap`; on a CPU `jax.lax.map` is faster, for no network waits.

    params: where to start, in place of a draw; zeroed where the architecture has no parameters.
    axis: the name that `vmap` has for the axis of networks; it saves validation between checkpoints.
    """
    run, drawn = _ready(key, shape, settings, architecture, hyper, data)
    return fit(run, drawn if params is None else params, axis)


def begin(key: Array, shape: Shape, architecture: Architecture, initial: str, dtype) -> tuple[Params, Params]:
    """The mask of a network and the parameters that it starts from. They do not depend on what it is padded to."""
    mask = masks(jax.random.fold_in(key, FOR_MASK), shape, architecture)
    return mask, init(jax.random.fold_in(key, FOR_START), shape, architecture, mask, initial, dtype)


def fit(run: Run, params: Params, axis: str | None = None) -> Result:
    """`train` from a given mask and given parameters."""

    def unfinished(state):
        live = state.status == RUNNING
        return live if axis is None else jax.lax.pmax(live.astype(jnp.int32), axis) > 0

    state = jax.lax.while_loop(unfinished, lambda state: _advance(run, state), _start(run, params))
    return _finish(run, state)


def start(key: Array, shape: Shape, settings: Settings, architecture: Architecture, hyper: Hyper, data: Examples) -> State:
    """A run before its first epoch, for `go_on`."""
    return _start(*_ready(key, shape, settings, architecture, hyper, data))


def _ready(
    key: Array, shape: Shape, settings: Settings, architecture: Architecture, hyper: Hyper, data: Examples
) -> tuple[Run, Params]:
    """A run that was checked, and the parameters that it starts from."""
    check(shape, settings, hyper, data)
    check_architecture(shape, architecture)
    mask, params = begin(key, shape, architecture, settings.initial, data.x.dtype)
    return Run(key, shape, settings, architecture, hyper, data, mask), params


def go_on(
    key: Array,
    shape: Shape,
    settings: Settings,
    architecture: Architecture,
    hyper: Hyper,
    data: Examples,
    state: State,
    until: ArrayLike,
) -> State:
    """The run after epoch `until`, or at its end; the rest as given to `start`.

    In as many parts as one likes it is the run of `train`, epoch by epoch: for searches that look before they train on.
    """
    mask = masks(jax.random.fold_in(key, FOR_MASK), shape, architecture)
    run = Run(key, shape, settings, architecture, hyper, data, mask)

    def unfinished(state):
        return (state.status == RUNNING) & (state.epoch < until)

    return jax.lax.while_loop(unfinished, lambda state: _advance(run, state), state)


def evaluate(shape: Shape, settings: Settings, params: Params, architecture: Architecture, x: Array, y: Array) -> Array:
    """The settings' metrics (k,) of a network on rows x (n, inputs) with targets y, without dropout."""
    outputs = apply(shape, params, x, architecture)
    return jnp.stack([jnp.mean(measure(outputs, y)) for measure in settings.measures])


def _start(run: Run, params: Params) -> State:
    dtype, settings, validates = run.data.x.dtype, run.settings, run.data.valid_x is not None
    vector = jnp.where(flat(run.mask), flat(params).astype(dtype), 0.0)
    zero = jnp.zeros((), jnp.int32)
    checkpoints = (len(settings.checkpoint_epochs), len(settings.measures))
    return State(
        epoch=zero,
        epochs=zero,
        status=jnp.where(limit(run) > 0, RUNNING, COMPLETE).astype(jnp.int32),
        params=vector,
        moments=direction(settings.optimiser, run.hyper, dtype).init(vector),
        losses=jnp.full(settings.max_epochs, jnp.nan, dtype),
        metrics=jnp.full(checkpoints, jnp.nan, dtype) if validates else None,
        best=None if settings.patience is None else Best(jnp.asarray(jnp.inf, dtype), vector, zero, zero),
    )


def _advance(run: Run, state: State) -> State:
    """The state after one more epoch; that of a network which has ended does not change."""
    live, number = state.status == RUNNING, state.epoch + 1
    params, moments, loss = one_epoch(run, state.params, state.moments, state.epoch)
    finite = jnp.isfinite(loss) & jnp.isfinite(params).all()
    params, moments = optax.tree.where(live & finite, (params, moments), (state.params, state.moments))
    metrics, best = _validate(run, state, params, live & finite)
    settled = stale = jnp.asarray(False)
    if run.settings.tolerance is not None:
        before = state.losses[jnp.maximum(state.epoch - 1, 0)]
        settled = (state.epoch > 0) & (jnp.abs(loss - before) < run.settings.tolerance)
    if best is not None and run.settings.patience is not None:
        stale = best.stale >= run.settings.patience
    enough = number >= run.settings.min_epochs
    conditions = [~finite, enough & settled, enough & stale, number >= limit(run)]
    status = jnp.select(conditions, [DIVERGED, SETTLED, STALE, COMPLETE], RUNNING)
    return State(
        epoch=number,
        epochs=jnp.where(live, number, state.epochs),
        status=jnp.where(live, status, state.status).astype(jnp.int32),
        params=params,
        moments=moments,
        losses=state.losses.at[state.epoch].set(jnp.where(live, loss, jnp.nan)),
        metrics=metrics,
        best=best,
    )


def _validate(run: Run, state: State, params: Array, fine: Array) -> tuple[Array | None, Best | None]:
    """The metrics and the best parameters after this epoch, if it is a checkpoint."""
    data, settings, best, epochs = run.data, run.settings, state.best, jnp.asarray(run.settings.checkpoint_epochs)
    if state.metrics is None:
        return None, best
    row, due = jnp.sum(epochs <= state.epoch), jnp.any(epochs == state.epoch + 1)

    def measured():
        return _measure(run, params)

    values = jax.lax.cond(due, measured, lambda: jnp.full(len(settings.measures), jnp.nan, data.x.dtype))
    values = jnp.where(fine, values, jnp.nan)
    metrics = state.metrics.at[jnp.where(due, row, len(epochs))].set(values, mode="drop")
    if best is None:
        return metrics, None
    better = due & (values[0] < best.value)
    found = Best(values[0], params, state.epoch + 1, jnp.zeros_like(best.stale))
    return metrics, optax.tree.where(better, found, best._replace(stale=best.stale + (due & fine)))


def _measure(run: Run, params: Array) -> Array:
    """The metrics (k,) on the validation rows."""
    x, y = jnp.asarray(run.data.valid_x), jnp.asarray(run.data.valid_y)
    return evaluate(run.shape, run.settings, unflat(params, run.shape), run.architecture, x, y)


def _finish(run: Run, state: State) -> Result:
    diverged, best = state.status == DIVERGED, state.best
    vector, kept = state.params, state.epochs - diverged
    if best is not None:  # none was found where a run ends before its first checkpoint
        vector, kept = optax.tree.where(best.epoch > 0, (best.params, best.epoch), (vector, kept))
    final = None if state.metrics is None else jnp.where(diverged, jnp.nan, _measure(run, vector))
    return Result(unflat(vector, run.shape), state.losses, state.metrics, final, state.epochs, kept, state.status)
