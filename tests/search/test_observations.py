import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import search as searches
from bonas.search import Observation
from bonas.search.observations import (
    add_observation,
    add_pending,
    empty_observations,
)
from bonas.search.repeated_points import is_observed

A, B = jnp.array([0.25, 0.5]), jnp.array([0.75, 0.5])
TELL = jax.jit(add_observation)
SPACE = bonas.Space(x=bonas.Float(0.0, 1.0), y=bonas.Float(0.0, 1.0))
SEARCHES = {
    "bayes": bonas.bayes(SPACE),
    "evolution": searches.evolution(SPACE),
    "known noise": bonas.bayes(SPACE, known_noise=True),
    "random": searches.random(SPACE),
    "rembo": searches.rembo(SPACE, dim=1),
    "turbo": searches.turbo(SPACE),
}


def trial(x, y, ok=True):
    return Observation(
        x=x,
        y=jnp.asarray(y),
        step=jnp.asarray(0),
        cost=jnp.asarray(1.0),
        ok=jnp.asarray(ok),
    )


@pytest.fixture(scope="module")
def two():
    """A and B pending, with a capacity of four."""
    return add_pending(add_pending(empty_observations(4, 2), A), B)


@pytest.mark.typed
def test_what_is_asked_is_pending_and_masked(two):
    np.testing.assert_array_equal(two.pending, [True, True, False, False])
    assert not two.data.mask.any()
    assert two.data.size == 2


def test_a_trial_fills_the_row_that_was_asked(two):
    record = TELL(two, trial(B, 3.0))
    np.testing.assert_array_equal(record.pending, [True, False, False, False])
    np.testing.assert_array_equal(record.data.mask[:, 0], [False, True, False, False])
    assert (record.data.size, record.data.y[1, 0]) == (2, 3.0)


def test_a_point_told_with_rounding_is_the_one_asked(two):
    assert TELL(two, trial(B.astype(jnp.float32) + 1e-7, 3.0)).data.size == 2


def test_a_point_that_is_a_little_elsewhere_is_another(two):
    record = TELL(two, trial(B + 1e-5, 3.0))
    assert record.data.size == 3
    assert record.pending[:2].all()


def test_a_point_asked_twice_is_told_twice():
    record = add_pending(add_pending(empty_observations(4, 2), A), A)
    for y in (1.0, 2.0):
        record = TELL(record, trial(A, y))
    np.testing.assert_array_equal(record.data.y[:, 0], [1.0, 2.0, 0.0, 0.0])
    assert record.data.size == 2


def test_the_cost_of_a_trial_is_at_its_row(two):
    record = TELL(two, trial(B, 3.0)._replace(cost=jnp.asarray(2.5)))
    np.testing.assert_array_equal(record.cost, [0.0, 2.5, 0.0, 0.0])


@pytest.mark.parametrize(("y", "ok"), [(jnp.nan, True), (-jnp.inf, True), (1.0, False)])
def test_a_failed_trial_is_recorded_and_masked(two, y, ok):
    record = TELL(two, trial(A, y, ok))
    np.testing.assert_array_equal(record.failed, [True, False, False, False])
    assert not record.data.mask.any()
    assert not record.pending[0]


def test_points_are_known_once_asked_or_told(two):
    record = TELL(two, trial(jnp.array([0.1, 0.1]), jnp.nan))
    # unused rows hold zeros
    points = jnp.array([[0.25, 0.5], [0.1, 0.1], [0.0, 0.0], [0.25, 0.1]])
    np.testing.assert_array_equal(
        [is_observed(record, x) for x in points], [True, True, False, False]
    )


def test_past_the_capacity_nothing_is_overwritten(two):
    full = TELL(
        TELL(two, trial(jnp.array([0.1, 0.1]), 1.0)), trial(jnp.array([0.2, 0.2]), 2.0)
    )
    for over in (
        TELL(full, trial(jnp.array([0.3, 0.3]), 3.0)),
        jax.jit(add_pending)(full, jnp.array([0.3, 0.3])),
    ):
        for before, after in zip(
            jax.tree.leaves(full), jax.tree.leaves(over), strict=True
        ):
            if before.ndim:
                np.testing.assert_array_equal(before, after)
        assert over.data.size == 5


def test_past_the_capacity_a_host_is_told():
    record = add_pending(empty_observations(1, 2), A)
    with pytest.raises(ValueError, match="capacity is 1 points"):
        add_observation(record, trial(B, 1.0))
    with pytest.raises(ValueError, match="capacity is 1 rows"):
        add_pending(record, B)


def test_wrong_shapes_are_refused(two):
    with pytest.raises(
        ValueError, match=r"x of shape \(2,\) and y of shape \(\); got \(3,\) and \(\)"
    ):
        add_observation(two, trial(jnp.zeros(3), 1.0))


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_a_state_with_more_observations_than_its_capacity_is_refused(name):
    search = SEARCHES[name]
    noise = 0.1 if search.uses_known_noise else None
    state = search.init(jax.random.key(0), 2)
    for x in (0.1, 0.2):
        state = search.tell(state, Observation(jnp.array([x, x]), x, noise=noise))
    with pytest.raises(ValueError, match=r"capacity is 2 points; use a larger"):
        search.tell(state, Observation(jnp.array([0.3, 0.3]), 0.3, noise=noise))
    with pytest.raises(ValueError, match=r"capacity is 2 points; use a larger"):
        search.ask(jax.random.key(0), state)


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_a_state_does_not_shrink(name):
    search = SEARCHES[name]
    state, fewer = (search.init(jax.random.key(0), n) for n in (4, 2))
    with pytest.raises(ValueError, match=r"can only grow to a larger capacity .* got"):
        search.grow(state, fewer)
