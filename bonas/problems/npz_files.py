"""Read arrays and examples from npz files.

Values that a network cannot learn from are rejected with their column and row. Tables of data in
CSV and Parquet files are read by `bonas.tabular`.
"""

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from bonas.problems.examples import TASKS, Examples, Task, encode_labels

# Exceptions that NumPy and zipfile raise for damaged files.
_ERRORS = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_npz(
    path: Path, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Load arrays of an npz file by name, without unpickling objects.

    Args:
        path: The file.
        required: The names of arrays that must exist.
        optional: The names of arrays to load if they exist.

    Returns:
        The arrays by name.

    Raises:
        ValueError: If the file is damaged, lacks an array or contains pickled objects.
    """
    prefix = f"cannot read {path} as an npz file of plain arrays"
    if path.is_file() and not zipfile.is_zipfile(path):
        raise ValueError(f"{prefix}: it is not a zip archive")
    try:
        # NumPy leaves a damaged file open that it opened itself
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if missing := [name for name in required if name not in file.files]:
                raise ValueError(
                    f"it lacks {_quote(missing)}; it contains {_quote(file.files)}"
                )
            return {
                name: file[name]
                for name in (*required, *optional)
                if name in file.files
            }
    except _ERRORS as problem:
        if isinstance(problem, OSError) and problem.filename is not None:
            raise  # the file cannot be opened
        # NumPy's message about pickled objects advises loading them, which is unsafe.
        pickled = "pickle" in str(problem)
        reason = (
            "it contains a pickled object, which is not loaded"
            if pickled
            else " ".join(str(problem).split()) or type(problem).__name__
        )
        raise ValueError(f"{prefix}: {reason}") from problem


def load_columns(path: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Load the arrays X (n, d), y (n,) and optionally feature_names (d,) of an npz file.

    Returns:
        The numbers X, the numbers or text y, and the names of the columns of X, which are x1, x2, …
        if the file has none.
    """
    arrays = load_npz(path, ("X", "y"), ("feature_names",))
    x = arrays["X"]
    y = arrays["y"]
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise ValueError(
            f"{path}: expected X of shape (n, d) and y of shape (n,); got {x.shape} and {y.shape}"
        )
    if not x.size:
        raise ValueError(f"{path} has no rows or no input columns")
    if x.dtype.kind not in "fiub":
        raise ValueError(f"{path}: X must be numeric; got {x.dtype}")
    if y.dtype.kind not in "fiubU":
        raise ValueError(f"{path}: y must be numbers or text; got {y.dtype}")
    default = [f"x{i}" for i in range(1, x.shape[1] + 1)]
    names = tuple(str(name) for name in arrays.get("feature_names", default))
    if len(names) != x.shape[1]:
        raise ValueError(
            f"{path}: expected {x.shape[1]} feature_names, one per column; got {len(names)}"
        )
    return x, y, names


def read_npz(
    path: str | PathLike, *, task: Task | None = None, drop: Sequence[str] = ()
) -> Examples:
    """Read examples from an npz file with the arrays X, y and optionally feature_names.

    Args:
        path: The file; see `load_columns`.
        task: "regression" or "classification". Default: classification if y is text, else
            regression.
        drop: The names of columns to leave out.

    Raises:
        ValueError: If a value is not finite or a column is constant; the message names it.
    """
    path = Path(path)
    if task not in (None, *TASKS):
        raise ValueError(f"task must be one of {', '.join(TASKS)}; got {task!r}")
    x, y, names = load_columns(path)
    if unknown := [name for name in drop if name not in names]:
        raise ValueError(
            f"{path} has no column {_quote(unknown)} to drop; its columns are {_quote(names)}"
        )
    kept = [i for i, name in enumerate(names) if name not in drop]
    if not kept:
        raise ValueError(f"{path}: expected an input column; all are dropped")
    values, classes = _read_target(y, task, path)
    kind: Task = "classification" if classes else "regression"
    inputs = _check_columns(path, x[:, kept], tuple(names[i] for i in kept), values)
    return Examples(inputs, values, kind, tuple(names[i] for i in kept), classes)


def _read_target(
    y: np.ndarray, task: Task | None, path: Path
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the target as values without classes, or as labels and their classes."""
    if y.dtype.kind == "U" and task == "regression":
        raise ValueError(f"{path}: expected a numeric y for regression; got text")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int((~np.isfinite(y)).argmax()) + 1
        raise ValueError(f"{path}: column 'y', row {row} is not a finite number")
    if y.dtype.kind == "U" or task == "classification":
        return encode_labels(y)
    return y.astype(np.float32), ()


def _check_columns(
    path: Path, x: np.ndarray, names: tuple[str, ...], y: np.ndarray
) -> np.ndarray:
    """Return x as float32; raise a ValueError for non-finite values and constant columns."""
    with np.errstate(over="ignore"):
        x = np.ascontiguousarray(x, np.float32)
    for name, column in [*zip(names, x.T, strict=True), ("y", y)]:
        bad = ~np.isfinite(column)
        if bad.any():
            row = int(bad.argmax())
            raise ValueError(
                f"{path}: column {name!r}, row {row + 1}: "
                f"{column[row]} is not a finite float32 number"
            )
        if (column == column[0]).all():
            advice = "" if name == "y" else f"; pass drop=[{name!r}]"
            raise ValueError(f"{path}: column {name!r} is constant{advice}")
    return x


def _quote(names: Iterable[str]) -> str:
    return ", ".join(repr(str(name)) for name in names)
