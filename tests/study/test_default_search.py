"""Models of many rows are fitted to a stated subset."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.checked_data import dataset
from bonas.study.default_search import (
    MAX_ROWS,
    SubsetSurrogate,
    describe_fit,
    select_rows,
)

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))


def data(n, capacity, seed=0):
    x = np.random.default_rng(seed).random((n, 2))
    return dataset(x, np.sin(5.0 * x[:, 0]) + x[:, 1], capacity)


@pytest.mark.slow
def test_small_data_are_not_changed():
    for n, capacity in ((5, 8), (8, 8), (5, 16), (8, 16), (8, 64)):
        few, plain = select_rows(data(n, capacity), 8), data(n, min(capacity, 8))
        for one, other in zip(few, plain, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.typed
@pytest.mark.parametrize("seed", range(5))
def test_the_best_rows_and_the_latest_others_are_selected_in_order(seed):
    everything = data(40, 64, seed)
    everything = everything._replace(
        mask=everything.mask.at[np.array([3, 39])].set(False)
    )  # failed or pending
    y, there = (
        np.asarray(everything.y[:40, 0]),
        [i for i in range(40) if i not in (3, 39)],
    )
    best = sorted(there, key=lambda i: y[i])[:6]
    latest = [i for i in there if i not in best][-6:]
    few = select_rows(everything, 12)
    np.testing.assert_array_equal(few.x, everything.x[np.array(sorted(best + latest))])
    assert few.mask.all()
    assert int(few.size) == 12


@pytest.mark.slow
def test_a_subset_surrogate_equals_the_model_fitted_to_the_subset():
    model, everything = surrogates.gp(gp.matern52()), data(40, 64)
    of_few = SubsetSurrogate(model, 12)
    key, points = (
        jax.random.key(0),
        jnp.asarray(np.random.default_rng(1).random((7, 2))),
    )
    fitted, _ = of_few.fit(key, everything, of_few.init(64, 2, 1))
    expected, _ = model.fit(key, select_rows(everything, 12), model.init(12, 2, 1))
    np.testing.assert_array_equal(
        of_few.predict(fitted, points).mean, model.predict(expected, points).mean
    )


def test_the_info_describes_the_subset():
    assert describe_fit(MAX_ROWS) == {}
    assert (
        describe_fit(MAX_ROWS + 88)["subset"]
        == "fitted to 512 of 600 trials: the 256 best and the 256 latest of the others"
    )


@pytest.mark.slow
def test_a_search_on_a_subset_repeats_no_point_and_finds_the_optimum():
    space = bonas.Space(a=bonas.Int(0, 7), b=bonas.Int(0, 7))
    model = SubsetSurrogate(surrogates.gp(gp.matern52()), 8)
    search = bonas.bayes(
        space,
        surrogate=model,
        maximizer=acquire.enumeration(space),
        initial=3,
        output="plain",
    )

    def objective(key, u):
        return ((u - 0.4) ** 2).sum()

    history = bonas.run(search, objective, jax.random.key(0), 40)
    assert len(np.unique(history.x, axis=0)) == 40
    assert history.best[-1] == min(float(objective(None, u)) for u in space.points())
