"""What is to be predicted: a number, or one of a few classes."""

from collections.abc import Sequence

import numpy as np

from bonas.problems.examples import TASKS, Task, labels
from bonas.tabular.cells import numbers, parsed, quoted, text_of
from bonas.tabular.table import Table

# Whole numbers that count from 0 or 1 up to at most so many classes, without gaps, are taken for labels.
MOST_LABELS = 20
_LEAST = 3  # rows of a class, so that training, validation and test may each have one


def checked_target(table: Table, target: str | None, elsewhere: Sequence[str]) -> str:
    """The column to predict, or a ValueError where there is none or it is `elsewhere`, among those that are left out."""
    chosen = target or table.target
    if chosen is None:
        raise ValueError(f"{table.source} needs --target, one of its columns: {quoted(table.columns)}")
    if chosen not in table.columns:
        raise ValueError(f"{table.source} has no target {chosen!r}; its columns are {quoted(table.columns)}")
    if chosen in elsewhere:
        raise ValueError(f"the target {chosen!r} can be neither categorical nor dropped")
    return chosen


def task_of(table: Table, target: str, task: str | None) -> tuple[Task, tuple[str, ...]]:
    """The task, as given or inferred from the cells, and the classes that labels stand for."""
    if task not in (None, *TASKS):
        raise ValueError(f"a task is one of {', '.join(TASKS)}; got {task!r}")
    cells = table.columns[target]
    values, text = parsed(cells)
    gone = (text_of(cells) == "") if text.any() else np.isnan(values)
    if gone.any():
        raise ValueError(
            f"{table.source}: the target {target!r} is missing in {gone.sum()} rows, first in "
            f"{table.where(int(gone.argmax()))}; leave such rows out"
        )
    if task is None and text.any() and not text.all():
        row = int(text.argmax())
        raise ValueError(
            f"{table.source}: target {target!r} mixes numbers and text: {table.where(row)} holds {str(cells[row])!r}; "
            "pass --task classification if these are classes"
        )
    if task == "regression" or (task is None and not text.any() and not _counts_classes(values)):
        values = numbers(table, target)
        _check_varies(table, target, len(np.unique(values)))
        return "regression", ()
    classes = labels(values if not text.any() else text_of(cells))[1]
    _check_varies(table, target, len(classes))
    _check_classes(table, target, cells, classes)
    return "classification", classes


def _counts_classes(values: np.ndarray) -> bool:
    kinds = np.unique(values)
    return len(kinds) <= MOST_LABELS and kinds[0] in (0.0, 1.0) and bool((np.diff(kinds) == 1.0).all())


def as_classes(cells: np.ndarray) -> np.ndarray:
    """The name of each cell's class (n,), as `problems.examples.labels` names it."""
    values, text = parsed(cells)
    positions, names = labels(values if not text.any() else text_of(cells))
    return np.array(names)[positions]


def _check_varies(table: Table, target: str, kinds: int) -> None:
    if kinds < 2:
        raise ValueError(f"{table.source}: the target {target!r} is constant; there is nothing to learn")


def _check_classes(table: Table, target: str, cells: np.ndarray, classes: tuple[str, ...]) -> None:
    names, times = np.unique(as_classes(cells), return_counts=True)
    rarest = times.argmin()
    if len(classes) > len(cells) // 2:
        raise ValueError(
            f"{table.source}: the target {target!r} has {len(classes)} classes in {len(cells)} rows, too many to learn; "
            "pass --task regression if these are values"
        )
    if times[rarest] < _LEAST:
        rows = "1 row" if times[rarest] == 1 else f"{times[rarest]} rows"
        advice = "" if parsed(cells)[1].any() else "; pass --task regression if these are values"
        raise ValueError(
            f"{table.source}: class {str(names[rarest])!r} of the target {target!r} has {rows}; each needs {_LEAST}{advice}"
        )
