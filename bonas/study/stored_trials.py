"""Read trials and the state of the search from SQLite, and check every stored value.

A column of a damaged file may hold anything; a wrong value raises a StudyError that names it.
"""

import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from bonas.spaces import Space
from bonas.study.database import Database, StudyError
from bonas.study.records import (
    FINISHED,
    STATES,
    FinishedTrial,
    SearchPosition,
    TrialRecord,
)
from bonas.study.serialize import ConfigParser

# The condition of the index of values.
_HAS_VALUE = "state IN ('complete', 'pruned')"
# Times are Unix times up to the year 2242, which pandas can represent.
LATEST = 2**33
LARGEST = 2**53  # largest integer up to which float64 is exact
_LONGEST_REPR = 40
_PROCESS = re.compile(r".*:\d{1,9}:[^:]*", re.DOTALL)


class StoredRow:
    """A row of a study file.

    Reading a column of the wrong type raises an error that names the column.
    """

    def __init__(self, path: Path, name: str, row: sqlite3.Row):
        """Read the row with this name, such as "trial 3", of a file."""
        self._path = path
        self._name = name
        self._row = row

    def value(
        self, column: str, expected: str, is_expected: Callable[[Any], bool]
    ) -> Any:
        """Return the value of a column; raise a StudyError unless `is_expected` is true for it."""
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
        """Return an error that names the file, the row and the column."""
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
        """Return the name of a process; see `bonas.study.storage.this_process`."""
        name: str = self.value(
            column,
            "a process as host:pid:token",
            lambda value: isinstance(value, str) and bool(_PROCESS.fullmatch(value)),
        )
        return name

    def point(self, column: str, d: int | None) -> Float[np.ndarray, " d"]:
        """Return a point (d,) of the unit cube; None accepts any number of columns."""
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


