"""A study: asks as the pure core does, keeps what it is told, and goes on after it was closed."""

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
from bonas.study import Record, StudyError

BY_CHANCE = random(SPACE)


def begin(folder, **settings):
    return bonas.Study(folder / "runs.db", SPACE, **{"search": BY_CHANCE} | settings)


def rows(study):
    return [record.u for record in study.trials]


# The same points as the other doors


@pytest.mark.slow
def test_it_asks_for_the_points_of_minimise(tmp_path):
    for seed in (0, 1):
        study = bonas.Study(tmp_path / f"{seed}.db", SPACE, search=BY_CHANCE, seed=seed, _capacity=8)
        study.optimise(loss, trials=8, progress=False)
        other = bonas.minimise(loss, SPACE, trials=8, seed=seed, search=BY_CHANCE, progress=False)
        assert [record.config for record in study.trials] == [each.config for each in other.evaluations]
        assert [record.value for record in study.trials] == [each.value for each in other.evaluations]


@pytest.mark.slow
def test_a_model_based_search_asks_for_the_points_of_minimise_and_run(tmp_path):
    search = searcher.search()
    study = bonas.Study(tmp_path / "runs.db", searcher.SPACE, search=search, seed=5, _capacity=10)
    study.optimise(searcher.loss, trials=10, progress=False)
    other = bonas.minimise(searcher.loss, searcher.SPACE, trials=10, seed=5, search=search, progress=False)
    assert [record.config for record in study.trials] == [each.config for each in other.evaluations]

    def objective(key, u):  # the same, traceable
        return (u[0] - 0.3) ** 2 + abs(u[1] - 0.6) + 0.1 * (u[2] < 0.5)

    pure = bonas.run(search, objective, jax.random.key(5), 10)
    np.testing.assert_allclose(rows(study), pure.x, atol=1e-6)


@pytest.mark.slow
def test_the_default_is_bayes(tmp_path):
    study = bonas.Study(tmp_path / "runs.db", SPACE, seed=2, _capacity=8)
    study.optimise(loss, trials=8, progress=False)
    other = bonas.minimise(loss, SPACE, trials=8, seed=2, progress=False)
    assert [record.config for record in study.trials] == [each.config for each in other.evaluations]
    assert study.best.value < 0.1


@pytest.mark.slow
def test_opening_it_anew_for_every_trial_changes_nothing(tmp_path):
    """Across growths from a capacity of 8 as well, with failures among the trials."""

    def objective(config):
        return searcher.loss(config) if config["b"] < 0.9 else float("nan")

    whole = searcher.opened(tmp_path / "whole.db")
    whole.optimise(objective, trials=20, progress=False)
    for i in range(20):
        with searcher.opened(tmp_path / "pieces.db") as study:
            study.optimise(objective, trials=i + 1, progress=False)
    assert rows(bonas.Study(tmp_path / "pieces.db")) == rows(whole)
    assert any(record.state == "failed" for record in whole.trials)


@pytest.mark.slow
def test_a_larger_value_is_better_where_it_is_maximised(tmp_path):
    down, up = (
        bonas.Study(tmp_path / direction, searcher.SPACE, search=searcher.search(), direction=direction, _capacity=8)
        for direction in ("minimise", "maximise")
    )
    up.optimise(lambda config: -searcher.loss(config), trials=8, progress=False)
    down.optimise(searcher.loss, trials=8, progress=False)
    assert rows(up) == rows(down)
    assert up.best.number == down.best.number
    assert up.best.value == -down.best.value


# Ask and tell


def test_a_trial_goes_through_its_states(tmp_path):
    study = begin(tmp_path)
    assert study.trials == []
    assert study.best is None
    trial = study.ask()
    (record,) = study.trials
    assert (record.number, record.state, record.value, record.ended) == (0, "asked", None, None)
    assert record.config == trial.config == SPACE.decode(trial.u)
    study.tell(trial, 0.31)
    (record,) = study.trials
    assert (record.state, record.value, record.error) == ("told", 0.31, "")
    assert record.asked <= record.ended
    assert study.best == record
    study.fail(study.ask(), "out of memory", traceback="line 1")
    record = study.trials[1]
    assert (record.state, record.value, record.error, record.traceback) == ("failed", None, "out of memory", "line 1")
    assert study.best.number == 0
    assert isinstance(record, Record)


