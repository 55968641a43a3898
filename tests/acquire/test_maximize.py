import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import bonas
from bonas.acquire import (
    choose,
    enumeration,
    gradient_ascent,
    random_candidates,
    random_shift,
    sobol,
)

KEY = jax.random.key(0)
BOX = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
MIXED = bonas.Space(
    depth=bonas.Int(1, 40),
    rate=bonas.Float(0.0, 1.0),
    kind=bonas.Choice("x", "y", "z"),
    width=bonas.Int(1, 300, when={"depth": (">=", 3)}),
)
FINITE = bonas.Space(a=bonas.Int(0, 9), b=bonas.Choice("x", "y", "z"))
NOTHING, NONE = jnp.zeros((1, 2)), jnp.zeros(1, bool)


def peak(at):
    return lambda x: -jnp.sum((x - at[None, :]) ** 2, axis=1)


@pytest.mark.slow
def test_a_peak_in_the_box_is_found_by_climbing():
    at = jnp.array([0.31, 0.77])
    found = gradient_ascent(BOX, steps=60).maximize(
        KEY, peak(at), jnp.array([[0.5, 0.5]]), NOTHING, NONE
    )
    np.testing.assert_allclose(found.x, at, atol=3e-3)
    np.testing.assert_allclose(found.score, peak(at)(found.x[None])[0], rtol=1e-12)


def test_a_peak_outside_the_box_is_met_at_its_edge():
    found = gradient_ascent(BOX).maximize(
        KEY, peak(jnp.array([1.4, 0.5])), jnp.array([[0.5, 0.5]]), NOTHING, NONE
    )
    assert found.x[0] > 0.999
    assert (found.x <= 1.0).all()


@pytest.mark.slow
def test_climbing_does_better_than_the_candidates_it_began_with():
    at = jnp.array([0.123, 0.456])
    few = {"candidates": 16, "near": 8, "starts": 4}
    long = gradient_ascent(BOX, steps=40, **few).maximize(
        KEY, peak(at), jnp.array([[0.9, 0.9]]), NOTHING, NONE
    )
    short = gradient_ascent(BOX, steps=1, **few).maximize(
        KEY, peak(at), jnp.array([[0.9, 0.9]]), NOTHING, NONE
    )
    assert long.score > short.score


def test_copies_of_the_best_points_find_a_needle_beside_them():
    def needle(x):
        return -1e3 * jnp.max(jnp.abs(x - jnp.array([[0.5005, 0.4995]])), axis=1)

    near = gradient_ascent(BOX, steps=1).maximize(
        KEY, needle, jnp.array([[0.5, 0.5]]), NOTHING, NONE
    )
    far = gradient_ascent(BOX, steps=1).maximize(
        KEY, needle, jnp.array([[0.1, 0.9]]), NOTHING, NONE
    )
    assert near.score > -1.0 > far.score


@pytest.mark.slow
def test_integers_and_options_of_a_conditional_space_are_found_and_exist():
    target = MIXED.encode({"depth": 17, "rate": 0.25, "kind": "y", "width": 150})
    found = gradient_ascent(MIXED).maximize(
        KEY, peak(target), MIXED.sample(KEY, 3), jnp.zeros((1, 4)), NONE
    )
    np.testing.assert_array_equal(MIXED.snap(found.x), found.x)
    config = MIXED.decode(found.x)
    assert config["kind"] == "y"
    assert abs(config["depth"] - 17) <= 2
    assert abs(config["rate"] - 0.25) < 0.05


@pytest.mark.slow
def test_enumeration_finds_the_best_point_there_is():
    values = jax.random.normal(KEY, (30,))
    points = np.asarray(FINITE.points())

    def score(x):
        return values[jnp.argmin(jnp.abs(x[:, None, :] - points[None]).sum(-1), axis=1)]

    found = enumeration(FINITE).maximize(
        jax.random.key(1), score, NOTHING, NOTHING, NONE
    )
    np.testing.assert_allclose(found.x, points[int(jnp.argmax(values))], atol=1e-12)


