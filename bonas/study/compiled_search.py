"""Compile a search for a capacity, and store its traced programs on disk for later processes.

A state is flat here, so that it can be stored. The programs are in a folder of JAX's persistent
compilation cache, which contains the machine code.
"""

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, export
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import PRNGKeyArray

from bonas.search import (
    AskInfo,
    Observation,
    Search,
    in_background,
    make_observation,
)

State = tuple[Array, ...]  # the leaves of a search's state

_FOLDER = "programs"
_DIGEST_SIZE = hashlib.sha256().digest_size
_FUNCTIONS = ("init", "ask", "tell")
# Packages and settings of JAX that determine what the programs compute.
_PACKAGES = ("jax", "jaxlib", "numpy", "numpyro", "optax", "scipy")
_SETTINGS = (
    "jax_enable_x64",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_default_matmul_precision",
)


class CompiledSearch(NamedTuple):
    """The functions of a search for one capacity."""

    init: Callable[[PRNGKeyArray], State]
    ask: Callable[[PRNGKeyArray, State], tuple[Array, State, AskInfo]]
    tell: Callable[[State, Observation], State]
    batch_size: int  # points per ask
    # for each leaf of a state, whether any later point depends on it
    persistent: tuple[bool, ...]


class Programs(NamedTuple):
    """A search as functions of tuples of arrays, which can be exported."""

    init: Any
    ask: Any
    tell: Any
    batch_size: int  # points per ask
    # for each leaf of a state, whether any later point depends on it
    persistent: tuple[bool, ...]


def compile_search(
    search: Search, capacity: int, name: str | None = None
) -> CompiledSearch:
    """Compile a search for a capacity.

    Args:
        search: The search.
        capacity: Points that its state can hold.
        name: A text that identifies the search in every process. If it is given and JAX has a
            persistent compilation cache, the traced programs are stored beside that cache, because
            tracing and lowering an ask takes seconds. The same programs run whether they were
            stored or not.
    """
    file = program_file(name, capacity) if name else None
    stored = load_programs(file) if file else None
    if stored:
        return _compiled(stored)
    functions = _flat_functions(search, capacity)
    arguments = _argument_shapes(search, capacity)
    batch_size, persistent = _analyze(functions, arguments)
    programs = Programs(*functions, batch_size, persistent)
    if file:
        programs = export_programs(file, programs, arguments)
    return _compiled(programs)


def state_structure(search: Search, capacity: int) -> Any:
    """Return the tree structure of a state, to unflatten its leaves."""
    return jax.tree.structure(_state_shapes(search, capacity))


def _state_shapes(search: Search, capacity: int) -> Any:
    return jax.eval_shape(lambda: search.init(jax.random.key(0), capacity))


def _flat_functions(search: Search, capacity: int) -> tuple[Any, Any, Any]:
    """Return jitted init, ask and tell on tuples of arrays, with raw key data as keys."""
    structure = state_structure(search, capacity)

    def init(key: Array) -> State:
        return tuple(
            jax.tree.leaves(search.init(jax.random.wrap_key_data(key), capacity))
        )

    def ask(key: Array, state: State) -> tuple[Array, State, tuple[Array, ...]]:
        whole = jax.tree.unflatten(structure, state)
        x, whole, info = search.ask(jax.random.wrap_key_data(key), whole)
        return x, tuple(jax.tree.leaves(whole)), tuple(info)

    def tell(state: State, observation: tuple[Array | None, ...]) -> State:
        whole = jax.tree.unflatten(structure, state)
        return tuple(jax.tree.leaves(search.tell(whole, Observation(*observation))))

    return jax.jit(init), jax.jit(ask), jax.jit(tell)


def _argument_shapes(search: Search, capacity: int) -> tuple[Any, Any, Any]:
    """Return the shapes of the arguments of init, ask and tell."""
    key = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
    state = tuple(jax.tree.leaves(_state_shapes(search, capacity)))
    point = jnp.zeros(search.space.dim)
    noise = 0.0 if search.uses_known_noise else None
    observation = tuple(
        jax.eval_shape(lambda: make_observation(point, 0.0, 0.0, ok=True, noise=noise))
    )
    return (key,), (key, state), (state, observation)


def _analyze(
    functions: tuple[Any, Any, Any], arguments: tuple[Any, Any, Any]
) -> tuple[int, tuple[bool, ...]]:
    """Return the points per ask, and which leaves of a state any later point depends on.

    A leaf is persistent if the next point, or another persistent leaf, is computed from it by an
    ask or a tell. A posterior that every fit recomputes is not; the hyperparameters from which
    the fit starts are.
    """
    _, ask_function, tell_function = functions
    _, ask_arguments, tell_arguments = arguments
    ask = ask_function.trace(*ask_arguments).jaxpr.jaxpr
    tell = tell_function.trace(*tell_arguments).jaxpr.jaxpr
    leaves = len(ask_arguments[1])
    info_outputs = len(ask.outvars) - 1 - leaves
    persistent = [False] * leaves
    while True:
        _, used_by_ask = dce_jaxpr(ask, [True, *persistent, *[False] * info_outputs])
        _, used_by_tell = dce_jaxpr(tell, persistent)
        uses = zip(persistent, used_by_ask[1:], used_by_tell[:leaves], strict=True)
        wider = [any(use) for use in uses]
        if wider == persistent:
            return ask.outvars[0].aval.shape[0], tuple(persistent)
        persistent = wider


