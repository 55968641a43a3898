"""Whatever an objective does, an outcome comes of it."""

import time

import jax.numpy as jnp
import numpy as np
import pytest
from study.objectives import SPACE, loss, reporting

import bonas
from bonas.search import random
from bonas.study import Stop, StudyError
from bonas.study.work import read

BY_CHANCE = random(SPACE)


def begin(folder, **settings):
    return bonas.Study(folder / "runs.db", SPACE, search=BY_CHANCE, **settings)


@pytest.mark.parametrize(
    "value", [1, 0.5, np.float32(0.5), np.int64(3), np.array(2.0), jnp.asarray(1.5), jnp.asarray(1, "bfloat16")]
)
def test_numbers_are_values(value):
    assert read(value).value == float(value)
    assert read((value, 3)).cost == 3.0


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "returned None, not a number"),
        ("0.3", "returned '0.3', of type str"),
        (np.zeros(3), r"an array of shape \(3,\)"),
        (jnp.zeros((1,)), r"an array of shape \(1,\)"),
        ([0.3], r"\[0.3\], of type list"),
        (True, "True, of type bool"),
        (1j, "1j, of type complex"),
        (float("nan"), "the value was nan"),
        (np.float32("inf"), "the value was inf"),
        ((0.3, "cheap"), "'cheap', of type str as the cost"),
        ((0.3, -1.0), "the cost was -1.0"),
        ((1, 2, 3), r"\(1, 2, 3\), of type tuple"),
        ("x" * 1000, r"x\.\.\.,"),
    ],
)
def test_everything_else_is_a_failure_with_its_reason(returned, words, tmp_path):
    study = begin(tmp_path)
    study.optimise(lambda config: returned, trials=2, progress=False)
    for record in study.trials:
        assert record.state == "failed"
        with pytest.raises(ValueError, match=words):
            raise ValueError(record.error)


def test_an_objective_that_raises_is_a_failure_and_the_search_goes_on(tmp_path):
    def breaks(config):
        if config["b"] > 0.5:
            raise MemoryError("too wide")
        return loss(config)

    study = begin(tmp_path)
    study.optimise(breaks, trials=12, progress=False)
    bad = [record for record in study.trials if record.config["b"] > 0.5]
    assert 0 < len(bad) < 12
    for record in study.trials:
        assert (record.state == "failed") == (record in bad)
    assert all(record.error == "MemoryError: too wide" and "in breaks" in record.traceback for record in bad)


def test_ten_failures_in_a_row_end_it_with_a_summary(tmp_path):
    calls = []

    def breaks(config):
        calls.append(config)
        if len(calls) == 5:
            return 1.0
        if len(calls) % 2:
            raise KeyError("no such file")
        return "text"

    study = begin(tmp_path)
    with pytest.raises(StudyError, match=r"10 trials in a row have failed: 5 × .*; 5 × ") as caught:
        study.optimise(breaks, trials=100, progress=False)
    assert "KeyError: 'no such file'" in str(caught.value)
    assert "'text', of type str" in str(caught.value)
    assert f"`bonas report {study.path}` shows where" in str(caught.value)
    assert len(calls) == 15
    with pytest.raises(StudyError, match="10 trials"):
        study.optimise(breaks, trials=100, progress=False)  # another call has another ten
    assert len(study.trials) == 25


def test_cost_is_what_the_objective_says_or_the_seconds(tmp_path):
    study = begin(tmp_path)

    def objective(config):
        time.sleep(0.01)
        return (1.0, 77) if config["b"] > 0.5 else 1.0

    study.optimise(objective, trials=10, progress=False)
    for record in study.trials:
        assert record.cost == 77 if record.config["b"] > 0.5 else 0.01 <= record.cost < 5.0


def test_an_objective_that_takes_too_long_is_a_failure(tmp_path):
    def hangs(config):
        try:
            time.sleep(60.0 if config["b"] > 0.5 else 0.0)
        except Exception:
            return 0.0
        return 1.0

    study, began = begin(tmp_path), time.monotonic()
    study.optimise(hangs, trials=5, trial_seconds=0.1, progress=False)
    assert time.monotonic() - began < 10.0
    for record in study.trials:
        late = record.config["b"] > 0.5
        assert record.error == ("it took longer than 0.1 s" if late else "")
        assert ("in hangs" in record.traceback) == late


def test_an_objective_cannot_change_the_configuration_it_was_given(tmp_path):
    study = begin(tmp_path)
    study.optimise(lambda config: config.clear() or 1.0, trials=2, progress=False)
    assert all(record.config.keys() == {"a", "b"} for record in study.trials)


# Intermediate values


def test_reports_are_kept(tmp_path):
    study = begin(tmp_path)
    study.optimise(reporting, trials=2, progress=False)
    for record in study.trials:
        a = record.config["a"]
        assert record.reports == ((0, a), (1, a + 1), (2, a + 2))
        assert record.value == a


def test_a_second_report_of_a_step_replaces_the_first(tmp_path):
    trial = begin(tmp_path).ask()
    trial.report(3, 1.0)
    trial.report(1, 2.0)
    trial.report(3, np.float32(0.5))
    assert begin(tmp_path).trials[0].reports == ((1, 2.0), (3, 0.5))
    with pytest.raises(ValueError, match="a step is a whole number"):
        trial.report(0.5, 1.0)


def finished(study, *curves):
    for curve in curves:
        trial = study.ask()
        for step, value in enumerate(curve):
            trial.report(step, value)
        study.tell(trial, curve[-1])


@pytest.mark.parametrize("direction", ["minimise", "maximise"])
def test_a_trial_worse_than_the_median_should_stop(direction, tmp_path):
    sign = 1.0 if direction == "minimise" else -1.0
    study = begin(tmp_path, direction=direction)
    finished(study, *([sign * height, sign * height - sign] for height in (1.0, 2.0, 3.0, 4.0)))
    trial = study.ask()
    trial.report(0, sign * 9.0)
    assert not trial.should_stop(), "four others are too few"
    finished(study, [sign * 5.0, sign * 4.0])
    assert trial.should_stop()  # the median at step 0 is 3
    trial.report(0, sign * 3.0)
    trial.report(1, sign * 2.5)  # the median at step 1 is 2; the best so far is what counts
    assert trial.should_stop()
    trial.report(1, sign * 1.5)
    assert not trial.should_stop()
    trial.report(7, sign * 9.0)  # the last of others by step 7 are those of step 1
    assert not trial.should_stop()


def test_a_run_that_diverged_should_stop(tmp_path):
    trial = begin(tmp_path).ask()
    assert not trial.should_stop()
    trial.report(0, 1.0)
    assert not trial.should_stop()
    trial.report(1, float("nan"))
    assert trial.should_stop()
    assert np.isnan(begin(tmp_path).trials[0].reports[1][1])


def test_a_trial_that_is_given_up_is_told_its_last_value(tmp_path):
    def gives_up(config, trial):
        if config["a"] < 0.5:
            raise Stop
        trial.report(4, 2.0)
        trial.report(5, 1.0)
        raise Stop

    study, events = begin(tmp_path), []
    study.optimise(gives_up, trials=8, progress=False, watch=lambda event: events.append((event.kind, event.trial.number)))
    for record in study.trials:
        if record.config["a"] < 0.5:
            assert record.error == "it was stopped before it had reported a finite value"
            assert ("failed", record.number) in events
        else:
            assert (record.state, record.value, record.info["stopped"]) == ("told", 1.0, 5)
            assert ("stopped", record.number) in events
