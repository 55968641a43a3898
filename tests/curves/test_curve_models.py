"""Models of learning curves, against formulas in NumPy and on curves with known ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.curves import PartialCurves, autoregressive, freeze_thaw, gpar, power_law
from bonas.curves.freeze_thaw_gp import decay_covariance, summarize_curve

RNG = np.random.default_rng(0)
TIMES = np.array([0.1, 0.2, 0.4, 0.7, 1.0])
N, C = 10, len(TIMES)
X = RNG.uniform(size=(N, 2))
ENDS, FALLS, POWERS = (
    1.0 + np.sin(4.0 * X[:, 0]),
    1.0 + 0.5 * X[:, 1],
    RNG.uniform(0.4, 1.2, N),
)
Y = ENDS[:, None] + 0.3 * FALLS[:, None] * TIMES[None, :] ** -POWERS[:, None]
MODELS = {
    "autoregressive": autoregressive(),
    "freeze_thaw": freeze_thaw(),
    "power_law": power_law(),
}
DRAWS = 400


def data_of(seen, capacity=12):
    """Return data with the first seen[i] checkpoints of network i."""
    hidden = np.arange(C)[None, :] >= np.asarray(seen)[:, None]
    return bonas.dataset(X, np.where(hidden, np.nan, Y), capacity)


SEEN = np.array([5, 5, 5, 5, 5, 5, 4, 3, 2, 1])


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    """A model after three fits, and the observed parts of the curves."""
    model = MODELS[request.param]
    fit, sample = jax.jit(model.fit), jax.jit(model.sample, static_argnums=4)
    data, state = data_of(SEEN), model.init(12, 2, jnp.asarray(TIMES))
    for i in range(3):
        state, info = fit(jax.random.key(i), data, state)
    known = PartialCurves(data.y[:N], data.mask[:N])
    return model, fit, sample, state, info, known


@pytest.mark.slow
def test_draws_match_observed_ends_and_cover_unobserved_ones(fitted):
    _, _, sample, state, info, known = fitted
    draws = np.asarray(sample(jax.random.key(0), state, jnp.asarray(X), known, DRAWS))
    assert draws.shape == (DRAWS, N, C)
    assert info.finite
    spread = Y.std()
    final, std = draws[:, :, -1].mean(axis=0), draws[:, :, -1].std(axis=0)
    # trained to the end
    np.testing.assert_allclose(final[:6], Y[:6, -1], atol=0.1 * spread)
    assert np.all(np.abs(final - Y[:, -1]) < 5.0 * std + 0.1 * spread)
    # a network observed once is less certain than all complete ones
    assert std[:6].max() < std[9]


def test_uncertainty_falls_with_the_observed_part_of_a_curve(fitted):
    """One network, with one and with four observed checkpoints."""
    _, fit, sample, state, _, _ = fitted
    spreads = []
    for seen in (1, 4):
        data = data_of(np.append(SEEN[:-1], seen))
        after, _ = fit(jax.random.key(0), data, state)
        known = PartialCurves(data.y[:N], data.mask[:N])
        spreads.append(
            float(
                sample(jax.random.key(0), after, jnp.asarray(X), known, DRAWS)[
                    :, 9, -1
                ].std()
            )
        )
    assert spreads[1] < spreads[0]


def test_predictions_are_equivariant_to_the_scale_of_values(fitted):
    model, fit, sample, _, _, known = fitted
    data, found = data_of(SEEN), []
    for level, scale in ((0.0, 1.0), (50.0, 300.0)):
        moved = data._replace(y=jnp.where(data.mask, level + scale * data.y, 0.0))
        state, _ = fit(jax.random.key(0), moved, model.init(12, 2, jnp.asarray(TIMES)))
        there = PartialCurves(level + scale * known.y, known.mask)
        draws = sample(jax.random.key(0), state, jnp.asarray(X), there, DRAWS)
        found.append((np.asarray(draws[:, :, -1].mean(axis=0)) - level) / scale)
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_contents_of_unused_rows_change_nothing(fitted):
    model, fit, sample, _, _, known = fitted
    data, found = data_of(SEEN), []
    for filling in (0.0, jnp.nan):
        filled = data._replace(
            y=jnp.where(data.mask, data.y, filling), x=data.x.at[N:].set(filling)
        )
        state, _ = fit(jax.random.key(0), filled, model.init(12, 2, jnp.asarray(TIMES)))
        found.append(
            np.asarray(sample(jax.random.key(0), state, jnp.asarray(X), known, DRAWS))
        )
    assert np.isfinite(found[0]).all()
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_curves_with_one_checkpoint_are_ordinary_regression(name):
    """Draws are near the observed values, and within their uncertainty elsewhere."""
    model = MODELS[name]
    data, fit = (
        bonas.dataset(X, Y[:, -1:], 12)._replace(mask=jnp.arange(12)[:, None] < 8),
        jax.jit(model.fit),
    )
    state = model.init(12, 2, jnp.ones(1))
    for i in range(3):
        state, info = fit(jax.random.key(i), data, state)
    assert info.finite
    draws = np.asarray(
        model.sample(
            jax.random.key(0),
            state,
            jnp.asarray(X),
            PartialCurves(data.y[:N], data.mask[:N]),
            DRAWS,
        )
    )
    mean, std, spread = (
        draws[:, :, 0].mean(axis=0),
        draws[:, :, 0].std(axis=0),
        Y[:, -1].std(),
    )
    np.testing.assert_allclose(mean[:8], Y[:8, -1], atol=0.2 * spread)
    assert np.all(np.abs(mean - Y[:, -1]) < 5.0 * std + 0.2 * spread)


# GPAR


GPARS = {
    "slopes": gpar(markov=2),
    "slopes about a prior slope": gpar(prior_slope=0.9, matern=True),
    "prior slope without slopes": gpar(linear=False, prior_slope=0.9),
    "independent": gpar(linear=False, linear_inputs=True),
    "replaced": gpar(replace=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("model_settings", GPARS.values(), ids=list(GPARS))
def test_linear_draws_have_the_moments_of_general_draws(model_settings):
    """Five standard errors of 4000 draws."""
    data = bonas.dataset(X, np.where(np.arange(C)[None, :] >= SEEN[:, None], np.nan, Y))
    model = autoregressive(model_settings)
    state = model.init(N, 2, jnp.asarray(TIMES))
    params = model_settings.hyperposterior(data).constrain(state.z) | {
        "noise": jnp.full(C, 0.05)
    }
    curves = model_settings.condition(params, data)
    at = jnp.asarray(X[6:])
    known = PartialCurves(data.y[6:], data.mask[6:])
    quick = model.sample(
        jax.random.key(0), state._replace(posterior=curves), at, known, 4000
    )
    slow = model_settings.sample(jax.random.key(1), curves, at, 4000, known)
    error = slow.std(axis=0) / np.sqrt(4000)
    assert np.all(
        np.abs(quick.mean(axis=0) - slow.mean(axis=0))
        < 5.0 * np.sqrt(2.0) * error + 1e-9
    )
    np.testing.assert_allclose(quick.std(axis=0), slow.std(axis=0), rtol=0.1)
    # jointly over networks as well
    cov_quick, cov_slow = (
        np.cov(np.asarray(each[:, :, -1]).T) for each in (quick, slow)
    )
    np.testing.assert_allclose(cov_quick, cov_slow, atol=0.1 * np.diag(cov_slow).max())


def test_a_fit_to_curves_with_holes_reports_that_it_is_not_finite():
    """Under `jit`, where no error can be raised."""
    model, data = MODELS["autoregressive"], data_of(SEEN)
    state, info = jax.jit(model.fit)(
        jax.random.key(0),
        data._replace(mask=data.mask.at[3, 0].set(False)),
        model.init(12, 2, jnp.asarray(TIMES)),
    )
    assert not info.finite
    # the last parameters are kept
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.z))


# Freeze-thaw


def test_decay_covariance_is_a_mixture_of_exponentials():
    """∫ exp(−λt) exp(−λt') Gamma(λ; α, β) dλ, by quadrature."""
    alpha, beta = 1.7, 0.6
    rates = np.linspace(0.0, 80.0, 400_001)
    density = (
        beta**alpha
        / 0.9086387328532904
        * rates ** (alpha - 1.0)
        * np.exp(-beta * rates)
    )  # Γ(1.7)
    for t, other in ((0.0, 0.0), (0.1, 0.5), (1.0, 2.0)):
        expected = np.trapezoid(np.exp(-rates * (t + other)) * density, rates)
        found = decay_covariance(
            jnp.array([t]), jnp.array([other]), jnp.asarray(alpha), jnp.asarray(beta)
        )[0, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def numpy_covariance(params, x, t):
    """Return the covariance of points (x, t) without noise; equal rows x are one network."""
    scaled = x / np.asarray(params["kernel"]["lengthscale"])
    r = np.sqrt(5.0 * ((scaled[:, None] - scaled[None]) ** 2).sum(-1))
    between = float(params["kernel"]["variance"]) * (1.0 + r + r**2 / 3.0) * np.exp(-r)
    same = (np.abs(x[:, None] - x[None]).max(-1) < 1e-12) * float(params["height"])
    alpha, beta = float(params["alpha"]), float(params["beta"])
    return between + same * beta**alpha / (t[:, None] + t[None] + beta) ** alpha


@pytest.mark.slow
def test_freeze_thaw_matches_one_gp_over_networks_and_times():
    """Evidence and moments of draws, against a GP on all points; five standard errors."""
    model = freeze_thaw(steps=1)
    state, info = model.fit(
        jax.random.key(0), data_of(SEEN), model.init(12, 2, jnp.asarray(TIMES))
    )
    params = jax.tree.map(np.asarray, state.params)
    seen = np.arange(C)[None, :] < SEEN[:, None]
    row, step = np.nonzero(seen)
    y = (Y[seen] - float(state.level)) / float(state.scale) - params["mean"][step]
    noise = params["noise"] + 1e-8
    cov = numpy_covariance(params, X[row], TIMES[step]) + noise * np.eye(len(y))
    at_x, at_t = np.concatenate([X[row], X]), np.concatenate([TIMES[step], np.ones(N)])
    cross = numpy_covariance(params, at_x, at_t)[len(y) :, : len(y)]
    mean = cross @ np.linalg.solve(cov, y) + params["mean"][-1]
    left = numpy_covariance(params, X, np.ones(N)) - cross @ np.linalg.solve(
        cov, cross.T
    )
    data = data_of(SEEN)
    draws = model.sample(
        jax.random.key(1),
        state,
        jnp.asarray(X),
        PartialCurves(data.y[:N], data.mask[:N]),
        4000,
    )
    final = (np.asarray(draws[:, :, -1]) - float(state.level)) / float(state.scale)
    std = np.sqrt(np.diag(left))
    np.testing.assert_allclose(final.std(axis=0), std, rtol=0.08, atol=1e-3)
    assert np.all(np.abs(final.mean(axis=0) - mean) < 5.0 * std / np.sqrt(4000) + 1e-4)
    evidence = -0.5 * (
        y @ np.linalg.solve(cov, y) + np.linalg.slogdet(2.0 * np.pi * cov)[1]
    )
    scaled = data._replace(
        y=jnp.where(data.mask, (data.y - state.level) / state.scale, 0.0)
    )
    np.testing.assert_allclose(
        model.log_evidence(state.params, scaled, state.times), evidence, rtol=1e-8
    )
    assert np.isfinite(info.log_density)


@pytest.mark.typed
def test_a_summary_contains_all_information_about_the_asymptote():
    """log N(y; 1 f, cov) − log N(value; f, noise) is the same for every f."""
    root = RNG.normal(size=(3, 3))
    cov, y, mask = (
        root @ root.T + np.eye(3),
        RNG.normal(size=3),
        np.array([True, False, True]),
    )
    found = summarize_curve(jnp.asarray(cov), jnp.asarray(y), jnp.asarray(mask))
    small, values = cov[np.ix_(mask, mask)], y[mask]
    for f in (-1.0, 0.0, 2.5):
        away = values - f
        whole = -0.5 * (
            away @ np.linalg.solve(small, away)
            + np.linalg.slogdet(2.0 * np.pi * small)[1]
        )
        single = -0.5 * (
            (float(found.value) - f) ** 2 / float(found.noise)
            + np.log(2.0 * np.pi * float(found.noise))
        )
        np.testing.assert_allclose(whole - single, found.rest, rtol=1e-10)


# Power laws


@pytest.mark.slow
def test_power_laws_without_noise_are_extrapolated():
    """From three of five checkpoints, the error is below a fifth of the remaining fall."""
    model = power_law()
    fit = jax.jit(model.fit)
    seen = np.array([5, 5, 5, 5, 5, 3, 3, 3, 3, 3])
    data, state = data_of(seen), model.init(12, 2, jnp.asarray(TIMES))
    for i in range(10):
        state, _ = fit(jax.random.key(i), data, state)
    draws = model.sample(
        jax.random.key(1),
        state,
        jnp.asarray(X),
        PartialCurves(data.y[:N], data.mask[:N]),
        DRAWS,
    )
    left = Y[5:, 2] - Y[5:, -1]
    error = np.abs(np.asarray(draws[:, 5:, -1].mean(axis=0)) - Y[5:, -1])
    assert np.all(error < 0.2 * left)