def test_trials_can_be_told_in_any_order_and_by_number(tmp_path):
    study = begin(tmp_path)
    trials = [study.ask() for _ in range(3)]
    assert len({tuple(trial.u) for trial in trials}) == 3
    study.tell(2, 2.0, cost=7.5)
    study.tell(trials[0], np.float32(0.5))
    study.tell(trials[1], jax.numpy.asarray(1.0))
    assert [record.value for record in study.trials] == [0.5, 1.0, 2.0]
    assert study.trials[2].cost == 7.5


def test_the_first_value_counts(tmp_path):
    study = begin(tmp_path)
    trial = study.ask()
    study.tell(trial, 1.0)
    for again in (lambda: study.tell(trial, 2.0), lambda: study.fail(trial, "no")):
        with pytest.raises(StudyError, match=r"trial 0 .*has ended already"):
            again()
    assert study.best.value == 1.0
    with pytest.raises(StudyError, match="has no trial 7"):
        study.tell(7, 1.0)


@pytest.mark.parametrize("value", ["0.3", [0.3], np.zeros(2), None, True])
def test_a_value_is_a_number(value, tmp_path):
    study = begin(tmp_path)
    trial = study.ask()
    with pytest.raises(ValueError, match="not a number"):
        study.tell(trial, value)
    assert study.trials[0].state == "asked"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -np.inf])
def test_a_value_that_is_not_finite_is_a_failure(value, tmp_path):
    study = begin(tmp_path)
    study.tell(study.ask(), value)
    assert study.trials[0].error == f"the value was {float(value)}"


@pytest.mark.parametrize("cost", [-1, -np.inf, np.inf])
def test_a_cost_that_is_none_is_refused_and_the_value_may_be_told_again(cost, tmp_path):
    study = begin(tmp_path)
    trial = study.ask()
    with pytest.raises(ValueError, match="the cost was"):
        study.tell(trial, 1.0, cost=cost)
    study.tell(trial, 1.0, cost=2.0)
    assert study.trials[0].value == 1.0


def test_a_configuration_is_evaluated_as_it_was_enqueued(tmp_path):
    """Of the floats between 0.001 and 1000 not all are what their columns decode to."""
    space = bonas.Space(x=bonas.Float(1e-3, 1e3, log=True), n=bonas.Int(1, 5), k=bonas.Choice("x", "y"))
    with bonas.Study(tmp_path / "runs.db", space, search=random(space)) as study:
        given = [{"x": x, "n": 3, "k": "y"} for x in (1.0, 0.1, 0.3, 7, 1000.0)]
        for config in given:
            study.enqueue(config)
        assert [study.ask().config for _ in given] == given
        assert [record.u for record in study.trials] == [tuple(space.encode(config).tolist()) for config in given]
        assert all(isinstance(record.config["x"], float) for record in study.trials)


def test_a_closed_study_says_so(tmp_path):
    study = begin(tmp_path)
    study.close()
    for use in (study.ask, lambda: study.trials, lambda: study.tell(0, 1.0), lambda: study.note("a", 1), lambda: study.best):
        with pytest.raises(StudyError, match="is closed"):
            use()


def test_enqueued_configurations_come_first_and_in_order(tmp_path):
    study = begin(tmp_path)
    plain = bonas.Study(tmp_path / "plain.db", SPACE, search=BY_CHANCE)
    wanted = [{"a": 0.5, "b": 0.25}, {"a": 0.0, "b": 1.0}]
    assert [study.enqueue(config) for config in wanted] == [0, 1]
    assert [record.state for record in study.trials] == ["queued", "queued"]
    study.optimise(loss, trials=5, progress=False)
    assert [record.config for record in study.trials[:2]] == wanted
    assert [record.info.get("enqueued", False) for record in study.trials] == [True, True, False, False, False]
    plain.optimise(loss, trials=3, progress=False)
    assert rows(study)[2:] == rows(plain)  # the search's own points stay what they are
    with pytest.raises(ValueError, match="'a' lies in"):
        study.enqueue({"a": 2.0, "b": 0.0})


