"""What the columns of a table are, found once: by this any table of the same columns becomes rows of numbers.

It goes to JSON and back, so that what a network was trained on is kept with it, and new rows are checked against it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bonas.problems.examples import Task
from bonas.tabular.cells import numbers, parsed, quoted, text_of
from bonas.tabular.table import Table
from bonas.tabular.target import as_classes, checked_target, task_of

# A column of text with more values would make more one-hot columns than it is worth: it is a name, a date or a key.
MOST_VALUES = 50
# Share of rows, missing and not, from which on an input of its own says where a column has gaps: scaled to a deviation of 1,
# one that hardly ever varies is far from all others where it does.
_OFTEN = 0.05
UNSEEN = ("refuse", "missing")  # what may become of a category that training did not have


@dataclass(frozen=True)
class Column:
    """An input: a number, or a category with one column of zeros and ones for each of its values."""

    name: str
    values: tuple[str, ...] = ()  # of a category; none for a number
    fill: float | str | None = None  # what stands for a missing cell; None: it is refused
    gaps: bool = False  # whether an input of its own, zero or one, says where a cell is missing

    @property
    def names(self) -> list[str]:
        """Of the numbers that it becomes."""
        said = [f"{self.name} is missing"] if self.gaps else []
        return [*([f"{self.name}={value}" for value in self.values] or [self.name]), *said]


@dataclass(frozen=True)
class Columns:
    """What is predicted, and from what."""

    target: str
    task: Task
    classes: tuple[str, ...]  # what labels stand for; empty in a regression
    inputs: tuple[Column, ...]
    unused: tuple[str, ...] = ()  # columns of the table that are not looked at

    @property
    def names(self) -> tuple[str, ...]:
        """Of the numbers that networks see: "age", "age is missing", "colour=red", "colour=blue"."""
        return tuple(name for column in self.inputs for name in column.names)

    def to_json(self) -> dict[str, Any]:
        """What a file keeps of it."""
        return asdict(self)

    @staticmethod
    def from_json(made: dict[str, Any]) -> "Columns":
        """The inverse of `to_json`."""
        inputs = tuple(
            Column(each["name"], tuple(each["values"]), each["fill"], each.get("gaps", False)) for each in made["inputs"]
        )
        return Columns(made["target"], made["task"], tuple(made["classes"]), inputs, tuple(made["unused"]))


def infer(
    table: Table,
    *,
    target: str | None = None,
    task: str | None = None,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> tuple[Columns, list[str]]:
    """The columns of a table, and what a person should know about how they were taken."""
    target = checked_target(table, target, (*categorical, *drop))
    _require(table, categorical, "--categorical")
    _require(table, drop, "--drop")
    chosen, classes = task_of(table, target, task)
    inputs = [_column(table, name, name in categorical) for name in table.columns if name not in (target, *drop)]
    empty = [column.name for column in inputs if _missing(table, column).all()]
    constant = [column.name for column in inputs if column.name not in empty and _is_constant(table, column)]
    kept = tuple(column for column in inputs if column.name not in (*empty, *constant))
    left = {why: names for why, names in (("empty", empty), ("constant", constant)) if names}
    if not kept:
        why = f"all others are {' or '.join(left)}" if left else "there is no other"
        raise ValueError(f"{table.source} has no column to learn from beside the target {target!r}: {why}")
    notices = [f"left out, since {why}: {quoted(names)}" for why, names in left.items()]
    if one_hot := [column.name for column in kept if column.values]:
        notices.append(f"taken as categories: {quoted(one_hot)}")
    return Columns(target, chosen, classes, kept, (*drop, *empty, *constant)), notices


def with_fills(columns: Columns, table: Table, rows: np.ndarray, impute: bool) -> tuple[Columns, list[str]]:
    """The columns with what stands for missing cells, the median or the most frequent value of those rows; and what a person
    should know about it.

    Where cells are often missing, where they are is an input, too: it may tell more than what they would have held.
    Without `impute` a table with missing cells is refused, and all its columns that have any are named.
    """
    gone = {column.name: _missing(table, column) for column in columns.inputs}
    gaps = {name: where for name, where in gone.items() if where.any()}
    if not impute:
        _check_whole(table, gaps)
        return columns, []
    often = [name for name, where in gaps.items() if _OFTEN <= where[rows].mean() <= 1.0 - _OFTEN]
    made = [replace(each, fill=_fill(table, each, rows), gaps=each.name in often) for each in columns.inputs]
    counts = ", ".join(f"{name!r} ({where.sum()})" for name, where in gaps.items())
    notices = [f"missing values filled in: {counts}"] if gaps else []
    if often:
        notices.append(f"inputs of their own say where they were missing: {quoted(often)}")
    return replace(columns, inputs=tuple(made)), notices


def _check_whole(table: Table, gaps: dict[str, np.ndarray]) -> None:
    if gaps:
        told = [f"{name!r} ({where.sum()}, first in {table.where(int(where.argmax()))})" for name, where in gaps.items()]
        raise ValueError(f"{table.source} has missing values in {', '.join(told)}; --impute fills them in")


def targets(columns: Columns, table: Table) -> np.ndarray:
    """The target (n,): float32 values, or int32 labels."""
    cells, name = table.columns[columns.target], columns.target
    if columns.task == "regression":
        return numbers(table, name).astype(np.float32)
    position = {value: label for label, value in enumerate(columns.classes)}
    return np.array([position[value] for value in as_classes(cells).tolist()], np.int32)


def encode(columns: Columns, table: Table, *, drop: Sequence[str] = (), unseen: str = "refuse") -> np.ndarray:
    """Rows x (n, d) float32 of numbers, in the order of `columns.names`; whatever training did not know is refused.

    unseen: what becomes of values of categories that training did not have; "missing" takes them for missing cells: they are
        filled in where missing cells are, and else are none of the values, a row of zeros.
    """
    if unseen not in UNSEEN:
        raise ValueError(f"unseen is one of {', '.join(UNSEEN)}; got {unseen!r}")
    expected = {column.name for column in columns.inputs}
    if lacking := [column.name for column in columns.inputs if column.name not in table.columns]:
        raise ValueError(f"{table.source} lacks {quoted(lacking)}, which the network was trained on")
    known = {*expected, *columns.unused, columns.target, *drop}
    if extra := [name for name in table.columns if name not in known]:
        raise ValueError(
            f"{table.source} has {quoted(extra)}, which the network was not trained on; --drop NAME leaves a column out"
        )
    return np.concatenate([_inputs(table, each, unseen) for each in columns.inputs], axis=1).astype(np.float32)


def _require(table: Table, names: Sequence[str], flag: str) -> None:
    if unknown := [name for name in names if name not in table.columns]:
        raise ValueError(f"{flag}: {table.source} has no column {quoted(unknown)}; its columns are {quoted(table.columns)}")


# Cells


def _missing(table: Table, column: Column) -> np.ndarray:
    cells = table.columns[column.name]
    return text_of(cells) == "" if column.values else np.isnan(parsed(cells)[0])


def _inputs(table: Table, column: Column, unseen: str) -> np.ndarray:
    """The numbers (n, c) that a column becomes, in the order of its names."""
    if not column.values:
        found, new = numbers(table, column.name, column.fill)[:, None], np.zeros(table.rows, bool)
    else:
        new = _unseen(table, column, unseen)
        found = _one_hot(table, column, new)
    return np.column_stack([found, _missing(table, column) | new]) if column.gaps else found


def _unseen(table: Table, column: Column, unseen: str) -> np.ndarray:
    """Which cells (n,) bool hold none of the values; an error where that is refused."""
    cells = text_of(table.columns[column.name])
    new = (cells != "") & ~np.isin(cells, column.values)
    if new.any() and unseen == "refuse":
        row = int(new.argmax())
        raise ValueError(
            f"{table.source}: column {column.name!r}, {table.where(row)}: {str(cells[row])!r} is none of "
            f"{quoted(column.values)}; --unseen missing takes such cells for missing"
        )
    return new


def _one_hot(table: Table, column: Column, new: np.ndarray) -> np.ndarray:
    """Zeros and ones (n, values), cells that are missing or `new` filled in; without a fill, new ones are zeros."""
    cells = text_of(table.columns[column.name])
    gone = cells == ""
    if column.fill is not None:
        cells = np.where(gone | new, column.fill, cells)
    elif gone.any():
        raise ValueError(f"{table.source}: column {column.name!r}, {table.where(int(gone.argmax()))}: is missing")
    return (cells[:, None] == np.array(column.values)[None, :]).astype(np.float32)


# What a column is


def _column(table: Table, name: str, categorical: bool) -> Column:
    cells = table.columns[name]
    values, text = parsed(cells)
    if not categorical and not text.any():
        return Column(name)
    if not categorical and not np.isnan(values).all():
        row = int(text.argmax())
        raise ValueError(
            f"{table.source}: column {name!r} holds numbers, but {str(cells[row])!r} in {table.where(row)}; "
            f"correct it, or pass --categorical {name} or --drop {name}"
        )
    kinds = np.unique(text_of(cells))
    kinds = kinds[kinds != ""]
    if len(kinds) > MOST_VALUES:
        raise ValueError(
            f"{table.source}: column {name!r} is text of {len(kinds)} different values, too many for one-hot columns; "
            f"--drop {name} leaves it out"
        )
    return Column(name, tuple(str(kind) for kind in kinds))


def _is_constant(table: Table, column: Column) -> bool:
    """Whether all cells hold the same; a missing one is not like the others."""
    if _missing(table, column).any():
        return False
    if column.values:
        return len(column.values) < 2
    values = parsed(table.columns[column.name])[0]
    return bool((values == values[0]).all())


def _fill(table: Table, column: Column, rows: np.ndarray) -> float | str:
    cells = table.columns[column.name][rows]
    if column.values:
        text = text_of(cells)
        kinds, times = np.unique(text[text != ""], return_counts=True)
        return str(kinds[times.argmax()]) if len(kinds) else column.values[0]
    values = parsed(cells)[0]
    return float(np.median(values[~np.isnan(values)])) if not np.isnan(values).all() else 0.0
