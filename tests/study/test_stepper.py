"""The stored state of a search is enough to continue it, and growing it changes no point."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.search import evolution, grid, make_observation, random, sobol
from bonas.study import StudyError
from bonas.study.compiled_search import (
    compile_search,
    state_structure,
)
from bonas.study.serialize import (
    CHUNK_SIZE,
    changed_chunks,
    leaf_bytes,
    restore_state,
)
from bonas.study.stepper import ask_key, run_keys

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
FINITE = bonas.Space(a=bonas.Int(0, 4), b=bonas.Choice("x", "y", "z"))
INIT, RUN = run_keys(0)


def small(space, **settings):
    model, box = (
        surrogates.gp(gp.matern52()),
        acquire.random_candidates(space, candidates=64),
    )
    return bonas.bayes(
        space,
        **{"surrogate": model, "maximizer": box, "initial": 3, "output": "plain"}
        | settings,
    )


SEARCHES = {
    "bayes": small(SPACE),
    "slice": small(
        SPACE, surrogate=surrogates.gp(gp.matern52(), infer="slice", samples=2)
    ),
    "per second": small(SPACE, acquisition=acquire.per_second()),
    "hedge": small(SPACE, acquisition=acquire.hedge()),
    "turbo": bonas.turbo(SPACE, candidates=50),
    "rembo": bonas.rembo(SPACE, dim=1, embeddings=2),
    "random": random(SPACE),
    "sobol": sobol(SPACE),
    "evolution": evolution(SPACE, population=4),
    "random, finite": random(FINITE),
    "grid, finite": grid(FINITE),
    "evolution, finite": evolution(FINITE, population=4),
}
each_search = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


def value(x):
    return float(np.sum((np.asarray(x) - 0.3) ** 2))


def grown(search, state, old, new):
    """Return the leaves of a state of capacity `old` at capacity `new`."""
    fresh = compile_search(search, new).init(INIT)
    states = (
        jax.tree.unflatten(state_structure(search, capacity), leaves)
        for capacity, leaves in ((old, state), (new, fresh))
    )
    return tuple(jax.tree.leaves(search.grow(*states)))


def follow(search, capacity, steps, between=lambda state: state, grows=()):
    """Return the points (steps, d) of a search whose state is changed before every ask.

    grows: a step before which its capacity grows, and the new capacity.
    """
    state, points = compile_search(search, capacity).init(INIT), []
    for i in range(steps):
        if i in grows[:1]:
            state = grown(search, state, capacity, grows[1])
            capacity = grows[1]
        state, made = between(state), compile_search(search, capacity)
        x, state, _ = made.ask(ask_key(RUN, jnp.asarray(i)), state)
        points.append(np.asarray(x[0]))
        state = made.tell(
            state, make_observation(x[0], value(x[0]), 1.0 + i, ok=i % 4 != 3)
        )
    return np.array(points)


@pytest.mark.slow
@each_search
def test_persistent_leaves_are_enough_to_continue(search):
    """All other leaves are lost between two asks, and every point stays bit for bit the same."""

    made = compile_search(search, 16)

    def kept(state):
        parts = leaf_bytes(made.persistent, state)
        return restore_state(
            made, INIT, {part: content.tobytes() for part, content in parts.items()}
        )

    np.testing.assert_array_equal(follow(search, 16, 12, kept), follow(search, 16, 12))


def test_leaves_that_every_fit_recomputes_are_not_persistent():
    search = SEARCHES["bayes"]
    made = compile_search(search, 64)
    state = jax.tree.unflatten(state_structure(search, 64), made.init(INIT))
    names = [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_leaves_with_path(state)
    ]
    kept = {name for name, lasts in zip(names, made.persistent, strict=True) if lasts}
    assert not [name for name in kept if "posterior" in name]
    assert {name for name in names if ".model.z" in name} <= kept
    assert {
        ".observations.data.x",
        ".observations.data.y",
        ".observations.pending",
        ".observations.failed",
        ".design",
    } <= kept


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "sobol", "random, finite", "grid, finite"])
def test_growing_keeps_the_planned_points(name):
    """A plan depends on the capacity; a larger one starts with the points of a smaller one."""
    search = SEARCHES[name]
    grown = follow(search, 4, 15, grows=(4, 16))
    # each of the 15 points once; their order depends on the capacity
    if "finite" in name:
        assert len(np.unique(grown, axis=0)) == 15
    else:
        np.testing.assert_array_equal(grown, follow(search, 16, 15))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bayes", "turbo", "evolution"])
def test_growing_keeps_the_observations(name):
    search = SEARCHES[name]
    small, large = compile_search(search, 4), compile_search(search, 8)
    state = small.init(INIT)
    for i in range(4):
        x, state, _ = small.ask(ask_key(RUN, jnp.asarray(i)), state)
        if i < 3:  # the last stays pending
            state = small.tell(state, make_observation(x[0], value(x[0]), 1.0, ok=True))
    wider = grown(search, state, 4, 8)
    was, now = (
        jax.tree.unflatten(state_structure(search, room), each).observations
        for room, each in ((4, state), (8, wider))
    )
    for before, after in zip(jax.tree.leaves(was), jax.tree.leaves(now), strict=True):
        np.testing.assert_array_equal(after[:4] if before.ndim else after, before)
    assert now.pending.tolist() == [
        False,
        False,
        False,
        True,
        False,
        False,
        False,
        False,
    ]
    x, _, _ = large.ask(ask_key(RUN, jnp.asarray(4)), wider)
    assert np.isfinite(x).all()


@pytest.mark.typed
@pytest.mark.parametrize("seed", range(3))
def test_only_chunks_that_differ_are_written(seed):
    rng = np.random.default_rng(seed)
    old = {
        0: rng.integers(0, 256, 10 * CHUNK_SIZE + 7, dtype=np.uint8),
        1: np.zeros(3, np.uint8),
    }
    new = {part: content.copy() for part, content in old.items()}
    assert changed_chunks(new, old) == []
    places = rng.choice(len(new[0]), 3)
    new[0][places] ^= 1
    pieces = changed_chunks(new, old)
    assert {piece for _, piece, _ in pieces} == {
        int(place) // CHUNK_SIZE for place in places
    }
    written = {part: bytearray(content.tobytes()) for part, content in old.items()}
    for part, piece, content in pieces:
        written[part][piece * CHUNK_SIZE : piece * CHUNK_SIZE + len(content)] = content
    assert {part: bytes(content) for part, content in written.items()} == {
        p: c.tobytes() for p, c in new.items()
    }


def test_another_search_is_refused():
    made = compile_search(SEARCHES["random"], 8)
    parts = {
        part: content.tobytes()
        for part, content in leaf_bytes(made.persistent, made.init(INIT)).items()
    }
    with pytest.raises(StudyError, match="created with another search"):
        restore_state(compile_search(SEARCHES["turbo"], 8), INIT, parts)


def test_a_search_is_freed_with_its_study(tmp_path):
    search = random(SPACE)
    alive = weakref.ref(search)
    with bonas.Study(tmp_path / "runs.db", SPACE, search=search) as study:
        study.tell(study.ask(), 1.0)
    del study, search
    gc.collect()
    assert alive() is None
