"""Tables as people have them: CSV and npz files, sets that scikit-learn ships, and rows from Python, column by column."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bonas.problems.datasets import SHIPPED, load
from bonas.problems.files import load_npz, read_cells

_ROWS = "a path, a DataFrame, a list of dicts, a dict of columns or of one row's values, or an array (n, columns)"
_SEPARATORS = (",", ";", "\t")  # the first of them that the header holds


class Table(NamedTuple):
    """Columns by name: text as it stands in a file, or float64 numbers with NaN where one is missing."""

    source: str  # what messages call it
    columns: dict[str, np.ndarray]  # (n,) each
    lines: tuple[int, ...] = ()  # where each row stands in its file; empty where it has no lines
    target: str | None = None  # what is predicted unless somebody says otherwise

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())))

    def where(self, row: int) -> str:
        """A row as a person finds it: its number, and its line where it is from a file."""
        return f"row {row + 1} (line {self.lines[row]})" if self.lines else f"row {row + 1}"


def read(source: str) -> Table:
    """The table of a .csv, .tsv (.gz) or .npz file, or of a set that scikit-learn ships."""
    if source in SHIPPED:
        return _shipped(source)
    path = Path(source)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is no file"
        raise ValueError(f"{source} {what}, and no set that scikit-learn ships; those are {', '.join(SHIPPED)}")
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind not in ("csv", "tsv", "txt", "npz"):
        raise ValueError(f"{source} is neither a .csv nor an .npz file")
    return _npz(path) if kind == "npz" else _csv(path)


def digest(source: str) -> str:
    """The sha256 of a file's contents, by which a changed file is known; of a shipped set, of its numbers."""
    if source in SHIPPED:
        found = load(source)
        return hashlib.sha256(found.x.tobytes() + found.y.tobytes()).hexdigest()
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()


def table_of(rows: Any, names: Sequence[str]) -> Table:
    """The table of rows from Python: an array whose columns are `names`, dicts, a dict of columns or of one row's values, or a
    DataFrame."""
    if isinstance(rows, Mapping) or hasattr(rows, "columns"):
        columns = {str(name): np.asarray(rows[name]) for name in (rows.columns if hasattr(rows, "columns") else rows)}
        if all(column.ndim == 0 for column in columns.values()):
            columns = {name: column[None] for name, column in columns.items()}
    elif not isinstance(rows, (list, tuple)) and not hasattr(rows, "__array__"):
        raise ValueError(f"expected {_ROWS}; got {type(rows).__name__}")
    elif isinstance(rows, (list, tuple)) and rows and isinstance(rows[0], Mapping):
        names = list(dict.fromkeys(str(name) for row in rows for name in row))
        columns = {name: _column([row.get(name) for row in rows]) for name in names}
    else:
        columns = dict(zip(names, _array(rows, names).T, strict=True))
    if len({column.shape for column in columns.values()}) != 1 or next(iter(columns.values())).ndim != 1:
        raise ValueError(f"expected columns with as many rows each: {_ROWS}")
    return Table("the rows given", {name: _column(column) for name, column in columns.items()})


def _array(rows: Any, names: Sequence[str]) -> np.ndarray:
    """The rows as an array (n, columns), if they are one."""
    alike = not isinstance(rows, (list, tuple)) or len({np.size(row) for row in rows}) == 1
    array: np.ndarray = np.asarray(rows) if alike else np.empty(0)
    if array.ndim != 2 or array.shape[1] != len(names):
        got = f"an array of shape {array.shape}" if alike else "rows of different lengths" if rows else "none"
        raise ValueError(f"expected rows of {len(names)} columns ({', '.join(names)}); got {got}")
    return array


def _column(values) -> np.ndarray:
    """Numbers as float64, and everything else as text; None is a missing cell."""
    array = np.asarray(values)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    missing = [value is None or value != value for value in array.tolist()]  # NaN is the one value that is not itself
    return np.array(["" if gone else str(value) for value, gone in zip(array.tolist(), missing, strict=True)])


def _shipped(name: str) -> Table:
    found = load(name)
    columns = {column: values.astype(np.float64) for column, values in zip(found.names, found.x.T, strict=True)}
    target = np.array(found.classes)[found.y] if found.classes else found.y.astype(np.float64)
    return Table(name, {**columns, "target": target}, target="target")


def _npz(path: Path) -> Table:
    arrays = load_npz(path, ("X", "y"), ("feature_names",))
    x, y = arrays["X"], arrays["y"]
    if x.ndim != 2 or y.shape != x.shape[:1] or not x.size:
        raise ValueError(f"{path}: expected X of shape (n, d) and y of shape (n,); got {x.shape} and {y.shape}")
    if x.dtype.kind not in "fiub" or y.dtype.kind not in "fiubU":
        raise ValueError(f"{path}: expected numbers in X, and numbers or text in y; got {x.dtype} and {y.dtype}")
    names = [str(name) for name in arrays.get("feature_names", [f"x{i}" for i in range(1, x.shape[1] + 1)])]
    if len(set(names) - {"y"}) != x.shape[1]:
        raise ValueError(f"{path}: expected {x.shape[1]} different feature_names, none of them 'y'; got {', '.join(names)}")
    columns = {name: values.astype(np.float64) for name, values in zip(names, x.T, strict=True)}
    return Table(str(path), {**columns, "y": _column(y)}, target="y")


def _csv(path: Path) -> Table:
    cells = read_cells(path, _separator(path), least=1)
    return Table(str(path), {name: np.array(column) for name, column in cells.columns.items()}, tuple(cells.lines))


def _separator(path: Path) -> str:
    """The mark between cells: a tab in a .tsv file, otherwise the first of the usual ones that the header holds."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".tsv") or path.suffix == ".gz":
        return "\t" if name.endswith(".tsv") else ","
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        header = file.readline()
    return next((mark for mark in _SEPARATORS if mark in header), ",")
