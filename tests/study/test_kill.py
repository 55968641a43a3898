"""Processes that are killed: nothing told is lost, and the search goes on as if nothing had happened."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from study import searcher

import bonas

LIVES = 20
TRIALS = 80


def start(path, log, trials=TRIALS):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "study.searcher", str(path), str(log), str(trials)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def logged(log):
    """What was known to be told; a line that was cut off by a kill was not yet known."""
    lines = [line.split() for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")] if log.exists() else []
    return [(int(number), float(value)) for number, value in lines]


def wait_for_news(child, log, values, seconds=300.0):
    """Until so many values are told, the seconds are over, or the child has ended; how long that took."""
    began = time.monotonic()
    while child.poll() is None and len(logged(log)) < values and time.monotonic() - began < seconds:
        time.sleep(0.01)
    return time.monotonic() - began


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    study = searcher.opened(tmp_path_factory.mktemp("whole") / "runs.db")
    study.optimise(searcher.loss, trials=TRIALS, progress=False)
    return study.trials


@pytest.mark.slow
def test_twenty_kills_change_nothing(tmp_path, uninterrupted):
    """Half of the lives end at any moment from their start on, the others at any moment after a value was told."""
    path, log, chance = tmp_path / "runs.db", tmp_path / "log", np.random.default_rng(0)
    for life in range(LIVES):
        before = len(logged(log))
        child = start(path, log)
        if life % 2 == 0:
            start_up = wait_for_news(child, log, before + 1)
            time.sleep(chance.uniform(0.0, 0.2))
        else:  # no more than two values, so that there is something left for the other lives
            wait_for_news(child, log, before + 2, chance.uniform(0.0, start_up))
        assert child.poll() is None, f"life {life} ended by itself: {child.stderr.read()}"
        child.kill()
        child.communicate()
    assert LIVES // 2 <= len(logged(log)) < TRIALS
    child = start(path, log)
    assert child.wait(timeout=300) == 0, child.stderr.read()
    trials = bonas.Study(path).trials
    assert [record.u for record in trials] == [record.u for record in uninterrupted]  # bit for bit
    assert [record.value for record in trials] == [record.value for record in uninterrupted]
    known = logged(log)
    assert len({number for number, _ in known}) == len(known), "a trial was told twice"
    assert all(trials[number].value == value for number, value in known)


@pytest.mark.slow
def test_two_processes_share_a_study(tmp_path):
    """No trial is evaluated by both, none is missing, and no value is lost."""
    path, logs = tmp_path / "runs.db", [tmp_path / "one", tmp_path / "two"]
    children = [start(path, log, 40) for log in logs]
    for child in children:
        assert child.wait(timeout=300) == 0, child.stderr.read()
    trials = bonas.Study(path).trials
    assert [record.number for record in trials] == list(range(40))
    assert all(record.state == "told" for record in trials)
    assert len({record.u for record in trials}) == 40
    by_process = [dict(logged(log)) for log in logs]
    assert not by_process[0].keys() & by_process[1].keys()
    assert by_process[0] | by_process[1] == {record.number: record.value for record in trials}
    assert len({record.worker for record in trials}) == 2, "one of them did all the work"
    assert all(record.value == searcher.loss(record.config) for record in trials)
