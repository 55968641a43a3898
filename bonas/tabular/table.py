"""Read tables from CSV, Parquet and npz files, scikit-learn's data sets, and Python objects."""

import csv
import gzip
import hashlib
import io
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

from bonas.problems.datasets import SKLEARN_SETS, load
from bonas.problems.npz_files import load_columns

if TYPE_CHECKING:
    import pandas

TEXT_SUFFIXES = ("csv", "tsv", "txt")
PARQUET_SUFFIXES = ("parquet", "pq")
# Cells that count as missing in a numeric column, in any case.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
# The first of these that occurs in the header separates the cells.
_SEPARATORS = (",", ";", "\t")
_LARGEST = float(np.finfo(np.float32).max)
_ROW_FORMATS = (
    "a path, a DataFrame, a list of dicts, a dict of columns or of one row's values, "
    "or an array (n, columns)"
)


class Table(NamedTuple):
    """A table of columns of text or of float64 numbers, with NaN for missing numbers."""

    source: str  # the name used in messages
    columns: dict[str, np.ndarray]  # (n,) each
    lines: tuple[int, ...] = ()  # line of each row in its file; empty for other sources
    target: str | None = None  # the default target column

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values())))

    def describe_row(self, row: int) -> str:
        """Describe a row (from 0) for a message, by its number from 1 and its line in the file."""
        if self.lines:
            return f"row {row + 1} (line {self.lines[row]})"
        return f"row {row + 1}"

    def text(self, name: str) -> Shaped[np.ndarray, " n"]:
        """Return a column as text; missing numbers become empty cells."""
        cells = self.columns[name]
        if cells.dtype.kind != "f":
            return cells
        return np.array(["" if np.isnan(cell) else f"{cell:.17g}" for cell in cells])

    def parse(
        self, name: str
    ) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Parse a column as numbers.

        Returns:
            The values, NaN for missing cells and for text, and a mask of the cells that are text.
        """
        cells = self.columns[name]
        if cells.dtype.kind == "f":
            return cells, np.zeros(len(cells), bool)
        parsed = [_parse_number(cell) for cell in cells.tolist()]
        values = np.array([np.nan if value is None else value for value in parsed])
        return values, np.array([value is None for value in parsed])

    def numbers(
        self, name: str, fill: float | str | None = None
    ) -> Float[np.ndarray, " n"]:
        """Return a numeric column, with missing cells replaced by `fill` unless it is None.

        Raises:
            ValueError: For the first cell that is not a finite float32 number.
        """
        values, is_text = self.parse(name)
        if fill is not None:
            values = np.where(np.isnan(values) & ~is_text, fill, values)
        bad = ~(np.abs(values) <= _LARGEST)
        if not bad.any():
            return values
        row = int(bad.argmax())
        cell = str(self.columns[name][row])
        if is_text[row]:
            problem = f"{cell!r} is not a number"
        elif np.isnan(values[row]):
            problem = "the value is missing"
        else:
            problem = f"{cell} is too large"
        raise ValueError(
            f"{self.source}: column {name!r}, {self.describe_row(row)}: {problem}"
        )


def quoted(names: Iterable) -> str:
    """Join names in quotes, for a message."""
    return ", ".join(repr(str(name)) for name in names)


def read_table(source: str) -> Table:
    """Read a table from a file, or load a scikit-learn data set by name.

    Args:
        source: A .csv, .tsv, .txt (each also .gz), .parquet or .npz file, or a name such as
            "diabetes".
    """
    if source in SKLEARN_SETS:
        return _read_shipped(source)
    path = Path(source)
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        sets = ", ".join(SKLEARN_SETS)
        raise ValueError(
            f"{source} {problem}; expected a file, or one of scikit-learn's data sets: {sets}"
        )
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix == "npz":
        return _read_npz(path)
    if suffix in PARQUET_SUFFIXES:
        return _read_parquet(path)
    if suffix in TEXT_SUFFIXES:
        return _read_csv(path)
    raise ValueError(f"{source}: expected a .csv, .tsv, .parquet or .npz file")


def digest(source: str) -> str:
    """Return the SHA-256 digest of a file, or of the arrays of a scikit-learn data set."""
    if source in SKLEARN_SETS:
        data = load(source)
        return hashlib.sha256(data.x.tobytes() + data.y.tobytes()).hexdigest()
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()


def table_from_rows(rows: Any, names: Sequence[str]) -> Table:
    """Create a table from rows given as Python objects.

    Args:
        rows: A DataFrame, a list of dicts, a dict of columns, a dict of one row's values, or an
            array (n, columns).
        names: Column names of an array.
    """
    if hasattr(rows, "columns"):
        columns = {str(name): np.asarray(rows[name]) for name in rows.columns}
    elif isinstance(rows, Mapping):
        columns = {str(name): np.asarray(values) for name, values in rows.items()}
    elif isinstance(rows, (list, tuple)) and rows and isinstance(rows[0], Mapping):
        keys = list(dict.fromkeys(key for row in rows for key in row))
        columns = {str(key): _to_column([row.get(key) for row in rows]) for key in keys}
    elif isinstance(rows, (list, tuple)) or hasattr(rows, "__array__"):
        columns = dict(zip(names, _check_array(rows, names).T, strict=True))
    else:
        raise ValueError(f"expected {_ROW_FORMATS}; got {type(rows).__name__}")
    if columns and all(column.ndim == 0 for column in columns.values()):
        columns = {name: column[None] for name, column in columns.items()}
    shapes = {column.shape for column in columns.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise ValueError(f"expected columns of equal length: {_ROW_FORMATS}")
    return Table(
        "the rows given", {name: _to_column(each) for name, each in columns.items()}
    )


def _check_array(rows: Any, names: Sequence[str]) -> np.ndarray:
    """Return rows as an array (n, columns), or raise a ValueError."""
    is_list = isinstance(rows, (list, tuple))
    if is_list and len({np.size(row) for row in rows}) != 1:
        got = "rows of different lengths" if rows else "no rows"
    else:
        array = np.asarray(rows)
        if array.ndim == 2 and array.shape[1] == len(names):
            return array
        got = f"an array of shape {array.shape}"
    raise ValueError(
        f"expected rows of {len(names)} columns ({', '.join(names)}); got {got}"
    )


def _to_column(values: Any) -> np.ndarray:
    """Convert numbers to float64 and other values to text; None and NaN become empty cells."""
    array = np.asarray(values)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    return np.array(
        ["" if _is_missing(value) else str(value) for value in array.tolist()]
    )


def _is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return bool(value != value)  # NaN is the only value that differs from itself


def _parse_number(cell: str) -> float | None:
    """Return the number in a cell, NaN if it is missing, None if it is text."""
    if cell.lower() in _MISSING:
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return None


# Formats


def _read_shipped(name: str) -> Table:
    data = load(name)
    columns = {
        column: values.astype(np.float64)
        for column, values in zip(data.names, data.x.T, strict=True)
    }
    target = (
        np.array(data.classes)[data.y] if data.classes else data.y.astype(np.float64)
    )
    return Table(name, {**columns, "target": target}, target="target")


def _read_npz(path: Path) -> Table:
    """Read arrays X (n, d), y (n,) and, optionally, feature_names (d,)."""
    x, y, names = load_columns(path)
    if len({*names} - {"y"}) != x.shape[1]:
        raise ValueError(
            f"{path}: expected {x.shape[1]} different feature_names, none of them 'y'; "
            f"got {', '.join(names)}"
        )
    columns = {
        name: values.astype(np.float64) for name, values in zip(names, x.T, strict=True)
    }
    return Table(str(path), {**columns, "y": _to_column(y)}, target="y")


def _read_parquet(path: Path) -> Table:
    import pandas

    try:
        frame = pandas.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise ImportError(
            f"{path}: reading Parquet needs pyarrow; install it with: pip install 'bonas[parquet]'"
        ) from error
    except (ValueError, OSError) as error:  # pyarrow's errors derive from these
        raise ValueError(f"{path} cannot be read as a Parquet file: {error}") from error
    if frame.empty:
        n, m = frame.shape
        raise ValueError(
            f"{path} is empty: expected at least one row and one column; "
            f"got {n} rows and {m} columns"
        )
    header = [str(name) for name in frame.columns]
    _check_header(path, header)
    columns = [_series_to_column(frame.iloc[:, i]) for i in range(len(header))]
    return Table(str(path), dict(zip(header, columns, strict=True)))


def _series_to_column(series: "pandas.Series") -> np.ndarray:
    """Convert a column of a DataFrame, including pandas' nullable types."""
    from pandas.api.types import is_numeric_dtype

    if is_numeric_dtype(series.dtype):  # booleans included
        return series.to_numpy(np.float64, na_value=np.nan)
    return _to_column(series.to_numpy(object))


