"""Train many variational networks, each padded to the smallest suitable shape."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from bonas.nets.bnn_vi import VI, Variational
from bonas.nets.mlp import resize
from bonas.nets.population import default_lanes
from bonas.nets.settings import Examples
from bonas.nets.shapes import Architecture, Shape, check_architecture
from bonas.nets.vi_settings import TrainingPlan, VIHyperparameters, check_vi
from bonas.nets.vi_train import (
    Checkpoint,
    VIRun,
    VIState,
    init_training,
    train_to_checkpoint,
    unpack,
)
from bonas.xla_options import for_narrow_networks

# Narrower shapes are not faster.
_MIN_WIDTH = 16


class Population(NamedTuple):
    """Trained variational networks, padded to one shape."""

    q: Variational  # (networks, ...)
    checkpoints: Checkpoint  # (networks, c, ...)
    # (networks, c) seconds until each checkpoint, including compilation and scoring
    seconds: np.ndarray


def train_vi_many(
    keys: PRNGKeyArray,
    shape: Shape,
    vi: VI,
    plan: TrainingPlan,
    architectures: Architecture,
    hyper: VIHyperparameters,
    data: Examples,
    *,
    lanes: int | None = None,
) -> Population:
    """Train many variational networks, one per key, of any widths and depths within the shape.

    Call this function outside `jit`: networks are sorted by depth and padded width, and each such
    size is compiled once. The random numbers of a network depend on its padded size, but not on the
    other networks.

    Args:
        keys: Random keys (n,).
        shape: Shape that holds every network.
        vi: Settings of variational inference.
        plan: Checkpoints and batches.
        architectures: The networks, leaves with a leading axis n.
        hyper: Hyperparameters, leaves with a leading axis n, or () for all networks.
        data: Training and validation rows.
        lanes: Networks trained at once by `vmap`; by default one on a CPU, where that is fastest,
            and many on accelerators.

    Returns:
        Posteriors, scores at checkpoints and training times, leaves with a leading axis n.
    """
    n = len(keys)
    lanes = default_lanes(lanes)
    check_vi(shape, vi, plan, hyper, data)
    check_architecture(shape, architectures, n)
    hypers = VIHyperparameters(
        *(np.broadcast_to(np.asarray(leaf, data.x.dtype), (n,)) for leaf in hyper)
    )
    networks = jax.tree.map(np.asarray, architectures)
    sizes = [bucket_shape(shape, widths) for widths in networks.widths]
    trained: dict[int, tuple] = {}
    for small in sorted(set(sizes), key=lambda size: (-size.width, -size.depth)):
        members = [i for i in range(n) if sizes[i] == small]
        for chunk in (
            members[start : start + lanes] for start in range(0, len(members), lanes)
        ):
            # Unused lanes repeat the first network.
            rows = np.asarray(chunk + chunk[:1] * (lanes - len(chunk)))
            batch = jax.tree.map(
                lambda leaf, rows=rows: leaf[rows], (keys, networks, hypers)
            )
            results = _train_batch(small, shape, vi, plan, batch, data)
            trained |= dict(zip(chunk, results, strict=False))
    ordered = [trained[i] for i in range(n)]
    return Population(*jax.tree.map(lambda *leaves: np.stack(leaves), *ordered))


def bucket_shape(shape: Shape, widths: np.ndarray) -> Shape:
    """Return the shape that a network is trained in: its depth and its padded width.

    Args:
        shape: Shape that holds every network.
        widths: Units of each hidden layer; 0 for missing layers.
    """
    width = padded_width(int(widths.max()))
    return replace(
        shape, width=min(width, shape.width), depth=max(int((widths > 0).sum()), 1)
    )


def padded_width(width: int) -> int:
    """Return the width to which a layer is padded.

    It is the next power of two, at least 16. Above 128 it is the next multiple of 32, because
    padding costs more in wide networks.
    """
    if width > 128:
        return -(-width // 32) * 32
    return max(_MIN_WIDTH, 1 << (max(width, 1) - 1).bit_length())


def _train_batch(
    small: Shape, shape: Shape, vi: VI, plan: TrainingPlan, batch: tuple, data: Examples
) -> Iterator[tuple]:
    """Train networks of one size; yield (posterior padded to `shape`, checkpoints, seconds)."""
    keys, networks, hypers = batch
    # Move the layers of width 0, which do not exist, behind the others.
    order = np.argsort(networks.widths == 0, axis=1, kind="stable")
    widths = np.take_along_axis(networks.widths, order, axis=1)[:, : small.depth]
    run = VIRun(keys, small, vi, plan, networks._replace(widths=widths), hypers, data)
    state = _init_training(run)
    checkpoints = []
    seconds = []
    started = time.perf_counter()
    for end in plan.checkpoints:
        state, checkpoint = _train_to_checkpoint(run, state, np.int32(end))
        # Missing layers have no active units.
        units = np.pad(checkpoint.active, ((0, 0), (0, shape.depth - small.depth)))
        checkpoints.append(jax.tree.map(np.asarray, checkpoint)._replace(active=units))
        seconds.append(time.perf_counter() - started)
    for lane in range(len(keys)):
        q = jax.tree.map(np.asarray, unpack(state.vector[lane], small))
        q = Variational(resize(q.mean, shape), resize(q.log_std, shape), q.log_noise)
        own = jax.tree.map(
            lambda *leaves, lane=lane: np.stack([leaf[lane] for leaf in leaves]),
            *checkpoints,
        )
        yield q, own, np.stack(seconds)


def _map_networks(function: Callable[..., Any], run: VIRun, *state: VIState) -> Any:
    """Apply a function of (run, *state) to every network, by `vmap` if there are several."""
    batched = (run.key, run.architecture, run.hyper)

    def apply(batched: tuple, *state: VIState) -> Any:
        key, architecture, hyper = batched
        return function(
            run._replace(key=key, architecture=architecture, hyper=hyper), *state
        )

    if len(run.key) > 1:
        return jax.vmap(apply)(batched, *state)
    result = apply(*jax.tree.map(lambda leaf: leaf[0], (batched, *state)))
    return jax.tree.map(lambda leaf: leaf[None], result)


@jax.jit
def _init_training(run: VIRun) -> VIState:
    return _map_networks(init_training, run)


@partial(jax.jit, compiler_options=for_narrow_networks())
def _train_to_checkpoint(
    run: VIRun, state: VIState, end: Array
) -> tuple[VIState, Checkpoint]:
    return _map_networks(
        lambda run, state: train_to_checkpoint(run, state, end), run, state
    )
