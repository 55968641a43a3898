"""The bar that a person sees while an experiment runs."""

from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def bar(width: int = 1, **settings: Any) -> Progress:
    """What is done now, in so many columns at least, how much of all is done, and how long it took and will take."""
    words = TextColumn(f"{{task.description:{width}}}")
    return Progress(words, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), **settings)
