"""Points outside the space are refused as initial points and as observations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.search import Observation, evolution, grid, random, sobol

SPACE = bonas.Space(
    depth=bonas.Int(1, 3),
    lr=bonas.Float(1e-5, 1.0, log=True),
    width_2=bonas.Float(0.0, 1.0, when={"depth": (">=", 2)}),
)
SHALLOW = np.array([0.0, 0.5, 0.0])
SEARCHES = {
    make.__name__: make(SPACE) for make in (bonas.bayes, random, sobol, grid, evolution)
}

NO_POINTS = {
    "outside": (
        [0.0, 1.5, 0.0],
        r"the column of parameter 'lr' must be in \[0, 1\]; got 1\.5",
    ),
    "not a number": (
        [0.0, np.nan, 0.0],
        r"the column of parameter 'lr' must be in \[0, 1\]; got nan",
    ),
    "as a configuration": (
        [3.0, 0.1, 0.2],
        r"the column of parameter 'depth' must be in \[0, 1\]; got 3\.0",
    ),
    "inactive": (
        [0.0, 0.5, 0.3],
        r"'width_2' is inactive: .* where depth is 1, but its column is 0\.3",
    ),
}
each_mistake = pytest.mark.parametrize(
    ("x", "words"), NO_POINTS.values(), ids=NO_POINTS
)


@pytest.fixture(scope="module", params=SEARCHES)
def begun(request):
    """A search and its first state."""
    search = SEARCHES[request.param]
    return search, search.init(jax.random.key(0), 2)


def trial(x):
    return Observation(
        x=jnp.asarray(x),
        y=jnp.asarray(1.0),
        step=jnp.asarray(0),
        cost=jnp.asarray(1.0),
        ok=jnp.asarray(True),
    )


@each_mistake
def test_an_initial_point_that_does_not_exist_is_refused_by_its_number(x, words):
    with pytest.raises(ValueError, match="initial point 1: .*" + words):
        bonas.bayes(SPACE, initial=[SHALLOW, x])


@pytest.mark.slow
def test_initial_integers_are_rounded():
    search = bonas.bayes(SPACE, initial=[[0.4, 0.5, 0.25]])
    np.testing.assert_array_equal(
        search.init(jax.random.key(0), 2).design, [[0.5, 0.5, 0.25]]
    )


@pytest.mark.slow
@each_mistake
def test_a_trial_at_a_point_that_does_not_exist_is_refused(begun, x, words):
    search, state = begun
    with pytest.raises(ValueError, match="an observation's x: .*" + words):
        search.tell(state, trial(x))


@pytest.mark.slow
def test_a_trial_at_a_point_that_exists_is_taken(begun):
    search, state = begun
    state = search.tell(state, trial(SHALLOW))
    np.testing.assert_array_equal(state.observations.data.x[0], SHALLOW)


def test_a_point_that_exists_but_for_rounding_is_taken(begun):
    search, state = begun
    state = search.tell(state, trial(SHALLOW + np.array([-1e-7, 0.0, 1e-7])))
    assert state.observations.data.size == 1


def test_traced_trials_are_not_looked_at(begun):
    search, state = begun
    state = jax.eval_shape(search.tell, state, trial(NO_POINTS["outside"][0]))
    assert state.observations.data.x.shape == (2, 3)
