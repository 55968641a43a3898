"""A population of variational networks, each trained in the smallest of a few shapes that holds it."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from bonas.configure import for_long_arrays
from bonas.nets.bnn_vi import VI, Variational
from bonas.nets.mlp import Architecture, Shape, check_architecture, resize
from bonas.nets.settings import Examples
from bonas.nets.vi_train import Checkpoint, Course, Run, Training, Traits, advance, begin, check_vi, unpack

_NARROWEST = 16  # units: below this a narrower shape saves no time
_LANES = 64  # networks that an accelerator trains at once
# XLA hands products and sums on a CPU to YNNPACK, which takes longer than XLA itself for matrices as narrow as a network's, and
# leaves half of a 512-bit register empty where there are such: noise and activations, in passes over long arrays, fill it.
# Only where options of XLA are known: it refuses others.
_OPTIONS: dict[str, bool | str | int] = {**for_long_arrays()}
if _OPTIONS:
    _OPTIONS |= {"xla_cpu_experimental_ynn_fusion_type": "", "xla_cpu_prefer_vector_width": 512}


class Population(NamedTuple):
    """Networks that were trained, in one shape."""

    q: Variational  # (networks, ...)
    checkpoints: Checkpoint  # (networks, c, ...)
    seconds: np.ndarray  # (networks, c) of training up to each checkpoint, compiling and scoring included


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
    check_vi(shape, vi, course, traits, data)
    check_architecture(shape, architectures, n)
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


@partial(jax.jit, compiler_options=_OPTIONS)
def _advance(run: Run, state: Training, end: Array) -> tuple[Training, Checkpoint]:
    return _each(lambda run, state: advance(run, state, end), run, state)
