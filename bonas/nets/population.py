"""Train many networks of different sizes, each padded to the smallest suitable shape."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from bonas.nets.epoch import Run
from bonas.nets.mlp import resize
from bonas.nets.settings import Examples, Hyperparameters, Settings, check
from bonas.nets.shapes import (
    Architecture,
    Shape,
    bucket,
    check_architecture,
    check_positive_integer,
)
from bonas.nets.trainer import Result, fit, init_network
from bonas.xla_options import for_long_arrays

# Networks that an accelerator trains at once.
_LANES = 64


def default_lanes(lanes: int | None) -> int:
    """Return the number of networks to train at once.

    It is `lanes`, or by default 1 on a CPU and 64 on accelerators.
    """
    if lanes is None:
        return 1 if jax.default_backend() == "cpu" else _LANES
    check_positive_integer("lanes", lanes)
    return lanes


def train_many(
    keys: PRNGKeyArray,
    shape: Shape,
    settings: Settings,
    architectures: Architecture,
    hyper: Hyperparameters,
    data: Examples,
    *,
    lanes: int | None = None,
) -> Result:
    """Train many networks, one per key; each result equals the result of `train`.

    Call this function outside `jit`: networks are sorted into buckets by width, and each bucket is
    compiled once.

    Args:
        keys: Random keys (n,).
        shape: Shape that holds every network.
        settings: Settings of all runs.
        architectures: The networks, leaves with a leading axis n.
        hyper: Hyperparameters, leaves with a leading axis n, or () for all networks.
        data: Training and validation rows.
        lanes: Networks trained at once by `vmap`; by default one on a CPU, where that is fastest,
            and many on accelerators.

    Returns:
        Results of the runs, leaves with a leading axis n.

    Raises:
        ValueError: If called inside `jit`, or if the arguments do not fit together.
    """
    n = len(keys)
    _check(n, shape, settings, architectures, hyper, data)
    lanes = default_lanes(lanes)
    networks, hypers = _broadcast(settings, architectures, hyper, data.x.dtype, n)
    shapes = [bucket(shape, int(width)) for width in networks.widths.max(axis=1)]
    started = []
    # Widest networks first: they take longest, and the next bucket is compiled while they train.
    for small in sorted(set(shapes), key=lambda shape: -shape.width):
        members = [i for i in range(n) if shapes[i] == small]
        for chunk in (
            members[start : start + lanes] for start in range(0, len(members), lanes)
        ):
            runs = [(keys[i], _pick(networks, i), _pick(hypers, i)) for i in chunk]
            started.append((chunk, _start(runs, shape, small, settings, data, lanes)))
    results: dict[int, Result] = {}
    for chunk, batch in started:
        result = jax.tree.map(np.asarray, batch)
        result = result._replace(params=resize(result.params, shape))
        results |= {i: _pick(result, lane) for lane, i in enumerate(chunk)}
    ordered = [results[i] for i in range(n)]
    return jax.tree.map(lambda *leaves: jax.device_put(np.stack(leaves)), *ordered)


def _check(
    n: int,
    shape: Shape,
    settings: Settings,
    architectures: Architecture,
    hyper: Hyperparameters,
    data: Examples,
) -> None:
    if any(
        isinstance(leaf, jax.core.Tracer)
        for leaf in jax.tree.leaves((architectures, hyper))
    ):
        raise ValueError(
            "train_many sorts networks by width: call it outside jit, "
            "or use jax.vmap of nets.train inside"
        )
    check(shape, settings, hyper, data, n)
    check_architecture(shape, architectures, n)


def _broadcast(
    settings: Settings,
    architectures: Architecture,
    hyper: Hyperparameters,
    dtype: Any,
    n: int,
) -> tuple[Architecture, Hyperparameters]:
    """Give every leaf a leading axis and a fixed dtype, so that one program serves all networks."""

    def expand(leaf: Any, kind: Any) -> Any:
        if leaf is None:
            return None
        return np.broadcast_to(np.asarray(leaf, kind), (n, *np.shape(leaf)[1:]))

    kinds = (np.int32, np.int32, np.float32)
    leaves = (
        expand(leaf, kind) for leaf, kind in zip(architectures, kinds, strict=True)
    )
    hypers = Hyperparameters(*(expand(leaf, dtype) for leaf in hyper[:-1]))
    epochs = settings.max_epochs if hyper.epochs is None else hyper.epochs
    return Architecture(*leaves), hypers._replace(epochs=expand(epochs, np.int32))


def _pick(tree: Any, i: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[i], tree)


def _stack(trees: Sequence) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


_init_network = jax.jit(init_network, static_argnames=("initial", "dtype"))


@partial(jax.jit, compiler_options=for_long_arrays())
def _fit_one(
    networks: tuple, shape: Shape, settings: Settings, data: Examples
) -> Result:
    """Train one network with a leading axis of 1, without vmap, to keep its branches."""
    key, architecture, hyper, mask, params = _pick(networks, 0)
    result = fit(Run(key, shape, settings, architecture, hyper, data, mask), params)
    return jax.tree.map(lambda leaf: leaf[None], result)


@partial(jax.jit, compiler_options=for_long_arrays())
def _fit_batch(
    networks: tuple, shape: Shape, settings: Settings, data: Examples
) -> Result:
    def fit_lane(
        key: Array, architecture: Any, hyper: Any, mask: Any, params: Any
    ) -> Result:
        run = Run(key, shape, settings, architecture, hyper, data, mask)
        return fit(run, params, axis="lanes")

    return jax.vmap(fit_lane, axis_name="lanes")(*networks)


def _start(
    runs: list,
    shape: Shape,
    small: Shape,
    settings: Settings,
    data: Examples,
    lanes: int,
) -> Result:
    """Start to train at most `lanes` networks in the small shape, without waiting for the result.

    Unused lanes come last and are not trained.
    """
    key, network, hyper = runs[0]
    idle = (key, network, hyper._replace(epochs=np.zeros_like(hyper.epochs)))
    runs = runs + [idle] * (lanes - len(runs))
    keys, networks, hypers = zip(*runs, strict=True)
    # Draw in the full shape, with one program for all buckets, and truncate to the same numbers.
    initial = [
        _init_network(key, shape, network, settings.initial, data.x.dtype)
        for key, network, _ in runs
    ]
    mask, params = (
        resize(_stack(trees), small) for trees in zip(*initial, strict=True)
    )
    batch = (jnp.stack(keys), _stack(networks), _stack(hypers), mask, params)
    return (_fit_one if lanes == 1 else _fit_batch)(batch, small, settings, data)
