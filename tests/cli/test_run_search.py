"""The progress of a search in words, the connection to a cluster, and Ctrl-C."""

import signal
import time

import pytest

import bonas
from bonas.cli.run_search import cluster, count_done, interrupt, progress_text
from bonas.search import random
from bonas.tabular import Job

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0))


def test_interrupted_trials_are_to_repeat(tmp_path):
    job = Job("iris", "")
    with bonas.Study(tmp_path / "s.db", SPACE, search=random(SPACE)) as study:
        study.tell(study.ask(), 1.0)
        assert progress_text(study, job) == "1 trial done"
        study.fail(study.ask(), "no")
        study.ask()
        assert progress_text(study, job) == "2 trials done, 1 to repeat"
        assert count_done(study, job) == 2


def test_idle_trials_are_not_counted(tmp_path):
    job = Job("iris", "", method="curves")
    with bonas.Study(tmp_path / "s.db", SPACE, search=random(SPACE)) as study:
        for reports in ((0.5,), ()):
            trial = study.ask()
            for step, value in enumerate(reports):
                trial.report(step, value)
            study.tell(trial, 0.5)
        assert progress_text(study, job) == "1 trial done"


@pytest.mark.parametrize(
    ("message", "words"),
    [("", "no Dask scheduler answers at this address"), ("no route", "no route")],
)
def test_a_failed_connection_has_a_reason(monkeypatch, message, words):
    distributed = pytest.importorskip("dask.distributed")

    def fail(*arguments, **settings):
        raise OSError(message) if message else TimeoutError

    monkeypatch.setattr(distributed, "Client", fail)
    expected = pytest.raises(ValueError, match=f"--scheduler tcp://a:1: {words}$")
    with expected, cluster("tcp://a:1"):
        pass


def test_an_interrupt_in_a_callback_of_jax_is_raised_later():
    """An exception in JAX's garbage-collection callback is ignored."""

    def _xla_gc_callback():
        signal.raise_signal(signal.SIGINT)
        return "not interrupted"

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        assert _xla_gc_callback() == "not interrupted"
        with pytest.raises(KeyboardInterrupt):
            time.sleep(30.0)
    finally:
        signal.signal(signal.SIGINT, before)