@pytest.mark.slow
def test_the_search_knows_what_was_enqueued(tmp_path):
    study = searcher.opened(tmp_path / "runs.db")
    best = {"a": 0.3, "b": 0.6, "kind": "y"}
    study.enqueue(best)
    study.optimise(searcher.loss, trials=12, progress=False)  # past the first capacity too
    assert study.best.number == 0
    assert sum(abs(record.config["b"] - 0.6) < 0.2 for record in study.trials[4:]) >= 3  # it looks around there


@pytest.mark.slow
def test_a_batch_is_asked_one_by_one(tmp_path):
    search = random(SPACE, batch=3)
    study = bonas.Study(tmp_path / "runs.db", SPACE, search=search, _capacity=4)
    asked = [study.ask() for _ in range(5)]
    assert [trial.number for trial in asked] == [0, 1, 2, 3, 4]
    assert [record.state for record in study.trials] == ["asked"] * 5 + ["queued"]
    study.optimise(loss, trials=9, progress=False)
    assert len({tuple(u) for u in rows(study)}) == len(rows(study))


# Leases


def test_a_trial_is_asked_again_when_its_lease_has_run_out(tmp_path):
    study = begin(tmp_path, lease=0.05)
    first = study.ask()
    second = study.ask()
    assert second.number != first.number
    time.sleep(0.06)
    again = study.ask()
    assert again.number == first.number
    np.testing.assert_array_equal(again.u, first.u)
    study.tell(first, 1.0)
    with pytest.raises(StudyError, match="ended already"):
        study.tell(again, 2.0)


def test_a_trial_of_a_dead_process_is_asked_again_at_once(tmp_path):
    study = begin(tmp_path)
    first = study.ask()
    with study._file.writing() as db:  # no process has this number
        db.execute("UPDATE trial SET worker = replace(worker, ?, ':4194305:')", (f":{os.getpid()}:",))
    assert study.ask().number == first.number
    with study._file.writing() as db:  # another host's process may live
        db.execute("UPDATE trial SET worker = 'elsewhere:4194305:abc'")
    assert study.ask().number != first.number


def test_reports_renew_the_lease(tmp_path):
    study = begin(tmp_path)
    trial = study.ask()
    lease = study._file.row("SELECT lease FROM trial")["lease"]
    trial.report(1, 0.5)
    assert study._file.row("SELECT lease FROM trial")["lease"] > lease


# What is there


def test_settings_stay_and_others_are_refused(tmp_path):
    begin(tmp_path, seed=4, direction="maximise", extra={"data": "iris"}).close()
    study = begin(tmp_path)
    assert (study.seed, study.direction, study.space, study.path) == (4, "maximise", SPACE, tmp_path / "runs.db")
    assert study.about["extra"] == {"data": "iris"}
    assert study.about["versions"]["jax"] == jax.__version__
    with pytest.raises(StudyError, match="seed 4, not 5"):
        begin(tmp_path, seed=5)
    with pytest.raises(StudyError, match="direction 'maximise', not 'minimise'"):
        begin(tmp_path, direction="minimise")


def test_a_search_of_its_own_is_needed_again_to_ask(tmp_path):
    begin(tmp_path).close()
    study = bonas.Study(tmp_path / "runs.db")
    with pytest.raises(StudyError, match="give it again as search="):
        study.ask()
    with pytest.raises(StudyError, match="another space"):
        bonas.Study(tmp_path / "runs.db", search=searcher.search()).ask()


def test_another_precision_is_noticed(tmp_path):
    study = begin(tmp_path)
    study.tell(study.ask(), 1.0)
    with jax.enable_x64(False), pytest.raises(StudyError, match="made in float64, and this process computes in float32"):
        begin(tmp_path).ask()


def test_threads_may_share_a_study(tmp_path):
    study = begin(tmp_path)

    def work(_):
        trial = study.ask()
        study.tell(trial, float(trial.number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))
    assert [record.value for record in study.trials] == list(range(40))
    alone = bonas.Study(tmp_path / "alone.db", SPACE, search=BY_CHANCE)
    alone.optimise(loss, trials=40, progress=False)
    assert rows(study) == rows(alone)


