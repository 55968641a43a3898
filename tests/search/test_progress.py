"""The progress bar: count, text, time left and the lines below."""

import pytest
from rich.console import Console

from bonas.search import ProgressBar
from bonas.search.progress import time_left


def drawn(bar):
    console = Console(width=120)
    with console.capture() as captured:
        console.print(bar.draw())
    return captured.get()


@pytest.mark.parametrize(
    ("total", "completed", "unit", "count"),
    [
        (10, 3, "trials", "3/10 trials"),
        (None, 3, "trials", "3 trials"),
        (7, 0, "", "0/7"),
        (170.498, 2.25, "MB", "2.2/170.5 MB"),
    ],
)
def test_the_bar_shows_the_count_the_text_and_the_lines(total, completed, unit, count):
    bar = ProgressBar(total, unit=unit)
    bar.update(completed, "best 0.5")
    bar.lines = ["training a network"]
    shown = drawn(bar)
    assert f" {count} " in shown
    assert "best 0.5" in shown
    assert shown.splitlines()[1].strip() == "training a network"


@pytest.mark.typed
@pytest.mark.parametrize(
    ("spent", "new", "done", "total", "seconds", "left"),
    [
        (10.0, 5, 5, 20, None, 30.0),
        (10.0, 5, 15, 20, None, 10.0),  # ten of an earlier run
        (10.0, 5, 5, 20, 15.0, 5.0),
        (10.0, 0, 0, None, 15.0, 5.0),
        (10.0, 0, 0, 20, None, float("inf")),
    ],
)
def test_the_time_left(spent, new, done, total, seconds, left):
    assert time_left(spent, new=new, done=done, total=total, seconds=seconds) == left
