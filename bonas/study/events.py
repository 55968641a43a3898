"""Events of a study: changes of the states of its trials, and callbacks that receive them."""

from collections.abc import Callable
from typing import NamedTuple

from bonas.search import Update
from bonas.study.trial_record import TrialRecord


class Event(NamedTuple):
    """A change of state of a trial, passed to callbacks."""

    state: str  # running, complete, pruned, failed, or waiting (returned to the queue)
    trial: TrialRecord
    done: int  # finished trials of the study
    best: TrialRecord | None
    running: tuple[int, ...]  # numbers of the trials that this process evaluates


# A function that `Study.optimize` calls with every event.
Callback = Callable[[Event], None]


def combine_callbacks(
    first: Callback | None, second: Callback | None
) -> Callback | None:
    """Combine two optional callbacks."""
    if first is None or second is None:
        return first or second

    def call_both(event: Event) -> None:
        first(event)
        second(event)

    return call_both


def show_progress(update: Update) -> Callback:
    """Return a callback that updates a progress bar."""

    def show(event: Event) -> None:
        best = f"best {event.best.value:.6g}" if event.best else "no value yet"
        update(event.done, f"{best}, {len(event.running)} running")

    return show