def _compiled(programs: Programs) -> CompiledSearch:
    def init(key: PRNGKeyArray) -> State:
        state: State = programs.init(jax.random.key_data(key))
        return state

    def ask(key: PRNGKeyArray, state: State) -> tuple[Array, State, AskInfo]:
        x, state, info = programs.ask(jax.random.key_data(key), state)
        return x, state, AskInfo(*info)

    def tell(state: State, observation: Observation) -> State:
        new_state: State = programs.tell(state, tuple(observation))
        return new_state

    return CompiledSearch(init, ask, tell, programs.batch_size, programs.persistent)


class SearchPrograms:
    """The programs of a search for each capacity of its state.

    They are compiled when they are needed, or earlier in a thread.
    """

    def __init__(self, search: Search, init_key: PRNGKeyArray, name: str | None):
        """Prepare to compile.

        Args:
            search: The search.
            init_key: The key of its initial state.
            name: Name under which programs are stored, see `compile_search`.
        """
        self._search = search
        self._init_key = init_key
        self._name = name
        self._compiled: dict[int, CompiledSearch] = {}  # by capacity
        self._started: dict[int, Future[None]] = {}
        # called before waiting for the compiler
        self.on_wait: Callable[[], None] = lambda: None

    def __call__(self, capacity: int) -> CompiledSearch:
        """Return the programs for a capacity."""
        if capacity in self._started:
            if not self._started[capacity].done():
                self.on_wait()
            self._started.pop(capacity).result()
        elif capacity not in self._compiled:
            self.on_wait()
            self._compiled[capacity] = self._trace(capacity)
        return self._compiled[capacity]

    def prepare(self, capacity: int) -> None:
        """Start to compile the programs for a capacity in a thread, unless that was done before."""
        if capacity not in self._compiled and capacity not in self._started:
            self._started[capacity] = in_background(lambda: self._compile(capacity))

    def _trace(self, capacity: int) -> CompiledSearch:
        return compile_search(self._search, capacity, self._name)

    def _compile(self, capacity: int) -> None:
        """Compile the programs by calling each of them once."""
        compiled = self._trace(capacity)
        state = compiled.init(self._init_key)
        points, state, _ = compiled.ask(self._init_key, state)
        noise = 0.0 if self._search.uses_known_noise else None
        observation = make_observation(points[0], 0.0, 0.0, ok=True, noise=noise)
        jax.block_until_ready(compiled.tell(state, observation))
        self._compiled[capacity] = compiled


# Programs on disk


def program_file(name: str, capacity: int) -> Path | None:
    """Return the file of the programs of a search; None without a compilation cache on disk."""
    folder = getattr(jax.config, "jax_compilation_cache_dir", None)
    if not folder or "://" in folder:
        return None
    settings = [getattr(jax.config, setting) for setting in _SETTINGS]
    packages = [version(package) for package in _PACKAGES]
    key = [
        name,
        capacity,
        [jax.default_backend(), *settings],
        _source_digest(),
        packages,
    ]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    return Path(folder) / _FOLDER / digest


# Kept because the code that runs stays the same when its files are edited.
@cache
def _source_digest() -> str:
    """Return a digest of the code of bonas, which determines the programs."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(
            file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes()
        )
    return digest.hexdigest()


def export_programs(
    file: Path, programs: Programs, arguments: tuple[Any, Any, Any]
) -> Programs:
    """Export programs for arguments of these shapes, store them, and return the exported ones."""
    functions = (programs.init, programs.ask, programs.tell)
    exported = [
        export.export(function)(*shapes)
        for function, shapes in zip(functions, arguments, strict=True)
    ]
    _store(file, exported, programs.batch_size, programs.persistent)
    return _callable_programs(exported, programs.batch_size, programs.persistent)


def _callable_programs(
    exported: list[Any], batch_size: int, persistent: tuple[bool, ...]
) -> Programs:
    init, ask, tell = (jax.jit(each.call) for each in exported)
    return Programs(init, ask, tell, batch_size, persistent)


def _store(
    file: Path, exported: list[Any], batch_size: int, persistent: tuple[bool, ...]
) -> None:
    """Write the file atomically; ignore a folder that is not writable."""
    serialized: dict[str, Any] = {
        name: np.frombuffer(each.serialize(), np.uint8)
        for name, each in zip(_FUNCTIONS, exported, strict=True)
    }
    content = io.BytesIO()
    np.savez_compressed(
        content, batch_size=batch_size, persistent=np.array(persistent), **serialized
    )
    digest = hashlib.sha256(content.getbuffer()).digest()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
            temporary.write(digest + content.getbuffer())
        os.replace(temporary.name, file)
    except OSError:
        return


def load_programs(file: Path) -> Programs | None:
    """Read stored programs; None if the file is missing or does not match its digest."""
    try:
        stored = file.read_bytes()
    except OSError:
        return None
    digest = stored[:_DIGEST_SIZE]
    content = stored[_DIGEST_SIZE:]
    if hashlib.sha256(content).digest() != digest:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        batch_size = int(arrays["batch_size"])
        persistent = tuple(arrays["persistent"].tolist())
        exported = [
            export.deserialize(bytearray(arrays[name].tobytes())) for name in _FUNCTIONS
        ]
    return _callable_programs(exported, batch_size, persistent)
