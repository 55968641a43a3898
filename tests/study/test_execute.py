"""Where evaluations run makes no difference to what comes of them."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from study import objectives
from study.objectives import SPACE, loss

import bonas
from bonas.search import random
from bonas.study import StudyError
from bonas.study.workers import Processes, chosen

BY_CHANCE = random(SPACE)


def begin(folder, name="runs.db", **settings):
    return bonas.Study(folder / name, SPACE, search=BY_CHANCE, **settings)


def outcome(study):
    return [(record.number, record.state, record.u, record.value, record.reports) for record in study.trials]


@pytest.mark.slow
def test_executors_make_no_difference(tmp_path):
    """With one worker the points are those of a search in this process; so are values and reports."""
    pools = {
        "threads": {"executor": ThreadPoolExecutor(1)},
        "processes": {"executor": ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))},
        "workers": {"workers": 1},
    }
    here = begin(tmp_path, "here.db")
    here.optimise(objectives.reporting, trials=6, progress=False)
    for name, where in pools.items():
        study = begin(tmp_path, f"{name}.db")
        study.optimise(objectives.reporting, trials=6, progress=False, **where)
        assert outcome(study) == outcome(here), name
        if "executor" in where:
            where["executor"].shutdown()


def test_told_values_alone_decide_about_later_points(tmp_path):
    """Many at once, in whatever order they end: the next point is that of a study that is told the same in the same order."""
    study = begin(tmp_path, "many.db")
    with ThreadPoolExecutor(3) as pool:
        study.optimise(objectives.slow, trials=9, executor=pool, progress=False)
    assert sorted(record.number for record in study.trials if record.state == "told") == list(range(9))
    by_hand = begin(tmp_path, "hand.db")
    for record in study.trials:
        trial = by_hand.ask()
        assert tuple(trial.u) == record.u
        by_hand.tell(trial, record.value)
    assert tuple(by_hand.ask().u) == tuple(study.ask().u)


def test_a_new_point_is_asked_as_soon_as_a_worker_is_free(tmp_path):
    """One slow evaluation does not keep the other worker waiting."""
    gate = threading.Event()

    def objective(config, trial):
        if trial.number == 0:
            assert gate.wait(60.0)
        elif trial.number == 5:
            gate.set()
        return loss(config)

    study = begin(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        study.optimise(objective, trials=6, executor=pool, progress=False)
    ended = {record.number: record.ended for record in study.trials}
    assert all(record.state == "told" for record in study.trials)
    assert ended[0] > max(ended[number] for number in (1, 2, 3, 4))


def test_no_more_than_the_trials_are_evaluated(tmp_path):
    study = begin(tmp_path)
    for _ in range(4):
        study.enqueue({"a": 0.5, "b": 0.5})
    with ThreadPoolExecutor(4) as pool:
        study.optimise(loss, trials=2, executor=pool, progress=False)
        assert [record.state for record in study.trials] == ["told", "told", "queued", "queued"]
        study.optimise(loss, trials=7, executor=pool, progress=False)
    assert [record.state for record in study.trials] == ["told"] * 7


def test_time_is_up_after_the_seconds(tmp_path):
    study = begin(tmp_path)
    study.ask()  # compiled, and left open: it is not waited for
    began = time.monotonic()
    study.optimise(objectives.slow, seconds=0.5, progress=False)
    assert 0.5 <= time.monotonic() - began < 10.0
    assert len(study.trials) > 1


def test_events_tell_what_happens(tmp_path):
    study, events = begin(tmp_path), []

    def objective(config):
        return loss(config) if config["b"] < 0.7 else None

    study.optimise(objective, trials=6, progress=False, watch=events.append)
    kinds = [(event.kind, event.trial.number) for event in events]
    states = {record.number: record.state for record in study.trials}
    assert kinds == [pair for number in range(6) for pair in (("asked", number), (states[number], number))]
    assert [event.done for event in events[1::2]] == [1, 2, 3, 4, 5, 6]
    assert events[-1].best == study.best
    assert [event.running for event in events[::2]] == [(number,) for number in range(6)]


def test_the_line_shows_the_best_so_far(tmp_path, capsys):
    study = begin(tmp_path)
    study.optimise(loss, trials=5)
    shown = capsys.readouterr().out
    assert "5/5" in shown
    assert f"best {study.best.value:.6g}" in shown


def test_an_interrupt_puts_the_trial_back_and_is_raised(tmp_path):
    study, whole = begin(tmp_path), begin(tmp_path, "whole.db")

    def interrupted(config, trial):
        if trial.number == 2 and not interrupts:
            interrupts.append(1)
            raise KeyboardInterrupt
        return loss(config)

    interrupts = []
    with pytest.raises(KeyboardInterrupt):
        study.optimise(interrupted, trials=5, progress=False)
    assert [record.state for record in study.trials] == ["told", "told", "queued"]
    study.optimise(interrupted, trials=5, progress=False)
    whole.optimise(loss, trials=5, progress=False)
    assert [record.u for record in study.trials] == [record.u for record in whole.trials]


INTERRUPTED = """
import signal, sys
import bonas
from bonas.search import random
from study.objectives import SPACE, slow
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts the tests in the background has it ignored
bonas.configure()
if __name__ == "__main__":
    study = bonas.Study(sys.argv[1], SPACE, search=random(SPACE))
    study.optimise(slow, workers=2, progress=False, watch=lambda event: print(event.kind, flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind_by_a_process_that_ends(how, tmp_path):
    """Its workers end with it. After an interrupt its trials are in the queue; after a kill they are asked again at once."""
    script, path = tmp_path / "script.py", tmp_path / "runs.db"
    script.write_text(INTERRUPTED)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, script, path], env=environment, start_new_session=True, **pipes)
    while "told" not in (line := child.stdout.readline()):
        assert line, child.stderr.read()
    os.killpg(child.pid, how) if how == signal.SIGINT else child.kill()
    _, error = child.communicate(timeout=60)
    assert how == signal.SIGKILL or error.count("Traceback") == 1, error  # the script's own
    deadline = time.monotonic() + 30.0
    while any_left(child.pid):
        assert time.monotonic() < deadline, "a worker is left"
        time.sleep(0.05)
    study = begin(tmp_path)
    unfinished = [record.number for record in study.trials if record.state != "told"]
    assert unfinished
    assert how == signal.SIGKILL or all(study.trials[number].state == "queued" for number in unfinished)
    assert study.ask().number == unfinished[0]


