"""Trials in SQLite: every transition of a trial (queued, asked, running, told, failed) is one transaction."""

import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bonas.study.file import File, StudyError
from bonas.study.life import is_dead, whoami

Piece = tuple[int, int, bytes]  # which part of the search's memory, which piece of it, and what it holds
_OPEN = "('asked', 'running')"
# What the index of open trials was made with, word for word: only a query that says so uses it, any other reads every trial.
_INDEXED = "state IN ('queued', 'asked', 'running')"
_PLAIN = ("number", "state", "value", "cost", "error", "traceback", "asked", "begun", "ended", "worker")  # kept as they are


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
    begun: float | None = None
    ended: float | None = None
    worker: str = ""  # host:process:life of who has it, or had it last
    info: dict[str, Any] = field(default_factory=dict)  # how the point was found


class Head(NamedTuple):
    """How far the search is."""

    asks: int  # that were made
    told: int  # trials, in the order they ended, that its memory knows of
    capacity: int  # points that its memory has room for; 0 before the first ask
    used: int  # points in its memory: those that it asked, and enqueued ones that it was told of


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


class Store:
    """The trials of one study."""

    def __init__(self, file: File, read: Callable[[str], dict[str, Any]] = json.loads):
        self.file, self._read = file, read  # of configurations

    # What is there

    def records(self) -> list[Record]:
        """All trials, by number."""
        reports: dict[int, list[tuple[int, float]]] = {}
        for row in self.file.rows("SELECT * FROM report ORDER BY trial, step"):
            reports.setdefault(row["trial"], []).append((row["step"], _number(row["value"])))
        rows = self.file.rows("SELECT * FROM trial ORDER BY number")
        return [self._record(row, reports.get(row["number"], ())) for row in rows]

    def record(self, number: int) -> Record:
        """One of them."""
        row = self.file.row("SELECT * FROM trial WHERE number = ?", number)
        if row is None:
            raise StudyError(f"{self.file.path} has no trial {number}")
        return self._record(row, self._reports(number))

    def best(self, least: bool) -> Record | None:
        """The first of the trials with the least value, or the greatest."""
        order = "ASC" if least else "DESC"
        row = self.file.row(f"SELECT * FROM trial WHERE state = 'told' ORDER BY value {order}, number LIMIT 1")
        return self._record(row, self._reports(row["number"])) if row else None

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
        query = "SELECT count(*) FROM trial WHERE state = "
        counts = {state: self._one(f"{query}'{state}' AND {_INDEXED}") for state in ("queued", "asked", "running")}
        told = self._one(f"{query}'told'")
        return counts | {"told": told, "failed": self.ended() - told}

    def ended(self) -> int:
        """How many trials were told or have failed."""
        return self._one("SELECT coalesce(max(told), 0) FROM trial")

    def size(self) -> int:
        """How many trials there are."""
        return self._one("SELECT coalesce(max(number) + 1, 0) FROM trial")

    def _one(self, query: str) -> int:
        return self.file.rows(query)[0][0]

    def _reports(self, number: int) -> list[tuple[int, float]]:
        rows = self.file.rows("SELECT step, value FROM report WHERE trial = ? ORDER BY step", number)
        return [(row["step"], _number(row["value"])) for row in rows]

    def _record(self, row: sqlite3.Row, reports: Iterable[tuple[int, float]]) -> Record:
        config, u, info = self._read(row["config"]), tuple(np.frombuffer(row["u"], "<f8").tolist()), json.loads(row["info"])
        return Record(**{name: row[name] for name in _PLAIN}, config=config, u=u, reports=tuple(reports), info=info)

    # Transitions

    def enqueue(self, point: Point) -> int:
        """The number of a new trial that waits."""
        with self.file.writing() as db:
            return self._insert(db, point, enqueued=True)

    def take(self, lease: float, most: float = math.inf) -> Record | None:
        """The first trial that waits, or whose process is dead or silent for longer than its lease: from now on ours.

        None where there is none, or where `most` trials have ended or are being evaluated.
        """
        if self._waiting(most) is None:
            return None
        with self.file.writing() as db:
            number = self._waiting(most)  # again, now that nobody else can write
            if number is None:
                return None
            self._lend(db, number, lease)
            return self.record(number)

    def _waiting(self, most: float) -> int | None:
        now, live = time.time(), 0
        queued = f"SELECT number FROM trial WHERE state = 'queued' AND {_INDEXED} ORDER BY number LIMIT 1"
        waiting = [row[0] for row in self.file.rows(queued)]
        for row in self.file.rows(f"SELECT number, worker, lease FROM trial WHERE state IN {_OPEN} AND {_INDEXED}"):
            if row["lease"] < now or is_dead(row["worker"]):
                waiting.append(row["number"])
            else:
                live += 1
        return min(waiting) if waiting and self.ended() + live < most else None

    def asked(self, points: Sequence[Point], head: Head, pieces: Iterable[Piece], *, anew: bool, lease: float) -> Record:
        """The first of new points as ours, the others in the queue, and the search's memory after this ask."""
        with self.file.writing() as db:
            numbers = [self._insert(db, point, enqueued=False) for point in points]
            self._lend(db, numbers[0], lease)
            if anew:
                db.execute("DELETE FROM memory")
            db.executemany("INSERT OR REPLACE INTO memory VALUES (?, ?, ?)", pieces)
            db.execute("UPDATE search SET asks = ?, told = ?, capacity = ?, used = ?", head)
            return self.record(numbers[0])

    def _insert(self, db: sqlite3.Connection, point: Point, *, enqueued: bool) -> int:
        number, row = self.size(), point.u.astype("<f8").tobytes()
        db.execute(
            "INSERT INTO trial (number, state, config, u, enqueued, info) VALUES (?, 'queued', ?, ?, ?, ?)",
            (number, point.config, row, int(enqueued), json.dumps(point.info)),
        )
        return number

    def _lend(self, db: sqlite3.Connection, number: int, lease: float) -> None:
        now = time.time()
        query = "UPDATE trial SET state = 'asked', worker = ?, lease = ?, asked = ? WHERE number = ?"
        db.execute(query, (whoami(), now + lease, now, number))

    def begin(self, number: int, attempt: str) -> int:
        """The evaluation begins; how many workers have died of it.

        A cluster starts a task again whose worker has died, in the same attempt: by that the death is known.
        """
        with self.file.writing() as db:
            db.execute(
                f"""UPDATE trial SET state = 'running', begun = ?, deaths = deaths + (attempt = ?), attempt = ?
                WHERE number = ? AND state IN {_OPEN}""",
                (time.time(), attempt, attempt, number),
            )
            return self._deaths(number)

    def died(self, number: int) -> int:
        """A worker has died of a trial; how many have."""
        with self.file.writing() as db:
            db.execute("UPDATE trial SET deaths = deaths + 1, attempt = '' WHERE number = ?", (number,))
            return self._deaths(number)

    def _deaths(self, number: int) -> int:
        return self.file.rows("SELECT deaths FROM trial WHERE number = ?", number)[0][0]

    def renew(self, numbers: Iterable[int], lease: float) -> None:
        """More time for trials that are ours."""
        query = f"UPDATE trial SET lease = ? WHERE number = ? AND worker = ? AND state IN {_OPEN}"
        with self.file.writing() as db:
            db.executemany(query, [(time.time() + lease, number, whoami()) for number in numbers])

    def back(self, number: int) -> None:
        """A trial of ours that was not evaluated after all waits again, before all later ones."""
        query = f"UPDATE trial SET state = 'queued', attempt = '' WHERE number = ? AND worker = ? AND state IN {_OPEN}"
        with self.file.writing() as db:
            db.execute(query, (number, whoami()))

    def report(self, number: int, step: int, value: float, lease: float) -> None:
        """An intermediate value, which is a sign of life too."""
        with self.file.writing() as db:
            db.execute("INSERT OR REPLACE INTO report VALUES (?, ?, ?)", (number, step, value))
            db.execute("UPDATE trial SET lease = max(lease, ?) WHERE number = ?", (time.time() + lease, number))

    def end(self, number: int, *, info: dict[str, Any], **fields: Any) -> bool:
        """The trial as told, where fields have a value, or as failed; false where it had ended before."""
        with self.file.writing() as db:
            before = self.record(number)
            if before.state in ("told", "failed"):
                return False
            state = "failed" if fields.get("value") is None else "told"
            fields |= {"state": state, "ended": time.time(), "told": self.ended() + 1, "info": json.dumps(before.info | info)}
            columns = ", ".join(f"{name} = ?" for name in fields)
            db.execute(f"UPDATE trial SET {columns} WHERE number = ?", (*fields.values(), number))
        return True

    # The search

    def head(self) -> Head:
        """How far it is."""
        return Head(*self.file.rows("SELECT asks, told, capacity, used FROM search")[0])

    def told_after(self, told: int) -> list[Told]:
        """Trials that ended after the first so many, in that order."""
        rows = self.file.rows("SELECT u, value, cost, enqueued FROM trial WHERE told > ? ORDER BY told", told)
        return [Told(np.frombuffer(r["u"], "<f8"), r["value"], r["cost"] or 0.0, bool(r["enqueued"])) for r in rows]

    def memory(self) -> dict[int, bytes]:
        """What it knew after its last ask, part by part."""
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
