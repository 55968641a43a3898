"""The columns of a table, and the encoding of rows as inputs of networks.

`Columns` is saved with trained networks, so that new rows are checked and encoded like the training
rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Float32, Shaped

from bonas.problems.examples import Task, encode_labels
from bonas.tabular.table import Table, quoted

# How `encode_inputs` can treat categories that are not in the training data.
UNSEEN_RULES = ("refuse", "missing")
Unseen = Literal["refuse", "missing"]


@dataclass(frozen=True)
class Column:
    """An input column of numbers, or of categories that are one-hot encoded."""

    name: str
    categories: tuple[str, ...] = ()  # empty for a number
    # replaces a missing cell; None: a missing cell is an error
    fill: float | str | None = None
    missing_indicator: bool = False  # add an input that is 1 where a cell is missing

    @property
    def input_names(self) -> list[str]:
        """Return the names of the network inputs from this column."""
        names = [f"{self.name}={category}" for category in self.categories] or [
            self.name
        ]
        if self.missing_indicator:
            names.append(f"{self.name} is missing")
        return names


@dataclass(frozen=True)
class Columns:
    """The target column of a table, and the columns that predict it."""

    target: str
    task: Task
    classes: tuple[str, ...]  # class names by label; empty for regression
    inputs: tuple[Column, ...]
    unused: tuple[str, ...] = ()  # columns of the table that are ignored

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the network inputs, such as "age", "age is missing" and "color=red"."""
        return tuple(name for column in self.inputs for name in column.input_names)

    def to_json(self) -> dict[str, Any]:
        """Convert to a JSON-serializable dict, in the format of saved networks (schema 1)."""
        inputs = [
            {
                "name": column.name,
                "values": list(column.categories),
                "fill": column.fill,
                "gaps": column.missing_indicator,
            }
            for column in self.inputs
        ]
        return {
            "target": self.target,
            "task": self.task,
            "classes": list(self.classes),
            "inputs": inputs,
            "unused": list(self.unused),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Columns":
        """Create the columns from the output of `to_json`."""
        inputs = tuple(
            Column(
                each["name"],
                tuple(each["values"]),
                each["fill"],
                each.get("gaps", False),
            )
            for each in data["inputs"]
        )
        return Columns(
            target=data["target"],
            task=data["task"],
            classes=tuple(data["classes"]),
            inputs=inputs,
            unused=tuple(data["unused"]),
        )


def encode_target(columns: Columns, table: Table) -> Shaped[np.ndarray, " n"]:
    """Return the target column as float32 values, or as int32 labels for classification."""
    if columns.task == "regression":
        return table.numbers(columns.target).astype(np.float32)
    label_of = {name: label for label, name in enumerate(columns.classes)}
    names = class_names(table, columns.target).tolist()
    return np.array([label_of[name] for name in names], np.int32)


def class_names(table: Table, name: str) -> Shaped[np.ndarray, " n"]:
    """Return the class of each cell of a column, named as by `problems.examples.encode_labels`."""
    positions, names = distinct_classes(table, name)
    return np.array(names)[positions]


def distinct_classes(table: Table, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the label of each cell of a column and the names of the classes."""
    values, is_text = table.parse(name)
    return encode_labels(table.text(name) if is_text.any() else values)


def encode_inputs(
    columns: Columns,
    table: Table,
    *,
    drop: Sequence[str] = (),
    unseen: Unseen = "refuse",
) -> Float32[np.ndarray, "n d"]:
    """Encode the rows of a table as network inputs, in the order of `columns.names`.

    Args:
        columns: The columns of the training table.
        table: New rows. A missing or unknown column is an error.
        drop: Columns of the table to ignore.
        unseen: How to treat a category that is not in the training data: "refuse" raises an error;
            "missing" fills it in like a missing cell, or encodes it as zeros if the column has no
            fill value.
    """
    if unseen not in UNSEEN_RULES:
        raise ValueError(
            f"unseen must be one of {quoted(UNSEEN_RULES)}; got {unseen!r}"
        )
    _check_columns(columns, table, drop)
    encoded = [_encode_column(table, column, unseen) for column in columns.inputs]
    return np.concatenate(encoded, axis=1).astype(np.float32)


def missing_cells(table: Table, column: Column) -> Bool[np.ndarray, " n"]:
    """Return a mask of the missing cells of a column; in text, only empty cells are missing."""
    if column.categories:
        return table.text(column.name) == ""
    return np.isnan(table.parse(column.name)[0])


def _check_columns(columns: Columns, table: Table, drop: Sequence[str]) -> None:
    inputs = [column.name for column in columns.inputs]
    if lacking := [name for name in inputs if name not in table.columns]:
        single = len(lacking) == 1
        raise ValueError(
            f"{table.source} has no {'column' if single else 'columns'} {quoted(lacking)}, which "
            f"{'was' if single else 'were'} used in training; add {'it' if single else 'them'}"
        )
    known = {*inputs, *columns.unused, columns.target, *drop}
    if extra := [name for name in table.columns if name not in known]:
        raise ValueError(
            f"{table.source} has {quoted(extra)}, not used in training; "
            "to ignore a column, pass --drop NAME (in Python: drop=[NAME])"
        )


def _encode_column(
    table: Table, column: Column, unseen: str
) -> Float[np.ndarray, "n c"]:
    """Encode one column as the inputs with the names `Column.input_names`."""
    if column.categories:
        new = _unseen_cells(table, column, unseen)
        encoded = _one_hot(table, column, new)
    else:
        new = np.zeros(table.n_rows, bool)
        encoded = table.numbers(column.name, column.fill)[:, None]
    if not column.missing_indicator:
        return encoded
    return np.column_stack([encoded, missing_cells(table, column) | new])


def _unseen_cells(table: Table, column: Column, unseen: str) -> Bool[np.ndarray, " n"]:
    """Mark cells with new categories; raise a ValueError if these are refused."""
    cells = table.text(column.name)
    new = (cells != "") & ~np.isin(cells, column.categories)
    if new.any() and unseen == "refuse":
        row = int(new.argmax())
        raise ValueError(
            f"{table.source}: column {column.name!r}, {table.describe_row(row)}: "
            f"expected one of {quoted(column.categories)}; got {str(cells[row])!r}; "
            "to treat unknown categories as missing, pass --unseen missing "
            "(in Python: unseen='missing')"
        )
    return new


def _one_hot(
    table: Table, column: Column, new: Bool[np.ndarray, " n"]
) -> Float32[np.ndarray, "n c"]:
    """One-hot encode a column; missing and `new` cells are filled in if there is a fill value."""
    cells = table.text(column.name)
    missing = cells == ""
    if column.fill is not None:
        cells = np.where(missing | new, column.fill, cells)
    elif missing.any():
        row = table.describe_row(int(missing.argmax()))
        raise ValueError(
            f"{table.source}: column {column.name!r}, {row}: the value is missing"
        )
    return (cells[:, None] == np.array(column.categories)[None, :]).astype(np.float32)
