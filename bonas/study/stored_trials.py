"""Read trials and the state of the search from SQLite."""

import math
import sqlite3
from collections.abc import Iterable
from typing import Any

from bonas.spaces import Space
from bonas.study.database import Database, StudyError
from bonas.study.serialize import ConfigParser
from bonas.study.stored_row import StoredRow
from bonas.study.trial_record import (
    FINISHED,
    STATES,
    FinishedTrial,
    SearchPosition,
    TrialRecord,
)

# The condition of the index of values.
_HAS_VALUE = "state IN ('complete', 'pruned')"


class StoredTrials:
    """The trials of one study, and the state of its search."""

    def __init__(self, database: Database, space: Space | None = None):
        """Read the trials of a database; without a space, configurations are not checked."""
        self.database = database
        self._parse_config = ConfigParser(space).parse if space else dict
        self._d = space.dim if space else None

    def trials(self) -> list[TrialRecord]:
        """Return all trials by number."""
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
            "SELECT number, state, u, value, cost, enqueued FROM trial WHERE finish_order > ? "
            "ORDER BY finish_order",
            count,
        )
        return [self._finished(self._stored(row)) for row in rows]

    def _finished(self, stored: StoredRow) -> FinishedTrial:
        return FinishedTrial(
            u=stored.point("u", self._d),
            value=_value(stored, stored.state(FINISHED)),
            cost=stored.number("cost", optional=True) or 0.0,
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
