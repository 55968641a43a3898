"""Progress bars of searches, studies and downloads."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Number = int | float
# update(completed, text): evaluations done, and a text such as the best value.
Update = Callable[[Number, str], None]


class ProgressBar:
    """A progress bar with a count, a text, elapsed and remaining time, and lines below it.

    Args:
        total: The total count; None without a limit.
        completed: The initial count, from earlier sessions. It does not count toward the speed from
            which the remaining time is estimated.
        unit: The name of the counted items, such as "trials".
        seconds: The time limit in seconds, or None.
        stderr: Whether to draw on the standard error stream instead of the standard output.
    """

    def __init__(
        self,
        total: Number | None,
        completed: Number = 0,
        *,
        unit: str = "",
        seconds: float | None = None,
        stderr: bool = False,
    ):
        from rich.console import Console
        from rich.live import Live

        self.text = ""
        self.lines: Sequence[str] = ()
        self._total = total
        self._before = completed
        self._completed = completed
        self._unit = unit
        self._seconds = seconds
        self._start = time.monotonic()
        self._console = Console(stderr=stderr)
        self._screen = Live(
            console=self._console, get_renderable=self.draw, refresh_per_second=4
        )

    def __enter__(self) -> "ProgressBar":
        self._screen.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._screen.stop()

    def update(self, completed: Number, text: str) -> None:
        """Show a new count and a new text, such as the best value."""
        self._completed = completed
        self.text = text

    def print_line(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, highlight=False, markup=False)

    def draw(self) -> Any:
        """Return the bar and the lines below it as a rich renderable."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar as Bar
        from rich.table import Table
        from rich.text import Text

        limit = "" if self._total is None else f"/{_format(self._total)}"
        count = f"{_format(self._completed)}{limit} {self._unit}".rstrip()
        bar = Bar(
            total=self._total,
            completed=self._completed,
            width=30,
            pulse=self._total is None,
        )
        row = Table.grid(padding=(0, 2))
        row.add_row(bar, count, Text(self.text, style="bold"), self._clock())
        lines = [
            Text(f"  {line}", style="dim", no_wrap=True, overflow="ellipsis")
            for line in self.lines
        ]
        return Group(row, *lines)

    def _clock(self) -> str:
        spent = time.monotonic() - self._start
        left = time_left(
            spent,
            new=self._completed - self._before,
            done=self._completed,
            total=self._total,
            seconds=self._seconds,
        )
        return _minutes(spent) + (
            f", {_minutes(left)} left" if math.isfinite(left) else ""
        )


@contextmanager
def progress_bar(
    total: int | None, completed: int = 0, *, unit: str = "", shown: bool = True
) -> Iterator[Update]:
    """Show a progress bar within a `with` statement.

    It yields `update(completed, text)`, which does nothing if the bar is not shown.

    Args:
        total: The total number of evaluations; None without a limit.
        completed: The number of earlier evaluations.
        unit: The name of the counted items, such as "runs".
        shown: Whether to show the bar.
    """
    if not shown:
        yield lambda completed, text: None
        return
    with ProgressBar(total, completed, unit=unit) as bar:
        bar.text = "compiling"
        yield bar.update


def time_left(
    spent: float,
    *,
    new: Number,
    done: Number,
    total: Number | None,
    seconds: float | None,
) -> float:
    """Estimate the remaining seconds; infinite if unknown.

    Args:
        spent: Seconds since the start.
        new: Number of items, such as trials, that ended since the start.
        done: Number of items that have ended in total.
        total: The total number of items, if there is a limit.
        seconds: The time limit, if there is one.
    """
    by_clock = math.inf if seconds is None else max(seconds - spent, 0.0)
    by_items = math.inf if total is None or new <= 0 else (total - done) * spent / new
    return min(by_clock, by_items)


def _format(number: Number) -> str:
    return f"{number:.1f}" if isinstance(number, float) else str(number)


def _minutes(seconds: float) -> str:
    rounded = round(seconds)
    return f"{rounded // 60}:{rounded % 60:02d}"
