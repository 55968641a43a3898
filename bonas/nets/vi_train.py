"""Training of a variational network: the bound climbed by Adam, with scores at checkpoints.

A network trains from checkpoint to checkpoint and may stop after any of them: `advance` goes on where it was.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.typing import ArrayLike

from bonas.nets.bnn_vi import (
    VI,
    Scores,
    Variational,
    divergence,
    expected_log_likelihood,
    init,
    sample_outputs,
    scores,
    unscale_scores,
)
from bonas.nets.mlp import Architecture, Params, Shape, check_architecture, flat, masks, unflat
from bonas.nets.pruning import active, unit_divergence
from bonas.nets.settings import Examples

_AT_ONCE = 10  # draws of all scored rows that are in memory together
_MASK, _INITIAL, _ORDER, _NOISE, _SCORE = range(5)  # what the key of a network is folded with


@jax.tree_util.register_static
@dataclass(frozen=True)
class Course:
    """How long to train, and when to look. Static: other courses are compiled anew.

    checkpoints: rising numbers of updates; training ends at the last.
    batch: rows an update; None for all of them.
    draws, window: scores are means over the last `window` updates before a checkpoint, each by `draws` draws. The thesis
        has 100 draws and 20 updates, its code 50 (H-S6).
    """

    checkpoints: tuple[int, ...] = (500, 1000, 1500, 2000, 2500, 3000, 4000, 5000)
    batch: int | None = None
    draws: int = 100
    window: int = 1

    def __post_init__(self):
        points = np.asarray(self.checkpoints)
        if points.ndim != 1 or points.dtype.kind != "i" or points.size == 0 or (np.diff(points, prepend=0) <= 0).any():
            raise ValueError(f"checkpoints are rising numbers of updates, the first at least 1; got {self.checkpoints!r}")
        for name in ("draws", "window") if self.batch is None else ("draws", "window", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}")
        if self.window > np.diff(points, prepend=0).min():
            raise ValueError(f"a window of {self.window} updates does not fit between the checkpoints {self.checkpoints}")


class Traits(NamedTuple):
    """What may differ from network to network in one compiled program."""

    learning_rate: ArrayLike = 1e-3  # of Adam, with its usual other numbers
    prior_variance: ArrayLike = 1.0  # of the weights, or the mode of its inverse-gamma prior
    noise: ArrayLike = 0.0025  # variance of the noise that training begins with: exp(−6), rounded
    repeats: ArrayLike = 1.0  # how many times the likelihood counts; as published data repeated m times count m² times (H-X12)


class Training(NamedTuple):
    """A network in training."""

    vector: Array  # (2 k + 1,) means, log deviations, log noise
    moments: Any  # Adam's
    order: Array  # (n,) int: the rows in the order of this pass over the data
    step: Array  # () int: updates done
    finite: Array  # () bool: false from the update on that gave no numbers; the parameters before it are kept


class Checkpoint(NamedTuple):
    """What is known of a network at a checkpoint, in the units of the values that were given; NaN of one that diverged."""

    bound: Array  # () mean over the updates since the last one of the evidence lower bound, in nats a row
    train: Scores  # of training rows, of which as many are drawn as are validated
    valid: Scores
    noise: Array  # () variance
    active: Array  # (depth,) units in use (H-S5)


def unscale_checkpoint(found: Checkpoint, y_scale: ArrayLike) -> Checkpoint:
    """What is known of a network whose values had been divided by y_scale, in their own units."""
    train, valid = (unscale_scores(part, y_scale) for part in (found.train, found.valid))
    return Checkpoint(found.bound - jnp.log(y_scale), train, valid, found.noise * jnp.square(y_scale), found.active)


class Run(NamedTuple):
    """A network to train, and all that it is told."""

    key: Array
    shape: Shape
    vi: VI
    course: Course
    architecture: Architecture
    traits: Traits
    data: Examples


def train_vi(
    key: Array, shape: Shape, vi: VI, course: Course, architecture: Architecture, traits: Traits, data: Examples
) -> tuple[Variational, Checkpoint]:
    """Train one network; its scores have a leading axis of checkpoints. A pure function for `jit` and `vmap`."""
    check_vi(shape, vi, course, traits, data)
    check_architecture(shape, architecture)
    run = Run(key, shape, vi, course, architecture, traits, data)
    state, found = jax.lax.scan(partial(advance, run), begin(run), jnp.asarray(course.checkpoints, jnp.int32))
    return unpack(state.vector, shape), found


def check_vi(shape: Shape, vi: VI, course: Course, traits: Traits, data: Examples) -> None:
    """Refuse what does not fit together; values only where they are known, outside `jit`."""
    outputs = 1 + vi.head
    if data.x.ndim != 2 or data.x.shape[1] != shape.inputs or data.y.ndim != 2 or data.y.shape[1] != 1:
        raise ValueError(f"expected rows of {shape.inputs} inputs and one target; got {data.x.shape} and {data.y.shape}")
    if shape.outputs != outputs:
        raise ValueError(
            f"a network {'with' if vi.head else 'without'} a variance head has {outputs} outputs; got {shape.outputs}"
        )
    if data.valid_x is None:
        raise ValueError("scores need validation rows: examples(x, y, valid_x, valid_y)")
    if course.batch is not None and course.batch > len(data.x):
        raise ValueError(f"batch, {course.batch}, is more than the {len(data.x)} rows; None takes all of them")
    for name, value in traits._asdict().items():
        if not isinstance(value, jax.core.Tracer) and not (np.asarray(value) > 0.0).all():
            raise ValueError(f"{name} must be positive; got {value}")


def begin(run: Run, **start: float) -> Training:
    """A network before its first update; start: `spread` and `log_std` of `bnn_vi.init`."""
    dtype, log_noise = run.data.x.dtype, jnp.log(jnp.asarray(run.traits.noise))
    q = init(jax.random.fold_in(run.key, _INITIAL), run.shape, _mask(run), log_noise=log_noise, **start)
    vector = pack(jax.tree.map(lambda leaf: leaf.astype(dtype), q))
    zero = jnp.zeros((), jnp.int32)
    return Training(vector, optax.scale_by_adam().init(vector), jnp.arange(len(run.data.x)), zero, jnp.asarray(True))


def pack(q: Variational) -> Array:
    """All of a variational network as one vector: an update is then one pass over one array."""
    return jnp.concatenate([flat(q.mean), flat(q.log_std), q.log_noise[None]])


def unpack(vector: Array, shape: Shape) -> Variational:
    """Its inverse."""
    k = len(vector) // 2
    return Variational(unflat(vector[:k], shape), unflat(vector[k:-1], shape), vector[-1])


def advance(run: Run, state: Training, end: ArrayLike) -> tuple[Training, Checkpoint]:
    """The network after `end` updates in all, and its scores: what a checkpoint is."""
    dtype, window = run.data.x.dtype, run.course.window
    mask, began = _mask(run), state.step
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(partial(_score, run), state))

    def update(i, carry):
        state, bounds, seen = carry
        state, bound = _update(run, mask, state)
        # scoring is a branch, so that it is compiled once and training is not compiled twice
        now = jax.lax.cond(i >= end - window, lambda: _score(run, state), lambda: nothing)
        return state, bounds + bound, jax.tree.map(jnp.add, seen, now)

    start = (state, jnp.zeros((), dtype), nothing)
    state, bounds, seen = jax.lax.fori_loop(began, jnp.asarray(end, jnp.int32), update, start)
    train, valid = jax.tree.map(lambda leaf: leaf / window, seen)
    q = unpack(state.vector, run.shape)
    units = active(unit_divergence(run.vi, q, mask, jnp.asarray(run.traits.prior_variance, dtype))).sum(axis=1)
    found = Checkpoint(bounds / (end - began), train, valid, jnp.exp(q.log_noise), units.astype(dtype))
    return state, jax.tree.map(lambda leaf: jnp.where(state.finite, leaf, jnp.nan), found)


def climb(run: Run, state: Training, end: ArrayLike) -> tuple[Training, Array]:
    """The network after `end` updates in all, without scores, and the mean bound of those made."""
    mask, began = _mask(run), state.step

    def update(_, carry):
        state, bound = _update(run, mask, carry[0])
        return state, carry[1] + bound

    state, bounds = jax.lax.fori_loop(began, jnp.asarray(end, jnp.int32), update, (state, jnp.zeros((), run.data.x.dtype)))
    return state, bounds / jnp.maximum(end - began, 1)


def _mask(run: Run) -> Params:
    return masks(jax.random.fold_in(run.key, _MASK), run.shape, run.architecture)


def _update(run: Run, mask: Params, state: Training) -> tuple[Training, Array]:
    """One update, and the bound before it."""
    data, dtype = run.data, run.data.x.dtype
    n = len(data.x)
    weight = jnp.ones(n, dtype) if data.weight is None else data.weight.astype(dtype)
    count = jnp.maximum(jnp.sum(weight), 1.0) * jnp.asarray(run.traits.repeats, dtype)
    order, x, y, part = state.order, data.x, data.y, weight
    if run.course.batch is not None and run.course.batch < n:
        size = run.course.batch
        turns = -(-n // size)
        turn = state.step % turns
        order_key = jax.random.fold_in(jax.random.fold_in(run.key, _ORDER), state.step)
        order = jax.lax.cond(turn == 0, lambda: jnp.argsort(jax.random.bits(order_key, (n,))), lambda: order)
        place = turn * size + jnp.arange(size)
        rows = order[place % n]
        x, y, part = data.x[rows], data.y[rows], jnp.where(place < n, weight[rows], 0.0)
    noise_key = jax.random.fold_in(jax.random.fold_in(run.key, _NOISE), state.step)

    def loss(vector):
        q = unpack(vector, run.shape)
        fit = expected_log_likelihood(noise_key, run.vi, run.shape, q, mask, run.architecture, x, y[:, 0])
        away = divergence(run.vi, q, mask, jnp.asarray(run.traits.prior_variance, dtype))
        return away / count - jnp.sum(fit * part) / jnp.maximum(jnp.sum(part), jnp.finfo(dtype).tiny)

    value, gradient = jax.value_and_grad(loss)(state.vector)
    live = jnp.concatenate([flat(mask), flat(mask), jnp.ones(1, bool)])
    updates, moments = optax.scale_by_adam().update(jnp.where(live, gradient, 0.0), state.moments)
    vector = state.vector - jnp.asarray(run.traits.learning_rate, dtype) * updates
    fine = state.finite & jnp.isfinite(value) & jnp.isfinite(vector).all()
    vector, moments = optax.tree.where(fine, (vector, moments), (state.vector, state.moments))
    return Training(vector, moments, order, state.step + 1, fine), -value


def _score(run: Run, state: Training) -> tuple[Scores, Scores]:
    """Of training rows and of validation rows, a few draws at a time."""
    data, q, mask, draws = run.data, unpack(state.vector, run.shape), _mask(run), run.course.draws
    valid_x, valid_y = jnp.asarray(data.valid_x), jnp.asarray(data.valid_y)
    key = jax.random.fold_in(jax.random.fold_in(run.key, _SCORE), state.step)
    chance = None if data.weight is None else data.weight / jnp.sum(data.weight)
    some = jax.random.choice(key, len(data.x), (min(len(valid_x), len(data.x)),), p=chance)
    x = jnp.concatenate([data.x[some], valid_x])
    part = next(size for size in range(min(_AT_ONCE, draws), 0, -1) if draws % size == 0)

    def outputs(key):
        return sample_outputs(key, run.shape, q, mask, run.architecture, x, part)

    found = jax.lax.map(outputs, jax.random.split(key, draws // part)).reshape(draws, len(x), run.shape.outputs)
    cut = len(some)
    train = scores(run.vi, q, found[:, :cut], data.y[some, 0])
    return train, scores(run.vi, q, found[:, cut:], valid_y[:, 0])
