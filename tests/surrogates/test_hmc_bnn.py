"""Networks sampled by HMC and NUTS, and regression on a last layer, as surrogates."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from surrogates.quarter import DATA, KEY, POINTS, programs

import bonas
from bonas.surrogates.hmc_bnn import hmc_network
from bonas.surrogates.last_layer_bnn import last_layer
from bonas.surrogates.network_posterior import condition
from bonas.surrogates.variational_bnn import variational_network

MODELS = {
    "hmc": hmc_network((12,), chains=4, samples=20, first_burn=100, steps=20),
    "sampled": hmc_network(
        (12,),
        output="sampled",
        precisions="gibbs",
        noise_prior=(10.0, 0.02),
        chains=4,
        samples=100,
        first_burn=200,
        steps=20,
    ),
    "last layer": last_layer((12, 12), steps=300, samples=4),
}
RNG = np.random.default_rng(0)

_fit, _predict, _fitted = programs(MODELS)


def test_equal_models_are_one():
    space = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Choice("x", "y", "z"))
    assert (
        hmc_network([12], chains=4, samples=20, first_burn=100, steps=20)
        == MODELS["hmc"]
    )
    assert last_layer([12, 12], steps=300, samples=4) == MODELS["last layer"]
    for model in MODELS.values():
        assert model.adapt(space) == model.adapt(space)


@pytest.mark.slow
def test_networks_see_options_apart_and_flags():
    """The first layer has inputs for three options, one number and one flag."""
    space = bonas.Space(
        b=bonas.Choice("x", "y", "z"), a=bonas.Float(0.0, 1.0, when={"b": "x"})
    )
    assert MODELS["hmc"].adapt(space).init(4, 2, 1).draws.weights.kernels[0].shape == (
        20,
        5,
        12,
    )
    assert MODELS["last layer"].adapt(space).init(4, 2, 1).params["first"][
        "kernel"
    ].shape == (
        5,
        12,
    )


@pytest.mark.parametrize("name", ["hmc", "sampled", "float32", "variational"])
def test_the_noise_is_averaged_over_the_draws(name):
    """Known answer: draws with noise variances 1/1, 1/2, 1/3, ..."""
    settings = {"dtype": "float32"} if name == "float32" else {}
    models = MODELS | {
        "float32": hmc_network((12,), samples=20, **settings),
        "variational": variational_network((12,), members=4, draws=20),
    }
    state = models[name].init(12, 2, 1)
    count = len(jax.tree.leaves(state.draws)[0])
    precision = jnp.arange(1.0, count + 1.0)
    if name == "variational":
        draws = state.draws._replace(noise=1.0 / precision)
    else:
        precisions = state.draws.precisions
        noise = precision.astype(precisions.noise.dtype)
        draws = state.draws._replace(precisions=precisions._replace(noise=noise))
    found = models[name].noise_variance(state._replace(draws=draws))
    assert found.dtype == state.learned[0].dtype
    np.testing.assert_allclose(found, [(1.0 / precision).mean()], rtol=1e-6)


# The network by HMC


@pytest.mark.slow
def test_later_fits_go_on_from_the_last():
    """A converged network needs no burn-in: five more trajectories keep its accuracy."""
    state, first = _fitted("hmc")
    again, info = _fit("hmc")(jax.random.key(1), DATA, state)
    mean = _predict("hmc")(again, DATA.x[:8]).mean[0]
    assert np.sqrt(np.mean((mean - DATA.y[:8, 0]) ** 2)) < 0.2
    assert abs(info.log_density - first.log_density) < 0.5 * abs(first.log_density)


def test_what_is_not_a_number_is_not_kept():
    """A broken chain leaves the last networks, and says so."""
    state = _fitted("hmc")[0]
    broken = state._replace(
        chains=jax.tree.map(lambda leaf: leaf * jnp.nan, state.chains)
    )
    kept, info = _fit("hmc")(KEY, DATA, broken)
    assert not info.finite
    np.testing.assert_array_equal(
        _predict("hmc")(kept, POINTS).mean, _predict("hmc")(state, POINTS).mean
    )


@pytest.mark.slow
def test_conditioning_is_that_of_a_gaussian():
    """Against the formulas for a Gaussian with the moments of 9 functions at 6 points."""
    values, y, noise = RNG.normal(size=(9, 6)), RNG.normal(size=6), 0.3
    new = np.array([False, True, False, False, True, False])
    mixed = (
        np.asarray(
            condition(
                jnp.asarray(values),
                jnp.asarray(y),
                jnp.asarray(new),
                jnp.asarray(noise),
            )
        )
        @ values
    )
    mean, covariance = values.mean(axis=0), np.cov(values.T, ddof=0)
    gain = covariance[:, new] @ np.linalg.inv(
        covariance[np.ix_(new, new)] + noise * np.eye(2)
    )
    np.testing.assert_allclose(
        mixed.mean(axis=0), mean + gain @ (y - mean)[new], rtol=1e-9
    )
    np.testing.assert_allclose(
        np.cov(mixed.T, ddof=0),
        covariance - gain @ covariance[new],
        rtol=1e-9,
        atol=1e-12,
    )


@pytest.mark.slow
def test_nothing_imagined_changes_nothing():
    state = _fitted("sampled")[0]
    np.testing.assert_allclose(
        MODELS["sampled"].update(DATA, state).learned.mix, state.learned.mix, atol=1e-12
    )


def test_output_layers_are_integrated_out_in_closed_form():
    """Against Bayesian regression on the hidden layer of each network, and mixture moments."""
    state = _fitted("hmc")[0]
    weights, precisions = jax.tree.map(np.asarray, state.draws)
    means, variances = [], []
    for i in range(20):

        def hidden(x, i=i):
            h = np.tanh(
                (2.0 * np.asarray(x) - 1.0) @ weights.kernels[0][i]
                + weights.biases[0][i]
            )
            return np.column_stack([h, np.ones(len(h))])

        prior = np.append(
            np.full(12, 12 * precisions.weights[i, 1]), precisions.weights[i, 3]
        )  # Neal's width scaling
        rows, there = hidden(DATA.x[:8]), hidden(POINTS)
        covariance = np.linalg.inv(np.diag(prior) + precisions.noise[i] * rows.T @ rows)
        means.append(
            there
            @ covariance
            @ rows.T
            @ np.asarray(DATA.y[:8, 0])
            * precisions.noise[i]
        )
        variances.append(np.sum(there @ covariance * there, axis=1))
    mean, std = _predict("hmc")(state, POINTS)
    np.testing.assert_allclose(mean[0], np.mean(means, axis=0), atol=1e-6)
    np.testing.assert_allclose(
        std[0], np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0)), atol=1e-6
    )


def test_steps_follow_the_acceptance():
    """A step that is far too long shrinks at a fit by more than one trajectory of burn-in would."""
    state = _fitted("hmc")[0]
    long = state._replace(chains=state.chains._replace(step_size=jnp.ones(4)))
    after = _fit("hmc")(KEY, DATA, long)[0].chains.step_size
    assert (after < 0.6).all()


@pytest.mark.slow
def test_a_random_walk_agrees_with_trajectories():
    """Two units and three values, so that both mix; five standard errors of the means."""
    data = bonas.dataset(np.array([[0.1], [0.5], [0.9]]), np.array([-1.0, 1.0, 0.0]), 3)
    points, found = jnp.linspace(0.0, 1.0, 5)[:, None], []
    settings = {"chains": 8, "samples": 800, "noise_prior": (10.0, 0.1)}
    for given in (
        {"method": "hmc", "first_burn": 200, "steps": 10},
        {"method": "metropolis", "first_burn": 200, "steps": 100},
    ):
        model = hmc_network((2,), **settings, **given)
        state = jax.jit(model.fit)(KEY, data, model.init(3, 1, 1))[0]
        by_chain = jax.tree.map(
            lambda leaf: leaf.reshape(8, 100, *leaf.shape[1:]),
            (state.draws, state.learned),
        )
        each = jax.vmap(
            lambda draws, given: model.predict(
                state._replace(draws=draws, learned=given), points
            ).mean[0]
        )
        values = np.asarray(jax.jit(each)(*by_chain))
        found.append((values.mean(axis=0), values.var(axis=0, ddof=1) / 8))
    (one, of_one), (other, of_other) = found
    assert (np.abs(one - other) < 5 * np.sqrt(of_one + of_other)).all()
    assert (np.sqrt(of_one + of_other) < 0.1).all()


# The regression on a last layer


@pytest.mark.slow
def test_the_last_layer_is_regressed_on_in_closed_form():
    """Against ridge regression on the hidden layer, under each sample of the two variances."""
    state = _fitted("last layer")[0]
    params = jax.tree.map(np.asarray, state.params)

    def hidden(x):
        h = np.tanh(
            (2.0 * np.asarray(x) - 1.0) @ params["first"]["kernel"]
            + params["first"]["bias"]
        )
        h = np.tanh(h @ params["hidden"]["kernel"][0] + params["hidden"]["bias"][0])
        return np.column_stack([np.ones(len(h)), h / np.sqrt(12)])

    rows, there = hidden(DATA.x[:8]), hidden(POINTS)
    posterior = state.regression.posterior
    for i, (mean, std) in enumerate(
        zip(*_predict("last layer")(state, POINTS), strict=True)
    ):
        variance, first_row = (
            float(posterior.params["variance"][i]),
            float(posterior.lower[i, 0, 0]),
        )
        noise = (
            first_row**2 - variance * rows[0] @ rows[0]
        )  # added to the covariance of the function
        covariance = np.linalg.inv(np.eye(13) / variance + rows.T @ rows / noise)
        weights = covariance @ rows.T @ np.asarray(DATA.y[:8, 0]) / noise
        np.testing.assert_allclose(mean, there @ weights, atol=1e-3)
        np.testing.assert_allclose(
            std, np.sqrt(np.sum(there @ covariance * there, axis=1)), atol=1e-3
        )


# Searches


@pytest.mark.slow
@pytest.mark.parametrize("model", ["hmc", "last layer"])
def test_a_search_finds_the_minimum_of_a_parabola(model):
    """Within 0.02 of it, 20 evaluations, in the median over 3 seeds; a point in 50 is so near."""
    space = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
    search = bonas.bayes(space, surrogate=MODELS[model])
    objective = lambda key, u: jnp.sum((u - 0.3) ** 2)  # noqa: E731
    history = bonas.run_many(search, objective, jax.random.split(KEY, 3), 20)
    assert np.median(history.best[:, -1]) < 0.02 / np.pi


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(hmc_network, samples=10, chains=3), "a multiple of chains, 3; got 10"),
        (partial(hmc_network, method="gibbs"), "method must be one of"),
        (partial(hmc_network, floor=0.0), "must be above 0; got 0.0"),
        (partial(hmc_network, output="exact"), "output must be one of"),
        (
            partial(hmc_network, method="metropolis", precisions="gibbs"),
            "must be 'joint' for method='metropolis'; got 'gibbs'",
        ),
        (partial(hmc_network, activation="swish"), "activation must be one of"),
        (partial(last_layer, widths=()), "at least one hidden layer"),
        (partial(variational_network, widths=()), "at least one hidden layer"),
        (partial(variational_network, steps=0), "^steps must be at least 1; got 0$"),
        (
            partial(variational_network, draws=7),
            "draws must be a multiple of members, 5",
        ),
        (partial(variational_network, floor=0.0), "^floor must be above 0; got 0.0$"),
    ],
)
def test_models_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make().init(4, 2, 1)


def test_several_outputs_are_refused():
    for model in MODELS.values():
        with pytest.raises(ValueError, match="one output; got p = 3"):
            model.init(4, 2, 3)
