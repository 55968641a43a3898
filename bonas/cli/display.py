"""Progress displays of a search: a live display in a terminal, lines in a log, or no output."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from bonas.search import ProgressBar

if TYPE_CHECKING:
    from bonas.study import Event, TrialRecord

Describe = Callable[["TrialRecord"], str]  # describes the network of a trial


class NoDisplay:
    """A progress display that shows nothing, and the base class of the others."""

    def __enter__(self) -> "NoDisplay":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def print_line(self, text: str) -> None:
        """Print a line above the progress display."""

    def update(self, event: "Event") -> None:
        """Show a change of the state of a trial."""

    def set_activity(self, text: str) -> None:
        """Show the current activity while no trial is running."""


class LineDisplay(NoDisplay):
    """A progress display that prints one line per trial, for files, pipes and logs.

    Args:
        total: The total number of trials, if there is a limit.
        describe: Describes the network of a trial.
        score: The name of the score, such as RMSE.
    """

    def __init__(self, total: int | None, describe: Describe, score: str):
        self._total = total
        self._describe = describe
        self._score = score

    def print_line(self, text: str) -> None:
        """Print a line."""
        print(text, flush=True)

    def set_activity(self, text: str) -> None:
        """Print a line with the activity that starts."""
        self.print_line(f"{text} ...")

    def update(self, event: "Event") -> None:
        """Print a line about a trial that has ended."""
        if event.state in ("running", "waiting"):
            return
        trial = event.trial
        count = f"{event.done}/{self._total}" if self._total else str(event.done)
        if event.state == "failed":
            outcome = f"failed: {trial.error}"
        else:
            outcome = f"{self._score} {trial.value:.6g}"
        best = f"best {event.best.value:.6g}" if event.best else "no best yet"
        spent = f"{trial.cost:.1f} s" if trial.cost is not None else ""
        described = self._describe(trial)
        line = (
            f"[{count}] trial {trial.number}: {outcome}  ({best})  {described}  {spent}"
        )
        self.print_line(line.rstrip())


class LiveDisplay(NoDisplay):
    """A progress bar with the best value, the time left and the networks in training.

    Args:
        total: The total number of trials, if there is a limit.
        describe: Describes the network of a trial.
        score: The name of the score, such as RMSE.
        done: Number of trials that ended in earlier sessions; the time per trial excludes them.
        seconds: The time limit, if there is one.
    """

    def __init__(
        self,
        total: int | None,
        describe: Describe,
        score: str,
        *,
        done: int,
        seconds: float | None,
    ):
        self._describe = describe
        self._score = score
        self._training: dict[int, str] = {}
        self.bar = ProgressBar(total, done, unit="trials", seconds=seconds)

    def __enter__(self) -> "LiveDisplay":
        self.bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.__exit__(*error)

    def print_line(self, text: str) -> None:
        """Print a line above the progress bar."""
        self.bar.print_line(text)

    def set_activity(self, text: str) -> None:
        """Show the current activity while no trial is running."""
        training = [f"training {network}" for network in self._training.values()]
        self.bar.lines = training or [text]

    def update(self, event: "Event") -> None:
        """Update the progress bar and the networks in training."""
        if event.state == "running":
            self._training[event.trial.number] = self._describe(event.trial)
        else:
            self._training.pop(event.trial.number, None)
        if event.state == "failed":
            self.print_line(f"trial {event.trial.number} failed: {event.trial.error}")
        best = self.bar.text
        if event.best is not None:
            best = (
                f"best {self._score} {event.best.value:.6g} (trial {event.best.number})"
            )
        self.bar.update(event.done, best)
        self.set_activity("choosing the next configuration")
