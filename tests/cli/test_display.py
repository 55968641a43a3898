"""Progress displays: lines, live, or none."""

import pytest
from rich.console import Console

from bonas.cli.display import LineDisplay, LiveDisplay, NoDisplay
from bonas.study import Event, TrialRecord


def event(kind, number=0, value=None, done=0, error="", best=None):
    record = TrialRecord(
        number, "complete", {"a": number}, (0.0,), value=value, cost=1.25, error=error
    )
    return Event(
        kind,
        record,
        done,
        TrialRecord(best, "complete", {}, (0.0,), value=0.5)
        if best is not None
        else None,
        (),
    )


def describe(trial):
    return f"network {trial.config['a']}"


@pytest.mark.typed
@pytest.mark.parametrize(
    ("happened", "line"),
    [
        (
            event("complete", 3, 0.75, 4, best=2),
            "[4/10] trial 3: RMSE 0.75  (best 0.5)  network 3  1.2 s\n",
        ),
        (
            event("pruned", 3, 0.75, 4, best=2),
            "[4/10] trial 3: RMSE 0.75  (best 0.5)  network 3  1.2 s\n",
        ),
        (
            event("failed", 0, None, 1, "it diverged"),
            "[1/10] trial 0: failed: it diverged  (no best yet)  network 0  1.2 s\n",
        ),
        (event("running", 3), ""),
    ],
)
def test_every_ended_trial_is_a_line(capsys, happened, line):
    LineDisplay(10, describe, "RMSE").update(happened)
    assert capsys.readouterr().out == line


def test_a_live_display_shows_the_networks_in_training_and_the_best():
    live = LiveDisplay(10, describe, "log loss", done=0, seconds=None)
    live.update(event("running", 5, done=4, best=2))
    live.update(event("running", 6, done=4, best=2))
    live.update(event("complete", 5, 0.75, done=5, best=2))
    console = Console(width=120)
    with console.capture() as captured:
        console.print(live.bar.draw())
    shown = captured.get()
    assert "5/10 trials" in shown
    assert "best log loss 0.5 (trial 2)" in shown
    assert "training network 6" in shown
    assert "network 5" not in shown


def test_the_silent_display_prints_nothing(capsys):
    with NoDisplay() as silent:
        silent.print_line("something")
        silent.set_activity("something")
        silent.update(event("complete", 0, 1.0, 1))
    assert capsys.readouterr().out == ""
