import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.search import make_observation, random

SPACE = bonas.Space(
    depth=bonas.Int(1, 4),
    rate=bonas.Float(1e-4, 1.0, log=True),
    kind=bonas.Choice("x", "y"),
    width=bonas.Int(1, 64, when={"depth": (">=", 2)}),
)
BY_CHANCE = random(SPACE)


def loss(config):
    return (
        (np.log10(config["rate"]) + 2.0) ** 2
        + (config["kind"] == "x")
        + abs(config["depth"] - 2)
    )


def quickly(objective, trials=8, **settings):
    return bonas.minimize(
        objective,
        SPACE,
        **{"trials": trials, "search": BY_CHANCE, "progress": False} | settings,
    )


def test_the_best_evaluation_is_returned_with_all_of_them():
    result = quickly(loss)
    values = [loss(each.config) for each in result.evaluations]
    assert [each.value for each in result.evaluations] == values
    assert result.value == min(values)
    assert result.config == result.evaluations[int(np.argmin(values))].config


def test_configurations_hold_what_is_active_and_nothing_else():
    for each in quickly(loss).evaluations:
        assert ("width" in each.config) == (each.config["depth"] >= 2)


def test_the_seed_decides_the_search():
    first, again, other = (quickly(loss, seed=seed).evaluations for seed in (1, 1, 2))
    assert [each.config for each in first] == [each.config for each in again]
    assert [each.config for each in first] != [each.config for each in other]


@pytest.mark.parametrize(
    "seed", [-1, 2**63, 99999999999999999999, 1.0, "1", None, True]
)
def test_other_seeds_than_integers_from_0_to_2_63_are_refused(seed):
    with pytest.raises(
        ValueError, match=r"seed must be an integer from 0 to 2\^63 - 1"
    ):
        quickly(loss, seed=seed)


@pytest.mark.parametrize("seed", [0, 2**63 - 1, np.int64(7), jnp.asarray(7)])
def test_integers_of_any_type_are_seeds(seed):
    result = quickly(loss, trials=1, seed=seed)
    assert result.evaluations[0].config == quickly(loss, 1, seed=int(seed)).config


@pytest.mark.parametrize("cost", [1.0, 1e300])
@pytest.mark.filterwarnings("error")
def test_observations_have_the_precision_of_the_point_without_a_warning(cost):
    x = jnp.zeros(2, jnp.float32)
    fits, too_large = (make_observation(x, y, cost, ok=True) for y in (3e38, -1e300))
    assert {leaf.dtype for leaf in (fits.x, fits.y, fits.cost)} == {x.dtype}
    assert fits.y == jnp.float32(3e38)
    assert jnp.isnan(too_large.y)
    assert jnp.isfinite(too_large.cost)


def test_exceptions_to_catch_are_failures_and_the_rest_is_raised():
    def breaks(config):
        if config["depth"] > 2:
            raise MemoryError("too deep")
        return loss(config)

    result = quickly(breaks, catch=(MemoryError,))
    failed = [each for each in result.evaluations if each.config["depth"] > 2]
    assert failed
    assert all(
        each.error == "MemoryError: too deep" and np.isnan(each.value)
        for each in failed
    )
    assert result.config["depth"] <= 2
    assert int(result.state.observations.failed.sum()) == len(failed)
    assert f"{len(failed)} of them failed" in str(result)
    with pytest.raises(MemoryError):
        quickly(breaks)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_where_everything_fails_there_is_no_best(value):
    result = quickly(lambda config: value)
    assert result.config is None
    assert result.value == float("inf")
    assert all("the value was" in each.error for each in result.evaluations)


def test_an_interrupt_returns_what_was_found():
    calls = []

    def interrupted(config):
        calls.append(config)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return loss(config)

    assert len(quickly(interrupted).evaluations) == 3


def test_the_bar_shows_the_best_so_far(capsys):
    result = quickly(loss, progress=True)
    shown = capsys.readouterr().out
    assert "8/8" in shown
    assert f"best {result.value:.6g}" in shown


def test_seconds_are_the_cost_of_a_trial():
    result = quickly(loss)
    np.testing.assert_allclose(
        result.state.observations.cost,
        [each.seconds for each in result.evaluations],
        rtol=1e-12,
    )


def test_an_objective_cannot_change_the_configuration_it_was_given():
    def greedy(config):
        config.clear()
        return 1.0

    assert all(each.config for each in quickly(greedy).evaluations)


@pytest.mark.slow
def test_the_default_finds_the_best_of_a_conditional_space():
    result = bonas.minimize(loss, SPACE, trials=20, progress=False)
    assert result.config["depth"] == 2
    assert result.config["kind"] == "y"
    assert result.value < 0.05


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="trials must be an integer of at least 1"):
        quickly(loss, trials=0)
    with pytest.raises(
        ValueError, match=r"expected a search of the space .*; got one of"
    ):
        quickly(loss, search=random(bonas.Space(a=bonas.Int(0, 1))))
    with pytest.raises(TypeError):
        quickly(lambda config: jnp.zeros(2))


def test_a_search_in_the_place_of_the_space_is_refused():
    with pytest.raises(ValueError, match="search as search="):
        bonas.minimize(
            lambda config: 0.0,
            bonas.search.random(bonas.Space(x=bonas.Float(0.0, 1.0))),
            progress=False,
        )


def test_an_objective_without_a_return_value_is_refused():
    space = bonas.Space(x=bonas.Float(0.0, 1.0))
    with pytest.raises(TypeError, match="the objective must return a number; got None"):
        bonas.minimize(
            lambda config: None,
            space,
            trials=1,
            search=bonas.search.random(space),
            progress=False,
        )


def test_a_group_of_exceptions_is_a_failure_if_each_is():
    def breaks(config):
        raise BaseExceptionGroup("two", problems)

    problems = [MemoryError("much"), ExceptionGroup("one", [OSError("lost")])]
    result = quickly(breaks, catch=(MemoryError, OSError))
    assert "two" in result.evaluations[0].error
    with pytest.raises(BaseExceptionGroup, match="two"):
        quickly(breaks, catch=(MemoryError,))
    problems.append(KeyboardInterrupt())
    with pytest.raises(BaseExceptionGroup, match="two"):
        quickly(breaks, catch=(Exception,))


def test_an_objective_may_return_its_cost():
    result = quickly(lambda config: (loss(config), 3.0 + config["depth"]))
    costs = [3.0 + each.config["depth"] for each in result.evaluations]
    assert [each.cost for each in result.evaluations] == costs
    np.testing.assert_array_equal(result.state.observations.cost, costs)
    assert [each.value for each in result.evaluations] == [
        loss(each.config) for each in result.evaluations
    ]


@pytest.mark.parametrize("cost", [-1.0, np.inf])
def test_a_cost_is_finite_and_not_negative(cost):
    with pytest.raises(ValueError, match="must be finite and not negative; got"):
        quickly(lambda config: (0.0, cost))
    failed = quickly(lambda config: (0.0, cost), catch=(ValueError,))
    assert all("not negative" in each.error for each in failed.evaluations)
