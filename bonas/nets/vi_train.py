"""Train variational networks by Adam on the evidence lower bound, and score them at checkpoints.

Training can stop at any checkpoint; `train_to_checkpoint` continues from its state.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.nets.bnn_vi import (
    VI,
    Scores,
    Variational,
    expected_log_likelihood,
    init,
    sample_outputs,
    scores,
    unscale_scores,
)
from bonas.nets.epoch import row_weights
from bonas.nets.mlp import Params, flatten, masks, unflatten
from bonas.nets.pruning import active, unit_divergence
from bonas.nets.settings import Examples
from bonas.nets.shapes import Architecture, Shape, check_architecture
from bonas.nets.vi_prior import divergence
from bonas.nets.vi_settings import TrainingPlan, VIHyperparameters, check_vi

# Number of samples that scoring holds in memory at once.
_SAMPLES_AT_ONCE = 10
# Numbers folded into the key of a network, one for each use of randomness.
_FOR_MASK, _FOR_START, _FOR_ORDER, _FOR_NOISE, _FOR_SCORES = range(5)


class VIState(NamedTuple):
    """State of training between updates."""

    vector: Array  # (2 k + 1,) means, log standard deviations, log noise
    moments: Any  # state of Adam
    order: Array  # (n,) int: order of the rows in this pass over the data
    step: Array  # () int: updates done
    # () bool: whether all updates were finite; if not, the last finite parameters are kept
    finite: Array


class Checkpoint(NamedTuple):
    """Scores at a checkpoint, in the units of the given values; NaN if training diverged."""

    # () mean evidence lower bound since the last checkpoint, in nats per row
    bound: Array
    # scores on random training rows, as many as validation rows if there are enough
    train: Scores
    valid: Scores  # scores on the validation rows
    noise: Array  # () noise variance
    active: Array  # (depth,) number of active units; see nets.pruning


def unscale_checkpoint(scaled: Checkpoint, y_scale: ArrayLike) -> Checkpoint:
    """Convert a checkpoint computed on targets divided by y_scale to the original units."""
    return Checkpoint(
        bound=scaled.bound - jnp.log(y_scale),
        train=unscale_scores(scaled.train, y_scale),
        valid=unscale_scores(scaled.valid, y_scale),
        noise=scaled.noise * jnp.square(y_scale),
        active=scaled.active,
    )


class VIRun(NamedTuple):
    """The inputs of a training run, which do not change during the run."""

    key: Array  # () random key
    shape: Shape  # static
    vi: VI  # static
    plan: TrainingPlan  # static
    architecture: Architecture
    hyper: VIHyperparameters
    data: Examples


def train_vi(
    key: PRNGKeyArray,
    shape: Shape,
    vi: VI,
    plan: TrainingPlan,
    architecture: Architecture,
    hyper: VIHyperparameters,
    data: Examples,
) -> tuple[Variational, Checkpoint]:
    """Train one variational network; a pure function for `jit` and `vmap`.

    Args:
        key: Random key.
        shape: Shape that the network is padded to.
        vi: Settings of variational inference.
        plan: Checkpoints and batches.
        architecture: The network.
        hyper: Hyperparameters.
        data: Training and validation rows, with targets (n, 1).

    Returns:
        The posterior, and scores with a leading axis of checkpoints.
    """
    check_vi(shape, vi, plan, hyper, data)
    check_architecture(shape, architecture)
    run = VIRun(key, shape, vi, plan, architecture, hyper, data)
    ends = jnp.asarray(plan.checkpoints, jnp.int32)
    state, checkpoints = jax.lax.scan(
        partial(train_to_checkpoint, run), init_training(run), ends
    )
    return unpack(state.vector, shape), checkpoints


def init_training(run: VIRun, **start: float) -> VIState:
    """Return the state before the first update; other arguments are passed to `bnn_vi.init`."""
    dtype = run.data.x.dtype
    log_noise = jnp.log(jnp.asarray(run.hyper.noise))
    start_key = jax.random.fold_in(run.key, _FOR_START)
    q = init(start_key, run.shape, _mask(run), log_noise=log_noise, **start)
    vector = pack(jax.tree.map(lambda leaf: leaf.astype(dtype), q))
    return VIState(
        vector=vector,
        moments=optax.scale_by_adam().init(vector),
        order=jnp.arange(len(run.data.x)),
        step=jnp.zeros((), jnp.int32),
        finite=jnp.asarray(True),
    )


def pack(q: Variational) -> Float[Array, " k"]:
    """Concatenate a posterior into one vector, so that an update is one pass over one array."""
    return jnp.concatenate([flatten(q.mean), flatten(q.log_std), q.log_noise[None]])


def unpack(vector: Float[Array, " k"], shape: Shape) -> Variational:
    """Split a vector into means, log standard deviations and log noise, the inverse of `pack`."""
    k = len(vector) // 2
    return Variational(
        unflatten(vector[:k], shape), unflatten(vector[k:-1], shape), vector[-1]
    )


def train_to_checkpoint(
    run: VIRun, state: VIState, end: ArrayLike
) -> tuple[VIState, Checkpoint]:
    """Train until `end` updates have been made in total, and score the network.

    Args:
        run: Inputs of the run.
        state: State from `init_training` or from a previous call.
        end: Number of updates since the start of training.

    Returns:
        The state, and the scores as means over the last `plan.window` updates.
    """
    dtype = run.data.x.dtype
    window = run.plan.window
    mask = _mask(run)
    began = state.step
    score_shapes = jax.eval_shape(partial(_score, run), state)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), score_shapes)

    def update(i: Array, carry: tuple) -> tuple:
        state, bounds, totals = carry
        state, bound = _update(run, mask, state)
        # Scoring is a branch of one loop, so that training is not compiled twice.
        new_scores = jax.lax.cond(
            i >= end - window, lambda: _score(run, state), lambda: zeros
        )
        return state, bounds + bound, jax.tree.map(jnp.add, totals, new_scores)

    start = (state, jnp.zeros((), dtype), zeros)
    state, bounds, totals = jax.lax.fori_loop(
        began, jnp.asarray(end, jnp.int32), update, start
    )
    train, valid = jax.tree.map(lambda leaf: leaf / window, totals)
    q = unpack(state.vector, run.shape)
    prior_variance = jnp.asarray(run.hyper.prior_variance, dtype)
    units = active(unit_divergence(run.vi, q, mask, prior_variance)).sum(axis=1)
    checkpoint = Checkpoint(
        bounds / (end - began), train, valid, jnp.exp(q.log_noise), units.astype(dtype)
    )
    return state, jax.tree.map(
        lambda leaf: jnp.where(state.finite, leaf, jnp.nan), checkpoint
    )


def train_until(
    run: VIRun, state: VIState, end: ArrayLike
) -> tuple[VIState, Float[Array, ""]]:
    """Train until `end` updates have been made in total, without scores.

    Returns:
        The state, and the mean bound of these updates.
    """
    mask = _mask(run)
    began = state.step

    def update(_: Array, carry: tuple) -> tuple:
        state, bounds = carry
        state, bound = _update(run, mask, state)
        return state, bounds + bound

    start = (state, jnp.zeros((), run.data.x.dtype))
    state, bounds = jax.lax.fori_loop(began, jnp.asarray(end, jnp.int32), update, start)
    return state, bounds / jnp.maximum(end - began, 1)


def _mask(run: VIRun) -> Params:
    return masks(jax.random.fold_in(run.key, _FOR_MASK), run.shape, run.architecture)


class _Batch(NamedTuple):
    """Rows of one update."""

    x: Array  # (b, inputs)
    y: Array  # (b, 1)
    weight: Array  # (b,)
    order: Array  # (n,) int: order of the rows in this pass over the data


def _next_batch(run: VIRun, state: VIState, weight: Array) -> _Batch:
    """Select the rows of the next update, and shuffle them before each pass over the data."""
    data = run.data
    n = len(data.x)
    size = run.plan.batch
    if size is None or size >= n:
        return _Batch(data.x, data.y, weight, state.order)
    batches = -(-n // size)
    number = state.step % batches
    order_key = jax.random.fold_in(jax.random.fold_in(run.key, _FOR_ORDER), state.step)
    order = jax.lax.cond(
        number == 0,
        lambda: jnp.argsort(jax.random.bits(order_key, (n,))),
        lambda: state.order,
    )
    place = number * size + jnp.arange(size)
    rows = order[place % n]
    return _Batch(
        data.x[rows], data.y[rows], jnp.where(place < n, weight[rows], 0.0), order
    )


def _update(run: VIRun, mask: Params, state: VIState) -> tuple[VIState, Array]:
    """Make one update; return the state and the bound before the update."""
    dtype = run.data.x.dtype
    weight = row_weights(run.data)
    count = jnp.maximum(jnp.sum(weight), 1.0) * jnp.asarray(run.hyper.repeats, dtype)
    batch = _next_batch(run, state, weight)
    noise_key = jax.random.fold_in(jax.random.fold_in(run.key, _FOR_NOISE), state.step)

    def loss(vector: Array) -> Array:
        q = unpack(vector, run.shape)
        likelihood = expected_log_likelihood(
            noise_key,
            run.vi,
            run.shape,
            q,
            mask,
            run.architecture,
            batch.x,
            batch.y[:, 0],
        )
        kl = divergence(run.vi, q, mask, jnp.asarray(run.hyper.prior_variance, dtype))
        kl_per_row = kl / count
        weighted = jnp.sum(likelihood * batch.weight)
        return kl_per_row - weighted / jnp.maximum(
            jnp.sum(batch.weight), jnp.finfo(dtype).tiny
        )

    value, gradient = jax.value_and_grad(loss)(state.vector)
    live = jnp.concatenate([flatten(mask), flatten(mask), jnp.ones(1, bool)])
    updates, moments = optax.scale_by_adam().update(
        jnp.where(live, gradient, 0.0), state.moments
    )
    vector = state.vector - jnp.asarray(run.hyper.learning_rate, dtype) * updates
    finite = state.finite & jnp.isfinite(value) & jnp.isfinite(vector).all()
    vector, moments = optax.tree.where(
        finite, (vector, moments), (state.vector, state.moments)
    )
    return VIState(vector, moments, batch.order, state.step + 1, finite), -value


def _score(run: VIRun, state: VIState) -> tuple[Scores, Scores]:
    """Score training rows and validation rows, a few samples at a time."""
    data = run.data
    q = unpack(state.vector, run.shape)
    mask = _mask(run)
    draws = run.plan.draws
    valid_x = jnp.asarray(data.valid_x)
    valid_y = jnp.asarray(data.valid_y)
    key = jax.random.fold_in(jax.random.fold_in(run.key, _FOR_SCORES), state.step)
    probability = None if data.weight is None else data.weight / jnp.sum(data.weight)
    size = min(len(valid_x), len(data.x))
    chosen = jax.random.choice(key, len(data.x), (size,), p=probability)
    x = jnp.concatenate([data.x[chosen], valid_x])
    at_once = next(
        k for k in range(min(_SAMPLES_AT_ONCE, draws), 0, -1) if draws % k == 0
    )

    def sample(key: Array) -> Array:
        return sample_outputs(key, run.shape, q, mask, run.architecture, x, at_once)

    outputs = jax.lax.map(sample, jax.random.split(key, draws // at_once))
    outputs = outputs.reshape(draws, len(x), run.shape.outputs)
    train = scores(run.vi, q, outputs[:, :size], data.y[chosen, 0])
    return train, scores(run.vi, q, outputs[:, size:], valid_y[:, 0])
