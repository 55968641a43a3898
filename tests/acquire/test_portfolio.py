import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import gp
from bonas.acquire import closed, greedy, hedge, lcb, log_ei, top_two
from bonas.acquire.acquisition import pick
from bonas.acquire.portfolio import improvement_over

KEY = jax.random.key(0)


@pytest.mark.slow
def test_the_challenger_is_scored_by_its_improvement_over_the_leader(make_outlook, points):
    """Against 200,000 joint draws, within five standard errors."""
    outlook = make_outlook()
    first = jnp.array([0.55, 0.7])
    posterior = jax.tree.map(lambda leaf: leaf[0], outlook.known.posterior)
    mean, cov = gp.joint(posterior, jnp.concatenate([first[None], points]))
    draws = np.random.default_rng(0).multivariate_normal(mean, cov, 200_000, method="cholesky")
    gain = np.maximum(draws[:, :1] - draws[:, 1:], 0.0)
    error = gain.std(axis=0) / np.sqrt(len(gain))
    score = improvement_over(outlook, first)(points)
    np.testing.assert_array_less(np.abs(np.exp(score) - gain.mean(axis=0)), 5 * error)


@pytest.mark.slow
def test_beta_of_one_is_the_leader_and_of_zero_the_challenger(make_outlook):
    outlook = make_outlook()
    leader, _ = pick(top_two(beta=1.0), KEY, outlook, ())
    challenger, _ = pick(top_two(beta=0.0), KEY, outlook, ())
    first_key = jax.random.split(KEY, 3)[0]
    alone, _ = pick(closed(log_ei), first_key, outlook, ())
    np.testing.assert_array_equal(leader.x, alone.x)
    assert jnp.abs(challenger.x - leader.x).max() > 1e-3


def test_a_beta_that_is_no_probability_is_refused():
    with pytest.raises(ValueError, match="beta is a probability"):
        top_two(beta=1.5)


@pytest.mark.slow
def test_members_gain_what_the_model_now_thinks_of_their_nominees(make_outlook):
    outlook = make_outlook()
    acquisition = hedge(log_ei, greedy, lcb)
    _, first = acquisition.pick(KEY, outlook, acquisition.init(10, 2))
    np.testing.assert_array_equal(first.gains, 0.0)
    chosen, second = acquisition.pick(jax.random.key(1), outlook, first)
    mean, _ = outlook.predict(first.nominees)
    np.testing.assert_allclose(second.gains, -mean[0], rtol=1e-12)
    assert (second.nominees == chosen.x[None, :]).all(axis=1).any()


def test_a_member_that_gained_far_more_is_followed(make_outlook):
    outlook = make_outlook()
    acquisition = hedge(log_ei, greedy)
    memory = acquisition.init(10, 2)._replace(gains=jnp.array([0.0, 500.0]))
    chosen, later = acquisition.pick(KEY, outlook, memory)
    np.testing.assert_array_equal(chosen.x, later.nominees[1])