@pytest.mark.slow
def test_beyond_512_trials_the_info_says_that_a_subset_was_fitted(tmp_path):
    study = bonas.Study(tmp_path / "runs.db", SPACE)
    points = np.random.default_rng(0).random((513, 2))
    for u in points:
        study.enqueue(SPACE.decode(u))
    for u in points:
        study.tell(study.ask(), float(u.sum()))
    trial = study.ask()
    assert study.trials[trial.number].info["subset"].startswith("fitted to 512 of 513 trials")
    assert trial.config["a"] + trial.config["b"] < 0.3  # it has learnt where the values are small


def test_wrong_settings_are_refused(tmp_path):
    for settings, words in (
        ({"direction": "up"}, "direction is"),
        ({"seed": 0.5}, "a seed is a whole number"),
        ({"lease": 0.0}, "a lease is a number of seconds"),
    ):
        with pytest.raises(ValueError, match=words):
            begin(tmp_path, **settings)


def test_notes_are_kept(tmp_path):
    with begin(tmp_path) as study:
        study.note("data", {"rows": 3, "columns": ["a", None]})
        study.note("data", {"rows": 4})
        study.note("more", [1, 2])
        with pytest.raises(ValueError, match="JSON"):
            study.note("bad", float("nan"))
    assert begin(tmp_path).notes == {"data": {"rows": 4}, "more": [1, 2]}


def test_info_says_how_a_point_was_found(tmp_path):
    study = begin(tmp_path)
    study.ask()
    info = study.trials[0].info
    assert info["random"] is True
    assert info["fallback"] == ""
    assert info["acquisition"] is None
    json.dumps(info, allow_nan=False)


def test_tables_have_a_row_a_trial_and_a_column_a_parameter(tmp_path):
    space = bonas.Space(value=bonas.Float(0.0, 1.0), k=bonas.Choice("x", "y"), c=bonas.Int(1, 3, when={"k": "y"}))
    study = bonas.Study(tmp_path / "runs.db", space, search=random(space))
    study.optimise(lambda config: config["value"] if config["value"] < 0.8 else "much", trials=12, progress=False)
    study.csv(tmp_path / "runs.csv")
    with open(tmp_path / "runs.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    frame = study.frame()
    assert len(table) == len(frame) == 12
    for record, row, (number, series) in zip(study.trials, table, frame.iterrows(), strict=True):
        assert record.number == int(row["number"]) == number
        assert record.state == row["state"] == series["state"]
        assert record.config["value"] == float(row["config.value"]) == series["config.value"]
        assert (record.value is None) == (row["value"] == "") == np.isnan(series["value"])
        assert ("c" in record.config) == (row["c"] != "") == (not np.isnan(series["c"]))
        for name in ("asked", "begun", "ended"):
            read = datetime.fromisoformat(row[name])
            assert read.utcoffset() == series[name].utcoffset() == timedelta(0)
            assert abs(read.timestamp() - getattr(record, name)) < 1e-5
            assert abs(series[name].timestamp() - getattr(record, name)) < 1e-5


def test_times_that_are_not_there_yet_are_missing(tmp_path):
    study = begin(tmp_path)
    study.enqueue({"a": 0.5, "b": 0.5})
    study.csv(tmp_path / "runs.csv")
    with open(tmp_path / "runs.csv", newline="", encoding="utf-8") as file:
        assert [row["asked"] for row in csv.DictReader(file)] == [""]
    assert study.frame()["asked"].isna().all()


@pytest.mark.slow
def test_the_file_grows_with_the_trials_and_not_with_their_square(tmp_path):
    sizes = []
    for trials in (100, 200, 400):
        with begin(tmp_path) as study:
            study.optimise(loss, trials=trials, progress=False)
        sizes.append((tmp_path / "runs.db").stat().st_size)  # closed: the log is in it
    assert sizes[2] - sizes[1] < 3 * (sizes[1] - sizes[0])
    assert sizes[2] < 2000 * 400


def test_it_says_what_it_is(tmp_path):
    study = begin(tmp_path)
    assert repr(study).endswith("runs.db': no trials)")
    study.tell(study.ask(), 1.0)
    study.fail(study.ask(), "x")
    assert repr(study).endswith("runs.db': 1 told, 1 failed)")
