"""A study asks as the pure core does, stores its trials, and continues after it was closed."""

import csv
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import jax
import numpy as np
import pytest
from study import searcher
from study.objectives import SPACE, loss

import bonas
from bonas.search import random
from bonas.study import StudyError, TrialRecord

RANDOM = random(SPACE)


def open_study(folder, **settings):
    return bonas.Study(folder / "runs.db", SPACE, **{"search": RANDOM} | settings)


def rows(study):
    return [record.u for record in study.trials]


# The same points as minimize and run


@pytest.mark.slow
def test_a_study_asks_for_the_points_of_minimize(tmp_path):
    for seed in (0, 1):
        study = bonas.Study(
            tmp_path / f"{seed}.db", SPACE, search=RANDOM, seed=seed, _capacity=8
        )
        study.optimize(loss, trials=8, progress=False)
        other = bonas.minimize(
            loss, SPACE, trials=8, seed=seed, search=RANDOM, progress=False
        )
        assert [record.config for record in study.trials] == [
            each.config for each in other.evaluations
        ]
        assert [record.value for record in study.trials] == [
            each.value for each in other.evaluations
        ]


@pytest.mark.slow
def test_a_model_based_search_asks_for_the_points_of_minimize_and_run(tmp_path):
    search = searcher.search()
    study = bonas.Study(
        tmp_path / "runs.db", searcher.SPACE, search=search, seed=5, _capacity=10
    )
    study.optimize(searcher.loss, trials=10, progress=False)
    other = bonas.minimize(
        searcher.loss, searcher.SPACE, trials=10, seed=5, search=search, progress=False
    )
    assert [record.config for record in study.trials] == [
        each.config for each in other.evaluations
    ]

    def objective(key, u):  # the same, traceable
        return (u[0] - 0.3) ** 2 + abs(u[1] - 0.6) + 0.1 * (u[2] < 0.5)

    pure = bonas.run(search, objective, jax.random.key(5), 10)
    np.testing.assert_allclose(rows(study), pure.x, atol=1e-6)


@pytest.mark.slow
def test_the_default_search_is_bayes(tmp_path):
    study = bonas.Study(tmp_path / "runs.db", SPACE, seed=2, _capacity=8)
    study.optimize(loss, trials=8, progress=False)
    other = bonas.minimize(loss, SPACE, trials=8, seed=2, progress=False)
    assert [record.config for record in study.trials] == [
        each.config for each in other.evaluations
    ]
    assert study.best.value < 0.1


@pytest.mark.slow
def test_reopening_the_study_for_every_trial_changes_nothing(tmp_path):
    """Also while the capacity grows from 8, and with failed trials."""

    def objective(config):
        return searcher.loss(config) if config["b"] < 0.9 else float("nan")

    whole = searcher.opened(tmp_path / "whole.db")
    whole.optimize(objective, trials=20, progress=False)
    for i in range(20):
        with searcher.opened(tmp_path / "pieces.db") as study:
            study.optimize(objective, trials=i + 1, progress=False)
    assert rows(bonas.Study(tmp_path / "pieces.db")) == rows(whole)
    assert any(record.state == "failed" for record in whole.trials)


@pytest.mark.slow
def test_maximizing_is_minimizing_the_negative(tmp_path):
    down, up = (
        bonas.Study(
            tmp_path / direction,
            searcher.SPACE,
            search=searcher.search(),
            direction=direction,
            _capacity=8,
        )
        for direction in ("minimize", "maximize")
    )
    up.optimize(lambda config: -searcher.loss(config), trials=8, progress=False)
    down.optimize(searcher.loss, trials=8, progress=False)
    assert rows(up) == rows(down)
    assert up.best.number == down.best.number
    assert up.best.value == -down.best.value


# Ask and tell


@pytest.mark.typed
def test_a_trial_goes_through_its_states(tmp_path):
    study = open_study(tmp_path)
    assert study.trials == []
    assert study.best is None
    trial = study.ask()
    (record,) = study.trials
    assert (record.number, record.state, record.value, record.end_time) == (
        0,
        "running",
        None,
        None,
    )
    assert record.config == trial.config == SPACE.decode(trial.u)
    study.tell(trial, 0.31)
    (record,) = study.trials
    assert (record.state, record.value, record.error) == ("complete", 0.31, "")
    assert record.asked_time <= record.end_time
    assert study.best == record
    study.fail(study.ask(), "out of memory", traceback="line 1")
    record = study.trials[1]
    assert (record.state, record.value, record.error, record.traceback) == (
        "failed",
        None,
        "out of memory",
        "line 1",
    )
    assert study.best.number == 0
    assert isinstance(record, TrialRecord)


