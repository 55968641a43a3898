"""A search between two processes: which parts of its state the next points depend on, as bytes, and how it grows."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.interpreters.partial_eval import dce_jaxpr
from scipy.spatial import KDTree

from bonas.search.baselines import PlanState
from bonas.search.record import SAME
from bonas.search.types import Search, Trial
from bonas.study.file import StudyError

PIECE = 4000  # bytes that are written together: with its key, a piece fills one page of the file


class Programs(NamedTuple):
    """A search's functions, compiled once however many studies use them."""

    init: Any
    ask: Any
    tell: Any


@cache
def programs(search: Search) -> Programs:
    """The search, compiled."""
    return Programs(jax.jit(search.init, static_argnums=1), jax.jit(search.ask), jax.jit(search.tell))


def keys(seed: int) -> tuple[Array, Array]:
    """The keys of the first state and of the asks: those of `bonas.run` and `bonas.minimise`."""
    init_key, run_key = jax.random.split(jax.random.key(seed))
    return init_key, run_key


@jax.jit
def ask_key(run_key: Array, asks: Array) -> Array:
    """The key of the next ask, after so many."""
    return jax.random.split(jax.random.fold_in(run_key, asks))[0]


def trial(x: Array, value: float, cost: float, *, ok: bool) -> Trial:
    """What a search is told."""
    kind = x.dtype
    return Trial(x, jnp.asarray(value, kind), step=jnp.asarray(0), cost=jnp.asarray(cost, kind), ok=jnp.asarray(ok))


@cache
def _traced(search: Search, capacity: int):
    """The programs of an ask and of a tell, and how many leaves the state has."""
    key = jax.eval_shape(lambda: jax.random.key(0))
    state = jax.eval_shape(lambda key: search.init(key, capacity), key)
    told = jax.eval_shape(lambda: trial(jnp.zeros(search.space.dim), 0.0, 0.0, ok=True))
    ask, tell = programs(search).ask.trace(key, state), programs(search).tell.trace(state, told)
    return ask.jaxpr.jaxpr, tell.jaxpr.jaxpr, len(jax.tree.leaves(state))


def batch(search: Search, capacity: int) -> int:
    """Points an ask."""
    return _traced(search, capacity)[0].outvars[0].aval.shape[0]


@cache
def lasting(search: Search, capacity: int) -> tuple[bool, ...]:
    """For every leaf of a state, whether any later point depends on it.

    A leaf counts where the next point is computed from it, or a leaf that counts is, by an ask or by a tell. A posterior
    that every fit makes anew does not; the hyperparameters that the fit starts from do.
    """
    ask, tell, n = _traced(search, capacity)
    count = [False] * n
    while True:
        _, asked = dce_jaxpr(ask, [True, *count, *[False] * (len(ask.outvars) - 1 - n)])
        _, kept = dce_jaxpr(tell, count)
        wider = [any(each) for each in zip(count, asked[1:], kept[:n], strict=True)]
        if wider == count:
            return tuple(count)
        count = wider


def parts(search: Search, capacity: int, state: Any) -> dict[int, np.ndarray]:
    """The leaves that last, as bytes (k,): views of them, not copies."""
    leaves = zip(lasting(search, capacity), jax.tree.leaves(state), strict=True)
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


def restored(search: Search, key: Array, capacity: int, kept: dict[int, bytes]) -> Any:
    """The state of which these parts were kept; the rest is that of a new one, on which nothing depends."""
    leaves, tree = jax.tree.flatten(programs(search).init(key, capacity))
    which = lasting(search, capacity)
    fits = {i: leaf.nbytes for i, leaf in enumerate(leaves) if which[i]} == {i: len(part) for i, part in kept.items()}
    if not fits:
        raise StudyError("this is not the search that the study was made with: give that as search=, with the same settings")
    read = [
        jnp.asarray(np.frombuffer(kept[i], leaf.dtype).reshape(leaf.shape)) if which[i] else leaf
        for i, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(tree, read)


def grown(search: Search, key: Array, state: Any, capacity: int) -> Any:
    """The state with room for `capacity` points: what was there comes first, and the rest is as in a new one.

    The plan of a search by chance is made for its capacity: it is the new one, of which the points known are ticked off.
    """
    fresh = programs(search).init(key, capacity)
    wider = jax.tree.map(_inside, fresh, state)
    return wider._replace(plan=fresh.plan, times=_times(fresh.plan, wider.record)) if isinstance(state, PlanState) else wider


def _inside(new: Array, old: Array) -> Array:
    return old if new.shape == old.shape else new.at[tuple(slice(n) for n in old.shape)].set(old)


def _times(plan: Array, record) -> Array:
    """How often each point of a plan (k, d) is in a record: (k,)."""
    times = np.zeros(len(plan), int)
    for near in KDTree(plan).query_ball_point(np.asarray(record.data.x)[: int(record.data.size)], SAME, p=np.inf):
        times[near] += 1
    return jnp.asarray(times)
