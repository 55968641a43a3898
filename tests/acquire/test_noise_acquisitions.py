"""Acquisitions for noisy evaluations, against brute-force averages over draws."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy.stats import norm

import bonas
from bonas import acquire, surrogates
from bonas.acquire.knowledge import log_expected_fall
from bonas.gp import matern52
from bonas.search.bayesian import make_context as context_of
from bonas.search.observations import add_observation, add_pending, empty_observations
from bonas.search.output_scales import ScaledFit

KEY = jax.random.key(0)
SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
X = SPACE.sample(jax.random.key(1), 6)
Y = np.sin(7.0 * np.asarray(X[:, 0])) + np.asarray(X[:, 1])
PENDING = jnp.array([[0.5, 0.4], [0.7, 0.75]])
POINTS = jnp.array([[0.1, 0.2], [0.55, 0.4], [0.8, 0.1], [0.3, 0.9]])


def make_context(noise, pending=(), capacity=10, known=None):
    """Return the context after six evaluations, with fixed hyperparameters."""
    model = surrogates.gp(matern52(), noise=noise)
    record = empty_observations(capacity, 2)
    for x, y in zip(X, Y - Y.mean(), strict=True):
        record = add_observation(record, bonas.Observation(x, y))
    for x in pending:
        record = add_pending(record, x)
    data = record.data
    if known is not None:
        data = data._replace(noise=jnp.zeros(capacity).at[:6].set(known))
    state = model.update(data, model.init(capacity, 2, 1))
    return context_of(
        model,
        ScaledFit(data, state, None, None, None),
        record._replace(data=data),
        maximizer=acquire.random_candidates(SPACE, candidates=40),
        pending=acquire.believer,
        key=KEY,
    )


def score_of(acquisition, context, points=POINTS):
    return jax.jit(lambda x: acquisition.score(KEY, context, ())[0](x))(points)


# Noisy expected improvement


@pytest.mark.parametrize(
    ("noise", "pending"),
    [
        (0.1, PENDING),
        pytest.param(1e-6, PENDING, marks=pytest.mark.slow),
        pytest.param(1e-6, (), marks=pytest.mark.slow),
        pytest.param(1.0, (), marks=pytest.mark.slow),
    ],
)
def test_noisy_ei_is_the_improvement_over_joint_draws(noise, pending):
    """100,000 draws in NumPy, and 4096 of the acquisition; five standard errors of the latter."""
    context = make_context(noise, pending)
    at = jnp.concatenate([X, jnp.asarray(pending).reshape(-1, 2), POINTS])
    mean = np.asarray(context.model.predict(context.model_state, at).mean[0])
    cov = np.asarray(context.model.covariance(context.model_state, at, at)[0])
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(mean, cov, size=100_000, method="eigh")
    k = len(POINTS)
    gains = np.maximum(draws[:, :-k].min(axis=1, keepdims=True) - draws[:, -k:], 0.0)
    found = np.exp(score_of(acquire.noisy_ei(4096), context))
    error = gains.std(axis=0) / np.sqrt(4096)
    assert (abs(found - gains.mean(axis=0)) < 5 * error + 1e-12).all()


def test_noisy_ei_without_noise_is_log_ei():
    context = make_context(0.0)
    expected = acquire.log_ei(*context.predict(POINTS), context.best)
    found = score_of(acquire.noisy_ei(8), context)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_failed_points_are_not_drawn():
    """Their assumed value, here the lowest, is not the minimum."""
    context = make_context(0.1)
    low = context.data._replace(y=context.data.y.at[0].set(-9.0))
    state = context.model.update(low, context.model_state)
    context = replace(context, data=low, model_state=state, fantasy_state=state)
    failed = replace(context, failed=jnp.zeros(10, bool).at[0].set(True))
    drawn, free = (score_of(acquire.noisy_ei(64), each) for each in (context, failed))
    assert (free > drawn + 1.0).all()


# Knowledge gradient


@pytest.mark.parametrize("seed", range(4))
def test_the_expected_fall_of_the_lowest_line_is_exact(seed):
    """Against the trapezoidal rule in NumPy, with repeated and parallel lines."""
    rng = np.random.default_rng(seed)
    heights, slopes = rng.normal(size=(2, 7)) * [[1.0], [0.5]]
    heights = np.concatenate([heights, heights[:2], heights[:1] + 0.1])
    slopes = np.concatenate([slopes, slopes[:2], slopes[:1]])
    z = np.linspace(-12.0, 12.0, 1_000_001)
    lines = heights[:, None] + slopes[:, None] * z[None]
    gain = lines[heights.argmin()] - lines.min(axis=0)
    expected = (gain * norm.pdf(z)).sum() * (z[1] - z[0])
    found = np.exp(log_expected_fall(jnp.asarray(heights), jnp.asarray(slopes)))
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("rise", [1.0, 30.0, 1000.0])
def test_the_logarithm_of_a_small_fall_is_that_of_expected_improvement(rise):
    """Of two lines; the second is rise above the first, in standard deviations."""
    found = log_expected_fall(jnp.array([0.0, rise]), jnp.array([0.0, -1.0]))
    np.testing.assert_allclose(found, acquire.log_h(-rise), rtol=1e-14)


def test_no_fall_is_expected_of_parallel_lines():
    assert log_expected_fall(jnp.array([0.0, 1.0]), jnp.ones(2)) == -jnp.inf


def test_the_gradient_of_the_expected_fall_is_that_of_differences():
    rng = np.random.default_rng(0)
    lines = jnp.asarray(rng.normal(size=(2, 9)))

    def fall(lines):
        return log_expected_fall(lines[0], lines[1])

    check_grads(jax.jit(fall), (lines,), order=1, modes=["rev"], rtol=1e-5)


@pytest.mark.parametrize(
    ("known", "pending"),
    [
        (0.2, PENDING[:1]),
        pytest.param(None, PENDING[:1], marks=pytest.mark.slow),
        pytest.param(None, (), marks=pytest.mark.slow),
    ],
)
def test_knowledge_gradient_is_the_fall_after_an_evaluation(pending, known):
    """Average of the lowest mean after 2001 outcomes at a point, which `update` learns."""
    context = make_context(0.1, pending, known=known)
    acquisition = acquire.knowledge_gradient(12)
    support = acquisition._support(KEY, context)
    model, state, data = context.model, context.fantasy_state, context.data
    if len(pending):
        values = model.predict(context.model_state, data.x).mean[0]
        data = acquire.assume_values(data, context.pending, values)
    total = 0.1 + (known or 0.0)
    z = jnp.linspace(-8.0, 8.0, 2001)
    weight = jax.scipy.stats.norm.pdf(z) * (z[1] - z[0])

    @jax.jit
    def fall(x):
        at = jnp.concatenate([support, x[None]])
        now = model.predict(state, at)
        outcomes = now.mean[0, -1] + z * jnp.sqrt(now.std[0, -1] ** 2 + total)

        def lowest(y):
            more = bonas.data.append(data, x, y)
            if known is not None:
                more = more._replace(noise=more.noise.at[data.size].set(known))
            return model.predict(model.update(more, state), at).mean.min()

        later = jax.lax.map(lowest, outcomes, batch_size=100)
        return (weight * (now.mean.min() - later)).sum()

    found = np.exp(score_of(acquisition, context))
    np.testing.assert_allclose(found, jax.lax.map(fall, POINTS), rtol=2e-3, atol=3e-6)


def test_knowledge_gradient_values_less_what_noise_hides():
    quiet, loud = (make_context(0.05, known=known) for known in (0.0, 0.0))
    loud = replace(loud, data=loud.data._replace(noise=jnp.full(10, 3.0)))
    acquisition = acquire.knowledge_gradient(12)
    assert (score_of(acquisition, loud) < score_of(acquisition, quiet)).all()


# Both


@pytest.mark.parametrize(
    "acquisition", [acquire.noisy_ei(16), acquire.knowledge_gradient(8)], ids=str
)
def test_contents_of_unused_rows_change_nothing(acquisition):
    context = make_context(0.1)
    dirty = context.data._replace(y=context.data.y.at[8].set(7.0))
    np.testing.assert_array_equal(
        score_of(acquisition, replace(context, data=dirty)),
        score_of(acquisition, context),
    )


@pytest.mark.parametrize(
    "acquisition", [acquire.noisy_ei(16), acquire.knowledge_gradient(8)], ids=str
)
def test_scores_have_finite_gradients_at_an_evaluated_point(acquisition):
    context = make_context(0.1)
    slope = jax.jit(
        jax.grad(lambda x: acquisition.score(KEY, context, ())[0](x[None])[0])
    )
    assert jnp.isfinite(slope(X[0])).all()
    assert jnp.isfinite(slope(POINTS[0])).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "acquisition", [acquire.noisy_ei(16), acquire.knowledge_gradient(8)], ids=str
)
def test_scores_are_the_same_under_vmap(acquisition):
    def scores(noise):
        return acquisition.score(KEY, make_context(noise), ())[0](POINTS)

    levels = jnp.array([0.01, 0.5])
    np.testing.assert_allclose(
        jax.jit(jax.vmap(scores))(levels),
        jnp.stack([jax.jit(scores)(noise) for noise in levels]),
        rtol=1e-6,
    )


@pytest.mark.slow
def test_batches_of_several_runs_are_one_program():
    """Pending points within a batch, hyperparameter samples, and `vmap` over noise and keys."""
    acquisitions = acquire.noisy_ei(8), acquire.knowledge_gradient(8)

    def points(noise, key, acquisition):
        search = bonas.bayes(
            SPACE,
            surrogate=surrogates.gp(matern52(), noise=noise),
            acquisition=acquisition,
            maximizer=acquire.random_candidates(SPACE, candidates=50),
            initial=2,
            batch=2,
            output="plain",
        )
        return bonas.run(search, lambda key, u: u.sum(), key, 6).x

    for acquisition in acquisitions:
        many = jax.vmap(lambda noise, key, a=acquisition: points(noise, key, a))
        x = jax.jit(many)(jnp.array([0.01, 0.5]), jax.random.split(KEY, 2))
        assert all(len(np.unique(each, axis=0)) == 6 for each in x)


def test_wrong_settings_are_refused():
    with pytest.raises(
        ValueError, match="draws must be an integer of at least 1; got 0"
    ):
        acquire.noisy_ei(0)
    with pytest.raises(
        ValueError, match="points must be an integer of at least 1; got 0"
    ):
        acquire.knowledge_gradient(0)
