"""Training of variational networks: the bound climbed by Adam, with scores at checkpoints, one network or a population.

A network trains from checkpoint to checkpoint and may stop after any of them: `advance` goes on where it was.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.typing import ArrayLike

from bonas.configure import for_long_arrays
from bonas.nets.bnn_vi import VI, Scores, Variational, divergence, expected_log_likelihood, init, sample_outputs, scores
from bonas.nets.mlp import Architecture, Params, Shape, check_architecture, flat, masks, resize, unflat
from bonas.nets.pruning import active, unit_divergence
from bonas.nets.settings import Examples

_NARROWEST = 16  # units: below this a narrower shape saves no time
_AT_ONCE = 10  # draws of all scored rows that are in memory together
_LANES = 64  # networks that an accelerator trains at once
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
    """What is known of a network at a checkpoint; NaN of one that diverged."""

    bound: Array  # () mean over the updates since the last one of the evidence lower bound, in nats a row
    train: Scores  # of training rows, of which as many are drawn as are validated
    valid: Scores
    noise: Array  # () variance
    active: Array  # (depth,) units in use (H-S5)


class Population(NamedTuple):
    """Networks that were trained, in one shape."""

    q: Variational  # (networks, ...)
    checkpoints: Checkpoint  # (networks, c, ...)
    seconds: np.ndarray  # (networks, c) of training up to each checkpoint, compiling and scoring included


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
    _check(shape, vi, course, traits, data)
    check_architecture(shape, architecture)
    run = Run(key, shape, vi, course, architecture, traits, data)
    state, found = jax.lax.scan(partial(advance, run), begin(run), jnp.asarray(course.checkpoints, jnp.int32))
    return unpack(state.vector, shape), found


def train_vi_many(
    keys: Array,
    shape: Shape,
    vi: VI,
    course: Course,
    architectures: Architecture,
    traits: Traits,
    data: Examples,
    *,
    lanes: int | None = None,
) -> Population:
    """Train one network a key: any widths and depths within the shape, and other traits for each, in one call.

    architectures: leaves with a leading axis. traits: leaves with a leading axis, or () for all networks.
    lanes: networks trained at once by `vmap`; by default one on a CPU, where that is fastest, and many on accelerators.

    Call it outside `jit`. Networks are sorted by depth and padded width, and each such size is compiled once. Their random
    numbers depend on that size and on nothing else in the population.
    """
    n = len(keys)
    lanes = lanes or (1 if jax.default_backend() == "cpu" else _LANES)
    _check(shape, vi, course, traits, data)
    check_architecture(shape, architectures)
    if n == 0 or any(jnp.shape(leaf)[:1] != (n,) for leaf in jax.tree.leaves(architectures)):
        raise ValueError(f"expected architectures with a leading axis of {n} > 0, one a key; see nets.stack")
    every = Traits(*(np.broadcast_to(np.asarray(leaf, data.x.dtype), (n,)) for leaf in traits))
    chosen = jax.tree.map(np.asarray, architectures)
    sizes = [size_of(shape, widths) for widths in chosen.widths]
    found: dict[int, tuple] = {}
    for small in sorted(set(sizes), key=lambda size: (-size.width, -size.depth)):
        members = [i for i in range(n) if sizes[i] == small]
        for chunk in (members[at : at + lanes] for at in range(0, len(members), lanes)):
            full = chunk + chunk[:1] * (lanes - len(chunk))  # idle lanes repeat the first
            several = jax.tree.map(lambda leaf, full=full: leaf[np.asarray(full)], (keys, chosen, every))
            found |= dict(zip(chunk, _trained(small, shape, vi, course, several, data), strict=False))
    together = jax.tree.map(lambda *leaves: np.stack(leaves), *(found[i] for i in range(n)))
    return Population(*together)


def size_of(shape: Shape, widths: np.ndarray) -> Shape:
    """The shape that a network of these widths is trained in: its depth, and its padded width."""
    wide = padded(int(widths.max()))
    return replace(shape, width=min(wide, shape.width), depth=max(int((widths > 0).sum()), 1))


def padded(width: int) -> int:
    """The width that networks of about this one share a program in: a power of two, from 128 on a multiple of 32."""
    if width > 128:  # its work is a multiple of that of a narrow network, and so is what padding wastes
        return -(-width // 32) * 32
    return max(_NARROWEST, 1 << (max(width, 1) - 1).bit_length())


def _check(shape: Shape, vi: VI, course: Course, traits: Traits, data: Examples) -> None:
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


def _trained(small: Shape, shape: Shape, vi: VI, course: Course, several, data: Examples) -> Iterator[tuple]:
    """Networks of one size, trained together: (q in the whole shape, checkpoints, seconds) of each."""
    keys, chosen, every = several
    first = np.argsort(chosen.widths == 0, axis=1, kind="stable")  # layers that are there come first
    widths = np.take_along_axis(chosen.widths, first, axis=1)
    run = Run(keys, small, vi, course, chosen._replace(widths=widths[:, : small.depth]), every, data)
    state, found, seconds, started = _begin(run), [], [], time.perf_counter()
    for end in course.checkpoints:
        state, at = _advance(run, state, np.int32(end))
        units = np.pad(at.active, ((0, 0), (0, shape.depth - small.depth)))  # layers that are not there have none
        found.append(jax.tree.map(np.asarray, at)._replace(active=units))
        seconds.append(time.perf_counter() - started)
    for lane in range(len(keys)):
        q = jax.tree.map(np.asarray, unpack(state.vector[lane], small))
        q = Variational(resize(q.mean, shape), resize(q.log_std, shape), q.log_noise)
        yield q, jax.tree.map(lambda *leaves, lane=lane: np.stack([leaf[lane] for leaf in leaves]), *found), np.stack(seconds)


def _each(function, run: Run, *state):
    """The function of every network of a run, by `vmap`, or without it for one."""
    arrays = (run.key, run.architecture, run.traits)

    def one(arrays, *state):
        key, architecture, traits = arrays
        return function(run._replace(key=key, architecture=architecture, traits=traits), *state)

    if len(run.key) > 1:
        return jax.vmap(one)(arrays, *state)
    alone = one(*jax.tree.map(lambda leaf: leaf[0], (arrays, *state)))
    return jax.tree.map(lambda leaf: leaf[None], alone)


@jax.jit
def _begin(run: Run) -> Training:
    return _each(begin, run)


@partial(jax.jit, compiler_options=for_long_arrays())
def _advance(run: Run, state: Training, end: Array) -> tuple[Training, Checkpoint]:
    return _each(lambda run, state: advance(run, state, end), run, state)


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
