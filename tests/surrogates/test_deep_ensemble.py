import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, surrogates
from bonas.problems import functions
from bonas.search import random
from bonas.surrogates.network_inputs import features

MODEL = surrogates.ensemble(4, (20, 20))
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(8, 2)) * 0.5  # one quarter of the square
Y = np.sin(6.0 * X[:, 0]) + X[:, 1]
DATA = bonas.dataset(X, (Y - Y.mean()) / Y.std(), capacity=12)


@pytest.mark.slow
def test_a_warm_start_goes_on_from_the_last_fit():
    """One step of a new start cannot be as good as one more of what was trained."""
    warm = surrogates.ensemble(4, (20, 20), steps=50, warm=True)
    again = jax.jit(warm.fit)
    state, first = again(KEY, DATA, warm.init(12, 2, 1))
    for seed in range(1, 5):
        state, last = again(jax.random.key(seed), DATA, state)
    assert -last.log_density < 0.1 * -first.log_density


def test_equal_ensembles_are_one():
    assert surrogates.ensemble(4, [20, 20]) == MODEL
    space = functions.branin.space
    assert MODEL.adapt(space) == MODEL.adapt(space)


# Spaces


def test_options_have_no_order_and_what_is_not_there_is_told_apart():
    space = bonas.Space(
        kind=bonas.Choice("a", "b", "c"),
        rate=bonas.Float(0.0, 1.0),
        extra=bonas.Float(0.0, 1.0, when={"kind": "c"}),
    )
    rows = jnp.stack(
        [
            space.encode({"kind": "a", "rate": 0.2}),
            space.encode({"kind": "c", "rate": 0.4, "extra": 0.0}),
            space.encode({"kind": "b", "rate": 0.2}),
        ]
    )
    expected = [[1, 0, 0, 0.2, 0, 0], [0, 0, 1, 0.4, 0, 1], [0, 1, 0, 0.2, 0, 0]]
    np.testing.assert_allclose(features(space, rows), expected, atol=1e-12)


# Searches


@pytest.mark.slow
def test_it_beats_random_search():
    """25 evaluations of a smooth function of two variables, median of 10 seeds; random has 20."""
    problem, steps = functions.branin, 25
    # compiles faster than one that climbs
    box = acquire.random_candidates(problem.space, candidates=500)
    search = bonas.bayes(problem.space, surrogate=MODEL, maximizer=box)
    keys = jax.random.split(KEY, 20)
    found = bonas.run_many(search, problem.objective, keys[:10], steps).best[:, -1]
    by_chance = bonas.run_many(
        random(problem.space), problem.objective, keys, steps
    ).best[:, -1]
    assert np.median(found) - problem.optimum < 0.5 * (
        np.median(by_chance) - problem.optimum
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": 1}, "members must be at least 2"),
        ({"floor": 0.0}, "floor must be above 0"),
        ({"widths": ()}, "at least one hidden layer"),
        ({"activation": "swish"}, "activation must be one of"),
    ],
)
def test_ensembles_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        surrogates.ensemble(**change).init(4, 2, 1)


def test_several_outputs_are_refused():
    with pytest.raises(ValueError, match="one output; got p = 3"):
        MODEL.init(4, 2, 3)
