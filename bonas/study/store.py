"""Trials in SQLite: every transition of a trial (queued, asked, running, told, failed) is one transaction."""

import json
import math
import os
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bonas.study.file import File, StudyError
from bonas.study.written import Configs

Piece = tuple[int, int, bytes]  # which part of the search's memory, which piece of it, and what it holds
_OPEN = "('asked', 'running')"
# Drawn anew by every process: a process that was killed may have had the number of this one, as the first in a container has.
_LIFE = secrets.token_hex(4)


@dataclass(frozen=True)
class Record:
    """A trial as the file has it."""

    number: int
    state: str  # queued, asked, running, told or failed
    config: dict[str, Any]
    u: tuple[float, ...]  # its row of the unit cube
    value: float | None = None  # as it was told, whatever the direction
    cost: float | None = None  # seconds, unless another was told
    error: str = ""  # why it failed
    traceback: str = ""
    reports: tuple[tuple[int, float], ...] = ()  # (step, value), by step
    asked: float | None = None  # unix time
    ended: float | None = None
    worker: str = ""  # host:process:life of who has it, or had it last
    info: dict[str, Any] = field(default_factory=dict)  # how the point was found


class Head(NamedTuple):
    """How far the search is."""

    asks: int  # that were made
    told: int  # trials, in the order they ended, that its memory knows of
    capacity: int  # points that its memory has room for; 0 before the first ask


class Told(NamedTuple):
    """What a search is told of a trial that ended."""

    u: np.ndarray  # (d,)
    value: float | None  # None where it failed
    cost: float
    enqueued: bool


class Point(NamedTuple):
    """A point to be tried."""

    u: np.ndarray  # (d,)
    config: str  # JSON
    info: dict[str, Any]


def whoami() -> str:
    """This process, among all that ever worked on a study."""
    return f"{socket.gethostname()}:{os.getpid()}:{_LIFE}"


def is_dead(worker: str) -> bool:
    """Whether a process is known to have ended: one of this host, whose number is free or is used by another."""
    host, number, life = worker.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    if int(number) == os.getpid():
        return life != _LIFE
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it lives, and is somebody else's
        return False
    return False


