"""Batches whose points are chosen together."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.acquire import joint_ei, log_ei, log_q_ei, q_ei
from bonas.search.bayesian import make_context as context_of
from bonas.search.observations import add_observation, empty_observations
from bonas.search.output_scales import ScaledFit

KEY = jax.random.key(0)
SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
COV = jnp.array([[1.0, 0.3, 0.1], [0.3, 0.5, 0.2], [0.1, 0.2, 0.8]])


@pytest.mark.parametrize("row", range(4))
def test_joint_improvement_agrees_with_quadrature(row, reference):
    """The reference maximizes, so signs change; five standard errors of 100,000 draws."""
    case = reference("acquisition")["qEI_q2_maximization"][row]
    sd, rho = np.array(case["sd"]), case["rho"]
    cov = jnp.asarray(np.outer(sd, sd) * np.array([[1.0, rho], [rho, 1.0]]))
    mean = -jnp.asarray(case["mean"], float)
    found = log_q_ei(mean, cov, -case["best"], jax.random.normal(KEY, (100_000, 2)))
    # the variance is at most that of q-EI by draws: the reference's own were a million
    error = case["mc_se"] * 1000 / np.sqrt(100_000)
    assert abs(jnp.exp(found) - case["qEI"]) < 5 * error


def test_of_one_point_it_is_the_closed_form():
    found = log_q_ei(jnp.array([0.2]), COV[:1, :1], 0.1, jnp.zeros((1, 1)))
    np.testing.assert_allclose(found, log_ei(jnp.array([[0.2]]), jnp.ones((1, 1)), 0.1))


@pytest.mark.slow
def test_the_gradient_is_right_and_finite_where_the_improvement_underflows():
    normals = jax.random.normal(KEY, (64, 3))
    mean = jnp.array([0.1, 0.3, -0.2])

    def score(mean):
        return log_q_ei(mean, COV, 0.0, normals)

    slope = jax.grad(score)(mean)
    for i in range(3):
        move = jnp.zeros(3).at[i].set(1e-6)
        numeric = (score(mean + move) - score(mean - move)) / 2e-6
        np.testing.assert_allclose(slope[i], numeric, rtol=1e-6)
    far = mean + 60.0
    assert q_ei(far, COV, 0.0, normals) == 0.0
    assert jnp.exp(score(far)) == 0.0
    slope = jax.grad(score)(far)
    assert jnp.isfinite(slope).all()
    assert slope.sum() < -1.0  # lower means are better


def points_of(acquisition, context, n):
    """The points (n, d) that an acquisition selects, and the last score."""
    select = jax.jit(lambda memory: acquisition.select(KEY, context, memory))
    memory = acquisition.init(*context.data.x.shape)
    chosen = []
    for _ in range(n):
        selection, memory = select(memory)
        chosen.append(selection.x)
    return jnp.stack(chosen), selection.score


@pytest.mark.slow
def test_two_points_between_equal_ends_are_symmetric():
    """One after the other, the first point is the middle, which is not in the best pair."""
    space = bonas.Space(a=bonas.Float(0.0, 1.0))
    model = surrogates.gp(gp.matern52())
    record = empty_observations(4, 1)
    for end in (0.0, 1.0):
        record = add_observation(record, bonas.Observation(jnp.array([end]), 0.0))
    state = model.update(record.data, model.init(4, 1, 1))
    fit = ScaledFit(record.data, state, None, None, None)
    context = context_of(
        model,
        fit,
        record,
        maximizer=acquire.gradient_ascent(space),
        pending=acquire.believer,
        key=KEY,
    )
    (greedy, before), (together, after) = (
        points_of(joint_ei(2, steps=steps).adapt(space), context, 2)
        for steps in (0, 40)
    )
    assert abs(greedy[0, 0] - 0.5) < 0.01
    assert abs(greedy.sum() - 1.0) > 0.1
    assert abs(together.sum() - 1.0) < 0.02
    assert 0.2 < together.min() < 0.45
    assert after > before


@pytest.mark.slow
def test_the_reported_score_is_what_the_batch_adds_to_the_pending_points(
    make_context,
):
    pending = jnp.array([[0.5, 0.4], [0.7, 0.75]])
    context = make_context(pending=pending)
    moved, score = points_of(joint_ei(3).adapt(SPACE), context, 3)
    posterior = jax.tree.map(lambda leaf: leaf[0], context.model_state.posterior)
    normals = jax.random.normal(jax.random.key(6), (200_000, 5))
    mean, cov = gp.joint(posterior, jnp.concatenate([pending, moved]))
    total = q_ei(mean, cov, context.best[0], normals)
    alone = q_ei(mean[:2], cov[:2, :2], context.best[0], normals[:, :2])
    # 256 draws of an expectation bounded by one deviation
    bound = float(jnp.sqrt(jnp.diagonal(cov).max())) / np.sqrt(256)
    assert abs(jnp.exp(score) - (total - alone)) < 5 * bound


@pytest.mark.slow
def test_a_batch_is_used_up_unless_something_was_evaluated(make_context):
    acquisition = joint_ei(2, steps=2).adapt(SPACE)
    select = jax.jit(
        lambda context_size, memory: acquisition.select(
            KEY,
            replace(
                context := make_context(),
                data=context.data._replace(size=context_size),
            ),
            memory,
        )
    )
    first, memory = select(6, acquisition.init(10, 2))
    assert int(memory.used) == 1
    second, both_used = select(6, memory)
    np.testing.assert_array_equal(jnp.stack([first.x, second.x]), memory.points)
    assert int(both_used.used) == 2
    _, third = select(6, both_used)
    assert int(third.used) == 1
    _, fresh = select(7, memory)
    assert int(fresh.used) == 1


@pytest.mark.slow
def test_a_search_evaluates_batches_chosen_together():
    space = bonas.Space(
        depth=bonas.Int(1, 2),
        a=bonas.Float(0.0, 1.0),
        b=bonas.Float(0.0, 1.0, when={"depth": (">=", 2)}),
    )
    search = bonas.bayes(
        space,
        batch=3,
        initial=3,
        output="plain",
        acquisition=joint_ei(3, draws=16, steps=5),
        maximizer=acquire.random_candidates(space, candidates=60),
    )
    history = bonas.run(search, lambda key, u: ((u - 0.4) ** 2).sum(), KEY, 12)
    space.check(history.x, exists=True)
    assert len(np.unique(history.x, axis=0)) == 12
    assert jnp.isfinite(history.info.acquisition[3:]).all()
    # the score of a batch is that of all its points
    scores = np.asarray(history.info.acquisition).reshape(4, 3)
    assert (scores[1:] == scores[1:, :1]).all()


def test_a_search_with_another_batch_is_refused():
    nested = acquire.hedge(bonas.log_ei, joint_ei(2))
    for acquisition in (joint_ei(2), nested):
        with pytest.raises(ValueError, match="plan batches of 3 points"):
            bonas.bayes(SPACE, acquisition=acquisition, batch=3)
    bonas.bayes(SPACE, acquisition=joint_ei(2), batch=2)
    bonas.bayes(SPACE, acquisition=joint_ei(2))  # one point at a time


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="batch and draws must be at least 1"):
        joint_ei(0)
    with pytest.raises(ValueError, match="steps must be at least 0"):
        joint_ei(2, steps=-1)