@pytest.mark.typed
def test_trials_can_be_told_in_any_order_and_by_number(tmp_path):
    study = open_study(tmp_path)
    trials = [study.ask() for _ in range(3)]
    assert len({tuple(trial.u) for trial in trials}) == 3
    study.tell(2, 2.0, cost=7.5)
    study.tell(trials[0], np.float32(0.5))
    study.tell(trials[1], jax.numpy.asarray(1.0))
    assert [record.value for record in study.trials] == [0.5, 1.0, 2.0]
    assert study.trials[2].cost == 7.5


def test_the_first_value_counts(tmp_path):
    study = open_study(tmp_path)
    trial = study.ask()
    study.tell(trial, 1.0)
    for again in (lambda: study.tell(trial, 2.0), lambda: study.fail(trial, "no")):
        with pytest.raises(StudyError, match=r"trial 0 .*has already finished"):
            again()
    assert study.best.value == 1.0
    with pytest.raises(StudyError, match="has no trial 7"):
        study.tell(7, 1.0)


@pytest.mark.parametrize("value", ["0.3", [0.3], np.zeros(2), None, True])
def test_a_value_must_be_a_number(value, tmp_path):
    study = open_study(tmp_path)
    trial = study.ask()
    with pytest.raises(ValueError, match="expected a number as the value"):
        study.tell(trial, value)
    assert study.trials[0].state == "running"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -np.inf])
def test_a_value_that_is_not_finite_is_a_failure(value, tmp_path):
    study = open_study(tmp_path)
    study.tell(study.ask(), value)
    assert study.trials[0].error == f"the value is not finite: {float(value)}"


@pytest.mark.parametrize("cost", [-1, -np.inf, np.inf])
def test_an_invalid_cost_is_refused_and_the_trial_stays_open(cost, tmp_path):
    study = open_study(tmp_path)
    trial = study.ask()
    with pytest.raises(ValueError, match="the cost must be finite"):
        study.tell(trial, 1.0, cost=cost)
    study.tell(trial, 1.0, cost=2.0)
    assert study.trials[0].value == 1.0


def test_a_configuration_is_evaluated_as_it_was_enqueued(tmp_path):
    """Encoding and decoding may round a float; the configuration is stored as given."""
    space = bonas.Space(
        x=bonas.Float(1e-3, 1e3, log=True), n=bonas.Int(1, 5), k=bonas.Choice("x", "y")
    )
    with bonas.Study(tmp_path / "runs.db", space, search=random(space)) as study:
        given = [{"x": x, "n": 3, "k": "y"} for x in (1.0, 0.1, 0.3, 7, 1000.0)]
        for config in given:
            study.enqueue(config)
        assert [study.ask().config for _ in given] == given
        assert [record.u for record in study.trials] == [
            tuple(space.encode(config).tolist()) for config in given
        ]
        assert all(isinstance(record.config["x"], float) for record in study.trials)


def test_a_closed_study_raises_a_clear_error(tmp_path):
    study = open_study(tmp_path)
    study.close()
    for use in (
        study.ask,
        lambda: study.trials,
        lambda: study.tell(0, 1.0),
        lambda: study.note("a", 1),
        lambda: study.best,
    ):
        with pytest.raises(StudyError, match="is closed"):
            use()


@pytest.mark.typed
def test_enqueued_configurations_are_asked_first_and_in_order(tmp_path):
    study = open_study(tmp_path)
    plain = bonas.Study(tmp_path / "plain.db", SPACE, search=RANDOM)
    wanted = [{"a": 0.5, "b": 0.25}, {"a": 0.0, "b": 1.0}]
    assert [study.enqueue(config) for config in wanted] == [0, 1]
    assert [record.state for record in study.trials] == ["waiting", "waiting"]
    study.optimize(loss, trials=5, progress=False)
    assert [record.config for record in study.trials[:2]] == wanted
    assert [record.info.get("enqueued", False) for record in study.trials] == [
        True,
        True,
        False,
        False,
        False,
    ]
    plain.optimize(loss, trials=3, progress=False)
    assert rows(study)[2:] == rows(plain)  # the points of the search stay the same
    with pytest.raises(ValueError, match="'a' must be in"):
        study.enqueue({"a": 2.0, "b": 0.0})


