"""Store the traced programs of a search on disk, so that later processes need not trace them.

The files are in a folder of JAX's persistent compilation cache, which contains the machine code.
"""

import hashlib
import io
import json
import os
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import export

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


class Programs(NamedTuple):
    """A search as functions of tuples of arrays, which can be exported."""

    init: Any
    ask: Any
    tell: Any
    batch_size: int  # points per ask
    # for each leaf of a state, whether any later point depends on it
    persistent: tuple[bool, ...]


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
