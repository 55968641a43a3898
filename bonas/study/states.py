"""A search between two processes: which parts of its state the next points depend on, as bytes, and how it grows."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.spatial import KDTree

from bonas.search.baselines import PlanState
from bonas.search.record import SAME
from bonas.search.types import Search
from bonas.study.file import StudyError
from bonas.study.programs import Programs, State, tree

PIECE = 4000  # bytes that are written together: with its key, a piece fills one page of the file


def keys(seed: int) -> tuple[Array, Array]:
    """The keys of the first state and of the asks: those of `bonas.run` and `bonas.minimise`."""
    init_key, run_key = jax.random.split(jax.random.key(seed))
    return init_key, run_key


@jax.jit
def ask_key(run_key: Array, asks: Array) -> Array:
    """The key of the next ask, after so many."""
    return jax.random.split(jax.random.fold_in(run_key, asks))[0]


def parts(lasting: tuple[bool, ...], state: State) -> dict[int, np.ndarray]:
    """The leaves that last, as bytes (k,): views of them, not copies."""
    leaves = zip(lasting, state, strict=True)
    return {i: np.asarray(leaf).reshape(-1).view(np.uint8) for i, (lasts, leaf) in enumerate(leaves) if lasts}


def changed(new: dict[int, np.ndarray], old: dict[int, np.ndarray]) -> list[tuple[int, int, bytes]]:
    """The pieces of the new parts that differ from the old, or are all new."""
    pieces = []
    for part, content in new.items():
        before = old.get(part)
        for piece in _differing(content, before):
            pieces.append((part, piece, content[piece * PIECE : (piece + 1) * PIECE].tobytes()))
    return pieces


def _differing(new: np.ndarray, old: np.ndarray | None) -> np.ndarray:
    count = max(1, -(-len(new) // PIECE))
    if old is None or len(old) != len(new):
        return np.arange(count)
    word = np.uint64 if len(new) % 8 == 0 else np.uint8  # eight at once where they fit
    places = np.flatnonzero(new.view(word) != old.view(word))
    return np.unique(places * np.dtype(word).itemsize // PIECE)


def restored(programs: Programs, key: Array, kept: dict[int, bytes]) -> State:
    """The state of which these parts were kept; the rest is that of a new one, on which nothing depends."""
    leaves, which = programs.init(key), programs.lasting
    fits = {i: leaf.nbytes for i, leaf in enumerate(leaves) if which[i]} == {i: len(part) for i, part in kept.items()}
    if not fits:
        raise StudyError("this is not the search that the study was made with: give that as search=, with the same settings")
    return tuple(
        jnp.asarray(np.frombuffer(kept[i], leaf.dtype).reshape(leaf.shape)) if which[i] else leaf
        for i, leaf in enumerate(leaves)
    )


def grown(search: Search, fresh: State, state: State, capacity: int) -> State:
    """The state with the room of a fresh one, `capacity` points: what was there comes first, and the rest is as in that.

    The plan of a search by chance is made for its capacity: it is the new one, of which the points known are ticked off.
    """
    wider = tuple(map(_inside, fresh, state))
    whole = jax.tree.unflatten(tree(search, capacity), wider)
    if not isinstance(whole, PlanState):
        return wider
    plan = jax.tree.unflatten(tree(search, capacity), fresh).plan
    return tuple(jax.tree.leaves(whole._replace(plan=plan, times=_times(plan, whole.record))))


def _inside(new: Array, old: Array) -> Array:
    return old if new.shape == old.shape else new.at[tuple(slice(n) for n in old.shape)].set(old)


def _times(plan: Array, record) -> Array:
    """How often each point of a plan (k, d) is in a record: (k,)."""
    times = np.zeros(len(plan), int)
    for near in KDTree(plan).query_ball_point(np.asarray(record.data.x)[: int(record.data.size)], SAME, p=np.inf):
        times[near] += 1
    return jnp.asarray(times)