def any_left(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


# Workers that hang or die


@pytest.mark.slow
def test_a_process_that_hangs_is_killed(tmp_path):
    study, began = begin(tmp_path), time.monotonic()
    study.optimise(objectives.hangs, trials=6, workers=2, trial_seconds=0.3, progress=False)
    assert time.monotonic() - began < 40.0
    for record in study.trials:
        assert record.error == ("it took longer than 0.3 s" if record.config["b"] > 0.5 else "")


@pytest.mark.slow
def test_a_process_that_cannot_be_interrupted_is_killed(tmp_path):
    study, began = begin(tmp_path), time.monotonic()
    study.enqueue({"a": 0.0, "b": 1.0})
    study.optimise(objectives.deaf, trials=3, workers=1, trial_seconds=0.3, progress=False)
    assert time.monotonic() - began < 40.0
    assert study.trials[0].error == "it took longer than 0.3 s"
    assert [record.state for record in study.trials[1:]] == ["told", "told"]


@pytest.mark.slow
def test_a_thread_that_hangs_is_not_used_again(tmp_path):
    gate = threading.Event()

    def hangs(config, trial):
        if trial.number == 1:
            gate.wait(60.0)
        return loss(config)

    study = begin(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        study.optimise(hangs, trials=6, executor=pool, trial_seconds=0.3, progress=False)
        gate.set()
    assert [record.state for record in study.trials] == ["told", "failed", "told", "told", "told", "told"]


@pytest.mark.slow
def test_where_every_worker_hangs_it_ends(tmp_path):
    gate, study = threading.Event(), begin(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(StudyError, match="every worker hangs"):
            study.optimise(lambda config: gate.wait(60.0), trials=6, executor=pool, trial_seconds=0.1, progress=False)
        gate.set()


@pytest.mark.slow
def test_a_worker_that_dies_returns_its_trial_once_and_then_fails_it(tmp_path):
    study, events = begin(tmp_path), []
    watch = {"watch": lambda event: events.append((event.kind, event.trial.number)), "progress": False}
    study.optimise(objectives.deadly, trials=6, workers=2, **watch)
    deadly = [record.number for record in study.trials if record.config["b"] > 0.5]
    assert deadly
    for record in study.trials:
        assert record.error == ("2 workers died while they evaluated it" if record.number in deadly else "")
        expected = ["asked", "returned", "asked", "failed"] if record.number in deadly else ["asked", "told"]
        assert [kind for kind, number in events if number == record.number] == expected


@pytest.mark.slow
def test_a_pool_that_breaks_ends_it_and_its_trials_wait(tmp_path):
    study = begin(tmp_path)
    study.enqueue({"a": 0.0, "b": 1.0})
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.raises(StudyError, match="failed"),
    ):
        study.optimise(objectives.deadly, trials=6, executor=pool, progress=False)
    assert [record.state for record in study.trials] == ["queued"]
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.raises(StudyError, match="failed"),
    ):
        study.optimise(objectives.deadly, trials=6, executor=pool, progress=False)
    assert [record.state for record in study.trials] == ["failed"]


def test_the_lease_is_renewed_while_it_runs(tmp_path):
    """An evaluation longer than its lease is not asked again by another process."""
    study = begin(tmp_path, lease=0.2)

    def slow(config):
        time.sleep(0.6)
        assert begin(tmp_path, lease=0.2).ask().number > 0
        return loss(config)

    study.optimise(slow, trials=1, progress=False)
    assert study.trials[0].state == "told"


def test_of_two_who_evaluate_a_trial_the_first_counts(tmp_path):
    """Another process that took a trial over, and was faster: no error, and its value stays."""
    study = begin(tmp_path)

    def overtaken(config, trial):
        if trial.number == 0:
            begin(tmp_path).tell(0, -1.0)
        return loss(config)

    study.optimise(overtaken, trials=2, progress=False)
    assert study.trials[0].value == -1.0


def test_wrong_settings_are_refused(tmp_path):
    study = begin(tmp_path)
    for settings, words in (
        ({"trials": 0}, "trials is a whole number of at least 1"),
        ({"trials": 2.5}, "trials is a whole number of at least 1; got 2.5"),
        ({"trials": True}, "trials is a whole number"),
        ({"seconds": -1}, "seconds is a number above 0; got -1"),
        ({"seconds": float("nan")}, "seconds is a number above 0"),
        ({"workers": 0}, "workers is a whole number"),
        ({"trial_seconds": 0.0}, "trial_seconds is a number above 0"),
        ({"executor": Processes(1)}, "give workers= too"),
    ):
        with pytest.raises(ValueError, match=words):
            study.optimise(loss, **{"trials": 1, "progress": False} | settings)
    with pytest.raises(StudyError, match="cannot be sent to another process"):
        study.optimise(lambda config: 1.0, trials=1, workers=1, progress=False)
    errors = []

    def elsewhere():
        try:
            bonas.Study(tmp_path / "runs.db", SPACE).optimise(loss, trials=1, trial_seconds=1.0, progress=False)
        except ValueError as problem:
            errors.append(str(problem))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "needs a process" in errors[0]


UNGUARDED = """
import sys
import bonas
from bonas.search import random
from study.objectives import SPACE, loss
study = bonas.Study(sys.argv[1], SPACE, search=random(SPACE))
study.optimise(loss, trials=4, workers=2, progress=False)
"""


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so_and_spends_no_trial(tmp_path):
    script, path = tmp_path / "script.py", tmp_path / "runs.db"
    script.write_text(UNGUARDED)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script, path], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "could not be started" in done.stderr.splitlines()[-1]
    assert "runs the script that started it from the top" in done.stderr
    assert {record.state for record in bonas.Study(path).trials} == {"queued"}


