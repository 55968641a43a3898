"""The executor makes no difference to the results."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

import jax.numpy as jnp
import pytest
from study import objectives
from study.objectives import SPACE, loss

import bonas
from bonas.search import ModelWarning, Search, ask_info, random
from bonas.study import StudyError
from bonas.study.executors import ProcessPool, choose_executor

RANDOM = random(SPACE)


def open_study(folder, name="runs.db", **settings):
    return bonas.Study(folder / name, SPACE, search=RANDOM, **settings)


def outcome(study):
    return [
        (record.number, record.state, record.u, record.value, record.reports)
        for record in study.trials
    ]


@pytest.mark.slow
def test_executors_make_no_difference(tmp_path):
    """With one worker, points, values and reports are the same as in this process."""
    pools = {
        "threads": {"executor": ThreadPoolExecutor(1)},
        "processes": {
            "executor": ProcessPoolExecutor(
                1, mp_context=multiprocessing.get_context("spawn")
            )
        },
        "workers": {"workers": 1},
    }
    here = open_study(tmp_path, "here.db")
    here.optimize(objectives.reporting, trials=6, progress=False)
    for name, where in pools.items():
        study = open_study(tmp_path, f"{name}.db")
        study.optimize(objectives.reporting, trials=6, progress=False, **where)
        assert outcome(study) == outcome(here), name
        if "executor" in where:
            where["executor"].shutdown()


def test_later_points_depend_on_values_only(tmp_path):
    """A study that gets the same values in the same order proposes the same next point."""
    study = open_study(tmp_path, "many.db")
    with ThreadPoolExecutor(3) as pool:
        study.optimize(objectives.slow, trials=9, executor=pool, progress=False)
    assert sorted(
        record.number for record in study.trials if record.state == "complete"
    ) == list(range(9))
    by_hand = open_study(tmp_path, "hand.db")
    for record in study.trials:
        trial = by_hand.ask()
        assert tuple(trial.u) == record.u
        by_hand.tell(trial, record.value)
    assert tuple(by_hand.ask().u) == tuple(study.ask().u)


def test_a_new_point_is_asked_as_soon_as_a_worker_is_free(tmp_path):
    """A slow evaluation does not block the other worker."""
    gate = threading.Event()

    def objective(config, trial):
        if trial.number == 0:
            assert gate.wait(60.0)
        elif trial.number == 5:
            gate.set()
        return loss(config)

    study = open_study(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        study.optimize(objective, trials=6, executor=pool, progress=False)
    ended = {record.number: record.end_time for record in study.trials}
    assert all(record.state == "complete" for record in study.trials)
    assert ended[0] > max(ended[number] for number in (1, 2, 3, 4))


def test_the_number_of_trials_is_not_exceeded(tmp_path):
    study = open_study(tmp_path)
    for _ in range(4):
        study.enqueue({"a": 0.5, "b": 0.5})
    with ThreadPoolExecutor(4) as pool:
        study.optimize(loss, trials=2, executor=pool, progress=False)
        assert [record.state for record in study.trials] == [
            "complete",
            "complete",
            "waiting",
            "waiting",
        ]
        study.optimize(loss, trials=7, executor=pool, progress=False)
    assert [record.state for record in study.trials] == ["complete"] * 7


def test_no_trial_starts_after_the_time_limit(tmp_path):
    study = open_study(tmp_path)
    study.ask()  # compile first; the open trial does not delay the end
    began = time.monotonic()
    study.optimize(objectives.slow, seconds=0.5, progress=False)
    assert 0.5 <= time.monotonic() - began < 10.0
    assert len(study.trials) > 1


def test_callbacks_receive_every_change_of_state(tmp_path):
    study, events = open_study(tmp_path), []

    def objective(config):
        return loss(config) if config["b"] < 0.7 else None

    study.optimize(objective, trials=6, progress=False, callback=events.append)
    kinds = [(event.state, event.trial.number) for event in events]
    states = {record.number: record.state for record in study.trials}
    assert kinds == [
        pair
        for number in range(6)
        for pair in (("running", number), (states[number], number))
    ]
    assert [event.done for event in events[1::2]] == [1, 2, 3, 4, 5, 6]
    assert events[-1].best == study.best
    assert [event.running for event in events[::2]] == [
        (number,) for number in range(6)
    ]


def test_the_progress_bar_shows_the_best_value(tmp_path, capsys):
    study = open_study(tmp_path)
    study.optimize(loss, trials=5)
    shown = capsys.readouterr().out
    assert "5/5" in shown
    assert f"best {study.best.value:.6g}" in shown


def test_an_interrupt_returns_the_trial_to_the_queue_and_is_raised(tmp_path):
    study, whole = open_study(tmp_path), open_study(tmp_path, "whole.db")

    def interrupted(config, trial):
        if trial.number == 2 and not interrupts:
            interrupts.append(1)
            raise KeyboardInterrupt
        return loss(config)

    interrupts = []
    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, trials=5, progress=False)
    assert [record.state for record in study.trials] == [
        "complete",
        "complete",
        "waiting",
    ]
    study.optimize(interrupted, trials=5, progress=False)
    whole.optimize(loss, trials=5, progress=False)
    assert [record.u for record in study.trials] == [
        record.u for record in whole.trials
    ]


@dataclass(frozen=True)
class BrokenModel(Search):
    """A search that reports at every ask that its model is not finite."""

    space: bonas.Space

    def init(self, key, capacity):
        return jnp.zeros(())

    def ask(self, key, state):
        x = self.space.sample(key, 1)
        return x, state, ask_info(x, fallback=4, random=True)

    def tell(self, state, observation):
        return state


@pytest.mark.parametrize(
    ("problem", "ending"),
    [(KeyboardInterrupt, KeyboardInterrupt), (RuntimeError, StudyError)],
)
def test_a_search_that_is_ended_warns_about_its_model_too(tmp_path, problem, ending):
    def fails(config):
        raise problem

    study = bonas.Study(tmp_path / "runs.db", SPACE, search=BrokenModel(SPACE))
    with (
        pytest.warns(
            ModelWarning, match="its fit or predictions were not finite"
        ) as found,
        pytest.raises(ending),
    ):
        study.optimize(fails, progress=False)
    assert [each.filename for each in found] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ending):
            study.optimize(fails, progress=False)


INTERRUPTED = """
import signal, sys
import bonas
from bonas.search import random
from study.objectives import SPACE, slow
# A shell that starts the tests in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
bonas.configure()
if __name__ == "__main__":
    study = bonas.Study(sys.argv[1], SPACE, search=random(SPACE))
    show = lambda event: print(event.state, flush=True)
    study.optimize(slow, workers=2, progress=False, callback=show)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent_process(how, tmp_path):
    """After an interrupt, trials are in the queue; after a kill, they are asked again at once."""
    script, path = tmp_path / "script.py", tmp_path / "runs.db"
    script.write_text(INTERRUPTED)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen(
        [sys.executable, script, path], env=environment, start_new_session=True, **pipes
    )
    while "complete" not in (line := child.stdout.readline()):
        assert line, child.stderr.read()
    os.killpg(child.pid, how) if how == signal.SIGINT else child.kill()
    _, error = child.communicate(timeout=60)
    # the script's own
    assert how == signal.SIGKILL or error.count("Traceback") == 1, error
    deadline = time.monotonic() + 30.0
    while any_left(child.pid):
        assert time.monotonic() < deadline, "a worker is left"
        time.sleep(0.05)
    study = open_study(tmp_path)
    unfinished = [
        record.number for record in study.trials if record.state != "complete"
    ]
    assert unfinished
    assert how == signal.SIGKILL or all(
        study.trials[number].state == "waiting" for number in unfinished
    )
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
    study, began = open_study(tmp_path), time.monotonic()
    study.optimize(
        objectives.hangs, trials=6, workers=2, trial_seconds=0.3, progress=False
    )
    assert time.monotonic() - began < 40.0
    for record in study.trials:
        assert record.error == (
            "took longer than 0.3 s" if record.config["b"] > 0.5 else ""
        )


