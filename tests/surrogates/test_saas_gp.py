"""SAAS: a Gaussian process that looks for the few columns that matter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.surrogates.lazy_cond import lazy_cond

D, N, LIVE = 20, 40, (3, 11)
MODEL = surrogates.saas(samples=8, thin=2, burn=64, every=3)
fit = jax.jit(MODEL.fit)  # one program for all tests


def values(x):
    """A function of 2 of 20 columns."""
    return jnp.sin(6.0 * x[:, LIVE[0]]) + 2.0 * (x[:, LIVE[1]] - 0.4) ** 2


def data_of(seed, n=N):
    x = jax.random.uniform(jax.random.key(seed), (n, D))
    return bonas.standardize(bonas.dataset(x, values(x), N))[0]


@pytest.fixture(scope="module")
def fitted():
    """One fit of each of four data sets."""
    return [
        fit(jax.random.key(seed), data_of(seed), MODEL.init(N, D, 1))
        for seed in range(4)
    ]


@pytest.mark.slow
def test_effective_columns_matter_more_than_all_others(fitted):
    """In every data set the median inverse length scale of live columns exceeds all others."""
    for state, _ in fitted:
        relevance = np.median(
            gp.inverse_squared_lengthscales(state.posterior.params), axis=0
        )
        others = np.delete(relevance, LIVE)
        assert relevance[list(LIVE)].min() > 5.0 * others.max(), relevance


@pytest.mark.slow
def test_it_predicts_better_than_a_kernel_that_takes_all_columns_for_equal(fitted):
    """The error at new points, relative to the function's spread, is lower than Matérn 5/2's."""
    state, _ = fitted[0]
    x = jax.random.uniform(jax.random.key(100), (300, D))
    plain = surrogates.gp(gp.matern52(), steps=30)
    other, _ = plain.fit(jax.random.key(0), data_of(0), plain.init(N, D, 1))
    train = jax.random.uniform(jax.random.key(0), (N, D))
    truth = (values(x) - values(train).mean()) / values(train).std()
    errors = [
        float(jnp.sqrt(jnp.mean((model.predict(s, x).mean.mean(axis=0) - truth) ** 2)))
        for model, s in ((MODEL, state), (plain, other))
    ]
    assert errors[0] < min(0.2, errors[1]), errors


@pytest.mark.slow
def test_chains_run_at_every_third_fit_and_before_at_intervals_that_double():
    """New draws at fits 0, 1, 2 and 3, then 6: in between they are kept."""
    state, new = MODEL.init(N, D, 1), []
    for i in range(7):
        last = state.z
        state, _ = fit(jax.random.key(i), data_of(0, 20 + i), state)
        new.append(bool((state.z["kernel"]["local"] != last["kernel"]["local"]).any()))
    assert new == [True, True, True, True, False, False, True]
    assert fit._cache_size() == 1


def test_without_a_chain_the_new_data_count(fitted):
    state, _ = fitted[0]
    kept, _ = fit(jax.random.key(9), data_of(1), state._replace(fits=jnp.asarray(4)))
    expected = gp.condition_all(gp.saas(), jax.vmap(constrain)(state.z), data_of(1))
    x = jax.random.uniform(jax.random.key(5), (7, D))
    np.testing.assert_allclose(
        MODEL.predict(kept, x).mean,
        jax.vmap(gp.predict, (0, None))(expected, x).mean,
        atol=1e-8,
    )


def constrain(z):
    return jax.tree.map(jnp.exp, z)


def test_the_report_is_the_mean_log_evidence(fitted):
    state, info = fitted[0]
    params = jax.vmap(constrain)(state.z)
    each = [
        gp.log_evidence(
            gp.saas(),
            jax.tree.map(lambda leaf, i=i: leaf[i], params["kernel"]),
            data_of(0),
            noise=params["noise"][i],
        )
        for i in range(8)
    ]
    np.testing.assert_allclose(info.log_density, np.mean(each), rtol=1e-8)
    assert info.finite


@pytest.mark.slow
def test_predictions_covariances_and_draws_agree(fitted):
    state, _ = fitted[0]
    x = jax.random.uniform(jax.random.key(5), (4, D))
    mean, std = MODEL.predict(state, x)
    assert mean.shape == std.shape == (8, 4)
    np.testing.assert_allclose(
        jax.vmap(jnp.diagonal)(MODEL.covariance(state, x, x)),
        std**2,
        rtol=1e-6,
        atol=1e-10,
    )
    draws = MODEL.sample(jax.random.key(0), state, x, 4000)
    spread = np.sqrt(
        np.mean(np.asarray(std) ** 2, axis=0) + np.var(np.asarray(mean), axis=0)
    )
    # five standard errors of a mean over 4000 draws
    assert (
        np.abs(np.asarray(draws).mean(axis=0) - np.asarray(mean).mean(axis=0))
        < 5.0 * spread / np.sqrt(4000)
    ).all()


def test_masked_rows_change_nothing(fitted):
    few = data_of(2, 30)
    spoilt = few._replace(x=few.x.at[30:].set(jnp.nan), y=few.y.at[30:].set(1e6))
    x = jax.random.uniform(jax.random.key(5), (4, D))
    state, _ = fitted[2]
    one, other = (MODEL.predict(MODEL.update(each, state), x) for each in (few, spoilt))
    np.testing.assert_array_equal(one.mean, other.mean)


@pytest.mark.parametrize(
    "bad",
    [
        {"samples": 0},
        {"every": 0},
        {"burn": -1},
        {"thin": 0},
        {"depth": 0},
        {"alpha": -0.1},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match=r"at least|positive"):
        surrogates.saas(**bad)


def test_conditional_parameters_are_refused():
    space = bonas.Space(
        a=bonas.Int(0, 3), b=bonas.Float(0.0, 1.0, when={"a": (">=", 2)})
    )
    with pytest.raises(ValueError, match="does not support conditional parameters"):
        bonas.bayes(space, surrogate=surrogates.saas())


def test_options_have_no_order():
    space = bonas.Space(a=bonas.Choice("x", "y", "z"), b=bonas.Float(0.0, 1.0))
    assert surrogates.saas().adapt(space).init(4, 2, 1).posterior.params[
        "local"
    ].shape == (16, 4)


def test_equal_settings_are_one_model():
    assert surrogates.saas(every=4) == surrogates.saas(every=4)


# Work that is not due at every fit


def test_each_lane_takes_its_own():
    due = jnp.array([True, False, True])
    found = jax.vmap(lambda flag, x: lazy_cond(flag, lambda: x + 10.0, lambda: x))(
        due, jnp.arange(3.0)
    )
    np.testing.assert_array_equal(found, [10.0, 1.0, 12.0])


@pytest.mark.parametrize(("due", "times"), [([False, False], 0), ([False, True], 2)])
def test_work_that_no_lane_needs_is_not_done(due, times):
    done = []

    def work(x):
        jax.debug.callback(lambda _: done.append(1), x)
        return x + 1.0

    jax.block_until_ready(
        jax.vmap(lambda flag, x: lazy_cond(flag, lambda: work(x), lambda: x))(
            jnp.array(due), jnp.arange(2.0)
        )
    )
    jax.effects_barrier()
    assert len(done) == times
