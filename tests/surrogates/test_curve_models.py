"""Models of learning curves: against formulas in NumPy, on curves whose ends are known, and what they make of what is seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.gp.gpar import Known
from bonas.surrogates.curve_model import message
from bonas.surrogates.freeze_thaw import decay

RNG = np.random.default_rng(0)
TIMES = np.array([0.1, 0.2, 0.4, 0.7, 1.0])
N, C = 10, len(TIMES)
X = RNG.uniform(size=(N, 2))
ENDS, FALLS, POWERS = 1.0 + np.sin(4.0 * X[:, 0]), 1.0 + 0.5 * X[:, 1], RNG.uniform(0.4, 1.2, N)
Y = ENDS[:, None] + 0.3 * FALLS[:, None] * TIMES[None, :] ** -POWERS[:, None]
MODELS = {
    "autoregressive": surrogates.autoregressive(),
    "freeze_thaw": surrogates.freeze_thaw(),
    "power_law": surrogates.power_law(),
}
DRAWS = 400


def data_of(seen, capacity=12):
    """The curves, of which network i shows its first seen[i] checkpoints."""
    hidden = np.arange(C)[None, :] >= np.asarray(seen)[:, None]
    return bonas.dataset(X, np.where(hidden, np.nan, Y), capacity)


SEEN = np.array([5, 5, 5, 5, 5, 5, 4, 3, 2, 1])


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    """A model, fitted three times over, and its draws at what was seen of the networks."""
    model = MODELS[request.param]
    fit, sample = jax.jit(model.fit), jax.jit(model.sample, static_argnums=4)
    data, state = data_of(SEEN), model.init(12, 2, jnp.asarray(TIMES))
    for i in range(3):
        state, info = fit(jax.random.key(i), data, state)
    known = Known(data.y[:N], data.mask[:N])
    return model, fit, sample, state, info, known


@pytest.mark.slow
def test_draws_are_what_was_seen_and_what_is_to_come_near_the_truth(fitted):
    _, _, sample, state, info, known = fitted
    draws = np.asarray(sample(jax.random.key(0), state, jnp.asarray(X), known, DRAWS))
    assert draws.shape == (DRAWS, N, C)
    assert info.finite
    spread = Y.std()
    final, std = draws[:, :, -1].mean(axis=0), draws[:, :, -1].std(axis=0)
    np.testing.assert_allclose(final[:6], Y[:6, -1], atol=0.1 * spread)  # trained to the end
    assert np.all(np.abs(final - Y[:, -1]) < 5.0 * std + 0.1 * spread)
    assert std[:6].max() < std[9]  # a network seen once is less certain than all that are done


def test_the_less_was_seen_the_less_is_certain(fitted):
    """At one and the same network, as if more or less of its curve were known."""
    _, fit, sample, state, _, _ = fitted
    spreads = []
    for seen in (1, 4):
        data = data_of(np.append(SEEN[:-1], seen))
        after, _ = fit(jax.random.key(0), data, state)
        known = Known(data.y[:N], data.mask[:N])
        spreads.append(float(sample(jax.random.key(0), after, jnp.asarray(X), known, DRAWS)[:, 9, -1].std()))
    assert spreads[1] < spreads[0]


def test_the_scale_of_values_does_not_matter(fitted):
    model, fit, sample, _, _, known = fitted
    data, found = data_of(SEEN), []
    for level, scale in ((0.0, 1.0), (50.0, 300.0)):
        moved = data._replace(y=jnp.where(data.mask, level + scale * data.y, 0.0))
        state, _ = fit(jax.random.key(0), moved, model.init(12, 2, jnp.asarray(TIMES)))
        there = Known(level + scale * known.y, known.mask)
        draws = sample(jax.random.key(0), state, jnp.asarray(X), there, DRAWS)
        found.append((np.asarray(draws[:, :, -1].mean(axis=0)) - level) / scale)
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_what_stands_in_unused_rows_does_not_matter(fitted):
    model, fit, sample, _, _, known = fitted
    data, found = data_of(SEEN), []
    for filling in (0.0, jnp.nan):
        filled = data._replace(y=jnp.where(data.mask, data.y, filling), x=data.x.at[N:].set(filling))
        state, _ = fit(jax.random.key(0), filled, model.init(12, 2, jnp.asarray(TIMES)))
        found.append(np.asarray(sample(jax.random.key(0), state, jnp.asarray(X), known, DRAWS)))
    assert np.isfinite(found[0]).all()
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_curves_of_one_checkpoint_are_values(name):
    """All of them known, and nothing to fall from: draws are near them, and away from them near their mean."""
    model = MODELS[name]
    data, fit = bonas.dataset(X, Y[:, -1:], 12)._replace(mask=jnp.arange(12)[:, None] < 8), jax.jit(model.fit)
    state = model.init(12, 2, jnp.ones(1))
    for i in range(3):
        state, info = fit(jax.random.key(i), data, state)
    assert info.finite
    draws = np.asarray(model.sample(jax.random.key(0), state, jnp.asarray(X), Known(data.y[:N], data.mask[:N]), DRAWS))
    mean, std, spread = draws[:, :, 0].mean(axis=0), draws[:, :, 0].std(axis=0), Y[:, -1].std()
    np.testing.assert_allclose(mean[:8], Y[:8, -1], atol=0.2 * spread)
    assert np.all(np.abs(mean - Y[:, -1]) < 5.0 * std + 0.2 * spread)


# GPAR


RECIPES = {
    "slopes": gp.gpar(markov=2),
    "slopes about what is carried": gp.gpar(carry=0.9, rough=True),
    "carried alone": gp.gpar(linear=False, carry=0.9),
    "independent": gp.gpar(linear=False, linear_inputs=True),
    "replaced": gp.gpar(replace=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
def test_draws_by_slopes_have_the_moments_of_draws_one_by_one(recipe):
    """Five standard errors of 4000 draws."""
    data = bonas.dataset(X, np.where(np.arange(C)[None, :] >= SEEN[:, None], np.nan, Y))
    model = surrogates.autoregressive(recipe)
    state = model.init(N, 2, jnp.asarray(TIMES))
    params = recipe.hyperposterior(data).constrain(state.z) | {"noise": jnp.full(C, 0.05)}
    curves = recipe.condition(params, data)
    at = jnp.asarray(X[6:])
    known = Known(data.y[6:], data.mask[6:])
    quick = model.sample(jax.random.key(0), state._replace(curves=curves), at, known, 4000)
    slow = recipe.sample(jax.random.key(1), curves, at, 4000, known)
    error = slow.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(quick.mean(axis=0) - slow.mean(axis=0)) < 5.0 * np.sqrt(2.0) * error + 1e-9)
    np.testing.assert_allclose(quick.std(axis=0), slow.std(axis=0), rtol=0.1)
    corner = [np.cov(np.asarray(each[:, :, -1]).T) for each in (quick, slow)]  # joint over networks, too
    np.testing.assert_allclose(corner[0], corner[1], atol=0.1 * np.diag(corner[1]).max())


def test_a_fit_to_curves_with_holes_says_that_it_is_none():
    """Under `jit`, where nothing can be raised."""
    model, data = MODELS["autoregressive"], data_of(SEEN)
    state, info = jax.jit(model.fit)(
        jax.random.key(0), data._replace(mask=data.mask.at[3, 0].set(False)), model.init(12, 2, jnp.asarray(TIMES))
    )
    assert not info.finite
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.z))  # where it began


# Freeze-thaw


def test_decays_covary_as_a_mixture_of_exponentials():
    """∫ exp(−λt) exp(−λt') Gamma(λ; α, β) dλ, by quadrature."""
    alpha, beta = 1.7, 0.6
    rates = np.linspace(0.0, 80.0, 400_001)
    density = beta**alpha / 0.9086387328532904 * rates ** (alpha - 1.0) * np.exp(-beta * rates)  # Γ(1.7)
    for t, other in ((0.0, 0.0), (0.1, 0.5), (1.0, 2.0)):
        expected = np.trapezoid(np.exp(-rates * (t + other)) * density, rates)
        found = decay(jnp.array([t]), jnp.array([other]), jnp.asarray(alpha), jnp.asarray(beta))[0, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def joint_by_hand(params, x, t):
    """The covariance of points (x, t) of freeze-thaw, in NumPy, without noise; equal rows x are one network."""
    scaled = x / np.asarray(params["kernel"]["lengthscale"])
    r = np.sqrt(5.0 * ((scaled[:, None] - scaled[None]) ** 2).sum(-1))
    between = float(params["kernel"]["variance"]) * (1.0 + r + r**2 / 3.0) * np.exp(-r)
    same = (np.abs(x[:, None] - x[None]).max(-1) < 1e-12) * float(params["height"])
    alpha, beta = float(params["alpha"]), float(params["beta"])
    return between + same * beta**alpha / (t[:, None] + t[None] + beta) ** alpha


@pytest.mark.slow
def test_freeze_thaw_is_one_gp_over_networks_and_times():
    """Its fit's evidence and the moments of its draws, against a GP on all points at once; draws to five standard errors."""
    model = surrogates.freeze_thaw(steps=1)
    state, info = model.fit(jax.random.key(0), data_of(SEEN), model.init(12, 2, jnp.asarray(TIMES)))
    params = jax.tree.map(np.asarray, state.params)
    seen = np.arange(C)[None, :] < SEEN[:, None]
    row, step = np.nonzero(seen)
    y = (Y[seen] - float(state.level)) / float(state.scale) - params["mean"][step]
    noise = params["noise"] + 1e-8
    cov = joint_by_hand(params, X[row], TIMES[step]) + noise * np.eye(len(y))
    at_x, at_t = np.concatenate([X[row], X]), np.concatenate([TIMES[step], np.ones(N)])
    cross = joint_by_hand(params, at_x, at_t)[len(y) :, : len(y)]
    mean = cross @ np.linalg.solve(cov, y) + params["mean"][-1]
    left = joint_by_hand(params, X, np.ones(N)) - cross @ np.linalg.solve(cov, cross.T)
    data = data_of(SEEN)
    draws = model.sample(jax.random.key(1), state, jnp.asarray(X), Known(data.y[:N], data.mask[:N]), 4000)
    final = (np.asarray(draws[:, :, -1]) - float(state.level)) / float(state.scale)
    std = np.sqrt(np.diag(left))
    np.testing.assert_allclose(final.std(axis=0), std, rtol=0.08, atol=1e-3)
    assert np.all(np.abs(final.mean(axis=0) - mean) < 5.0 * std / np.sqrt(4000) + 1e-4)
    evidence = -0.5 * (y @ np.linalg.solve(cov, y) + np.linalg.slogdet(2.0 * np.pi * cov)[1])
    from bonas.surrogates.freeze_thaw import _log_evidence

    scaled = data._replace(y=jnp.where(data.mask, (data.y - state.level) / state.scale, 0.0))
    np.testing.assert_allclose(_log_evidence(gp.matern52(), state.params, scaled, state.times), evidence, rtol=1e-8)
    assert np.isfinite(info.log_density)


def test_a_message_is_all_that_a_curve_says():
    """log N(y; 1 f, cov) − log N(value; f, noise) is the same for every f."""
    root = RNG.normal(size=(3, 3))
    cov, y, mask = root @ root.T + np.eye(3), RNG.normal(size=3), np.array([True, False, True])
    found = message(jnp.asarray(cov), jnp.asarray(y), jnp.asarray(mask))
    small, values = cov[np.ix_(mask, mask)], y[mask]
    for f in (-1.0, 0.0, 2.5):
        away = values - f
        whole = -0.5 * (away @ np.linalg.solve(small, away) + np.linalg.slogdet(2.0 * np.pi * small)[1])
        single = -0.5 * ((float(found.value) - f) ** 2 / float(found.noise) + np.log(2.0 * np.pi * float(found.noise)))
        np.testing.assert_allclose(whole - single, found.rest, rtol=1e-10)


# Power laws


@pytest.mark.slow
def test_power_laws_without_noise_are_continued():
    """From three of five checkpoints, to a fifth of what is left to fall: each network has a power of its own, unsure yet."""
    model = surrogates.power_law()
    fit = jax.jit(model.fit)
    seen = np.array([5, 5, 5, 5, 5, 3, 3, 3, 3, 3])
    data, state = data_of(seen), model.init(12, 2, jnp.asarray(TIMES))
    for i in range(10):
        state, _ = fit(jax.random.key(i), data, state)
    draws = model.sample(jax.random.key(1), state, jnp.asarray(X), Known(data.y[:N], data.mask[:N]), DRAWS)
    left = Y[5:, 2] - Y[5:, -1]
    error = np.abs(np.asarray(draws[:, 5:, -1].mean(axis=0)) - Y[5:, -1])
    assert np.all(error < 0.2 * left)
