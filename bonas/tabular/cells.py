"""The cells of a table, as text and as numbers."""

from collections.abc import Iterable

import numpy as np

from bonas.problems.files import number
from bonas.tabular.table import Table

_LARGEST = float(np.finfo(np.float32).max)


def text_of(cells: np.ndarray) -> np.ndarray:
    """Cells as text; a number without its needless point, a missing one empty."""
    if cells.dtype.kind != "f":
        return cells
    return np.array(["" if np.isnan(cell) else f"{cell:.17g}" for cell in cells])


def parsed(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells as float64 (n,), NaN where missing or text, and which of them are text (n,) bool."""
    if cells.dtype.kind == "f":
        return cells, np.zeros(len(cells), bool)
    read = [number(cell) for cell in cells.tolist()]
    return np.array([np.nan if value is None else value for value in read]), np.array([value is None for value in read])


def numbers(table: Table, name: str, fill: float | str | None = None) -> np.ndarray:
    """A column of numbers (n,), its missing cells filled in; an error with the row where that cannot be."""
    values, text = parsed(table.columns[name])
    if fill is not None:
        values = np.where(np.isnan(values) & ~text, fill, values)
    bad = ~(np.abs(values) <= _LARGEST)
    if bad.any():
        row = int(bad.argmax())
        cell = str(table.columns[name][row])
        what = f"{cell!r} is not a number" if text[row] else "is missing" if np.isnan(values[row]) else f"{cell} is too large"
        raise ValueError(f"{table.source}: column {name!r}, {table.where(row)}: {what}")
    return values


def quoted(names: Iterable) -> str:
    """Names as a message has them."""
    return ", ".join(repr(str(name)) for name in names)
