"""Studies on a Dask cluster of local processes, where some workers die."""

import os
import signal
import threading
import time

import pytest
from study import objectives
from study.objectives import SPACE

import bonas
from bonas.search import random
from bonas.study import StudyError
from bonas.study.trial import evaluate

distributed = pytest.importorskip("distributed")

RANDOM = random(SPACE)


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setenv("BONAS_TEST_FOLDER", str(tmp_path / "marks"))
    (tmp_path / "marks").mkdir()
    settings = {
        "n_workers": 3,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
    }
    with (
        distributed.LocalCluster(local_directory=str(tmp_path), **settings) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def open_study(folder, name="runs.db"):
    return bonas.Study(folder / name, SPACE, search=RANDOM)


@pytest.mark.slow
def test_the_trial_of_a_killed_worker_is_evaluated_by_another(client, tmp_path):
    """Every trial has the value that it has on one machine."""
    study, marks, killed = open_study(tmp_path), tmp_path / "marks", []

    def kill_one():
        while len(list(marks.iterdir())) < 5:  # the cluster is working
            time.sleep(0.01)
        latest = max(marks.iterdir(), key=lambda mark: mark.stat().st_mtime_ns).name
        killed.append(latest)
        os.kill(int(latest.rpartition("-")[2]), signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    study.optimize(
        objectives.known_worker,
        trials=12,
        executor=client.get_executor(),
        progress=False,
    )
    killer.join()
    trials = study.trials
    assert [record.state for record in trials] == ["complete"] * 12
    assert all(record.value == objectives.loss(record.config) for record in trials)
    evaluated = [mark.name.rpartition("-")[0] for mark in marks.iterdir()]
    fatal = killed[0].rpartition("-")[0]
    assert evaluated.count(fatal) == 2
    assert len({mark.name.rpartition("-")[2] for mark in marks.iterdir()}) >= 3, (
        "one worker did everything"
    )
    alone = open_study(tmp_path, "alone.db")
    alone.optimize(objectives.loss, trials=12, progress=False)
    assert {record.u for record in alone.trials} == {record.u for record in trials}


@pytest.mark.slow
def test_a_trial_that_kills_its_workers_fails_after_the_second(client, tmp_path):
    study = open_study(tmp_path)
    study.enqueue({"a": 0.0, "b": 1.0})
    study.enqueue({"a": 0.0, "b": 0.1})
    study.optimize(
        objectives.deadly,
        trials=2,
        executor=client.get_executor(),
        workers=2,
        progress=False,
    )
    assert [record.error for record in study.trials] == [
        "2 workers died while evaluating it",
        "",
    ]


@pytest.mark.slow
def test_reports_of_a_worker_that_cannot_reach_the_file_come_with_its_result(
    client, tmp_path
):
    """The worker finds no file at the path of the study, as on another machine."""
    study = open_study(tmp_path)
    hidden = tmp_path / "hidden"
    asked = study.ask()
    asked._path = hidden
    outcome = client.submit(
        evaluate, objectives.reporting, asked, "once", None
    ).result()
    a = asked.config["a"]
    assert outcome.reports == ((0, a), (1, a + 1), (2, a + 2))
    assert outcome.value == a
    assert not hidden.exists()


@pytest.mark.slow
def test_trials_of_a_closed_cluster_return_to_the_queue(tmp_path, client):
    study = open_study(tmp_path)

    def close(event):
        if event.done == 3:
            client.cluster.close()

    with pytest.raises(StudyError, match="the executor failed"):
        study.optimize(
            objectives.known_worker,
            trials=30,
            executor=client.get_executor(),
            workers=3,
            progress=False,
            callback=close,
        )
    states = [record.state for record in study.trials]
    assert set(states) == {"complete", "waiting"}