@pytest.mark.slow
def test_the_search_learns_from_enqueued_trials(tmp_path):
    study = searcher.opened(tmp_path / "runs.db")
    best = {"a": 0.3, "b": 0.6, "kind": "y"}
    study.enqueue(best)
    # past the first capacity too
    study.optimize(searcher.loss, trials=12, progress=False)
    assert study.best.number == 0
    assert (
        sum(abs(record.config["b"] - 0.6) < 0.2 for record in study.trials[4:]) >= 3
    )  # it searches near that point


@pytest.mark.slow
def test_the_points_of_a_batch_are_asked_one_by_one(tmp_path):
    search = random(SPACE, batch=3)
    study = bonas.Study(tmp_path / "runs.db", SPACE, search=search, _capacity=4)
    asked = [study.ask() for _ in range(5)]
    assert [trial.number for trial in asked] == [0, 1, 2, 3, 4]
    assert [record.state for record in study.trials] == ["running"] * 5 + ["waiting"]
    study.optimize(loss, trials=9, progress=False)
    assert len({tuple(u) for u in rows(study)}) == len(rows(study))


# Leases


def test_a_trial_is_asked_again_when_its_lease_has_run_out(tmp_path):
    study = open_study(tmp_path, lease=0.05)
    first = study.ask()
    second = study.ask()
    assert second.number != first.number
    time.sleep(0.06)
    again = study.ask()
    assert again.number == first.number
    np.testing.assert_array_equal(again.u, first.u)
    study.tell(first, 1.0)
    with pytest.raises(StudyError, match="already finished"):
        study.tell(again, 2.0)


def test_a_trial_of_a_dead_process_is_asked_again_at_once(tmp_path):
    study = open_study(tmp_path)
    first = study.ask()
    with study._database.write_transaction() as db:  # no process has this id
        db.execute(
            "UPDATE trial SET worker = replace(worker, ?, ':4194305:')",
            (f":{os.getpid()}:",),
        )
    assert study.ask().number == first.number
    # a process of another host may be running
    with study._database.write_transaction() as db:
        db.execute("UPDATE trial SET worker = 'elsewhere:4194305:abc'")
    assert study.ask().number != first.number


def test_reports_renew_the_lease(tmp_path):
    study = open_study(tmp_path)
    trial = study.ask()
    lease = study._database.row("SELECT lease FROM trial")["lease"]
    trial.report(1, 0.5)
    assert study._database.row("SELECT lease FROM trial")["lease"] > lease


# Results


def test_settings_are_stored_and_other_values_are_refused(tmp_path):
    open_study(tmp_path, seed=4, direction="maximize", extra={"data": "iris"}).close()
    study = open_study(tmp_path)
    assert (study.seed, study.direction, study.space, study.path) == (
        4,
        "maximize",
        SPACE,
        tmp_path / "runs.db",
    )
    assert study.about["extra"] == {"data": "iris"}
    assert study.about["versions"]["jax"] == jax.__version__
    with pytest.raises(StudyError, match="seed=4, not 5"):
        open_study(tmp_path, seed=5)
    with pytest.raises(StudyError, match="direction='maximize', not 'minimize'"):
        open_study(tmp_path, direction="minimize")


def test_a_custom_search_must_be_passed_again_to_ask(tmp_path):
    open_study(tmp_path).close()
    study = bonas.Study(tmp_path / "runs.db")
    with pytest.raises(StudyError, match="pass it as search="):
        study.ask()
    with pytest.raises(StudyError, match="have different spaces"):
        bonas.Study(tmp_path / "runs.db", search=searcher.search()).ask()


def test_another_precision_is_refused(tmp_path):
    study = open_study(tmp_path)
    study.tell(study.ask(), 1.0)
    with (
        jax.enable_x64(False),
        pytest.raises(
            StudyError, match="created in float64, but this process computes in float32"
        ),
    ):
        open_study(tmp_path).ask()


def test_threads_can_share_a_study(tmp_path):
    study = open_study(tmp_path)

    def work(_):
        trial = study.ask()
        study.tell(trial, float(trial.number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))
    assert [record.value for record in study.trials] == list(range(40))
    alone = bonas.Study(tmp_path / "alone.db", SPACE, search=RANDOM)
    alone.optimize(loss, trials=40, progress=False)
    assert rows(study) == rows(alone)