def test_what_is_typed_into_an_interpreter_is_not_sent_to_processes(tmp_path):
    typed = (
        "import bonas; from bonas.search import random; from study.objectives import SPACE\n"
        "def f(config): return 1.0\n"
        f"study = bonas.Study({str(tmp_path / 'runs.db')!r}, SPACE, search=random(SPACE))\n"
        "study.optimise(f, trials=2, workers=2, progress=False)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", typed], env=environment, capture_output=True, text=True, timeout=300)
    assert "is not known there. Define it by `def` in a file" in done.stderr
    assert bonas.Study(tmp_path / "runs.db").trials == []


GUARDED = """
import sys
import bonas
from bonas.search import random
from study.objectives import SPACE
if __name__ == "__main__":
    def inner(config):
        return 1.0
    study = bonas.Study(sys.argv[1], SPACE, search=random(SPACE))
    study.optimise(inner, trials=4, workers=2, progress=False)
"""


@pytest.mark.slow
def test_an_objective_that_workers_do_not_find_is_named_once_and_spends_no_trial(tmp_path):
    script, path = tmp_path / "script.py", tmp_path / "runs.db"
    script.write_text(GUARDED)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script, path], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1, done.stderr  # the script's own
    assert "cannot find the objective, or what it needs (Can't get attribute 'inner'" in done.stderr.splitlines()[-1]
    assert "not under `if __name__" in done.stderr.splitlines()[-1]
    assert {record.state for record in bonas.Study(path).trials} == {"queued"}


def test_the_executor_of_a_cluster_knows_how_many_it_runs_at_once():
    """By its client, as Dask's does; one whose client knows of no workers is asked about."""

    class Client:
        def __init__(self, threads):
            self.nthreads = lambda: threads

    class Cluster(Executor):
        def __init__(self, threads):
            self._client = Client(threads)

    assert chosen(Cluster({"tcp://a": 2, "tcp://b": 3}), None, loss)[1] == 5
    with pytest.raises(ValueError, match="give workers= too"):
        chosen(Cluster({}), None, loss)
