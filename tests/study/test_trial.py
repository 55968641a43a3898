"""Any behavior of an objective gives an outcome."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest
from study.objectives import SPACE, loss, reporting

import bonas
from bonas.search import random
from bonas.study import Pruned, StudyError
from bonas.study.trial import parse_result

RANDOM = random(SPACE)


def open_study(folder, **settings):
    return bonas.Study(folder / "runs.db", SPACE, search=RANDOM, **settings)


@pytest.mark.parametrize(
    "value",
    [
        1,
        0.5,
        np.float32(0.5),
        np.int64(3),
        np.array(2.0),
        jnp.asarray(1.5),
        jnp.asarray(1, "bfloat16"),
    ],
)
def test_numbers_are_values(value):
    assert parse_result(value).value == float(value)
    assert parse_result((value, 3)).cost == 3.0
    assert parse_result((value, None, value)).noise == float(value)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "expected a number as the value; got None"),
        ("0.3", "got '0.3' of type str"),
        (np.zeros(3), r"an array of shape \(3,\)"),
        (jnp.zeros((1,)), r"an array of shape \(1,\)"),
        ([0.3], r"\[0.3\] of type list"),
        (True, "True of type bool"),
        (1j, "1j of type complex"),
        (float("nan"), "the value is not finite: nan"),
        (np.float32("inf"), "the value is not finite: inf"),
        ((0.3, "cheap"), "expected a number as the cost; got 'cheap' of type str"),
        ((0.3, -1.0), "cost must be finite and not negative; got -1.0"),
        ((0.3, 1.0, "loud"), "as the noise variance; got 'loud' of type str"),
        ((0.3, 1.0, -1.0), "noise variance must be finite and not negative; got -1.0"),
        ((0.3, 1.0, float("inf")), "noise variance must be finite .* got inf"),
        ((1, 2, 3, 4), "got a tuple of 4"),
        ("x" * 1000, r"x\.\.\. of type"),
    ],
)
def test_other_results_are_failures_with_a_reason(returned, words, tmp_path):
    study = open_study(tmp_path)
    study.optimize(lambda config: returned, trials=2, progress=False)
    for record in study.trials:
        assert record.state == "failed"
        with pytest.raises(ValueError, match=words):
            raise ValueError(record.error)


def test_an_exception_of_the_objective_fails_the_trial_only(tmp_path):
    def breaks(config):
        if config["b"] > 0.5:
            raise MemoryError("too wide")
        return loss(config)

    study = open_study(tmp_path)
    study.optimize(breaks, trials=12, progress=False)
    bad = [record for record in study.trials if record.config["b"] > 0.5]
    assert 0 < len(bad) < 12
    for record in study.trials:
        assert (record.state == "failed") == (record in bad)
    assert all(
        record.error == "MemoryError: too wide" and "in breaks" in record.traceback
        for record in bad
    )


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (
            BaseExceptionGroup("two tasks", [ValueError("a"), GeneratorExit("b")]),
            "BaseExceptionGroup: two tasks (2 sub-exceptions)",
        ),
        (asyncio.CancelledError("late"), "CancelledError: late"),
        (GeneratorExit(), "GeneratorExit"),
    ],
    ids=["group", "canceled", "generator"],
)
def test_exceptions_that_are_no_Exception_fail_the_trial_too(
    problem, error, threads, tmp_path
):
    def breaks(config):
        raise problem

    study = open_study(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        executor = pool if threads else None
        study.optimize(breaks, trials=3, progress=False, executor=executor)
    assert [(each.state, each.error) for each in study.trials] == [
        ("failed", error)
    ] * 3
    assert all("in breaks" in each.traceback for each in study.trials)


@pytest.mark.parametrize(
    "problem",
    [
        KeyboardInterrupt(),
        SystemExit(1),
        BaseExceptionGroup(
            "nursery", [BaseExceptionGroup("inner", [KeyboardInterrupt()])]
        ),
    ],
    ids=["interrupt", "exit", "group"],
)
def test_an_interrupt_of_the_objective_is_raised_and_its_trial_waits(problem, tmp_path):
    def breaks(config):
        raise problem

    study = open_study(tmp_path)
    with pytest.raises(type(problem)):
        study.optimize(breaks, trials=3, progress=False)
    assert [each.state for each in study.trials] == ["waiting"]


def test_ten_failures_in_a_row_end_the_search_with_a_summary(tmp_path):
    calls = []

    def breaks(config):
        calls.append(config)
        if len(calls) == 5:
            return 1.0
        if len(calls) % 2:
            raise KeyError("no such file")
        return "text"

    study = open_study(tmp_path)
    with pytest.raises(
        StudyError, match=r"10 trials in a row have failed: 5 × .*; 5 × "
    ) as caught:
        study.optimize(breaks, trials=100, progress=False)
    assert "KeyError: 'no such file'" in str(caught.value)
    assert "'text' of type str" in str(caught.value)
    assert f"Run `bonas report {study.path}` to see the failed trials" in str(
        caught.value
    )
    assert len(calls) == 15
    with pytest.raises(StudyError, match="10 trials"):
        # another call has another ten
        study.optimize(breaks, trials=100, progress=False)
    assert len(study.trials) == 25


def test_the_cost_is_returned_by_the_objective_or_measured_in_seconds(tmp_path):
    study = open_study(tmp_path)

    def objective(config):
        time.sleep(0.01)
        return (1.0, 77) if config["b"] > 0.5 else 1.0

    study.optimize(objective, trials=10, progress=False)
    for record in study.trials:
        assert (
            record.cost == 77 if record.config["b"] > 0.5 else 0.01 <= record.cost < 5.0
        )


def test_an_evaluation_beyond_the_time_limit_fails(tmp_path):
    def hangs(config):
        try:
            time.sleep(60.0 if config["b"] > 0.5 else 0.0)
        except Exception:
            return 0.0
        return 1.0

    study, began = open_study(tmp_path), time.monotonic()
    study.optimize(hangs, trials=5, trial_seconds=0.1, progress=False)
    assert time.monotonic() - began < 10.0
    for record in study.trials:
        late = record.config["b"] > 0.5
        assert record.error == ("took longer than 0.1 s" if late else "")
        assert ("in hangs" in record.traceback) == late


def test_an_objective_cannot_change_the_configuration_it_was_given(tmp_path):
    study = open_study(tmp_path)
    study.optimize(lambda config: config.clear() or 1.0, trials=2, progress=False)
    assert all(record.config.keys() == {"a", "b"} for record in study.trials)


# Intermediate values


def test_reports_are_stored(tmp_path):
    study = open_study(tmp_path)
    study.optimize(reporting, trials=2, progress=False)
    for record in study.trials:
        a = record.config["a"]
        assert record.reports == ((0, a), (1, a + 1), (2, a + 2))
        assert record.value == a


def test_a_second_report_of_a_step_replaces_the_first(tmp_path):
    trial = open_study(tmp_path).ask()
    trial.report(3, 1.0)
    trial.report(1, 2.0)
    trial.report(3, np.float32(0.5))
    assert open_study(tmp_path).trials[0].reports == ((1, 2.0), (3, 0.5))
    with pytest.raises(ValueError, match="step must be an integer"):
        trial.report(0.5, 1.0)


def finished(study, *curves):
    for curve in curves:
        trial = study.ask()
        for step, value in enumerate(curve):
            trial.report(step, value)
        study.tell(trial, curve[-1])


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_trial_worse_than_the_median_should_be_pruned(direction, tmp_path):
    sign = 1.0 if direction == "minimize" else -1.0
    study = open_study(tmp_path, direction=direction)
    finished(
        study,
        *([sign * height, sign * height - sign] for height in (1.0, 2.0, 3.0, 4.0)),
    )
    trial = study.ask()
    trial.report(0, sign * 9.0)
    assert not trial.should_prune(), "four others are too few"
    finished(study, [sign * 5.0, sign * 4.0])
    assert trial.should_prune()  # the median at step 0 is 3
    trial.report(0, sign * 3.0)
    # the median at step 1 is 2; the best so far is what counts
    trial.report(1, sign * 2.5)
    assert trial.should_prune()
    trial.report(1, sign * 1.5)
    assert not trial.should_prune()
    trial.report(7, sign * 9.0)  # the last reports of others by step 7 are from step 1
    assert not trial.should_prune()


def test_a_trial_that_diverged_should_be_pruned(tmp_path):
    trial = open_study(tmp_path).ask()
    assert not trial.should_prune()
    trial.report(0, 1.0)
    assert not trial.should_prune()
    trial.report(1, float("nan"))
    assert trial.should_prune()
    assert np.isnan(open_study(tmp_path).trials[0].reports[1][1])


def test_the_value_of_a_pruned_trial_is_its_last_report(tmp_path):
    def gives_up(config, trial):
        if config["a"] < 0.5:
            raise Pruned
        trial.report(4, 2.0)
        trial.report(5, 1.0)
        raise Pruned

    study, events = open_study(tmp_path), []
    study.optimize(
        gives_up,
        trials=8,
        progress=False,
        callback=lambda event: events.append((event.state, event.trial.number)),
    )
    for record in study.trials:
        if record.config["a"] < 0.5:
            assert record.error == "pruned before it had reported a finite value"
            assert ("failed", record.number) in events
        else:
            assert (record.state, record.value, record.info["pruned_step"]) == (
                "pruned",
                1.0,
                5,
            )
            assert ("pruned", record.number) in events
