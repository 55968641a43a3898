"""Training every network to the end, and the growth of states of this and of halving."""

import jax
import numpy as np
import pytest
from curves.curve_table import SPACE, STEPS, TABLE, drive

from bonas.curves import full_training, successive_halving
from bonas.search import evolution, random


@pytest.mark.typed
def test_full_training_tells_the_search_final_values_only():
    """Ten networks, each with one observation."""
    inner = evolution(SPACE, population=4)
    _, state, _ = drive(full_training(inner, STEPS), TABLE, 30)
    data = state.search.observations.data
    np.testing.assert_array_equal(
        data.y[:10, 0], [TABLE[SPACE.row(x), 2] for x in data.x[:10]]
    )


@pytest.mark.parametrize(
    "search",
    [successive_halving(SPACE, STEPS), full_training(random(SPACE), STEPS)],
    ids=repr,
)
def test_a_grown_state_keeps_its_networks(search):
    key = jax.random.key(0)
    _, state, _ = drive(search, TABLE, 5)
    grown = search.grow(state, search.init(key, 30))
    expected = jax.tree.structure(search.init(key, 30))
    assert jax.tree.structure(grown) == expected
    points, _, _ = search.ask(jax.random.key(1), grown)
    assert np.isfinite(points).all()


def test_invalid_settings_are_refused():
    for steps in ((30, 10), (0, 10), (10, 10), ()):
        with pytest.raises(ValueError, match="steps must be"):
            full_training(random(SPACE), steps)
    with pytest.raises(
        ValueError,
        match="batch must lie between 1 and the size of the space, 18; got 19",
    ):
        full_training(random(SPACE), STEPS, batch=19)
    search = full_training(random(SPACE, batch=2), STEPS)
    state = search.init(jax.random.key(0), 4)
    with pytest.raises(
        ValueError, match="one network at a time; got one that asks for 2"
    ):
        search.ask(jax.random.key(0), state)
