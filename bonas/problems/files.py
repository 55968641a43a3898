"""Examples from CSV and npz files. What a network could not learn from is refused at this door, with its column and row."""

import csv
import gzip
import io
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bonas.problems.examples import TASKS, Examples, Task, labels

_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}  # in a column of numbers, whatever the case
_LARGEST = float(np.finfo(np.float32).max)
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


class Cells(NamedTuple):
    """A CSV file as text."""

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]  # where each row stands in the file

    def where(self, row: int) -> str:
        """A row as a person finds it: its number, and its line in the file."""
        return f"row {row + 1} (line {self.lines[row]})"


def read(path: str | os.PathLike, target: str | None = None, **options) -> Examples:
    """The examples of a .csv, .csv.gz, .tsv or .npz file; options as of read_csv and read_npz."""
    path = Path(path)
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind == "npz":
        return read_npz(path, **options)
    if kind not in ("csv", "tsv", "txt"):
        raise ValueError(f"{path} is neither a .csv nor an .npz file")
    if target is None:
        raise ValueError(f"{path} needs a target, one of its columns: {_quoted(_header(path, options, kind))}")
    return read_csv(path, target, **_with_separator(options, kind))


def _with_separator(options: dict, kind: str) -> dict:
    return {"separator": "\t", **options} if kind == "tsv" else options


def _header(path: Path, options: dict, kind: str) -> list[str]:
    return list(read_cells(path, _with_separator(options, kind).get("separator", ",")).columns)


