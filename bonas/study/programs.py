"""A search as compiled programs; those of a study's own search are kept, so that no later process has to trace them again."""

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, export
from jax.interpreters.partial_eval import dce_jaxpr

from bonas.search.types import AskInfo, Search, Trial

State = tuple[Array, ...]  # the leaves of a search's state
_FOLDER = "programs"  # within that of JAX's compilation cache, which has the machine's code for them
_DIGEST = hashlib.sha256().digest_size
_DECIDING = ("jax", "jaxlib", "numpy", "numpyro", "optax", "scipy")  # packages of which a program is made
_SETTINGS = ("jax_enable_x64", "jax_default_prng_impl", "jax_threefry_partitionable", "jax_default_matmul_precision")


class Programs(NamedTuple):
    """A search's functions for one capacity, and what has to be known of them."""

    init: Callable[[Array], State]  # of a key
    ask: Callable[[Array, State], tuple[Array, State, AskInfo]]
    tell: Callable[[State, Trial], State]
    batch: int  # points an ask
    lasting: tuple[bool, ...]  # for every leaf of a state, whether any later point depends on it


class _Flat(NamedTuple):
    """The same on tuples of arrays, keys as numbers: what can be exported."""

    init: Any
    ask: Any
    tell: Any


@cache
def programs(search: Search, capacity: int, name: str | None = None) -> Programs:
    """The search, compiled for a capacity once however many studies use it.

    name: a text by which this search is the same in every process. With one, and where JAX keeps a compilation cache, the
        programs are kept in a folder within it, for this release of bonas and of all they are made of: to trace and to lower
        an ask takes seconds, to read it next to nothing. Whether they were read or made, the same programs run.
    """
    file = _file(name, capacity) if name else None
    kept = _read(file) if file else None
    if kept:
        return kept
    flat, arguments = _flat(search, capacity), _arguments(search, capacity)
    found = _traced(flat, arguments)
    if not file:
        return _whole(flat, *found)
    exported = _Flat(*(export.export(each)(*those) for each, those in zip(flat, arguments, strict=True)))
    _write(file, exported, *found)
    return _whole(_called(exported), *found)


def tree(search: Search, capacity: int) -> Any:
    """How the leaves of a state belong together."""
    return jax.tree.structure(_shapes(search, capacity))


def _shapes(search: Search, capacity: int) -> Any:
    return jax.eval_shape(lambda: search.init(jax.random.key(0), capacity))


def _flat(search: Search, capacity: int) -> _Flat:
    whole = tree(search, capacity)

    def init(key):
        return tuple(jax.tree.leaves(search.init(jax.random.wrap_key_data(key), capacity)))

    def ask(key, state):
        x, state, info = search.ask(jax.random.wrap_key_data(key), jax.tree.unflatten(whole, state))
        return x, tuple(jax.tree.leaves(state)), tuple(info)

    def tell(state, told):
        return tuple(jax.tree.leaves(search.tell(jax.tree.unflatten(whole, state), Trial(*told))))

    return _Flat(jax.jit(init), jax.jit(ask), jax.jit(tell))


def trial(x: Array, value: float, cost: float, *, ok: bool) -> Trial:
    """What a search is told."""
    kind = x.dtype
    return Trial(x, jnp.asarray(value, kind), step=jnp.asarray(0), cost=jnp.asarray(cost, kind), ok=jnp.asarray(ok))


def _arguments(search: Search, capacity: int) -> _Flat:
    """Shapes of what each of the three takes."""
    key = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
    state = tuple(jax.tree.leaves(_shapes(search, capacity)))
    told = tuple(jax.eval_shape(lambda: trial(jnp.zeros(search.space.dim), 0.0, 0.0, ok=True)))
    return _Flat((key,), (key, state), (state, told))


def _traced(flat: _Flat, arguments: _Flat) -> tuple[int, tuple[bool, ...]]:
    """Points an ask, and which leaves last.

    A leaf counts where the next point is computed from it, or a leaf that counts is, by an ask or by a tell. A posterior
    that every fit makes anew does not; the hyperparameters that the fit starts from do.
    """
    ask = flat.ask.trace(*arguments.ask).jaxpr.jaxpr
    tell = flat.tell.trace(*arguments.tell).jaxpr.jaxpr
    n = len(arguments.ask[1])
    count = [False] * n
    while True:
        _, asked = dce_jaxpr(ask, [True, *count, *[False] * (len(ask.outvars) - 1 - n)])
        _, kept = dce_jaxpr(tell, count)
        wider = [any(each) for each in zip(count, asked[1:], kept[:n], strict=True)]
        if wider == count:
            return ask.outvars[0].aval.shape[0], tuple(count)
        count = wider


def _whole(flat: _Flat, batch: int, lasting: tuple[bool, ...]) -> Programs:
    def ask(key, state):
        x, state, info = flat.ask(jax.random.key_data(key), state)
        return x, state, AskInfo(*info)

    return Programs(
        lambda key: flat.init(jax.random.key_data(key)), ask, lambda state, told: flat.tell(state, tuple(told)), batch, lasting
    )


def _called(exported: _Flat) -> _Flat:
    return _Flat(*(jax.jit(each.call) for each in exported))


def _file(name: str, capacity: int) -> Path | None:
    """Where the programs of this search would be; None where JAX keeps nothing, or not on a disk."""
    folder = getattr(jax.config, "jax_compilation_cache_dir", None)
    if not folder or "://" in folder:
        return None
    how = [jax.default_backend(), *(getattr(jax.config, setting) for setting in _SETTINGS)]
    about = json.dumps([name, capacity, how, _sources(), [version(package) for package in _DECIDING]])
    return Path(folder) / _FOLDER / f"{hashlib.sha256(about.encode()).hexdigest()}"


@cache
def _sources() -> str:
    """A digest of the code of bonas: programs of another are not these."""
    found, package = hashlib.sha256(), Path(__file__).parents[1]
    for file in sorted(package.rglob("*.py")):
        found.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def _write(file: Path, exported: _Flat, batch: int, lasting: tuple[bool, ...]) -> None:
    """Keep them, whole or not at all. A folder that cannot be written to costs the next process some seconds, and no more."""
    parts: dict[str, Any] = {name: np.frombuffer(each.serialize(), np.uint8) for name, each in exported._asdict().items()}
    content = io.BytesIO()
    np.savez_compressed(content, batch=batch, lasting=np.array(lasting), **parts)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as new:
            new.write(hashlib.sha256(content.getbuffer()).digest() + content.getbuffer())
        os.replace(new.name, file)
    except OSError:
        return


def _read(file: Path) -> Programs | None:
    """What was kept; None where nothing is there, or something else than was written: its digest stands before it."""
    try:
        whole = file.read_bytes()
    except OSError:
        return None
    digest, content = whole[:_DIGEST], whole[_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as kept:
        batch, lasting = int(kept["batch"]), tuple(kept["lasting"].tolist())
        flat = _Flat(*(export.deserialize(bytearray(kept[name].tobytes())) for name in _Flat._fields))
    return _whole(_called(flat), batch, lasting)
