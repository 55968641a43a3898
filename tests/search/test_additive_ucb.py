"""Add-GP-UCB: searches of many columns, group by group."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.search import Observation, random
from bonas.search.additive_ucb import _ascend, _combine_best

D, STEPS = 12, 32
SPACE = bonas.Space(**{f"x{i}": bonas.Float(0.0, 1.0) for i in range(D)})
GROUPS = tuple(
    map(tuple, np.random.default_rng(1).permutation(D).reshape(-1, 2).tolist())
)
KEYS = jax.random.split(jax.random.key(0), 5)
LEARNED, KNOWN = (
    bonas.add_gp_ucb(SPACE, output="plain"),
    bonas.add_gp_ucb(SPACE, groups=GROUPS, output="plain"),
)


def objective(key, u):
    """A sum over six pairs of columns; no term is a sum itself."""
    a, b = (5.0 * u[np.array([pair[side] for pair in GROUPS])] for side in (0, 1))
    return jnp.sum(
        jnp.sin(a * b / 3.0 + a) + 0.1 * (a - 2.0) ** 2 + 0.1 * (b - 3.0) ** 2
    )


@pytest.fixture(scope="module")
def by_chance():
    return bonas.run_many(random(SPACE), objective, KEYS, STEPS)


@pytest.fixture(scope="module", params=["known", "learned"])
def histories(request):
    return bonas.run_many(
        {"known": KNOWN, "learned": LEARNED}[request.param], objective, KEYS, STEPS
    )


@pytest.mark.slow
def test_it_beats_random_search(histories, by_chance):
    """Twelve columns, 32 evaluations: better in the median and in at least four of five seeds."""
    found, chance = np.asarray(histories.best[:, -1]), np.asarray(by_chance.best[:, -1])
    assert np.median(found) < np.median(chance)
    assert (found < chance).sum() >= 4, (found, chance)


def test_nothing_fell_back(histories):
    assert (histories.info.fallback == 0).all()
    assert jnp.isfinite(histories.info.acquisition[:, 5:]).all()
    assert ((histories.x >= 0.0) & (histories.x <= 1.0)).all()


@pytest.mark.slow
def test_vmap_agrees_with_run_many():
    keys = KEYS[:2]
    plain = bonas.run_many(LEARNED, objective, keys, 10)
    lanes = jax.jit(jax.vmap(lambda key: bonas.run(LEARNED, objective, key, 10)))(keys)
    np.testing.assert_allclose(lanes.x, plain.x, atol=1e-5)


SMALL = bonas.Space(a=bonas.Int(0, 2), b=bonas.Int(0, 1), c=bonas.Choice("no", "yes"))


@pytest.mark.slow
def test_no_point_of_a_small_space_is_asked_again_before_all_were():
    """Twelve points in batches of three: all differ, and later ones are not in the design."""
    search = bonas.add_gp_ucb(
        SMALL, groups=[(0, 2), (1,)], initial=3, batch=3, output="plain"
    )
    ask, state, asked = jax.jit(search.ask), search.init(KEYS[0], 12), []
    for i in range(4):
        points, state, _ = ask(KEYS[i], state)
        np.testing.assert_allclose(SMALL.snap(points), points)
        for x in points:
            y = x @ jnp.array([1.0, -2.0, 0.5])
            state = search.tell(
                state,
                Observation(x, y, jnp.asarray(0), jnp.asarray(1.0), jnp.asarray(True)),
            )
        asked += [tuple(row) for row in np.asarray(points).round(6).tolist()]
    assert len(set(asked[3:])) == 9
    assert ask._cache_size() == 1
    assert not set(asked[3:]) & set(asked[:3])


# Group by group


OWNER = jnp.array([0, 1, 0, 2])
BEST = jnp.array([0.31, 0.74, 0.52, 0.18])


def separable(x):
    """Three bowls (3, m), of columns {0, 2}, {1} and {3}."""
    parts = -((x - BEST[None, :]) ** 2)
    return jnp.stack([parts[:, 0] + parts[:, 2], parts[:, 1], parts[:, 3]])


def test_the_best_columns_of_each_group_make_the_best_point():
    points = jax.random.uniform(jax.random.key(0), (20, 4))
    best, found = _combine_best(points, separable(points), OWNER, 3)
    np.testing.assert_allclose(separable(best), found, rtol=1e-12)
    np.testing.assert_allclose(
        found, -np.sort(-np.asarray(separable(points)), axis=1)[:, :3], rtol=1e-12
    )
    assert found.sum(axis=0)[0] >= separable(points).sum(axis=0).max()


def test_all_groups_ascend_at_once_and_integers_stay():
    continuous = np.array([True, True, True, False])
    points = BEST[None, :] + jnp.array(
        [[0.04, -0.05, 0.03, 0.05], [-0.04, 0.04, 0.05, -0.03]]
    )
    best, found = _ascend(
        separable, points, separable(points), continuous=continuous, owner=OWNER
    )
    np.testing.assert_array_equal(best[:, 3], points[:, 3])
    assert np.abs(np.asarray(best - BEST[None, :]))[:, :3].max() < 0.02
    assert (found >= separable(points)).all()
    np.testing.assert_allclose(separable(best), found, atol=1e-12)


# Errors


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([(0, 1), (1, 2)], "more than one"),
        ([(0,), (2,)], r"column 2"),
        ([(0, 1, 2, 3)], "column 3"),
        ([(0, 1)], "column 2 is not in"),
        ("random", "learned"),
    ],
)
def test_groups_that_are_no_partition_of_the_columns_are_refused(groups, said):
    with pytest.raises(ValueError, match=said):
        bonas.add_gp_ucb(SMALL, groups=groups)


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (
            bonas.Space(
                a=bonas.Int(0, 3), b=bonas.Float(0.0, 1.0, when={"a": (">=", 2)})
            ),
            "'b' is conditional",
        ),
        (
            bonas.Space(a=bonas.Choice("x", "y", "z"), b=bonas.Float(0.0, 1.0)),
            "'a' is a Choice of 3 options",
        ),
    ],
)
def test_spaces_whose_columns_cannot_be_grouped_are_refused(space, said):
    with pytest.raises(ValueError, match=said):
        bonas.add_gp_ucb(space)


def test_kappa_is_not_negative():
    with pytest.raises(ValueError, match="at least 0"):
        bonas.add_gp_ucb(SMALL, kappa=-1.0)
