"""The regret of a search on a table, the halves of the problems, and the rule of choice."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from experiments.beyond import search_problems as problems
from experiments.beyond import search_report
from experiments.beyond.search_defaults import DEFAULT, Config
from experiments.beyond.search_problems import CHOOSE, LookUp

ROWS = np.array([[0.0], [0.5], [1.0]])
SPACE = bonas.TableSpace(bonas.Space(x=bonas.Float(0.0, 1.0)), ROWS)
TRAININGS = np.array([[1.0, 3.0], [5.0, 3.0], [0.0, 20.0]])  # means 2, 4, 10


def test_the_regret_is_that_of_the_incumbent_over_all_trainings():
    """The lowest value so far is 3, 1, 1, 0, of rows 1, 0, 0, 2; optimum 2, median 4."""
    case = problems.table_case("a", "kind", CHOOSE, LookUp(SPACE), TRAININGS)
    x = jnp.asarray(ROWS[[1, 0, 1, 2]])[None]
    history = SimpleNamespace(x=x, y=jnp.array([[3.0, 1.0, 5.0, 0.0]]))
    np.testing.assert_allclose(case.regret(history), [[1.0, 0.0, 0.0, 4.0]])


def test_a_lookup_draws_one_of_the_trainings_of_the_row():
    keys = jax.random.split(jax.random.key(0), 50)
    found = jax.vmap(LookUp(SPACE), (0, None, None))(
        keys, jnp.array([0.9]), jnp.asarray(TRAININGS)
    )
    assert set(np.asarray(found)) == {0.0, 20.0}


def test_networks_of_eight_layers_are_numbered_in_base_three():
    u = problems.MACRO_SPACE.encode(
        {f"layer{i}": digit for i, digit in enumerate("01201201")}
    )
    row = problems.LookUpMacro(problems.MACRO_SPACE).row(jnp.asarray(u))
    assert row == int("01201201", 3)


@pytest.mark.parametrize("name", problems.FUNCTION)
def test_no_random_point_is_below_the_optimum(name):
    case = problems.function_case(problems.FUNCTION[name], CHOOSE)
    u = case.space.sample(jax.random.key(1), 1000)
    values = jax.vmap(lambda row: case.objective(jax.random.key(0), row))(u)
    assert (np.asarray(values) >= case.optimum).all()


def test_no_problem_is_in_both_halves():
    choose, confirm = (
        {*problems.LCBENCH_SETS[part], *sets, *functions}
        for part, sets, functions in zip(
            problems.PARTS, Config.network_sets, Config.functions, strict=True
        )
    )
    assert not choose & confirm


@pytest.mark.parametrize(
    ("early", "late", "passes"),
    [(0.0, -1.0, True), (1.0, -1.0, False), (-1.0, 0.0, False), (-1.0, -1.0, True)],
    ids=["better late", "worse early", "better early only", "better"],
)
def test_a_variant_passes_if_it_is_better_late_and_not_worse_early(early, late, passes):
    default = np.full((10, 4), 5.0)
    regrets = {DEFAULT: default, "new": default + np.array([0.0, early, 0.0, late])}
    config = Config(early=2, steps=4, at=(2, 4), variants=("new",), resamples=10)
    found = {"a": {"kind": "tables", "regrets": regrets}}
    assert search_report.judge(config, found)["new"]["passes"] == passes
