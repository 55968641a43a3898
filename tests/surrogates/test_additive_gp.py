"""Sums of functions of few columns as a surrogate, with given and with learned groups."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.gp.additive_kernels import groups_of

D, N = 8, 80
TRUE = ((0, 5), (1, 3), (2, 7), (4, 6))
LEARNED = surrogates.additive(every=1)
KNOWN = surrogates.additive(TRUE)
fit, fit_known = jax.jit(LEARNED.fit), jax.jit(KNOWN.fit)


def values(x):
    """A sum of four functions of two columns each; no term is a sum itself."""
    a, b = (5.0 * x[:, np.array([pair[side] for pair in TRUE])] for side in (0, 1))
    return jnp.sum(jnp.sin(a * b / 3.0 + a), axis=1)


def data_of(seed, n=N):
    x = jax.random.uniform(jax.random.key(seed), (n, D))
    return bonas.standardize(bonas.dataset(x, values(x), N))[0]


@pytest.fixture(scope="module")
def learned():
    """Four fits of each of five data sets, from groups drawn at random."""

    def several(seed):
        state = LEARNED.init(N, D, 1)
        for i in range(4):
            state, info = fit(
                jax.random.fold_in(jax.random.key(seed), i), data_of(seed), state
            )
        return state, info

    return [several(seed) for seed in range(5)]


@pytest.mark.slow
def test_the_true_groups_are_found_in_most_data_sets(learned):
    """All four pairs in at least three of five data sets; by chance once in 105."""
    found = [groups_of(state.order, (2, 2, 2, 2)) for state, _ in learned]
    assert sum(groups == TRUE for groups in found) >= 3, found


def test_learned_groups_are_at_least_as_probable_as_the_true_ones_in_most_data_sets(
    learned,
):
    better = []
    for seed, (_, info) in enumerate(learned):
        state = KNOWN.init(N, D, 1)
        for i in range(4):
            state, known = fit_known(jax.random.key(i), data_of(seed), state)
        better.append(info.log_density > known.log_density - 2.0)
    assert sum(better) >= 3, better


def test_groups_that_are_known_stay():
    state, _ = fit_known(jax.random.key(0), data_of(0), KNOWN.init(N, D, 1))
    assert groups_of(state.order, (2, 2, 2, 2)) == TRUE


FEW = 16  # a capacity that compiles fast
EVERY_THIRD_FIT = surrogates.additive(every=3, moves=60, steps=3)
fit_every_third = jax.jit(EVERY_THIRD_FIT.fit)


def few(seed, n):
    x = jax.random.uniform(jax.random.key(seed), (n, D))
    return bonas.standardize(bonas.dataset(x, values(x), FEW))[0]


@pytest.mark.slow
def test_groups_change_at_every_so_many_fits_alone():
    state, seen = EVERY_THIRD_FIT.init(FEW, D, 1), []
    for i in range(4):
        state, _ = fit_every_third(jax.random.key(i), few(i, 16), state)
        seen.append(groups_of(state.order, (2, 2, 2, 2)))
    assert seen[0] == seen[1] == seen[2]
    assert seen[3] != seen[2]
    assert fit_every_third._cache_size() == 1
    assert sorted(column for group in seen[3] for column in group) == list(range(D))


def test_the_first_groups_are_drawn_by_the_key():
    """Without data all groupings are equally probable, and column order must not be favored."""
    nothing = bonas.empty(FEW, D)
    drawn = {
        groups_of(
            fit_every_third(
                jax.random.key(i), nothing, EVERY_THIRD_FIT.init(FEW, D, 1)
            )[0].order,
            (2,) * 4,
        )
        for i in range(4)
    }
    assert len(drawn) > 2


@pytest.mark.slow
def test_predictions_are_those_of_the_kernel():
    state, info = fit_known(jax.random.key(0), data_of(0), KNOWN.init(N, D, 1))
    x = jax.random.uniform(jax.random.key(5), (6, D))
    params = jax.tree.map(lambda leaf: leaf[0], state.posterior.params)
    z = jax.tree.map(lambda leaf: leaf[0], state.z)
    expected = gp.predict(
        gp.condition(gp.additive(TRUE), params, data_of(0), noise=jnp.exp(z["noise"])),
        x,
    )
    mean, std = KNOWN.predict(state, x)
    np.testing.assert_allclose(mean[0], expected.mean, atol=1e-8)
    np.testing.assert_allclose(std[0], expected.std, rtol=1e-6)
    np.testing.assert_allclose(
        jnp.diagonal(KNOWN.covariance(state, x, x)[0]), std[0] ** 2, rtol=1e-6
    )
    assert KNOWN.sample(jax.random.key(0), state, x, 3).shape == (3, 6)
    _, again = KNOWN.refresh(data_of(0), state)
    np.testing.assert_allclose(again.log_density, info.log_density, rtol=1e-10)


@pytest.mark.slow
def test_lanes_agree_with_fits_one_by_one():
    """Two data sets at once, one due for new groups and one not."""
    begun, _ = fit_every_third(
        jax.random.key(5), few(0, 14), EVERY_THIRD_FIT.init(FEW, D, 1)
    )
    states = [begun._replace(fits=jnp.asarray(fits)) for fits in (3, 4)]
    sets, keys = [few(1, 15), few(2, 16)], jax.random.split(jax.random.key(0))
    stacked, together = (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        for each in (states, sets)
    )
    lanes, _ = jax.jit(jax.vmap(EVERY_THIRD_FIT.fit))(keys, together, stacked)
    for i in range(2):
        one, _ = fit_every_third(keys[i], sets[i], states[i])
        np.testing.assert_array_equal(lanes.order[i], one.order)
        np.testing.assert_allclose(
            lanes.z["kernel"]["lengthscale"][i],
            one.z["kernel"]["lengthscale"],
            rtol=1e-5,
        )
    assert (lanes.order[0] != begun.order).any()
    np.testing.assert_array_equal(lanes.order[1], begun.order)


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("random", "learned"),
        ([(0, 1), (1,)], "more than one"),
        ([(0, 2)], "got column 2"),
        ([], "one or more groups"),
    ],
)
def test_groups_that_are_none_are_refused(groups, said):
    with pytest.raises(ValueError, match=said):
        surrogates.additive(groups)


@pytest.mark.parametrize(
    "bad", [{"size": 0}, {"every": 0}, {"moves": 0}, {"draws": 0}, {"steps": 0}]
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match="at least 1"):
        surrogates.additive(**bad)
