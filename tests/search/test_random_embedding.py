"""REMBO: random planes in a box, their models, and points that are not asked twice."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.problems import functions, high_dimensional
from bonas.search import Observation, random
from bonas.search.random_embedding import EmbeddedSurrogate, embed

KEY = jax.random.key(0)
PROBLEM = high_dimensional.few_effective(25)
SETTINGS = {"dim": 2, "embeddings": 3, "initial": 2, "output": "plain"}
SEARCHES = {
    kernel: bonas.rembo(PROBLEM.space, kernel=kernel, **SETTINGS)
    for kernel in ("low", "high")
}
CAPACITY = 40
ASK = {kernel: jax.jit(search.ask) for kernel, search in SEARCHES.items()}
TELL = {kernel: jax.jit(search.tell) for kernel, search in SEARCHES.items()}
both = pytest.mark.parametrize("kernel", ["low", "high"])


def trial(x, y, ok=True):
    return Observation(
        x=x,
        y=jnp.asarray(y, float),
        step=jnp.asarray(0),
        cost=jnp.asarray(1.0),
        ok=jnp.asarray(ok),
    )


def bowl(key, u):
    """Least, 0, at 0.6 in two columns."""
    return jnp.sum((u[jnp.asarray(high_dimensional.effective_columns(25))] - 0.6) ** 2)


def drive(kernel, steps, objective=bowl, key=KEY, state=None):
    """A host loop with the keys of `run`: points, reports, state."""
    init_key, run_key = jax.random.split(key)
    state, rows = (
        SEARCHES[kernel].init(init_key, CAPACITY) if state is None else state,
        [],
    )
    for i in range(steps):
        ask_key, eval_key = jax.random.split(jax.random.fold_in(run_key, i))
        x, state, info = ASK[kernel](ask_key, state)
        state = TELL[kernel](state, trial(x[0], objective(eval_key, x[0])))
        rows.append((x[0], info))
    x, infos = zip(*rows, strict=True)
    return np.stack(x), jax.tree.map(lambda *leaves: np.stack(leaves), *infos), state


@pytest.fixture(scope="module")
def histories():
    keys = jax.random.split(KEY, 10)
    return {
        kernel: bonas.run_many(search, bowl, keys, steps=CAPACITY)
        for kernel, search in SEARCHES.items()
    }


# The embedding


def test_a_plane_by_hand():
    """d = 4 columns y in [−2, 2]: rows of A pick one of them, double one, and leave the box."""
    matrix = jnp.asarray(
        [
            [0.25, 0.0, 0.0, 0.0],
            [0.0, 0.5, 0.0, 0.0],
            [0.0, 0.0, 3.0, 0.0],
            [0.0, 0.0, 0.0, -3.0],
        ]
    )
    y = jnp.asarray([0.75, 0.25, 1.0, 1.0])  # 1, −1, 2, 2
    np.testing.assert_allclose(embed(matrix, y), [0.625, 0.25, 1.0, 0.0])


def test_the_middle_of_an_embedding_is_that_of_the_box():
    np.testing.assert_array_equal(
        embed(jax.random.normal(KEY, (30, 3)), jnp.full(3, 0.5)), np.full(30, 0.5)
    )


@pytest.mark.slow
def test_matrices_are_standard_normal():
    """4 × 1000 × 6 numbers: mean and variance within five standard errors."""
    space = bonas.Space(**{f"x{i}": bonas.Float(0.0, 1.0) for i in range(1000)})
    drawn = np.asarray(bonas.rembo(space, dim=6).init(KEY, 8).matrices)
    assert drawn.shape == (4, 1000, 6)
    assert abs(drawn.mean()) < 5.0 / np.sqrt(drawn.size)
    assert abs(drawn.var() - 1.0) < 5.0 * np.sqrt(2.0 / drawn.size)


@pytest.mark.parametrize("seed", range(5))
def test_every_value_of_the_effective_columns_is_in_the_plane(seed):
    """Wang et al. 2013, Theorem 2: for any x there is a y with f(A y) = f(x).

    This holds if clipping does not change the live columns.
    """
    live, d = list(high_dimensional.effective_columns(25)), 2
    matrix = np.asarray(jax.random.normal(jax.random.key(seed), (25, d)))
    wanted = np.random.default_rng(seed).uniform(-0.3, 0.3, size=2)
    y = np.linalg.solve(matrix[live], wanted)
    x = embed(jnp.asarray(matrix), jnp.asarray(0.5 + 0.5 * y / np.sqrt(d)))
    np.testing.assert_allclose(2.0 * x[jnp.asarray(live)] - 1.0, wanted, atol=1e-12)
    expected = functions.branin.objective(KEY, jnp.asarray(0.5 + 0.5 * wanted))
    np.testing.assert_allclose(PROBLEM.objective(KEY, x), expected)


# Models


@pytest.mark.slow
def test_points_that_are_clipped_to_one_are_one_to_the_high_kernel():
    matrix = jnp.asarray([[5.0], [4.0], [-6.0]])
    model = surrogates.gp(gp.matern52())
    apart = jnp.asarray([[0.8], [0.95]])  # both beyond the box in all three columns
    seen = EmbeddedSurrogate(model, matrix).covariance(
        model.init(4, 3, 1), apart, apart
    )[0]
    np.testing.assert_allclose(seen / seen[0, 0], np.ones((2, 2)), rtol=1e-12)
    low = model.covariance(model.init(4, 1, 1), apart, apart)[0]
    assert low[0, 1] < 0.99 * low[0, 0]


@pytest.mark.slow
def test_a_model_through_a_plane_is_the_model_at_its_points():
    matrix, model = jax.random.normal(KEY, (5, 2)), surrogates.gp(gp.matern52())
    y, values = jax.random.uniform(jax.random.key(1), (6, 2)), jnp.arange(6.0) - 2.5
    x = jax.vmap(embed, (None, 0))(matrix, y)
    seen = EmbeddedSurrogate(model, matrix)
    start = model.init(6, 5, 1)
    plain, _ = model.fit(KEY, bonas.dataset(x, values), start)
    ours, _ = seen.fit(KEY, bonas.dataset(y, values), start)
    new = jax.random.uniform(jax.random.key(2), (4, 2))
    for a, b in zip(
        seen.predict(ours, new),
        model.predict(plain, jax.vmap(embed, (None, 0))(matrix, new)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.slow
@both
def test_embeddings_take_turns_and_learn_from_their_own_rows(kernel):
    """Row r is asked in embedding r mod 3, whose model uses only its own rows before r."""
    x, infos, state = drive(kernel, 13)
    for row in range(13):
        np.testing.assert_allclose(
            embed(state.matrices[row % 3], state.low[row]), x[row], atol=1e-12
        )
    np.testing.assert_array_equal(infos.random, [True] * 6 + [False] * 7)
    for turn, rows in enumerate(
        [range(0, 12, 3), range(1, 10, 3), range(2, 11, 3)]
    ):  # the last asks were rows 12, 10, 11
        data = jax.tree.map(lambda leaf: leaf[turn, 0, 0], state.model.posterior.data)
        there = np.flatnonzero(data.mask[:, 0])
        np.testing.assert_array_equal(there, np.arange(len(rows)))
        expected = (
            np.asarray(state.low)[list(rows)] if kernel == "low" else x[list(rows)]
        )
        np.testing.assert_allclose(data.x[there], expected, atol=1e-12)


@both
def test_a_point_told_without_being_asked_is_in_no_model_and_not_asked_again(kernel):
    state = SEARCHES[kernel].init(KEY, CAPACITY)
    # the first point of embedding 1
    first = embed(state.matrices[1], state.design[1, 0])
    _, _, state = drive(kernel, 1, state=state)
    state = TELL[kernel](state, trial(first, 3.0))
    x, _, state = drive(kernel, 10, state=state, key=jax.random.key(1))
    assert not bool(state.inside[1])
    assert not (np.abs(x - np.asarray(first)) < 1e-6).all(axis=1).any()


# No point twice


@pytest.mark.slow
@pytest.mark.parametrize(
    "acquisition", [bonas.log_ei, acquire.thompson()], ids=["log_ei", "thompson"]
)
def test_no_x_is_asked_twice_while_there_are_others(acquisition):
    """Two columns of three values: all nine points are asked before any repeats."""
    space = bonas.Space(a=bonas.Int(0, 2), b=bonas.Int(0, 2))
    search = bonas.rembo(space, dim=1, embeddings=2, initial=1, acquisition=acquisition)
    history = bonas.run_many(
        search, lambda key, u: jnp.sum((u - 0.3) ** 2), jax.random.split(KEY, 3), 9
    )
    for x in np.asarray(history.x):
        assert len(np.unique(np.round(x, 6), axis=0)) == 9
    # and where a plane had nothing new, that is said
    assert history.info.random[:, 2:].any()


@pytest.mark.slow
@both
def test_runs_do_not_repeat_themselves(kernel, histories):
    for x in np.asarray(histories[kernel].x):
        assert len(np.unique(np.round(x, 7), axis=0)) == CAPACITY


# As every search


@both
def test_a_run_is_what_a_loop_of_ask_and_tell_is(kernel, histories):
    x, _, _ = drive(kernel, 20, key=jax.random.split(KEY, 10)[1])
    np.testing.assert_allclose(x, histories[kernel].x[1, :20], atol=1e-6)


@pytest.mark.slow
@both
def test_vmap_agrees_with_run_many(kernel, histories):
    keys = jax.random.split(KEY, 10)[:2]
    vmapped = jax.jit(
        jax.vmap(lambda key: bonas.run(SEARCHES[kernel], bowl, key, CAPACITY))
    )(keys)
    np.testing.assert_allclose(vmapped.x, histories[kernel].x[:2], atol=1e-6)


@both
def test_asking_compiles_once(kernel):
    drive(kernel, 8)
    assert ASK[kernel]._cache_size() == 1
    assert TELL[kernel]._cache_size() == 1


@both
def test_a_bowl_in_two_of_25_columns_is_found(kernel, histories):
    """Within a plane it is a bowl of two columns: the regret is a fifth of random search's."""
    chance = bonas.run_many(
        random(PROBLEM.space), bowl, jax.random.split(KEY, 10), steps=CAPACITY
    )
    assert np.median(histories[kernel].best[:, -1]) < 0.2 * np.median(
        chance.best[:, -1]
    )