class StoredTrials:
    """The trials of one study, and the state of its search."""

    def __init__(self, database: Database, space: Space | None = None):
        """Read the trials of a database; without a space, configurations are not checked."""
        self.database = database
        self._parse_config = ConfigParser(space).parse if space else dict
        self._d = space.dim if space else None

    def trials(self) -> list[TrialRecord]:
        """Return all trials, in the order of their numbers."""
        reports: dict[int, list[tuple[int, float]]] = {}
        for row in self.database.rows("SELECT * FROM report ORDER BY trial, step"):
            reports.setdefault(row["trial"], []).append(self._report(row))
        rows = self.database.rows("SELECT * FROM trial ORDER BY number")
        return [self._record(row, reports.get(row["number"], ())) for row in rows]

    def trial(self, number: int) -> TrialRecord:
        """Return one trial by number."""
        return self._record(self._row(number), self._reports(number))

    def best(self, minimize: bool) -> TrialRecord | None:
        """Return the trial with the best value, the first of equal ones, or None."""
        order = "ASC" if minimize else "DESC"
        row = self.database.row(
            f"SELECT * FROM trial WHERE {_HAS_VALUE} ORDER BY value {order}, number LIMIT 1"
        )
        return self._record(row, self._reports(row["number"])) if row else None

    def values_reported_by(self, step: int) -> list[float]:
        """Return the last finite value that each trial with a value had reported up to a step."""
        rows = self.database.rows(
            f"""SELECT trial, report.value AS value, max(step) AS step
            FROM report JOIN trial ON number = trial
            WHERE {_HAS_VALUE} AND step <= ? AND report.value IS NOT NULL GROUP BY trial""",
            step,
        )
        return [self._report(row)[1] for row in rows]

    def counts(self) -> dict[str, int]:
        """Count the trials in each state."""
        rows = self.database.rows(
            "SELECT state, count(*) AS count FROM trial GROUP BY state"
        )
        return dict.fromkeys(STATES, 0) | {row["state"]: row["count"] for row in rows}

    def finished_count(self) -> int:
        """Count the trials that are complete, failed or pruned."""
        return self._integer("coalesce(max(finish_order), 0) AS finish_order")

    def trial_count(self) -> int:
        """Count all trials."""
        return self._integer("coalesce(max(number), -1) AS number") + 1

    def _row(self, number: int) -> sqlite3.Row:
        row = self.database.row("SELECT * FROM trial WHERE number = ?", number)
        if row is None:
            raise StudyError(f"{self.database.path} has no trial {number}")
        return row

    def _integer(self, column: str) -> int:
        row = self.database.rows(f"SELECT {column} FROM trial")[0]
        stored = StoredRow(self.database.path, "the table of trials", row)
        return stored.integer(row.keys()[0], least=-1)

    def _reports(self, number: int) -> list[tuple[int, float]]:
        rows = self.database.rows(
            "SELECT * FROM report WHERE trial = ? ORDER BY step", number
        )
        return [self._report(row) for row in rows]

    def _report(self, row: sqlite3.Row) -> tuple[int, float]:
        stored = StoredRow(self.database.path, f"a report of trial {row['trial']}", row)
        value = stored.number("value", optional=True, finite=False)
        # SQLite stores NaN as NULL
        return stored.integer("step"), math.nan if value is None else value

    def _stored(self, row: sqlite3.Row) -> StoredRow:
        return StoredRow(self.database.path, f"trial {row['number']}", row)

    def _record(
        self, row: sqlite3.Row, reports: Iterable[tuple[int, float]]
    ) -> TrialRecord:
        stored = self._stored(row)
        state = stored.state(STATES)
        return TrialRecord(
            number=row["number"],
            state=state,
            config=self._config(stored),
            u=tuple(stored.point("u", self._d).tolist()),
            value=_value(stored, state),
            cost=stored.number("cost", optional=True),
            noise=stored.number("noise", optional=True),
            error=stored.text("error"),
            traceback=stored.text("traceback"),
            reports=tuple(reports),
            asked_time=stored.time("asked_time"),
            start_time=stored.time("start_time"),
            end_time=stored.time("end_time"),
            worker=stored.text("worker"),
            info=stored.json_object("info"),
        )

    def _config(self, stored: StoredRow) -> dict[str, Any]:
        written = stored.json_object("config")
        try:
            return self._parse_config(written)
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise stored.error("config", str(problem)) from None

    # The search

    def search_position(self) -> SearchPosition:
        """Return the position of the search."""
        row = self.database.row("SELECT asks, observed, capacity, points FROM search")
        if row is None:
            raise StudyError(
                f"{self.database.path} has no row in its table 'search'; the file is damaged: "
                "restore a backup"
            )
        stored = StoredRow(self.database.path, "the search", row)
        columns = (stored.integer(name, least=0) for name in SearchPosition._fields)
        return SearchPosition(*columns)

    def finished_after(self, count: int) -> list[FinishedTrial]:
        """Return the trials that finished after the first `count`, in that order."""
        rows = self.database.rows(
            "SELECT number, state, u, value, cost, noise, enqueued FROM trial "
            "WHERE finish_order > ? ORDER BY finish_order",
            count,
        )
        return [self._finished(self._stored(row)) for row in rows]

    def _finished(self, stored: StoredRow) -> FinishedTrial:
        return FinishedTrial(
            u=stored.point("u", self._d),
            value=_value(stored, stored.state(FINISHED)),
            cost=stored.number("cost", optional=True) or 0.0,
            noise=stored.number("noise", optional=True),
            enqueued=bool(stored.integer("enqueued")),
        )

    def search_state(self) -> dict[int, bytes]:
        """Return the state of the search after its last ask: the bytes of each stored leaf."""
        leaves: dict[int, bytearray] = {}
        for row in self.database.rows(
            "SELECT leaf, bytes FROM search_state ORDER BY leaf, chunk"
        ):
            stored = StoredRow(self.database.path, "the state of the search", row)
            content = stored.value(
                "bytes", "bytes", lambda each: isinstance(each, bytes)
            )
            leaves.setdefault(stored.integer("leaf"), bytearray()).extend(content)
        return {leaf: bytes(content) for leaf, content in leaves.items()}


def _value(stored: StoredRow, state: str) -> float | None:
    """Return the value of a trial, which it has if it is complete or pruned."""
    if state in ("complete", "pruned"):
        return stored.number("value")
    expected = f"NULL, because the trial is {state}"
    none: None = stored.value("value", expected, lambda value: value is None)
    return none