class Store:
    """The trials of one study."""

    def __init__(self, file: File, configs: Configs):
        self.file, self._configs = file, configs

    # What is there

    def records(self) -> list[Record]:
        """All trials, by number."""
        reports: dict[int, list[tuple[int, float]]] = {}
        for row in self.file.rows("SELECT * FROM report ORDER BY trial, step"):
            reports.setdefault(row["trial"], []).append((row["step"], _number(row["value"])))
        rows = self.file.rows("SELECT * FROM trial ORDER BY number")
        return [self._record(row, reports.get(row["number"], ())) for row in rows]

    def record(self, number: int) -> Record:
        row = self.file.row("SELECT * FROM trial WHERE number = ?", number)
        if row is None:
            raise StudyError(f"{self.file.path} has no trial {number}")
        return self._record(row, self.reports(number))

    def best(self, least: bool) -> Record | None:
        """The first of the trials with the least value, or the greatest."""
        order = "ASC" if least else "DESC"
        row = self.file.row(f"SELECT * FROM trial WHERE state = 'told' ORDER BY value {order}, number LIMIT 1")
        return self._record(row, self.reports(row["number"])) if row else None

    def reports(self, number: int) -> list[tuple[int, float]]:
        rows = self.file.rows("SELECT step, value FROM report WHERE trial = ? ORDER BY step", number)
        return [(row["step"], _number(row["value"])) for row in rows]

    def reported_by(self, step: int) -> list[float]:
        """Of every told trial the last finite value that it reported up to a step."""
        rows = self.file.rows(
            """SELECT report.value AS value, max(step) FROM report JOIN trial ON number = trial
            WHERE state = 'told' AND step <= ? AND report.value IS NOT NULL GROUP BY trial""",
            step,
        )
        return [row["value"] for row in rows]

    def counts(self) -> dict[str, int]:
        """How many trials are in each state."""
        rows = self.file.rows("SELECT state, count(*) AS n FROM trial GROUP BY state")
        return dict.fromkeys(("queued", "asked", "running", "told", "failed"), 0) | {row["state"]: row["n"] for row in rows}

    def _record(self, row: sqlite3.Row, reports: Iterable[tuple[int, float]]) -> Record:
        kept = {
            name: row[name] for name in ("number", "state", "value", "cost", "error", "traceback", "asked", "ended", "worker")
        }
        u = tuple(np.frombuffer(row["u"], "<f8").tolist())
        return Record(
            **kept, config=self._configs.read(row["config"]), u=u, reports=tuple(reports), info=json.loads(row["info"])
        )

    # Transitions

    def enqueue(self, point: Point) -> int:
        with self.file.writing() as db:
            return self._insert(db, point, "queued", enqueued=True)

    def take(self, lease: float) -> Record | None:
        """The first trial that waits, or whose process is dead or silent for longer than its lease: from now on ours."""
        if self._waiting() is None:
            return None
        with self.file.writing() as db:
            number = self._waiting()  # again, now that nobody else can write
            if number is None:
                return None
            self._lend(db, number, lease)
            return self.record(number)

    def _waiting(self) -> int | None:
        now = time.time()
        query = "SELECT number, state, worker, lease FROM trial WHERE state IN ('queued', 'asked', 'running') ORDER BY number"
        for row in self.file.rows(query):
            if row["state"] == "queued" or row["lease"] < now or is_dead(row["worker"]):
                return row["number"]
        return None

    def asked(self, points: Sequence[Point], head: Head, pieces: Iterable[Piece], *, anew: bool, lease: float) -> Record:
        """The first of new points as ours, the others in the queue, and the search's memory after this ask: all or nothing."""
        with self.file.writing() as db:
            numbers = [self._insert(db, point, "queued", enqueued=False) for point in points]
            self._lend(db, numbers[0], lease)
            if anew:
                db.execute("DELETE FROM memory")
            db.executemany("INSERT OR REPLACE INTO memory VALUES (?, ?, ?)", pieces)
            db.execute("UPDATE search SET asks = ?, told = ?, capacity = ?", head)
            return self.record(numbers[0])

    def _insert(self, db: sqlite3.Connection, point: Point, state: str, *, enqueued: bool) -> int:
        number = db.execute("SELECT coalesce(max(number) + 1, 0) FROM trial").fetchone()[0]
        db.execute(
            "INSERT INTO trial (number, state, config, u, enqueued, info) VALUES (?, ?, ?, ?, ?, ?)",
            (number, state, point.config, point.u.astype("<f8").tobytes(), int(enqueued), json.dumps(point.info)),
        )
        return number

    def _lend(self, db: sqlite3.Connection, number: int, lease: float) -> None:
        now = time.time()
        query = "UPDATE trial SET state = 'asked', worker = ?, lease = ?, asked = ? WHERE number = ?"
        db.execute(query, (whoami(), now + lease, now, number))

    def running(self, number: int) -> None:
        with self.file.writing() as db:
            db.execute("UPDATE trial SET state = 'running' WHERE number = ? AND state = 'asked'", (number,))

    def renew(self, numbers: Iterable[int], lease: float) -> None:
        """More time for trials that are ours."""
        with self.file.writing() as db:
            db.executemany(
                f"UPDATE trial SET lease = ? WHERE number = ? AND worker = ? AND state IN {_OPEN}",
                [(time.time() + lease, number, whoami()) for number in numbers],
            )

    def back(self, number: int) -> None:
        """A trial that was not evaluated after all: the next to be asked."""
        with self.file.writing() as db:
            db.execute(f"UPDATE trial SET state = 'queued' WHERE number = ? AND state IN {_OPEN}", (number,))

    def report(self, number: int, step: int, value: float, lease: float) -> None:
        """An intermediate value; also a sign of life."""
        with self.file.writing() as db:
            db.execute("INSERT OR REPLACE INTO report VALUES (?, ?, ?)", (number, step, value))
            db.execute("UPDATE trial SET lease = max(lease, ?) WHERE number = ?", (time.time() + lease, number))

    def end(self, number: int, **fields: Any) -> bool:
        """The trial as told, where fields have a value, or as failed; false where it had ended before."""
        with self.file.writing() as db:
            row = db.execute("SELECT state, info FROM trial WHERE number = ?", (number,)).fetchone()
            if row is None:
                raise StudyError(f"{self.file.path} has no trial {number}")
            if row["state"] in ("told", "failed"):
                return False
            fields["info"] = json.dumps(json.loads(row["info"]) | fields.pop("info", {}))
            fields |= {"state": "told" if fields.get("value") is not None else "failed", "ended": time.time()}
            fields["told"] = db.execute("SELECT coalesce(max(told) + 1, 1) FROM trial").fetchone()[0]
            columns = ", ".join(f"{name} = ?" for name in fields)
            db.execute(f"UPDATE trial SET {columns} WHERE number = ?", (*fields.values(), number))
        return True

    # The search

    def head(self) -> Head:
        row = self.file.row("SELECT asks, told, capacity FROM search")
        return Head(*row) if row else Head(0, 0, 0)

    def told_after(self, told: int) -> list[Told]:
        """Trials that ended after the first so many, in that order."""
        rows = self.file.rows("SELECT u, value, cost, enqueued FROM trial WHERE told > ? ORDER BY told", told)
        return [Told(np.frombuffer(r["u"], "<f8"), r["value"], r["cost"] or 0.0, bool(r["enqueued"])) for r in rows]

    def points(self, told: int) -> int:
        """Rows that the search's memory has used: points that it asked, and enqueued ones that it was told."""
        query = "SELECT count(*) FROM trial WHERE NOT enqueued OR told <= ?"
        row = self.file.row(query, told)
        return row[0] if row else 0

    def memory(self) -> dict[int, bytes]:
        """What the search knew after its last ask, part by part."""
        parts: dict[int, bytearray] = {}
        for row in self.file.rows("SELECT part, bytes FROM memory ORDER BY part, piece"):
            parts.setdefault(row["part"], bytearray()).extend(row["bytes"])
        return {part: bytes(content) for part, content in parts.items()}


def settings(file: File, table: str = "setting") -> dict[str, Any]:
    """Names and values of the study's settings, or of its notes."""
    return {row["name"]: json.loads(row["value"]) for row in file.rows(f"SELECT name, value FROM {table}")}


def set_all(file: File, values: dict[str, Any], table: str = "setting") -> None:
    """Settings or notes, where new ones replace old ones; a value that JSON cannot say is refused."""
    rows = [(name, json.dumps(value, allow_nan=False)) for name, value in values.items()]
    with file.writing() as db:
        db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", rows)


def _number(value: float | None) -> float:
    return math.nan if value is None else value  # SQLite keeps NaN as NULL