@pytest.mark.slow
def test_a_process_that_cannot_be_interrupted_is_killed(tmp_path):
    study, began = open_study(tmp_path), time.monotonic()
    study.enqueue({"a": 0.0, "b": 1.0})
    study.optimize(
        objectives.deaf, trials=3, workers=1, trial_seconds=0.3, progress=False
    )
    assert time.monotonic() - began < 40.0
    assert study.trials[0].error == "took longer than 0.3 s"
    assert [record.state for record in study.trials[1:]] == ["complete", "complete"]


@pytest.mark.slow
def test_a_thread_that_hangs_is_not_used_again(tmp_path):
    gate = threading.Event()

    def hangs(config, trial):
        if trial.number == 1:
            gate.wait(60.0)
        return loss(config)

    study = open_study(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        study.optimize(
            hangs, trials=6, executor=pool, trial_seconds=0.3, progress=False
        )
        gate.set()
    assert [record.state for record in study.trials] == [
        "complete",
        "failed",
        "complete",
        "complete",
        "complete",
        "complete",
    ]


@pytest.mark.slow
def test_the_search_ends_if_every_worker_hangs(tmp_path):
    gate, study = threading.Event(), open_study(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(StudyError, match="every worker hangs"):
            study.optimize(
                lambda config: gate.wait(60.0),
                trials=6,
                executor=pool,
                trial_seconds=0.1,
                progress=False,
            )
        gate.set()


@pytest.mark.slow
def test_a_worker_that_dies_returns_its_trial_once_and_then_fails_it(tmp_path):
    study, events = open_study(tmp_path), []
    watch = {
        "callback": lambda event: events.append((event.state, event.trial.number)),
        "progress": False,
    }
    study.optimize(objectives.deadly, trials=6, workers=2, **watch)
    deadly = [record.number for record in study.trials if record.config["b"] > 0.5]
    assert deadly
    for record in study.trials:
        assert record.error == (
            "2 workers died while evaluating it" if record.number in deadly else ""
        )
        expected = (
            ["running", "waiting", "running", "failed"]
            if record.number in deadly
            else ["running", "complete"]
        )
        assert [kind for kind, number in events if number == record.number] == expected


@pytest.mark.slow
def test_a_broken_pool_ends_the_search_and_its_trials_wait(tmp_path):
    study = open_study(tmp_path)
    study.enqueue({"a": 0.0, "b": 1.0})
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.raises(StudyError, match="failed"),
    ):
        study.optimize(objectives.deadly, trials=6, executor=pool, progress=False)
    assert [record.state for record in study.trials] == ["waiting"]
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.raises(StudyError, match="failed"),
    ):
        study.optimize(objectives.deadly, trials=6, executor=pool, progress=False)
    assert [record.state for record in study.trials] == ["failed"]


