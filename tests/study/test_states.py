"""Searches between processes: what is kept of them is enough, and growing changes no point that was planned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.search import evolution, grid, random, sobol
from bonas.study import StudyError, states
from bonas.study.programs import programs, tree, trial

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
FINITE = bonas.Space(a=bonas.Int(0, 4), b=bonas.Choice("x", "y", "z"))
INIT, RUN = states.keys(0)


def small(space, **settings):
    model, box = surrogates.gp(gp.matern52()), acquire.uniform(space, candidates=64)
    return bonas.bayes(space, **{"surrogate": model, "maximiser": box, "initial": 3, "output": "plain"} | settings)


SEARCHES = {
    "bayes": small(SPACE),
    "slice": small(SPACE, surrogate=surrogates.gp(gp.matern52(), infer="slice", samples=2)),
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


def follow(search, capacity, steps, between=lambda state: state, grows=()):
    """The points (steps, d) of a search whose state is changed between a tell and the next ask.

    grows: a step before which it gets more room, and how much.
    """
    state, points = programs(search, capacity).init(INIT), []
    for i in range(steps):
        if i in grows[:1]:
            capacity = grows[1]
            state = states.grown(search, programs(search, capacity).init(INIT), state, capacity)
        state, made = between(state), programs(search, capacity)
        x, state, _ = made.ask(states.ask_key(RUN, jnp.asarray(i)), state)
        points.append(np.asarray(x[0]))
        state = made.tell(state, trial(x[0], value(x[0]), 1.0 + i, ok=i % 4 != 3))
    return np.array(points)


@pytest.mark.slow
@each_search
def test_what_is_kept_is_enough(search):
    """All other leaves are lost between any two asks, and every point stays what it was, bit for bit."""

    made = programs(search, 16)

    def kept(state):
        parts = states.parts(made.lasting, state)
        return states.restored(made, INIT, {part: content.tobytes() for part, content in parts.items()})

    np.testing.assert_array_equal(follow(search, 16, 12, kept), follow(search, 16, 12))


def test_what_every_fit_makes_anew_is_not_kept():
    search = SEARCHES["bayes"]
    made = programs(search, 64)
    state = jax.tree.unflatten(tree(search, 64), made.init(INIT))
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(state)]
    kept = {name for name, lasts in zip(names, made.lasting, strict=True) if lasts}
    assert not [name for name in kept if "posterior" in name]
    assert {name for name in names if ".model.z" in name} <= kept
    assert {".record.data.x", ".record.data.y", ".record.pending", ".record.failed", ".design"} <= kept


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "sobol", "random, finite", "grid, finite"])
def test_growing_changes_no_plan(name):
    """Plans are made for a capacity, and the points of a larger one begin with those of a smaller."""
    search = SEARCHES[name]
    grown = follow(search, 4, 15, grows=(4, 16))
    if "finite" in name:  # each of the 15 points once: the order is that of the capacity
        assert len(np.unique(grown, axis=0)) == 15
    else:
        np.testing.assert_array_equal(grown, follow(search, 16, 15))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bayes", "turbo", "evolution"])
def test_growing_keeps_what_is_known(name):
    search = SEARCHES[name]
    small, large = programs(search, 4), programs(search, 8)
    state = small.init(INIT)
    for i in range(4):
        x, state, _ = small.ask(states.ask_key(RUN, jnp.asarray(i)), state)
        if i < 3:  # the last stays pending
            state = small.tell(state, trial(x[0], value(x[0]), 1.0, ok=True))
    wider = states.grown(search, large.init(INIT), state, 8)
    was, now = (jax.tree.unflatten(tree(search, room), each).record for room, each in ((4, state), (8, wider)))
    for before, after in zip(jax.tree.leaves(was), jax.tree.leaves(now), strict=True):
        np.testing.assert_array_equal(after[:4] if before.ndim else after, before)
    assert now.pending.tolist() == [False, False, False, True, False, False, False, False]
    x, _, _ = large.ask(states.ask_key(RUN, jnp.asarray(4)), wider)
    assert np.isfinite(x).all()


@pytest.mark.parametrize("seed", range(3))
def test_only_pieces_that_differ_are_written(seed):
    rng = np.random.default_rng(seed)
    old = {0: rng.integers(0, 256, 10 * states.PIECE + 7, dtype=np.uint8), 1: np.zeros(3, np.uint8)}
    new = {part: content.copy() for part, content in old.items()}
    assert states.changed(new, old) == []
    places = rng.choice(len(new[0]), 3)
    new[0][places] ^= 1
    pieces = states.changed(new, old)
    assert {piece for _, piece, _ in pieces} == {int(place) // states.PIECE for place in places}
    written = {part: bytearray(content.tobytes()) for part, content in old.items()}
    for part, piece, content in pieces:
        written[part][piece * states.PIECE : piece * states.PIECE + len(content)] = content
    assert {part: bytes(content) for part, content in written.items()} == {p: c.tobytes() for p, c in new.items()}


def test_another_search_is_noticed():
    made = programs(SEARCHES["random"], 8)
    parts = {part: content.tobytes() for part, content in states.parts(made.lasting, made.init(INIT)).items()}
    with pytest.raises(StudyError, match="not the search"):
        states.restored(programs(SEARCHES["turbo"], 8), INIT, parts)