def read_csv(
    path: str | os.PathLike,
    target: str,
    *,
    task: Task | None = None,
    separator: str = ",",
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> Examples:
    """The examples of a CSV file whose first line names its columns.

    target: the column to predict. Text makes it a classification; numbers a regression, unless `task` says otherwise.
    categorical: columns that become one column of zeros and ones for each of their values: "colour=red", "colour=blue".
        Text in any other column is refused.
    drop: columns to leave out.
    """
    _check_task(task)
    cells = read_cells(path, separator)
    _require(cells, [target], "target")
    _require(cells, categorical, "categorical column")
    _require(cells, drop, "column to drop")
    if target in (*categorical, *drop):
        raise ValueError(f"the target {target!r} cannot be categorical or dropped")
    inputs: dict[str, np.ndarray] = {}
    for name in cells.columns:
        if name in categorical and name not in drop:
            inputs |= _one_hot(cells, name)
        elif name != target and name not in drop:
            inputs[name] = _numbers(cells, name, f"; pass categorical=[{name!r}] or drop=[{name!r}]")
    y, classes = _target(cells, target, task)
    return _examples(
        cells.path, np.stack(list(inputs.values()), axis=1) if inputs else None, tuple(inputs), target, y, classes, cells.where
    )


def read_inputs(path: str | os.PathLike, names: Sequence[str], *, separator: str = ",") -> np.ndarray:
    """The columns `names` (d,) of a CSV file as x (n, d) float32: new rows for a network that was trained on Examples of these
    names. One-hot columns are made again; a value that training did not see is refused. Other columns are ignored."""
    cells = read_cells(path, separator)
    sources = {name: name if name in cells.columns else name.partition("=")[0] for name in names}
    _require(cells, dict.fromkeys(sources.values()), "input")
    known: dict[str, set[str]] = {}
    for name, source in sources.items():
        if name != source:
            known.setdefault(source, set()).add(name.partition("=")[2])
    for source, values in known.items():
        for row, cell in enumerate(cells.columns[source]):
            if cell not in values:
                raise ValueError(
                    f"{cells.path}: column {source!r}, {cells.where(row)}: {cell!r} is none of {_quoted(sorted(values))}"
                )
    columns = [
        _numbers(cells, name) if name == source else _indicator(cells.columns[source], name.partition("=")[2])
        for name, source in sources.items()
    ]
    return np.stack(columns, axis=1)


def read_npz(path: str | os.PathLike, *, task: Task | None = None, drop: Sequence[str] = ()) -> Examples:
    """The examples of an npz file with arrays X (n, d) and y (n,), and feature_names (d,) where the columns have names.

    Text in y makes it a classification; numbers a regression, unless `task` says otherwise. No pickled object is opened.
    """
    path = Path(path)
    _check_task(task)
    arrays = load_npz(path, ("X", "y"), ("feature_names",))
    x, y = arrays["X"], arrays["y"]
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise ValueError(f"{path}: expected X of shape (n, d) and y of shape (n,); got {x.shape} and {y.shape}")
    if x.dtype.kind not in "fiub":
        raise ValueError(f"{path}: X holds {x.dtype}, not numbers")
    names = tuple(str(name) for name in arrays.get("feature_names", [f"x{i}" for i in range(1, x.shape[1] + 1)]))
    if len(names) != x.shape[1]:
        raise ValueError(f"{path}: {len(names)} feature_names for {x.shape[1]} columns")
    if unknown := [name for name in drop if name not in names]:
        raise ValueError(f"{path} has no column {_quoted(unknown)} to drop; its columns are {_quoted(names)}")
    kept = [i for i, name in enumerate(names) if name not in drop]
    values, classes = _npz_target(y, task, path)
    return _examples(path, x[:, kept], tuple(names[i] for i in kept), "y", values, classes, lambda row: f"row {row + 1}")


def load_npz(path: Path, needed: Sequence[str], wanted: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Those arrays of an npz file, the wanted ones where they are there."""
    if path.is_file() and not zipfile.is_zipfile(path):
        raise ValueError(f"cannot read {path} as an npz file of plain arrays: it is no npz file")
    try:
        with np.load(path, allow_pickle=False) as file:
            if missing := [name for name in needed if name not in file.files]:
                raise ValueError(f"it lacks {_quoted(missing)}; it holds {_quoted(file.files)}")
            return {name: file[name] for name in (*needed, *wanted) if name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
        # NumPy's words for an object advise to open it unsafely
        why = "it holds a pickled object, which is not opened" if "pickle" in str(problem) else problem
        raise ValueError(f"cannot read {path} as an npz file of plain arrays: {why}") from problem


def read_cells(path: str | os.PathLike, separator: str = ",", *, least: int = 2) -> Cells:
    """The cells of a CSV file, stripped; blank lines are skipped. Fewer than `least` columns are refused."""
    path = Path(path)
    reader = csv.reader(io.StringIO(_text(path), newline=""), delimiter=separator)
    kept = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(cell.strip() for cell in row)]
    if not kept:
        raise ValueError(f"{path} is empty")
    (_, header), body = kept[0], kept[1:]
    _check_header(path, header, separator, least)
    if not body:
        raise ValueError(f"{path} has a header but no rows")
    cells = Cells(path, {}, [line for line, _ in body])
    for row, (_, values) in enumerate(body):
        if len(values) != len(header):
            raise ValueError(f"{path}: {cells.where(row)} has {len(values)} cells, but the header names {len(header)} columns")
    columns = zip(*(values for _, values in body), strict=True)
    return cells._replace(columns={name: list(column) for name, column in zip(header, columns, strict=True)})


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path} is not text in UTF-8: {problem}") from problem
    except (gzip.BadGzipFile, EOFError) as problem:
        raise ValueError(f"{path} is not a whole gzip file: {problem}") from problem


def _check_header(path: Path, header: list[str], separator: str, least: int) -> None:
    if len(header) < least:
        other = [mark for mark in _SEPARATORS if mark != separator and mark in header[0]]
        hint = f"; is its separator the {_SEPARATORS[other[0]]}? Pass separator={other[0]!r}" if other else ""
        raise ValueError(f"{path} has only one column, {header[0]!r}{hint}")
    if all(map(_is_number, header)):
        raise ValueError(f"the first line of {path} holds numbers; it should name the columns")
    if "" in header:
        raise ValueError(f"column {header.index('') + 1} of {path} has no name; give it one, or write the file without it")
    if repeated := [name for i, name in enumerate(header) if name in header[:i]]:
        raise ValueError(f"{path} has more than one column {_quoted(repeated)}")


def _require(cells: Cells, names, role: str) -> None:
    if missing := [name for name in names if name not in cells.columns]:
        raise ValueError(f"{cells.path} has no {role} {_quoted(missing)}; its columns are {_quoted(cells.columns)}")


def _quoted(names) -> str:
    return ", ".join(repr(str(name)) for name in names)


def number(cell: str) -> float | None:
    """The number in a cell; NaN if it is missing, None if it is text."""
    if cell.lower() in _MISSING:
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return None


def _is_number(cell: str) -> bool:
    value = number(cell)
    return value is not None and not math.isnan(value)


def _numbers(cells: Cells, name: str, advice: str = "") -> np.ndarray:
    """The column as float32 (n,)."""
    values = []
    for row, cell in enumerate(cells.columns[name]):
        value = number(cell)
        if value is None:
            raise ValueError(f"{cells.path}: column {name!r} is not numeric: {cells.where(row)} holds {cell!r}{advice}")
        if not abs(value) <= _LARGEST:
            raise ValueError(f"{cells.path}: column {name!r}, {cells.where(row)}: {cell!r} is not a finite float32 number")
        values.append(value)
    return np.array(values, np.float32)


def _filled(cells: Cells, name: str) -> list[str]:
    column = cells.columns[name]
    if "" in column:
        raise ValueError(f"{cells.path}: column {name!r}, {cells.where(column.index(''))}: the cell is empty")
    return column


def _indicator(column: list[str], value: str) -> np.ndarray:
    return np.array([cell == value for cell in column], np.float32)


def _one_hot(cells: Cells, name: str) -> dict[str, np.ndarray]:
    column = _filled(cells, name)
    return {f"{name}={value}": _indicator(column, value) for value in sorted(set(column))}


def _target(cells: Cells, name: str, task: Task | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """The target as values, or as labels with their classes. In text only an empty cell is missing: "none" may be a class."""
    column = cells.columns[name]
    text = [number(cell) is None for cell in column]
    if task is None and any(text) and any(map(_is_number, column)):
        row = text.index(True)
        advice = "; pass task='classification' if these are classes"
        raise ValueError(
            f"{cells.path}: target {name!r} mixes numbers and text: {cells.where(row)} holds {column[row]!r}{advice}"
        )
    if any(text) and task != "regression":
        return labels(_filled(cells, name))
    values = _numbers(cells, name)
    return (values, ()) if task != "classification" else labels([float(cell) for cell in column])


def _npz_target(y: np.ndarray, task: Task | None, path: Path) -> tuple[np.ndarray, tuple[str, ...]]:
    if y.dtype.kind not in "fiubU":
        raise ValueError(f"{path}: y holds {y.dtype}, neither numbers nor text")
    if y.dtype.kind == "U" and task == "regression":
        raise ValueError(f"{path}: y holds text, which is no target of a regression")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{path}: column 'y', row {int((~np.isfinite(y)).argmax()) + 1} is not a finite number")
    return labels(y) if y.dtype.kind == "U" or task == "classification" else (y.astype(np.float32), ())


def _check_task(task: str | None) -> None:
    if task not in (None, *TASKS):
        raise ValueError(f"a task is one of {', '.join(TASKS)}; got {task!r}")


def _examples(path, x, names, target, y, classes, where: Callable[[int], str]) -> Examples:
    """The examples, once every column varies and every number is finite."""
    if x is None or not x.size:
        raise ValueError(f"{path} has no rows or no columns to learn from")
    with np.errstate(over="ignore"):
        x = np.ascontiguousarray(x, np.float32)
    for name, column in [*zip(names, x.T, strict=True), (target, y)]:
        bad = ~np.isfinite(column)
        if bad.any():
            row = int(bad.argmax())
            raise ValueError(f"{path}: column {name!r}, {where(row)}: {column[row]} is not a finite float32 number")
        if (column == column[0]).all():
            advice = "" if name == target else f"; pass drop=[{name!r}]"
            raise ValueError(f"{path}: column {name!r} is constant{advice}")
    return Examples(x, y, "classification" if classes else "regression", names, classes)
