"""Many networks of different size, each in the smallest of a few shapes that holds it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.configure import for_long_arrays
from bonas.nets.epoch import Run
from bonas.nets.mlp import Architecture, Shape, check_architecture, resize
from bonas.nets.settings import Examples, Hyper, Settings, check
from bonas.nets.train import Result, begin, fit

# Below this width an update costs what calling the operations costs: a smaller shape would only be one more to compile.
_NARROWEST = 32
# Lanes an accelerator trains at once.
_LANES = 64


def bucket(shape: Shape, width: int) -> Shape:
    """The shape that networks of a width are trained in: padded to a power of two, and never wider than `shape`.

    It depends on the network alone, so a search meets at most log2(shape.width / 32) + 1 of them. Depth is not divided
    further: layers that are not there cost no time on a CPU, and more shapes would cost more compilations.
    """
    wide = max(_NARROWEST, 1 << (max(width, 1) - 1).bit_length())
    return replace(shape, width=min(wide, shape.width))


def train_many(
    keys: Array,
    shape: Shape,
    settings: Settings,
    architectures: Architecture,
    hyper: Hyper,
    data: Examples,
    *,
    lanes: int | None = None,
) -> Result:
    """Train one network a key, leaves (len(keys), ...); the results are those of `train`, whatever the others are.

    architectures: leaves with a leading axis. hyper: leaves with a leading axis, or () for all networks.
    lanes: networks trained at once by `vmap`. By default one on a CPU, where that is fastest, and many on accelerators.

    Call it outside `jit`: architectures are sorted into buckets by their width, and each bucket is compiled once.
    """
    n = len(keys)
    _check(n, shape, settings, architectures, hyper, data, lanes)
    lanes = lanes or (1 if jax.default_backend() == "cpu" else _LANES)
    chosen, every = _on_host(settings, architectures, hyper, data.x.dtype, n)
    shapes = [bucket(shape, int(width)) for width in chosen.widths.max(axis=1)]
    started = []
    # the widest first: they take longest, and the next bucket is compiled while they train
    for small in sorted(set(shapes), key=lambda s: -s.width):
        members = [i for i in range(n) if shapes[i] == small]
        for chunk in (members[start : start + lanes] for start in range(0, len(members), lanes)):
            networks = [(keys[i], _pick(chosen, i), _pick(every, i)) for i in chunk]
            started.append((chunk, _start(networks, shape, small, settings, data, lanes)))
    results: dict[int, Result] = {}
    for chunk, together in started:
        whole = jax.tree.map(np.asarray, together)
        whole = whole._replace(params=resize(whole.params, shape))
        results |= {i: _pick(whole, lane) for lane, i in enumerate(chunk)}
    return jax.tree.map(lambda *leaves: jax.device_put(np.stack(leaves)), *(results[i] for i in range(n)))


def _check(n: int, shape: Shape, settings: Settings, architectures: Architecture, hyper: Hyper, data: Examples, lanes) -> None:
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((architectures, hyper))):
        raise ValueError("train_many sorts networks by their width: call it outside jit, or use jax.vmap of nets.train inside")
    check(shape, settings, hyper, data, n)
    check_architecture(shape, architectures, n)
    if lanes is not None and (isinstance(lanes, bool) or not isinstance(lanes, int) or lanes < 1):
        raise ValueError(f"lanes must be a whole number of at least 1; got {lanes!r}")


def _on_host(settings: Settings, architectures: Architecture, hyper: Hyper, dtype, n: int) -> tuple[Architecture, Hyper]:
    """Architectures and hyperparameters with a leading axis and of one kind each, so that one program takes them all."""

    def spread(leaf, kind):
        return None if leaf is None else np.broadcast_to(np.asarray(leaf, kind), (n, *np.shape(leaf)[1:]))

    chosen = Architecture(
        *(spread(leaf, kind) for leaf, kind in zip(architectures, (np.int32, np.int32, np.float32), strict=True))
    )
    every = Hyper(*(spread(leaf, dtype) for leaf in hyper[:-1]))
    epochs = settings.max_epochs if hyper.epochs is None else hyper.epochs
    return chosen, every._replace(epochs=spread(epochs, np.int32))


def _pick(tree, i: int):
    return jax.tree.map(lambda leaf: leaf[i], tree)


def _stack(trees: Sequence):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


_begin = jax.jit(begin, static_argnames=("initial", "dtype"))


@partial(jax.jit, compiler_options=for_long_arrays())
def _fit_alone(networks, shape, settings, data) -> Result:
    """The result of one network, with its leading axis of 1: loops and branches are its own."""
    key, architecture, hyper, mask, params = _pick(networks, 0)
    return jax.tree.map(lambda leaf: leaf[None], fit(Run(key, shape, settings, architecture, hyper, data, mask), params))


@partial(jax.jit, compiler_options=for_long_arrays())
def _fit_together(networks, shape, settings, data) -> Result:
    def one(key, architecture, hyper, mask, params):
        return fit(Run(key, shape, settings, architecture, hyper, data, mask), params, axis="lanes")

    return jax.vmap(one, axis_name="lanes")(*networks)


def _start(networks: list, shape: Shape, small: Shape, settings: Settings, data: Examples, lanes: int) -> Result:
    """Start to train at most `lanes` networks in the small shape, without waiting for them; idle lanes come last."""
    networks = networks + [(key, a, h._replace(epochs=np.zeros_like(h.epochs))) for key, a, h in networks[:1]] * (
        lanes - len(networks)
    )
    keys, architectures, hyper = zip(*networks, strict=True)
    # drawn in the full shape, which one program does for all buckets, and cut: the numbers are the same
    drawn = [_begin(key, shape, a, settings.initial, data.x.dtype) for key, a, _ in networks]
    mask, params = (resize(_stack(trees), small) for trees in zip(*drawn, strict=True))
    batch = (jnp.stack(keys), _stack(architectures), _stack(hyper), mask, params)
    return (_fit_alone if lanes == 1 else _fit_together)(batch, small, settings, data)
