"""Summaries of variational networks: known answers, and rows kept apart by settings."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import common
from experiments.hutchinson import deterministic_report as ways
from experiments.hutchinson import effects as hutchinson_effects
from experiments.hutchinson import effects_report as effects
from experiments.hutchinson import modes as groups


def test_the_best_on_the_way_is_that_of_the_mean_curve_and_losses_are_in_pairs():
    found = effects.best_checkpoint(
        (10, 20, 40), np.array([[1.0, 4.0, 3.0], [2.0, 6.0, 3.0]])
    )
    assert found == {
        "best": 5.0,
        "after": 20,
        "lost": 2.0,
        "lost_error": pytest.approx(1.0),
    }
    assert effects.best_checkpoint((10, 20), np.array([[1.0, 2.0]]))["lost"] == 0.0
    assert effects.best_checkpoint((10, 20), np.array([[1.0, np.nan]]))["best"] is None


def test_a_network_of_a_small_run_is_not_taken_for_one_of_a_full_run(tmp_path):
    """Rows of one job differ by their settings, and by whether the data are synthetic."""
    file, job = (
        tmp_path / "networks.jsonl",
        hutchinson_effects.Job("boston", 10, 1.0, 0.0025, 1.0, 1.0, 0),
    )
    small, full = hutchinson_effects.SMOKE, hutchinson_effects.Config()
    common.append_line(
        file, {"job": list(job)}, hutchinson_effects.settings_of(small, False)
    )
    assert common.read_lines(file, hutchinson_effects.settings_of(full, False)) == []
    assert common.read_lines(file, hutchinson_effects.settings_of(small, True)) == []
    # the choice of sets, widths and seeds does not change a network
    fewer = replace(small, seeds=3, widths=(10,))
    assert [
        row["job"]
        for row in common.read_lines(file, hutchinson_effects.settings_of(fewer, False))
    ] == [list(job)]


DRAW = np.random.default_rng(1)
NORMAL, SKEWED = DRAW.normal(size=300), DRAW.gamma(2.0, size=300)
APART = np.concatenate([DRAW.normal(size=200), 5.0 + DRAW.normal(size=100)])


def test_two_groups_are_told_from_one_and_from_one_that_is_skewed():
    one, skewed, two = (
        groups.two_group_statistics(values) for values in (NORMAL, SKEWED, APART)
    )
    assert two["one_mode_p"] < 0.01 < 0.1 < min(one["one_mode_p"], skewed["one_mode_p"])
    assert two["valley"] > 0.5 > 0.05 > max(one["valley"], skewed["valley"])
    assert skewed["bic_gain"] > 10.0 > one["bic_gain"]  # which is why BIC does not do


def test_the_groups_are_those_that_were_drawn():
    """Means of 200 and 100 draws lie within five standard errors; D is 5 to a few tenths."""
    found = groups.two_group_statistics(APART)
    np.testing.assert_allclose(found["means"], [0.0, 5.0], atol=5.0 / 100**0.5)
    assert abs(found["ashman_d"] - 5.0) < 1.0
    assert abs(found["upper_share"] - 1.0 / 3.0) < 0.03


def test_the_narrowest_kernel_is_where_a_second_mode_goes():
    width = groups.narrowest(APART)
    assert groups.modes(APART, 1.01 * width) == 1
    assert groups.modes(APART, 0.99 * width) > 1


def test_ways_are_compared_in_the_units_of_their_scores():
    """Moments are better with a higher likelihood and a lower error; seconds are medians."""
    ours = {
        "log_likelihood": np.array([[0.0, 3.0], [0.0, 5.0]]),
        "rmse": np.array([[0.0, 2.0], [0.0, 2.0]]),
    }
    theirs = {
        "log_likelihood": np.array([[9.0, 2.0], [9.0, 2.0]]),
        "rmse": np.array([[9.0, 1.0], [9.0, 1.5]]),
    }
    seconds = {"a": np.array([9.0, 1.0]), "b": np.array([8.0, 2.0])}
    curves = {
        "set": {
            "a": ours | {"cpu_seconds": seconds["a"]},
            "b": theirs | {"cpu_seconds": seconds["b"]},
        }
    }
    found = ways.summary(curves, "a", 100)["sets"]["set"]
    likelihood, error = (
        found["against"]["b"][metric] for metric in ("log_likelihood", "rmse")
    )
    assert (
        likelihood["mean_difference"],
        likelihood["verdict"],
        likelihood["wins"],
    ) == (
        2.0,
        "better",
        2,
    )
    assert (error["mean_difference"], error["verdict"]) == (0.75, "worse")
    assert 1.0 <= likelihood["interval"][0] <= likelihood["interval"][1] <= 3.0
    assert found["ways"]["a"] == {"log_likelihood": 4.0, "rmse": 2.0, "seconds": 5.0}
