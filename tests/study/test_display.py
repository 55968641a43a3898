"""What a person sees of a search: lines, or a live display."""

import pytest
from rich.console import Console

from bonas.study.display import Lines, Live, Silent, time_left
from bonas.study.execute import Event
from bonas.study.store import Record


def event(kind, number=0, value=None, done=0, error="", best=None):
    record = Record(number, "told", {"a": number}, (0.0,), value=value, cost=1.25, error=error)
    return Event(kind, record, done, Record(best, "told", {}, (0.0,), value=0.5) if best is not None else None, ())


def words(trial):
    return f"network {trial.config['a']}"


@pytest.mark.parametrize(
    ("happened", "line"),
    [
        (event("told", 3, 0.75, 4, best=2), "[4/10] trial 3: RMSE 0.75  (best 0.5)  network 3  1.2 s\n"),
        (event("stopped", 3, 0.75, 4, best=2), "[4/10] trial 3: RMSE 0.75  (best 0.5)  network 3  1.2 s\n"),
        (event("failed", 0, None, 1, "it diverged"), "[1/10] trial 0: failed: it diverged  (no best yet)  network 0  1.2 s\n"),
        (event("asked", 3), ""),
    ],
)
def test_every_trial_that_ends_is_a_line(capsys, happened, line):
    Lines(10, words, "RMSE").watch(happened)
    assert capsys.readouterr().out == line


def test_a_live_display_shows_what_is_training_and_what_was_found():
    live = Live(10, words, "log loss", 0, None)
    live.watch(event("asked", 5, done=4, best=2))
    live.watch(event("asked", 6, done=4, best=2))
    live.watch(event("told", 5, 0.75, done=5, best=2))
    console = Console(width=120)
    with console.capture() as captured:
        console.print(live._draw())
    shown = captured.get()
    assert "5/10 trials" in shown
    assert "best log loss 0.5 (trial 2)" in shown
    assert "training network 6" in shown
    assert "network 5" not in shown


def test_silence_is_silent(capsys):
    with Silent() as silent:
        silent.say("something")
        silent.turn_to("something")
        silent.watch(event("told", 0, 1.0, 1))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("spent", "new", "done", "total", "seconds", "left"),
    [
        (10.0, 5, 5, 20, None, 30.0),
        (10.0, 5, 15, 20, None, 10.0),  # ten are of an earlier call
        (10.0, 5, 5, 20, 15.0, 5.0),
        (10.0, 0, 0, None, 15.0, 5.0),
        (10.0, 0, 0, 20, None, float("inf")),
    ],
)
def test_the_time_left(spent, new, done, total, seconds, left):
    assert time_left(spent, new, done, total, seconds) == left
