"""Bayesian optimization on learning curves: its initial design, choices and fallbacks."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from curves.curve_table import (
    DIVERGING,
    SEARCHES,
    SMALL_BUDGET,
    SPACE,
    STEPS,
    TABLE,
    drive,
    run,
)

import bonas
from bonas.curves import CurveModel, curve_search, gpar, run_curves
from bonas.curves.training_record import is_complete
from bonas.search import FALLBACKS, Observation
from bonas.surrogates import FitInfo


@dataclass(frozen=True)
class ConstantModel(CurveModel):
    """A curve model that draws the same value everywhere."""

    value: float

    def init(self, capacity, d, times):
        return jnp.zeros(())

    def fit(self, key, data, state):
        yes = jnp.asarray(True)
        return state, FitInfo(jnp.zeros(()), yes, yes, jnp.zeros(()))

    def sample(self, key, state, x, observed, k):
        return jnp.full((k, *observed.y.shape), self.value)


@dataclass(frozen=True)
class FavoriteModel(ConstantModel):
    """A curve model whose i-th set of draws is least at network 5 i."""

    draws: int = 10

    def sample(self, key, state, x, observed, k):
        favorite = 5 * (jnp.arange(k) // self.draws)
        distance = jnp.abs(jnp.arange(len(x))[None, :] - favorite[:, None])
        noise = jnp.where(jnp.arange(k) % 2, 0.1, -0.1)[:, None]
        return jnp.broadcast_to(
            (distance + noise)[:, :, None] - 20.0, (k, *observed.y.shape)
        )


def test_the_networks_of_a_batch_are_distinct_and_the_design_comes_first():
    history = run(SEARCHES["published"], TABLE)
    for i in range(8):
        rows = np.asarray(SPACE.row(history.x[i]))[
            np.asarray(history.step[i]) >= 0
        ].reshape(-1, 4)
        assert all(len(set(batch)) == 4 for batch in rows)
        first = rows[0, :3]  # three initial networks, and one more to fill the batch
        assert all(np.array_equal(batch[:3], first) for batch in rows[:3])


@pytest.mark.slow
def test_a_thinned_design_continues_the_better_networks():
    """Six networks reach the first checkpoint, the best three the second, two the last."""
    search = curve_search(SPACE, STEPS, initial=6, draws=32)
    named, state, _ = drive(search, TABLE, 11)
    rows = [batch[0] for batch in named]
    first, second, third = rows[:6], rows[6:9], rows[9:]
    assert len(set(first)) == 6
    assert second == sorted(first, key=lambda row: TABLE[row, 0])[:3]
    assert third == sorted(second, key=lambda row: TABLE[row, 1])[:2]
    assert is_complete(state.record).sum() == 2


def test_a_thinned_design_continues_without_diverged_networks():
    """Half of the networks diverge; a complete one is found with every seed."""
    search = curve_search(SPACE, STEPS, initial=6, draws=32)
    for seed in range(3):
        _, state, _ = drive(search, DIVERGING, 18, seed)
        assert is_complete(state.record).any()


@pytest.mark.slow
def test_an_infinite_space_is_searched_by_random_candidates():
    space = bonas.Space(rate=bonas.Float(0.0, 1.0), kind=bonas.Choice("a", "b", "c"))

    def objective(key, x, step):
        return (x[0] - 0.3) ** 2 + 0.1 * x[1] + jnp.array([0.5, 0.1, 0.0])[step]

    search = curve_search(
        space, STEPS, variant="checkpoint", initial=3, draws=32, candidates=40
    )
    history = jax.jit(
        lambda key: run_curves(search, objective, STEPS, key, SMALL_BUDGET, networks=18)
    )(jax.random.key(0))
    assert history.best[-1] < 0.02
    assert (
        len(np.unique(np.asarray(history.x)[np.asarray(history.step) == 0], axis=0))
        == (history.step == 0).sum()
    )


@pytest.mark.parametrize("disjoint", [True, False])
def test_disjoint_draws_give_each_network_of_a_batch_its_own_set(disjoint):
    """Three sets favor networks 0, 5 and 10; one set favors the networks next to 0."""
    search = curve_search(
        SPACE,
        STEPS,
        model=FavoriteModel(0.0),
        variant="published",
        batch=3,
        draws=10,
        initial=3,
        disjoint=disjoint,
    )
    # the initial networks are trained to the end, then the first ones are chosen
    asked, _, _ = drive(search, TABLE, 4)
    left = [row for row in range(18) if row not in asked[0]]
    expected = []
    for favorite in (0, 5, 10) if disjoint else (0, 0, 0):
        expected.append(min(left, key=lambda row: abs(row - favorite)))
        left.remove(expected[-1])
    assert asked[3] == expected


@pytest.mark.parametrize("variant", ["rate", "checkpoint", "published"])
def test_scores_that_are_not_finite_are_reported_and_replaced_by_random_ones(variant):
    search = curve_search(
        SPACE,
        STEPS,
        model=ConstantModel(float("nan")),
        variant=variant,
        initial=2,
        thinning=1,
    )
    chosen = set()
    for seed in range(6):
        named, _, info = drive(search, TABLE, 7, seed)
        assert "scores were not finite: a random network" in FALLBACKS[info.fallback]
        assert info.random
        assert info.acquisition == -np.inf
        chosen.add(named[6][0])
    assert len(chosen) > 3
    # the initial networks need no model
    assert drive(search, TABLE, 6)[2].fallback == 0


def test_a_grown_state_asks_for_the_same_networks():
    """A larger capacity changes nothing: initial design, then model."""
    search = SEARCHES["default"]
    _, state, _ = drive(search, TABLE, 12)
    grown = search.grow(state, search.init(jax.random.key(0), 30))
    assert len(grown.record.pending) == 30
    key = jax.random.key(1)
    x, _, _ = jax.jit(search.ask)(key, state)
    again, _, _ = jax.jit(search.ask)(key, grown)
    np.testing.assert_array_equal(x, again)


def test_invalid_settings_are_refused():
    for steps in ((30, 10), (0, 10), (10, 10), ()):
        with pytest.raises(ValueError, match="steps must be"):
            curve_search(SPACE, steps)
    with pytest.raises(
        ValueError, match="the space has 18 networks, too few for batch=19"
    ):
        curve_search(SPACE, STEPS, batch=19)
    with pytest.raises(
        ValueError,
        match="acquisition of the variant 'checkpoint' must be one of ei, pi; got 'ucb'",
    ):
        curve_search(SPACE, STEPS, variant="checkpoint", acquisition="ucb")
    with pytest.raises(ValueError, match="variant must be one of"):
        curve_search(SPACE, STEPS, variant="thawed")
    with pytest.raises(ValueError, match="at least 1"):
        curve_search(SPACE, STEPS, initial=0)
    with pytest.raises(ValueError, match=r"got a GPAR: use curves\.autoregressive"):
        curve_search(SPACE, STEPS, model=gpar())
    with pytest.raises(ValueError, match=r"expected a curve model, .* got 'gpar'"):
        curve_search(SPACE, STEPS, model="gpar")


def test_a_checkpoint_out_of_order_is_refused():
    search = curve_search(SPACE, STEPS)
    one = jnp.asarray(1)
    observation = Observation(
        SPACE.points()[0], one * 1.0, one, one * 1.0, jnp.asarray(True)
    )
    with pytest.raises(ValueError, match=r"expected checkpoint 0 .*; got checkpoint 1"):
        search.tell(search.init(jax.random.key(0), 4), observation)