@both
def test_all_failed_is_a_random_point_and_says_so(kernel):
    _, infos, _ = drive(kernel, 8, objective=lambda key, u: jnp.nan)
    np.testing.assert_array_equal(infos.fallback, [0] * 6 + [1] * 2)


@pytest.mark.slow
def test_a_batch_goes_through_the_embeddings():
    search = bonas.rembo(PROBLEM.space, batch=3, **SETTINGS)
    state = search.init(KEY, 12)
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    for i in range(4):
        x, state, _ = ask(jax.random.fold_in(KEY, i), state)
        for row, point in enumerate(x):
            np.testing.assert_allclose(
                embed(state.matrices[row], state.low[3 * i + row]), point, atol=1e-12
            )
        for point in x[::-1]:  # observed in any order
            state = tell(state, trial(point, bowl(KEY, point)))
    assert bool(state.observations.data.mask.all())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            partial(bonas.rembo, functions.layered.space, dim=2),
            "numbers without conditions",
        ),
        (
            partial(
                bonas.rembo,
                bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Choice("x", "y")),
                dim=1,
            ),
            "numbers without",
        ),
        (partial(bonas.rembo, PROBLEM.space, dim=26), "between 1 and 25"),
        (partial(bonas.rembo, PROBLEM.space, dim=0), "between 1 and 25"),
        (
            partial(bonas.rembo, PROBLEM.space, dim=2, kernel="middle"),
            '"low" or "high"',
        ),
        (partial(bonas.rembo, PROBLEM.space, dim=2, embeddings=0), "at least 1"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_equal_settings_are_equal_searches():
    again = bonas.rembo(PROBLEM.space, kernel="high", **SETTINGS)
    assert again == SEARCHES["high"]
    assert hash(again) == hash(SEARCHES["high"])
