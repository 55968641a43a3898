from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import gp
from bonas.acquire import (
    batch_ei,
    believer,
    closed_form_acquisition,
    constant_liar,
    ei,
    log_ei,
    posterior_sample,
    q_ei,
    thompson,
    under_sampled,
)

KEY = jax.random.key(0)
PENDING = jnp.array([[0.5, 0.4], [0.7, 0.75]])


@pytest.mark.parametrize("row", range(4))
def test_q_ei_agrees_with_quadrature(row, reference):
    """The reference maximizes, so signs change; 400,000 draws, five standard errors."""
    case = reference("acquisition")["qEI_q2_maximization"][row]
    sd, rho = np.array(case["sd"]), case["rho"]
    cov = jnp.asarray(np.outer(sd, sd) * np.array([[1.0, rho], [rho, 1.0]]))
    normals = jax.random.normal(KEY, (400_000, 2))
    found = q_ei(-jnp.asarray(case["mean"], float), cov, -case["best"], normals)
    # the reference's own draws were a million
    error = case["mc_se"] * 1000 / np.sqrt(400_000)
    assert abs(found - case["qEI"]) < 5 * error


@pytest.mark.slow
def test_q_ei_of_one_point_is_expected_improvement():
    normals = jax.random.normal(KEY, (400_000, 1))
    found = q_ei(jnp.array([0.2]), jnp.array([[0.49]]), 0.1, normals)
    expected = ei(jnp.array([[0.2]]), jnp.array([[0.7]]), 0.1)[0]
    assert abs(found - expected) < 5 * 0.7 / np.sqrt(400_000)


@pytest.mark.slow
def test_the_same_draws_make_q_ei_differentiable():
    normals = jax.random.normal(KEY, (1000, 2))
    cov = jnp.array([[1.0, 0.3], [0.3, 1.0]])
    slope = jax.grad(lambda mean: q_ei(mean, cov, 0.0, normals))(jnp.zeros(2))
    step = 1e-6
    for i in range(2):
        move = jnp.zeros(2).at[i].set(step)
        numeric = (q_ei(move, cov, 0.0, normals) - q_ei(-move, cov, 0.0, normals)) / (
            2 * step
        )
        np.testing.assert_allclose(slope[i], numeric, rtol=1e-6)


@pytest.mark.slow
def test_without_pending_points_the_batch_acquisition_is_log_ei(make_context, points):
    context = make_context()
    found = batch_ei(8).score(KEY, context, ())[0](points)
    expected = closed_form_acquisition(log_ei).score(KEY, context, ())[0](points)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
def test_the_batch_acquisition_is_what_a_point_adds_to_q_ei(make_context, points):
    """Compare with q-EI with and without the point, by 400,000 joint draws."""
    context = make_context(pending=PENDING)
    posterior = jax.tree.map(lambda leaf: leaf[0], context.model_state.posterior)
    gains = jnp.exp(batch_ei(4096).score(KEY, context, ())[0](points[:3]))
    normals = jax.random.normal(jax.random.key(5), (400_000, 3))
    for point, gain in zip(points[:3], gains, strict=True):
        mean, cov = gp.joint(posterior, jnp.concatenate([PENDING, point[None]]))
        total = q_ei(mean, cov, context.best[0], normals)
        alone = q_ei(mean[:2], cov[:2, :2], context.best[0], normals[:, :2])
        # the difference of two means over common draws, and 4,096 draws of an expectation bounded
        # by one deviation
        assert abs(gain - (total - alone)) < 5 * float(jnp.sqrt(cov[2, 2])) / np.sqrt(
            4096
        )


def test_believer_and_constant_liar_return_the_values_they_are_named_for(make_context):
    context = make_context(pending=PENDING)
    seen = (context.model, context.model_state, context.data)
    np.testing.assert_allclose(
        believer(KEY, *seen),
        context.model.predict(context.model_state, context.data.x).mean[0],
        rtol=1e-12,
    )
    y = np.asarray(context.data.y[:6, 0])
    for lie, said in (("best", y.min()), ("mean", y.mean()), ("worst", y.max())):
        np.testing.assert_allclose(constant_liar(lie)(KEY, *seen), said, rtol=1e-12)
    assert constant_liar("best") == constant_liar("best")
    with pytest.raises(ValueError, match="lie must be"):
        constant_liar("median")


def test_dreamer_draws_from_the_posterior(make_context):
    """2,000 dreams of two pending points: mean and deviation within five standard errors."""
    context = make_context(pending=PENDING)
    seen = (context.model, context.model_state, context.data)
    dreams = jax.vmap(lambda key: posterior_sample(key, *seen))(
        jax.random.split(KEY, 2000)
    )[:, 6:8]
    mean, std = context.model.predict(context.model_state, PENDING)
    assert (jnp.abs(dreams.mean(axis=0) - mean[0]) < 5 * std[0] / np.sqrt(2000)).all()
    assert (jnp.abs(dreams.std(axis=0) / std[0] - 1.0) < 5 / np.sqrt(4000)).all()


def test_assumed_values_remove_the_uncertainty_at_pending_points(make_context):
    context = make_context(pending=PENDING)
    _, before = context.model.predict(context.model_state, PENDING)
    _, after = context.predict(PENDING)
    assert (after < 0.2 * before).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "acquisition",
    [thompson(), under_sampled(draws=3), under_sampled(draws=3, corrected=True)],
)
def test_draws_make_the_points_of_a_batch_differ(acquisition, make_context):
    context = make_context()
    picks = jnp.stack(
        [acquisition.select(key, context, ())[0].x for key in jax.random.split(KEY, 6)]
    )
    assert len(np.unique(np.asarray(picks), axis=0)) > 1


@pytest.mark.slow
def test_thompson_sampling_picks_a_point_as_often_as_it_is_the_best():
    """Of two independent candidates with means 0 and 0.5, the first wins with Φ(0.5/√2).

    4,000 draws through the sampler of the model; five standard errors.
    """
    import scipy.stats

    from bonas.acquire import Context, choose

    def sample(key, state, x, k):
        return jnp.array([[0.0, 0.5]]) + jax.random.normal(key, (k, 2))

    nothing = dict.fromkeys(
        (
            "model_state",
            "fantasy_state",
            "finite",
            "best",
            "data",
            "pending",
            "failed",
            "cost",
            "maximize",
        )
    )
    two = jnp.array([[0.0], [1.0]])
    context = Context(
        model=SimpleNamespace(sample=sample),
        candidates=lambda key: two,
        choose=lambda points, scores: choose(
            points, scores, jnp.full((1, 1), 0.5), jnp.array([True])
        ),
        **nothing,
    )
    picked = jax.vmap(lambda key: thompson().select(key, context, ())[0].x[0])(
        jax.random.split(KEY, 4000)
    )
    expected = scipy.stats.norm.cdf(0.5 / np.sqrt(2.0))
    assert abs((picked == 0.0).mean() - expected) < 5 * np.sqrt(
        expected * (1 - expected) / 4000
    )


def test_under_sampling_needs_two_draws():
    with pytest.raises(ValueError, match="draws must be at least 2"):
        under_sampled(draws=1)
