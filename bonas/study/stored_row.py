"""Read rows of a study file and check every value; a wrong one raises a StudyError."""

import json
import math
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from bonas.study.database import StudyError

# Times are Unix times up to the year 2242, which pandas can represent.
LATEST = 2**33
LARGEST = 2**53  # largest integer up to which float64 is exact
_LONGEST_REPR = 40
_PROCESS = re.compile(r".*:\d{1,9}:[^:]*", re.DOTALL)


class StoredRow:
    """A row of a study file; reading a column of the wrong type is an error that names it."""

    def __init__(self, path: Path, name: str, row: sqlite3.Row):
        """Read the row with this name, such as "trial 3", of a file."""
        self._path = path
        self._name = name
        self._row = row

    def value(
        self, column: str, expected: str, is_expected: Callable[[Any], bool]
    ) -> Any:
        """Return the value of a column, which must be as expected."""
        try:
            value = self._row[column]
        except IndexError:
            raise StudyError(
                f"{self._path}: {self._name} has no column {column!r}; the file is damaged: "
                "restore a backup"
            ) from None
        if not is_expected(value):
            raise self.error(column, f"expected {expected}; got {shorten(value)}")
        return value

    def error(self, column: str, problem: str) -> StudyError:
        """Return the error of a wrong column."""
        return StudyError(f"{self._path}: {self._name}, column {column!r}: {problem}")

    def text(self, column: str) -> str:
        """Return a string."""
        text: str = self.value(column, "a string", lambda value: isinstance(value, str))
        return text

    def state(self, states: tuple[str, ...]) -> str:
        """Return the state of a trial."""
        expected = f"one of {', '.join(states)}"
        state: str = self.value("state", expected, lambda value: value in states)
        return state

    def integer(self, column: str, *, least: int = -LARGEST) -> int:
        """Return an integer of at least `least`."""
        expected = f"an integer from {least} to {LARGEST}"
        number: int = self.value(
            column,
            expected,
            lambda value: isinstance(value, int) and least <= value <= LARGEST,
        )
        return number

    def number(
        self, column: str, *, optional: bool = False, finite: bool = True
    ) -> float | None:
        """Return a number, or None for NULL where it is optional."""
        expected = "a finite number" if finite else "a number"
        number: float | None = self.value(
            column,
            expected + (" or NULL" if optional else ""),
            lambda value: (
                optional
                if value is None
                else isinstance(value, (int, float))
                and (math.isfinite(value) or not finite)
            ),
        )
        return number

    def time(self, column: str) -> float | None:
        """Return a Unix time, or None if it is not known."""
        time: float | None = self.value(column, "a Unix time or NULL", is_time)
        return time

    def process(self, column: str) -> str:
        """Return the name of a process; see `bonas.study.processes`."""
        name: str = self.value(
            column,
            "a process as host:pid:token",
            lambda value: isinstance(value, str) and bool(_PROCESS.fullmatch(value)),
        )
        return name

    def point(self, column: str, d: int | None) -> Float[np.ndarray, " d"]:
        """Return a point of the unit cube of d columns."""
        expected = f"{'' if d is None else f'{d} '}numbers from 0 to 1, 8 bytes each"
        content = self.value(column, expected, lambda value: isinstance(value, bytes))
        if len(content) % 8 == 0 and d in (None, len(content) // 8):
            u = np.frombuffer(content, "<f8")
            if ((u >= -1e-6) & (u <= 1.0 + 1e-6)).all():  # with rounding errors
                return u
        raise self.error(column, f"expected {expected}; got {shorten(content)}")

    def json(self, column: str) -> Any:
        """Return the parsed value of a JSON string."""
        text = self.value(column, "JSON", lambda value: isinstance(value, str))
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            problem = f"expected JSON; got {shorten(text)}"
            raise self.error(column, problem) from None

    def json_object(self, column: str) -> dict[str, Any]:
        """Return the parsed JSON object of a column."""
        written = self.json(column)
        if not isinstance(written, dict):
            raise self.error(
                column, f"expected a JSON object; got {shorten(self._row[column])}"
            )
        return written


def is_time(value: Any) -> bool:
    """Return whether a stored value is a time, or None."""
    return value is None or (isinstance(value, (int, float)) and 0 <= value <= LATEST)


def shorten(value: Any) -> str:
    """Return a representation of a stored value in one short line."""
    if value is None:
        return "NULL"
    text = repr(value)
    return text if len(text) <= _LONGEST_REPR else text[: _LONGEST_REPR - 3] + "..."
