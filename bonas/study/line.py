"""One line that shows how far an optimisation is."""

from collections.abc import Iterator
from contextlib import contextmanager

from bonas.study.execute import Event, Watch


@contextmanager
def line(trials: int | None, done: int, *, shown: bool) -> Iterator[Watch | None]:
    """A watcher that draws trials done, the best value, what is running, time spent and time left; None where not shown."""
    if not shown:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[news]}"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn()) as bar:
        task = bar.add_task("", total=trials, completed=done, news="compiling")

        def watch(event: Event) -> None:
            best = f"best {event.best.value:.6g}" if event.best else "no value yet"
            bar.update(task, completed=event.done, news=f"{best}, {len(event.running)} running")

        yield watch


def both(one: Watch | None, other: Watch | None) -> Watch | None:
    """A watcher that tells two, or the one that there is; None where there is none."""
    if one is None or other is None:
        return one or other

    def watch(event: Event) -> None:
        one(event)
        other(event)

    return watch
