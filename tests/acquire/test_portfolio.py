from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import gp
from bonas.acquire import closed_form_acquisition, greedy, hedge, lcb, log_ei, top_two
from bonas.acquire.portfolio import improvement_over

KEY = jax.random.key(0)


@pytest.mark.slow
def test_the_challenger_is_scored_by_its_improvement_over_the_leader(
    make_context, points
):
    """Against 200,000 joint draws, within five standard errors."""
    context = make_context()
    first = jnp.array([0.55, 0.7])
    posterior = jax.tree.map(lambda leaf: leaf[0], context.model_state.posterior)
    mean, cov = gp.joint(posterior, jnp.concatenate([first[None], points]))
    draws = np.random.default_rng(0).multivariate_normal(
        mean, cov, 200_000, method="cholesky"
    )
    gain = np.maximum(draws[:, :1] - draws[:, 1:], 0.0)
    error = gain.std(axis=0) / np.sqrt(len(gain))
    score = improvement_over(context, first)(points)
    np.testing.assert_array_less(np.abs(np.exp(score) - gain.mean(axis=0)), 5 * error)


@pytest.mark.slow
def test_beta_of_one_is_the_leader_and_of_zero_the_challenger(make_context):
    context = make_context()
    leader, _ = top_two(beta=1.0).select(KEY, context, ())
    challenger, _ = top_two(beta=0.0).select(KEY, context, ())
    first_key = jax.random.split(KEY, 3)[0]
    alone, _ = closed_form_acquisition(log_ei).select(first_key, context, ())
    np.testing.assert_array_equal(leader.x, alone.x)
    assert jnp.abs(challenger.x - leader.x).max() > 1e-3


def test_a_beta_that_is_no_probability_is_refused():
    with pytest.raises(ValueError, match="beta must be a probability"):
        top_two(beta=1.5)


@pytest.mark.slow
def test_members_gain_what_the_model_now_thinks_of_their_nominees(make_context):
    context = make_context()
    acquisition = hedge(log_ei, greedy, lcb)
    _, first = acquisition.select(KEY, context, acquisition.init(10, 2))
    np.testing.assert_array_equal(first.gains, 0.0)
    chosen, second = acquisition.select(jax.random.key(1), context, first)
    mean, _ = context.predict(first.nominees)
    np.testing.assert_allclose(second.gains, -mean[0], rtol=1e-12)
    assert (second.nominees == chosen.x[None, :]).all(axis=1).any()


def test_a_member_that_gained_far_more_is_followed(make_context):
    context = make_context()
    acquisition = hedge(log_ei, greedy)
    memory = acquisition.init(10, 2)._replace(gains=jnp.array([0.0, 500.0]))
    chosen, later = acquisition.select(KEY, context, memory)
    np.testing.assert_array_equal(chosen.x, later.nominees[1])


@pytest.mark.slow
def test_a_prediction_that_is_no_number_is_no_gain(make_context):
    context = make_context()
    lost = jax.tree.map(lambda leaf: leaf * jnp.nan, context.model_state)
    acquisition = hedge(log_ei, greedy)
    memory = acquisition.init(10, 2)._replace(started=jnp.asarray(True))
    _, later = acquisition.select(KEY, replace(context, model_state=lost), memory)
    np.testing.assert_array_equal(later.gains, 0.0)