def _read_csv(path: Path) -> Table:
    """Read a CSV file as text: cells are stripped and blank lines skipped.

    pandas is not used: its C parser does not report rows that are too short, its Python parser
    rejects spaces after a closing quote, and neither reports the line of a row.
    """
    text = _decode(path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(path, text))
    rows = []
    lines = []
    for row in reader:
        cells = [cell.strip() for cell in row]
        if any(cells):
            rows.append(cells)
            lines.append(reader.line_num)
    if not rows:
        raise ValueError(f"{path} is empty")
    header, *body = rows
    _check_header(path, header)
    if not body:
        raise ValueError(f"{path} has a header but no rows")
    for number, (cells, line) in enumerate(zip(body, lines[1:], strict=True), start=1):
        if len(cells) != len(header):
            raise ValueError(
                f"{path}: row {number} (line {line}) has {len(cells)} cells, "
                f"but the header has {len(header)}"
            )
    columns = dict(zip(header, map(np.array, zip(*body, strict=True)), strict=True))
    return Table(str(path), columns, tuple(lines[1:]))


def _check_header(path: Path, header: Sequence[str]) -> None:
    numbers = [_parse_number(name) for name in header]
    if all(value is not None and not math.isnan(value) for value in numbers):
        raise ValueError(
            f"{path}: expected column names in the first line; got numbers"
        )
    if "" in header:
        raise ValueError(f"{path}: column {header.index('') + 1} has no name")
    if repeated := [name for i, name in enumerate(header) if name in header[:i]]:
        raise ValueError(f"{path} has more than one column {quoted(repeated)}")


def _decode(path: Path) -> str:
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"cannot decompress {path}: {error}") from error


def _separator(path: Path, text: str) -> str:
    """Return a tab for .tsv, else the first usual separator that occurs in the header."""
    name = path.name.lower()
    if name.removesuffix(".gz").endswith(".tsv"):
        return "\t"
    if name.endswith(".gz"):
        return ","
    header = text.partition("\n")[0]
    return next((mark for mark in _SEPARATORS if mark in header), ",")
