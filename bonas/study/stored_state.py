"""The state of a search as bytes in the file of a study; an ask writes the chunks that changed."""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from bonas.study.compiled_search import CompiledSearch, State
from bonas.study.database import StudyError

# bytes stored together: with its key, a chunk fills one page of the file
CHUNK_SIZE = 4000
OTHER_SEARCH = (
    "the study was created with another search; pass that search as search=, with the same "
    "settings"
)


def leaf_bytes(persistent: tuple[bool, ...], state: State) -> dict[int, np.ndarray]:
    """Return views of the persistent leaves as bytes, (k,), by their position."""
    leaves = zip(persistent, state, strict=True)
    return {
        i: np.asarray(leaf).reshape(-1).view(np.uint8)
        for i, (is_persistent, leaf) in enumerate(leaves)
        if is_persistent
    }


def changed_chunks(
    new: Mapping[int, np.ndarray], old: Mapping[int, np.ndarray]
) -> list[tuple[int, int, bytes]]:
    """Return the chunks (leaf, chunk, content) of new leaves that differ from the old ones."""
    chunks = []
    for leaf, content in new.items():
        for chunk in _differing_chunks(content, old.get(leaf)):
            start = chunk * CHUNK_SIZE
            chunks.append((leaf, chunk, content[start : start + CHUNK_SIZE].tobytes()))
    return chunks


def _differing_chunks(new: np.ndarray, old: np.ndarray | None) -> list[int]:
    if old is None or len(old) != len(new):
        return list(range(max(1, -(-len(new) // CHUNK_SIZE))))
    # Compare eight bytes at once where they fit.
    dtype = np.dtype(np.uint64 if len(new) % 8 == 0 else np.uint8)
    positions = np.flatnonzero(new.view(dtype) != old.view(dtype))
    chunks: list[int] = np.unique(positions * dtype.itemsize // CHUNK_SIZE).tolist()
    return chunks


def restore_state(
    compiled: CompiledSearch, init_key: PRNGKeyArray, stored: Mapping[int, bytes]
) -> State:
    """Restore a state from its stored leaves; the others do not affect later points."""
    leaves = compiled.init(init_key)
    expected = {
        i: leaf.nbytes
        for i, (leaf, kept) in enumerate(zip(leaves, compiled.persistent, strict=True))
        if kept
    }
    if expected != {i: len(content) for i, content in stored.items()}:
        raise StudyError(OTHER_SEARCH)
    return tuple(
        jnp.asarray(np.frombuffer(stored[i], leaf.dtype).reshape(leaf.shape))
        if compiled.persistent[i]
        else leaf
        for i, leaf in enumerate(leaves)
    )
