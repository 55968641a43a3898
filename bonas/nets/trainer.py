"""Train a network in one compiled loop over epochs.

The loop ends after the last epoch, when the network has converged, or when it has diverged. For one
network at a time, only the epochs trained cost time, missing layers are branches that are not
taken, and the parameters stay in the processor's cache. Under `vmap` the loop runs until the last
network ends, with masked updates. Pass the name of the mapped axis as `axis`: the loop then has one
epoch counter for all networks, and validation is skipped between checkpoints.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.nets.epoch import (
    FOR_MASK,
    FOR_START,
    Run,
    epoch_limit,
    gradient_transformation,
    train_epoch,
)
from bonas.nets.mlp import Params, apply, flatten, init, masks, unflatten
from bonas.nets.settings import Examples, Hyperparameters, Settings, check
from bonas.nets.shapes import Architecture, Shape, check_architecture

# How a run ended; Result.status is a position in this tuple.
STATUSES = (
    "running",
    "complete: trained for all epochs",
    "converged: the training loss no longer changes",
    "stopped: validation no longer improves",
    "diverged",
)
RUNNING, COMPLETE, CONVERGED, STOPPED, DIVERGED = range(len(STATUSES))


class Result(NamedTuple):
    """Result of a training run; if it diverged, `params` are the last finite parameters."""

    params: Params
    losses: Array  # (max_epochs,) mean training loss of each epoch; NaN after the end
    # Without validation rows, the metrics are None. They are typed as arrays because objectives,
    # which have validation rows, use them without a check.
    metrics: Array  # (c, k) validation metrics at checkpoints; NaN after the end
    final: Array  # (k,) validation metrics of `params`; NaN if the run diverged
    epochs: Array  # () int: epochs trained
    # () int: epoch of `params`: the last, the best, or the one before divergence
    kept: Array
    status: Array  # () int: position in STATUSES


class Best(NamedTuple):
    """The best parameters so far, for patience."""

    value: Array  # () first metric
    params: Array  # (k,)
    epoch: Array  # () int
    stale: Array  # () int: checkpoints without improvement


class State(NamedTuple):
    """State of a training run between epochs."""

    epoch: Array  # () int: epochs of the loop, shared by all networks under vmap
    epochs: Array  # () int: epochs that this network was trained
    status: Array  # () int
    params: Array  # (k,) flattened, so that an update is one pass over one array
    moments: Any  # state of the optimizer
    losses: Array  # (max_epochs,)
    metrics: Array | None  # (c, k)
    best: Best | None


def train(
    key: PRNGKeyArray,
    shape: Shape,
    settings: Settings,
    architecture: Architecture,
    hyper: Hyperparameters,
    data: Examples,
    *,
    params: Params | None = None,
    axis: str | None = None,
) -> Result:
    """Train one network; a pure function for `jit` and `vmap`.

    On a CPU, `jax.lax.map` over networks is faster than `vmap`, because no network waits for
    another.

    Args:
        key: Random key.
        shape: Shape that the network is padded to.
        settings: Settings of the run.
        architecture: The network.
        hyper: Hyperparameters.
        data: Training and validation rows.
        params: Initial parameters; drawn at random if None.
        axis: Name of the axis of networks under `vmap`; with it, networks are validated only at
            checkpoints.
    """
    run, initial = _init_run(key, shape, settings, architecture, hyper, data)
    return fit(run, initial if params is None else params, axis)


def init_network(
    key: PRNGKeyArray,
    shape: Shape,
    architecture: Architecture,
    initial: str,
    dtype: Any,
) -> tuple[Params, Params]:
    """Draw the mask and the initial parameters of a network, independently of the padding."""
    mask = masks(jax.random.fold_in(key, FOR_MASK), shape, architecture)
    start_key = jax.random.fold_in(key, FOR_START)
    return mask, init(start_key, shape, architecture, mask, initial, dtype)


def fit(run: Run, params: Params, axis: str | None = None) -> Result:
    """Train a network from given parameters; see `train`.

    Args:
        run: Inputs of the run, with the mask of the parameters that exist.
        params: Initial parameters.
        axis: Name of the axis of networks under `vmap`.
    """

    def unfinished(state: State) -> Array:
        live = state.status == RUNNING
        return live if axis is None else jax.lax.pmax(live.astype(jnp.int32), axis) > 0

    state = _init_state(run, params)
    state = jax.lax.while_loop(unfinished, lambda state: _advance(run, state), state)
    return _finish(run, state)


def start_training(
    key: PRNGKeyArray,
    shape: Shape,
    settings: Settings,
    architecture: Architecture,
    hyper: Hyperparameters,
    data: Examples,
) -> State:
    """Return the state of a run before its first epoch, for `resume_training`."""
    return _init_state(*_init_run(key, shape, settings, architecture, hyper, data))


def _init_run(
    key: Array,
    shape: Shape,
    settings: Settings,
    architecture: Architecture,
    hyper: Hyperparameters,
    data: Examples,
) -> tuple[Run, Params]:
    """Check the inputs of a run and draw its initial parameters."""
    check(shape, settings, hyper, data)
    check_architecture(shape, architecture)
    mask, params = init_network(
        key, shape, architecture, settings.initial, data.x.dtype
    )
    return Run(key, shape, settings, architecture, hyper, data, mask), params


def resume_training(
    key: PRNGKeyArray,
    shape: Shape,
    settings: Settings,
    architecture: Architecture,
    hyper: Hyperparameters,
    data: Examples,
    state: State,
    until: ArrayLike,
) -> State:
    """Continue a run from a state up to epoch `until`.

    A run in several parts gives the same result as `train`. The arguments before `state` must equal
    those of `start_training`.
    """
    mask = masks(jax.random.fold_in(key, FOR_MASK), shape, architecture)
    run = Run(key, shape, settings, architecture, hyper, data, mask)

    def unfinished(state: State) -> Array:
        return (state.status == RUNNING) & (state.epoch < until)

    return jax.lax.while_loop(unfinished, lambda state: _advance(run, state), state)


def evaluate(
    shape: Shape,
    settings: Settings,
    params: Params,
    architecture: Architecture,
    x: Float[ArrayLike, "n inputs"],
    y: Array,
) -> Float[Array, " metrics"]:
    """Compute the mean of every metric over rows, without dropout.

    Args:
        shape: Shape that the network is padded to.
        settings: Settings with the metrics.
        params: Parameters of the network.
        architecture: The network.
        x: Input rows.
        y: Targets (n, outputs) or labels (n,).
    """
    outputs = apply(shape, params, x, architecture)
    return jnp.stack(
        [jnp.mean(metric(outputs, y)) for metric in settings.metric_functions]
    )


def _init_state(run: Run, params: Params) -> State:
    settings = run.settings
    dtype = run.data.x.dtype
    validates = run.data.valid_x is not None
    vector = jnp.where(flatten(run.mask), flatten(params).astype(dtype), 0.0)
    zero = jnp.zeros((), jnp.int32)
    checkpoints = (len(settings.checkpoint_epochs), len(settings.metric_functions))
    best = Best(jnp.asarray(jnp.inf, dtype), vector, zero, zero)
    return State(
        epoch=zero,
        epochs=zero,
        status=jnp.where(epoch_limit(run) > 0, RUNNING, COMPLETE).astype(jnp.int32),
        params=vector,
        moments=gradient_transformation(settings.optimizer, run.hyper, dtype).init(
            vector
        ),
        losses=jnp.full(settings.max_epochs, jnp.nan, dtype),
        metrics=jnp.full(checkpoints, jnp.nan, dtype) if validates else None,
        best=None if settings.patience is None else best,
    )


def _advance(run: Run, state: State) -> State:
    """Train for one more epoch; the state of a network whose run has ended does not change."""
    live = state.status == RUNNING
    number = state.epoch + 1
    params, moments, loss = train_epoch(run, state.params, state.moments, state.epoch)
    finite = jnp.isfinite(loss) & jnp.isfinite(params).all()
    params, moments = optax.tree.where(
        live & finite, (params, moments), (state.params, state.moments)
    )
    metrics, best = _validate(run, state, params, live & finite)
    converged = jnp.asarray(False)
    stale = converged
    if run.settings.tolerance is not None:
        previous = state.losses[jnp.maximum(state.epoch - 1, 0)]
        converged = (state.epoch > 0) & (
            jnp.abs(loss - previous) < run.settings.tolerance
        )
    if best is not None and run.settings.patience is not None:
        stale = best.stale >= run.settings.patience
    may_stop = number >= run.settings.min_epochs
    conditions = [
        ~finite,
        may_stop & converged,
        may_stop & stale,
        number >= epoch_limit(run),
    ]
    status = jnp.select(conditions, [DIVERGED, CONVERGED, STOPPED, COMPLETE], RUNNING)
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


def _validate(
    run: Run, state: State, params: Array, valid: Array
) -> tuple[Array | None, Best | None]:
    """Update the metrics and the best parameters if this epoch is a checkpoint."""
    best = state.best
    epochs = jnp.asarray(run.settings.checkpoint_epochs)
    if state.metrics is None:
        return None, best
    row = jnp.sum(epochs <= state.epoch)
    due = jnp.any(epochs == state.epoch + 1)
    missing = len(run.settings.metric_functions)
    values = jax.lax.cond(
        due,
        lambda: _validation_metrics(run, params),
        lambda: jnp.full(missing, jnp.nan, run.data.x.dtype),
    )
    values = jnp.where(valid, values, jnp.nan)
    metrics = state.metrics.at[jnp.where(due, row, len(epochs))].set(
        values, mode="drop"
    )
    if best is None:
        return metrics, None
    better = due & (values[0] < best.value)
    improved = Best(values[0], params, state.epoch + 1, jnp.zeros_like(best.stale))
    unchanged = best._replace(stale=best.stale + (due & valid))
    return metrics, optax.tree.where(better, improved, unchanged)


def _validation_metrics(run: Run, params: Array) -> Array:
    """Compute the metrics (k,) on the validation rows."""
    x = jnp.asarray(run.data.valid_x)
    y = jnp.asarray(run.data.valid_y)
    return evaluate(
        run.shape, run.settings, unflatten(params, run.shape), run.architecture, x, y
    )


def _finish(run: Run, state: State) -> Result:
    diverged = state.status == DIVERGED
    best = state.best
    vector = state.params
    kept = state.epochs - diverged
    if best is not None:  # epoch 0: the run ended before its first checkpoint
        vector, kept = optax.tree.where(
            best.epoch > 0, (best.params, best.epoch), (vector, kept)
        )
    metrics: Any = state.metrics
    final: Any = None
    if metrics is not None:
        final = jnp.where(diverged, jnp.nan, _validation_metrics(run, vector))
    return Result(
        params=unflatten(vector, run.shape),
        losses=state.losses,
        metrics=metrics,
        final=final,
        epochs=state.epochs,
        kept=kept,
        status=state.status,
    )