@pytest.mark.slow
def test_beyond_512_trials_the_info_describes_the_subset(tmp_path):
    study = bonas.Study(tmp_path / "runs.db", SPACE)
    points = np.random.default_rng(0).random((513, 2))
    for u in points:
        study.enqueue(SPACE.decode(u))
    for u in points:
        study.tell(study.ask(), float(u.sum()))
    trial = study.ask()
    assert (
        study.trials[trial.number]
        .info["subset"]
        .startswith("fitted to 512 of 513 trials")
    )
    # it has learned where values are small
    assert trial.config["a"] + trial.config["b"] < 0.3


def test_wrong_settings_are_refused(tmp_path):
    for settings, words in (
        ({"direction": "up"}, "direction must be"),
        ({"seed": 0.5}, r"seed must be an integer from 0 to 2\^63 - 1; got 0.5"),
        ({"seed": True}, "seed must be an integer"),
        ({"seed": -1}, "seed must be an integer"),
        ({"seed": 2**63}, "seed must be an integer"),
        ({"lease": 0.0}, "lease must be a positive number"),
    ):
        with pytest.raises(ValueError, match=words):
            open_study(tmp_path, **settings)


def test_notes_are_stored(tmp_path):
    with open_study(tmp_path) as study:
        study.note("data", {"rows": 3, "columns": ["a", None]})
        study.note("data", {"rows": 4})
        study.note("more", [1, 2])
        with pytest.raises(ValueError, match="JSON"):
            study.note("bad", float("nan"))
    assert open_study(tmp_path).notes == {"data": {"rows": 4}, "more": [1, 2]}


def test_the_info_describes_how_a_point_was_chosen(tmp_path):
    study = open_study(tmp_path)
    study.ask()
    info = study.trials[0].info
    assert info["random"] is True
    assert info["fallback"] == ""
    assert info["acquisition"] is None
    json.dumps(info, allow_nan=False)


def test_tables_have_a_row_per_trial_and_a_column_per_parameter(tmp_path):
    space = bonas.Space(
        value=bonas.Float(0.0, 1.0),
        k=bonas.Choice("x", "y"),
        c=bonas.Int(1, 3, when={"k": "y"}),
    )
    study = bonas.Study(tmp_path / "runs.db", space, search=random(space))
    study.optimize(
        lambda config: config["value"] if config["value"] < 0.8 else "much",
        trials=12,
        progress=False,
    )
    study.csv(tmp_path / "runs.csv")
    with open(tmp_path / "runs.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    frame = study.frame()
    assert len(table) == len(frame) == 12
    for record, row, (number, series) in zip(
        study.trials, table, frame.iterrows(), strict=True
    ):
        assert record.number == int(row["number"]) == number
        assert record.state == row["state"] == series["state"]
        assert (
            record.config["value"]
            == float(row["config.value"])
            == series["config.value"]
        )
        assert (
            (record.value is None) == (row["value"] == "") == np.isnan(series["value"])
        )
        assert ("c" in record.config) == (row["c"] != "") == (not np.isnan(series["c"]))
        for name in ("asked_time", "start_time", "end_time"):
            read = datetime.fromisoformat(row[name])
            assert read.utcoffset() == series[name].utcoffset() == timedelta(0)
            assert abs(read.timestamp() - getattr(record, name)) < 1e-5
            assert abs(series[name].timestamp() - getattr(record, name)) < 1e-5


def test_unknown_times_are_missing(tmp_path):
    study = open_study(tmp_path)
    study.enqueue({"a": 0.5, "b": 0.5})
    study.csv(tmp_path / "runs.csv")
    with open(tmp_path / "runs.csv", newline="", encoding="utf-8") as file:
        assert [row["asked_time"] for row in csv.DictReader(file)] == [""]
    assert study.frame()["asked_time"].isna().all()


@pytest.mark.slow
def test_the_file_grows_linearly_with_the_trials(tmp_path):
    sizes = []
    for trials in (100, 200, 400):
        with open_study(tmp_path) as study:
            study.optimize(loss, trials=trials, progress=False)
        # closed, so the log is merged
        sizes.append((tmp_path / "runs.db").stat().st_size)
    assert sizes[2] - sizes[1] < 3 * (sizes[1] - sizes[0])
    assert sizes[2] < 2000 * 400


def test_the_repr_counts_trials_by_state(tmp_path):
    study = open_study(tmp_path)
    assert repr(study).endswith("runs.db': no trials)")
    study.tell(study.ask(), 1.0)
    study.fail(study.ask(), "x")
    assert repr(study).endswith("runs.db': 1 complete, 1 failed)")
