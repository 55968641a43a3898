"""Infer the task of a table, its categories and the values that replace missing cells."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int

from bonas.problems.examples import TASKS, Task
from bonas.tabular.columns import (
    Column,
    Columns,
    class_names,
    distinct_classes,
    missing_cells,
)
from bonas.tabular.table import Table, quoted

# A text column with more values, such as names, dates or keys, would add too many one-hot inputs.
MAX_CATEGORIES = 50
# Integers from 0 or 1 without gaps are class labels if there are at most this many values.
MAX_CLASSES = 20
# Training, validation and test rows each need one row of every class.
_MIN_CLASS_ROWS = 3
# A missing-value indicator is added if at least this fraction of the cells is missing, and at least
# this fraction is present. Rarer values would be outliers after scaling to unit variance.
_MIN_INDICATOR_SHARE = 0.05


def infer_columns(
    table: Table,
    *,
    target: str | None = None,
    task: str | None = None,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> tuple[Columns, list[str]]:
    """Infer the task, the inputs and the categories of a table.

    Columns that are empty or constant are ignored.

    Args:
        table: The table.
        target: The column to predict; by default, the default target of the table.
        task: "regression" or "classification"; by default, inferred from the target.
        categorical: Numeric columns to treat as categories.
        drop: Columns to ignore.

    Returns:
        The columns, and notices for the user.
    """
    target = _check_target(table, target, (*categorical, *drop))
    _check_names(table, categorical, "categorical")
    _check_names(table, drop, "drop")
    task, classes = _infer_task(table, target, task)
    inputs = [
        _infer_column(table, name, name in categorical)
        for name in table.columns
        if name not in (target, *drop)
    ]
    empty = [each.name for each in inputs if missing_cells(table, each).all()]
    constant = [
        each.name
        for each in inputs
        if each.name not in empty and _is_constant(table, each)
    ]
    used = tuple(each for each in inputs if each.name not in (*empty, *constant))
    ignored = {
        why: names for why, names in (("empty", empty), ("constant", constant)) if names
    }
    if not used:
        why = (
            f"all others are {' or '.join(ignored)}"
            if ignored
            else "there is no other column"
        )
        raise ValueError(
            f"{table.source} has no input columns besides the target {target!r}: {why}"
        )
    notices = [f"ignored ({why}): {quoted(names)}" for why, names in ignored.items()]
    if one_hot := [each.name for each in used if each.categories]:
        notices.append(f"categorical: {quoted(one_hot)}")
    return Columns(target, task, classes, used, (*drop, *empty, *constant)), notices


def fit_fill_values(
    columns: Columns, table: Table, rows: Int[np.ndarray, " m"], impute: bool
) -> tuple[Columns, list[str]]:
    """Choose the values that replace missing cells: the median or the most frequent category.

    If many cells of a column are missing, an indicator of missing cells becomes another input,
    because their absence may be informative.

    Args:
        columns: The columns of the table.
        table: The table.
        rows: The rows that determine the values, without the test rows.
        impute: Whether to replace missing cells; otherwise they raise an error.

    Returns:
        The columns with fill values, and notices for the user.
    """
    missing = {each.name: missing_cells(table, each) for each in columns.inputs}
    incomplete = {name: where for name, where in missing.items() if where.any()}
    if not impute:
        _check_complete(table, incomplete)
        return columns, []
    shares = {name: where[rows].mean() for name, where in incomplete.items()}
    indicators = [
        name
        for name, share in shares.items()
        if _MIN_INDICATOR_SHARE <= share <= 1.0 - _MIN_INDICATOR_SHARE
    ]
    inputs = tuple(
        replace(
            each,
            fill=_fill_value(table, each, rows),
            missing_indicator=each.name in indicators,
        )
        for each in columns.inputs
    )
    notices = []
    if incomplete:
        counts = ", ".join(
            f"{name!r} ({where.sum()})" for name, where in incomplete.items()
        )
        notices.append(f"missing values filled in: {counts}")
    if indicators:
        notices.append(f"missing-value indicators added: {quoted(indicators)}")
    return replace(columns, inputs=inputs), notices


def _check_complete(
    table: Table, incomplete: dict[str, Bool[np.ndarray, " n"]]
) -> None:
    if not incomplete:
        return
    places = [
        f"{name!r} ({where.sum()}, first in {table.describe_row(int(where.argmax()))})"
        for name, where in incomplete.items()
    ]
    raise ValueError(
        f"{table.source} has missing values in {', '.join(places)}; to fill them in, pass --impute "
        "(in Python: impute=True)"
    )


def _check_names(table: Table, names: Sequence[str], option: str) -> None:
    if unknown := [name for name in names if name not in table.columns]:
        raise ValueError(
            f"--{option} (in Python: {option}=): {table.source} has no column {quoted(unknown)}; "
            f"its columns are {quoted(table.columns)}"
        )


# Inputs


def _infer_column(table: Table, name: str, categorical: bool) -> Column:
    values, is_text = table.parse(name)
    if not categorical and not is_text.any():
        return Column(name)
    if not categorical and not np.isnan(values).all():
        row = int(is_text.argmax())
        cell = str(table.columns[name][row])
        raise ValueError(
            f"{table.source}: column {name!r} mixes numbers and text: "
            f"{table.describe_row(row)} holds {cell!r}; "
            f"correct it, or pass --categorical {name} or --drop {name} "
            f"(in Python: categorical=[{name!r}] or drop=[{name!r}])"
        )
    categories = np.unique(table.text(name))
    categories = categories[categories != ""]
    if len(categories) > MAX_CATEGORIES:
        raise ValueError(
            f"{table.source}: column {name!r} has {len(categories)} different text values, "
            f"more than the {MAX_CATEGORIES} that are one-hot encoded; "
            f"to ignore the column, pass --drop {name} (in Python: drop=[{name!r}])"
        )
    return Column(name, tuple(str(category) for category in categories))


def _is_constant(table: Table, column: Column) -> bool:
    """Return whether all cells are equal; missing cells differ from others."""
    if missing_cells(table, column).any():
        return False
    if column.categories:
        return len(column.categories) < 2
    values, _ = table.parse(column.name)
    return bool((values == values[0]).all())


def _fill_value(
    table: Table, column: Column, rows: Int[np.ndarray, " m"]
) -> float | str:
    if column.categories:
        cells = table.text(column.name)[rows]
        categories, counts = np.unique(cells[cells != ""], return_counts=True)
        return (
            str(categories[counts.argmax()])
            if len(categories)
            else column.categories[0]
        )
    values = table.parse(column.name)[0][rows]
    present = values[~np.isnan(values)]
    return float(np.median(present)) if len(present) else 0.0


# Target


def _check_target(table: Table, target: str | None, other_uses: Sequence[str]) -> str:
    chosen = target or table.target
    if chosen is None:
        raise ValueError(
            f"--target is required for {table.source}; choose one of its columns: "
            f"{quoted(table.columns)}"
        )
    if chosen not in table.columns:
        raise ValueError(
            f"{table.source} has no column {chosen!r} to predict; "
            f"its columns are {quoted(table.columns)}"
        )
    if chosen in other_uses:
        raise ValueError(f"the target {chosen!r} cannot be categorical or dropped")
    return chosen


def _infer_task(
    table: Table, target: str, task: str | None
) -> tuple[Task, tuple[str, ...]]:
    """Return the task, as given or inferred from the target, and the class names."""
    if task not in (None, *TASKS):
        raise ValueError(f"task must be one of {', '.join(TASKS)}; got {task!r}")
    values, is_text = table.parse(target)
    missing = (table.text(target) == "") if is_text.any() else np.isnan(values)
    if missing.any():
        raise ValueError(
            f"{table.source}: the target {target!r} is missing in {missing.sum()} rows, first in "
            f"{table.describe_row(int(missing.argmax()))}; remove these rows"
        )
    if task is None and is_text.any() and not is_text.all():
        row = int(is_text.argmax())
        raise ValueError(
            f"{table.source}: the target {target!r} mixes numbers and text: "
            f"{table.describe_row(row)} holds {str(table.columns[target][row])!r}; "
            "if these are classes, pass --task classification"
        )
    is_numeric = not is_text.any() and not _are_labels(values)
    if task == "regression" or (task is None and is_numeric):
        _check_varies(table, target, len(np.unique(table.numbers(target))))
        return "regression", ()
    classes = distinct_classes(table, target)[1]
    _check_varies(table, target, len(classes))
    _check_classes(table, target, classes)
    return "classification", classes


def _are_labels(values: np.ndarray) -> bool:
    """Return whether numbers are few integers from 0 or 1 without gaps."""
    distinct = np.unique(values)
    if len(distinct) > MAX_CLASSES or distinct[0] not in (0.0, 1.0):
        return False
    return bool((np.diff(distinct) == 1.0).all())


def _check_varies(table: Table, target: str, n_values: int) -> None:
    if n_values < 2:
        raise ValueError(f"{table.source}: the target {target!r} is constant")


def _check_classes(table: Table, target: str, classes: tuple[str, ...]) -> None:
    """Raise a ValueError for too many classes, or too few rows of a class."""
    n = table.n_rows
    if len(classes) > n // 2:
        raise ValueError(
            f"{table.source}: the target {target!r} has {len(classes)} classes in {n} rows, "
            "too many to learn; if these are numbers to predict, pass --task regression"
        )
    names, counts = np.unique(class_names(table, target), return_counts=True)
    rarest = counts.argmin()
    if counts[rarest] < _MIN_CLASS_ROWS:
        rows = "1 row" if counts[rarest] == 1 else f"{counts[rarest]} rows"
        is_text = table.parse(target)[1].any()
        advice = (
            ""
            if is_text
            else "; if these are numbers to predict, pass --task regression"
        )
        raise ValueError(
            f"{table.source}: class {str(names[rarest])!r} of the target {target!r} has {rows}; "
            f"each class needs {_MIN_CLASS_ROWS}{advice}"
        )