def test_the_lease_is_renewed_while_a_trial_runs(tmp_path):
    """Another process does not claim a trial that runs longer than its lease."""
    study = open_study(tmp_path, lease=0.2)

    def slow(config):
        time.sleep(0.6)
        assert open_study(tmp_path, lease=0.2).ask().number > 0
        return loss(config)

    study.optimize(slow, trials=1, progress=False)
    assert study.trials[0].state == "complete"


def test_the_first_of_two_results_counts(tmp_path):
    """If another process claimed the trial and was faster, its value stays, without an error."""
    study = open_study(tmp_path)

    def overtaken(config, trial):
        if trial.number == 0:
            open_study(tmp_path).tell(0, -1.0)
        return loss(config)

    study.optimize(overtaken, trials=2, progress=False)
    assert study.trials[0].value == -1.0


def test_wrong_settings_are_refused(tmp_path):
    study = open_study(tmp_path)
    for settings, words in (
        ({"trials": 0}, "trials must be an integer of at least 1"),
        ({"trials": 2.5}, "trials must be an integer of at least 1; got 2.5"),
        ({"trials": True}, "trials must be an integer"),
        ({"seconds": -1}, "seconds must be a positive number; got -1"),
        ({"seconds": float("nan")}, "seconds must be a positive number"),
        ({"workers": 0}, "workers must be an integer"),
        ({"trial_seconds": 0.0}, "trial_seconds must be a positive number"),
        ({"executor": ProcessPool(1)}, "pass workers= too"),
    ):
        with pytest.raises(ValueError, match=words):
            study.optimize(loss, **{"trials": 1, "progress": False} | settings)
    with pytest.raises(StudyError, match="cannot be sent to another process"):
        study.optimize(lambda config: 1.0, trials=1, workers=1, progress=False)
    errors = []

    def elsewhere():
        try:
            bonas.Study(tmp_path / "runs.db", SPACE).optimize(
                loss, trials=1, trial_seconds=1.0, progress=False
            )
        except ValueError as problem:
            errors.append(str(problem))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "in another process" in errors[0]


UNGUARDED = """
import sys
import bonas
from bonas.search import random
from study.objectives import SPACE, loss
study = bonas.Study(sys.argv[1], SPACE, search=random(SPACE))
study.optimize(loss, trials=4, workers=2, progress=False)
"""


@pytest.mark.slow
def test_a_script_without_a_main_guard_gets_a_clear_error_and_uses_no_trial(tmp_path):
    script, path = tmp_path / "script.py", tmp_path / "runs.db"
    script.write_text(UNGUARDED)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, script, path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert "could not be started" in done.stderr.splitlines()[-1]
    assert "imports the script that started it" in done.stderr
    assert {record.state for record in bonas.Study(path).trials} == {"waiting"}


def test_an_objective_defined_in_an_interpreter_is_refused(tmp_path):
    typed = (
        "import bonas; from bonas.search import random; from study.objectives import SPACE\n"
        "def f(config): return 1.0\n"
        f"study = bonas.Study({str(tmp_path / 'runs.db')!r}, SPACE, search=random(SPACE))\n"
        "study.optimize(f, trials=2, workers=2, progress=False)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", typed],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "define it with `def` in a file" in done.stderr
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
    study.optimize(inner, trials=4, workers=2, progress=False)
"""


@pytest.mark.slow
def test_an_objective_that_workers_cannot_import_gives_one_error_and_uses_no_trial(
    tmp_path,
):
    script, path = tmp_path / "script.py", tmp_path / "runs.db"
    script.write_text(GUARDED)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, script, path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1, done.stderr  # the script's own
    assert (
        "cannot import the objective or its dependencies (Can't get attribute 'inner'"
        in done.stderr.splitlines()[-1]
    )
    assert "not under `if __name__" in done.stderr.splitlines()[-1]
    assert {record.state for record in bonas.Study(path).trials} == {"waiting"}


def test_the_slots_of_a_dask_executor_come_from_its_client():
    """An executor whose client has no workers needs workers=."""

    class Client:
        def __init__(self, threads):
            self.nthreads = lambda: threads

    class Cluster(Executor):
        def __init__(self, threads):
            self._client = Client(threads)

    assert choose_executor(Cluster({"tcp://a": 2, "tcp://b": 3}), None, loss)[1] == 5
    with pytest.raises(ValueError, match="pass workers= too"):
        choose_executor(Cluster({}), None, loss)