@pytest.mark.typed
def test_uniform_candidates_are_points_of_the_space_and_the_best_wins():
    found = random_candidates(MIXED, candidates=200).maximize(
        KEY, lambda x: x[:, 1], NOTHING, jnp.zeros((1, 4)), NONE
    )
    np.testing.assert_array_equal(MIXED.snap(found.x), found.x)
    np.testing.assert_array_equal(found.score, MIXED.sample(KEY, 200)[:, 1].max())


@pytest.mark.typed
def test_points_tried_are_passed_over_and_counted():
    points, scores = (
        jnp.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]]),
        jnp.array([3.0, 2.0, 1.0]),
    )
    tried = jnp.array([[0.1, 0.1], [0.2, 0.2]])
    both = choose(points, scores, tried, jnp.array([True, True]))
    np.testing.assert_array_equal(both.x, points[2])
    assert both.duplicates == 2
    one = choose(points, scores, tried, jnp.array([True, False]))
    np.testing.assert_array_equal(one.x, points[1])
    assert one.duplicates == 1


def test_where_everything_was_tried_the_best_is_chosen_again():
    points, scores = jnp.array([[0.1, 0.1], [0.2, 0.2]]), jnp.array([1.0, 2.0])
    again = choose(points, scores, points, jnp.array([True, True]))
    np.testing.assert_array_equal(again.x, points[1])


@pytest.mark.parametrize("maximizer", [gradient_ascent(BOX), random_candidates(BOX)])
@pytest.mark.parametrize(
    ("score", "flat"),
    [(lambda x: 0.0 * x[:, 0] + 3.0, True), (lambda x: x[:, 0], False)],
)
def test_a_flat_score_is_reported(maximizer, score, flat):
    assert (
        maximizer.maximize(KEY, score, jnp.array([[0.5, 0.5]]), NOTHING, NONE).flat
        == flat
    )


def test_minus_infinity_at_some_candidates_is_not_flat():
    points = jnp.linspace(0.0, 1.0, 4)[:, None]
    scores = jnp.array([-jnp.inf, 1.0, 2.0, -jnp.inf])
    nothing = jnp.zeros((1, 1)), jnp.zeros(1, bool)
    assert not choose(points, scores, *nothing).flat


def test_minus_infinity_everywhere_is_flat():
    assert (
        random_candidates(BOX)
        .maximize(KEY, lambda x: -jnp.inf * jnp.ones(len(x)), NOTHING, NOTHING, NONE)
        .flat
    )


def test_a_score_that_is_no_number_never_wins():
    found = random_candidates(BOX).maximize(
        KEY,
        lambda x: jnp.where(x[:, 0] > 0.1, jnp.nan, x[:, 0]),
        NOTHING,
        NOTHING,
        NONE,
    )
    assert found.x[0] <= 0.1


@pytest.mark.typed
@pytest.mark.parametrize("n", [5, 5000])
def test_a_posterior_draw_that_is_no_number_never_wins(n):
    points = jnp.linspace(0.0, 1.0, 2 * n).reshape(n, 2)
    scores = points[:, 0].at[1].set(jnp.nan)
    chosen = choose(points, scores, NOTHING - 1.0, NONE)
    np.testing.assert_array_equal(chosen.x, points[-1])
    assert not chosen.flat
    assert choose(points, jnp.full(n, jnp.nan), NOTHING - 1.0, NONE).flat


def test_a_shifted_sobol_set_is_more_even_than_random_points():
    points = np.asarray(random_shift(KEY, sobol(256, 3)))
    random = np.asarray(jax.random.uniform(KEY, (256, 3)))
    assert scipy.stats.qmc.discrepancy(points) < 0.3 * scipy.stats.qmc.discrepancy(
        random
    )


def test_counts_below_one_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        gradient_ascent(BOX, starts=0)
