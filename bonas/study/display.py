"""What a person sees of a search while it runs: a live display in a terminal, lines elsewhere, or nothing."""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bonas.study.execute import Event
    from bonas.study.store import Record

Words = Callable[["Record"], str]  # a trial's network, for people


class Silent:
    """Nothing."""

    def __enter__(self) -> "Silent":
        return self

    def __exit__(self, *problem) -> None:
        pass

    def say(self, text: str) -> None:
        """One line that stays."""

    def watch(self, event: "Event") -> None:
        """Something happened to a trial."""

    def turn_to(self, what: str) -> None:
        """What happens when no trial is training."""


class Lines(Silent):
    """One line for every trial that ends: for files, pipes and logs."""

    def __init__(self, total: int | None, words: Words, score: str):
        """score: what a value is, such as RMSE."""
        self._total, self._words, self._score = total, words, score

    def say(self, text: str) -> None:
        print(text, flush=True)

    def turn_to(self, what: str) -> None:
        self.say(f"{what} ...")

    def watch(self, event: "Event") -> None:
        trial = event.trial
        if event.kind in ("asked", "returned"):
            return
        count = f"{event.done}/{self._total}" if self._total else str(event.done)
        outcome = f"failed: {trial.error}" if event.kind == "failed" else f"{self._score} {trial.value:.6g}"
        best = f"best {event.best.value:.6g}" if event.best else "no best yet"
        spent = f"{trial.cost:.1f} s" if trial.cost is not None else ""
        self.say(f"[{count}] trial {trial.number}: {outcome}  ({best})  {self._words(trial)}  {spent}".rstrip())


class Live(Silent):
    """A bar with the trials done, the best value so far and the time left, and below it what is training now."""

    def __init__(self, total: int | None, words: Words, score: str, done: int, seconds: float | None):
        from rich.console import Console
        from rich.live import Live as Screen

        self._total, self._words, self._score, self._seconds = total, words, score, seconds
        self._before = self._done = done  # trials of an earlier call are no measure of how long one takes
        self._began, self._best, self._idle = time.monotonic(), "", ""
        self._training: dict[int, str] = {}
        self._console = Console()
        self._screen = Screen(console=self._console, get_renderable=self._draw, refresh_per_second=4)

    def __enter__(self) -> "Live":
        self._screen.start()
        return self

    def __exit__(self, *problem) -> None:
        self._screen.stop()

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)

    def watch(self, event: "Event") -> None:
        if event.kind == "asked":
            self._training[event.trial.number] = self._words(event.trial)
        else:
            self._training.pop(event.trial.number, None)
        if event.kind == "failed":
            self.say(f"trial {event.trial.number} failed: {event.trial.error}")
        self._done, self._idle = event.done, "choosing the next point"
        if event.best is not None:
            self._best = f"best {self._score} {event.best.value:.6g} (trial {event.best.number})"

    def turn_to(self, what: str) -> None:
        self._idle = what

    def _draw(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        row = Table.grid(padding=(0, 2))
        count = f"{self._done}/{self._total} trials" if self._total else f"{self._done} trials"
        bar = ProgressBar(total=self._total, completed=self._done, width=30, pulse=self._total is None)
        row.add_row(bar, count, Text(self._best, style="bold"), self._clock())
        now = [f"  training {words}" for words in self._training.values()] or [f"  {self._idle}"]
        return Group(row, *(Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in now))

    def _clock(self) -> str:
        spent = time.monotonic() - self._began
        left = time_left(spent, self._done - self._before, self._done, self._total, self._seconds)
        return _minutes(spent) + (f", {_minutes(left)} left" if math.isfinite(left) else "")


def time_left(spent: float, new: int, done: int, total: int | None, seconds: float | None) -> float:
    """Seconds until the end: what is left of the time, or of the trials at their pace so far; infinite where not known."""
    by_clock = math.inf if seconds is None else max(seconds - spent, 0.0)
    by_trials = math.inf if total is None or new < 1 else (total - done) * spent / new
    return min(by_clock, by_trials)


def _minutes(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"
