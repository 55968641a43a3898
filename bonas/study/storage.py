"""Write trials and the state of the search to SQLite, with one transaction per transition.

A trial is waiting, running, complete, failed or pruned. A running trial belongs to one process
until its lease ends; then any process may claim it again.
"""

import json
import math
import os
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import Any

from bonas.study.database import Database
from bonas.study.records import NewTrial, SearchPosition, TrialRecord
from bonas.study.stored_trials import (
    LARGEST,
    LATEST,
    StoredRow,
    StoredTrials,
    shorten,
)

Chunk = tuple[int, int, bytes]  # leaf of the search state, chunk of that leaf, content

# Different for every process: process ids are reused, for example by the first process of every
# container.
_TOKEN = secrets.token_hex(4)

# The exact condition of the index of open trials. SQLite uses the index only for queries with this
# condition; other queries read every trial.
_OPEN = "state IN ('waiting', 'running')"
# Store the outcome of an open trial, unless the columns that this reads are damaged.
_FINISH = f"""
    UPDATE trial SET state = :state, value = :value, noise = :noise, error = :error,
        traceback = :traceback,
        cost = coalesce(:cost, max(:now - asked_time, 0.0)), end_time = :now,
        finish_order = (SELECT coalesce(max(finish_order), 0) FROM trial) + 1,
        info = coalesce(:info, info)
    WHERE number = :number AND {_OPEN}
        AND (asked_time IS NULL OR asked_time BETWEEN 0 AND {LATEST})
        AND (SELECT coalesce(max(finish_order), 0) FROM trial) BETWEEN -1 AND {LARGEST}
"""


class Storage(StoredTrials):
    """Storage of the trials of one study, with a method for each change of their states."""

    def enqueue(self, trial: NewTrial) -> int:
        """Store a waiting trial and return its number."""
        with self.database.write_transaction() as db:
            return self._insert(db, trial, enqueued=True)

    def claim(self, lease: float, limit: float = math.inf) -> TrialRecord | None:
        """Claim the first trial that waits, or whose process has died or whose lease has ended.

        Return None if no trial can be claimed, or if `limit` trials are finished or running.
        """
        if self._next_claimable(limit) is None:
            return None
        with self.database.write_transaction() as db:
            # Search again, now that no other process can write.
            number = self._next_claimable(limit)
            if number is None:
                return None
            self._claim(db, number, lease)
            return self.trial(number)

    def _next_claimable(self, limit: float) -> int | None:
        now = time.time()
        waiting = self.database.rows(
            f"SELECT number FROM trial WHERE state = 'waiting' AND {_OPEN} ORDER BY number LIMIT 1"
        )
        running = self.database.rows(
            f"SELECT number, worker, lease FROM trial WHERE state = 'running' AND {_OPEN}"
        )
        lapsed = [row for row in running if self._has_lapsed(self._stored(row), now)]
        claimable: list[int] = [row["number"] for row in (*waiting, *lapsed)]
        in_progress = len(running) - len(lapsed)
        if not claimable or self.finished_count() + in_progress >= limit:
            return None
        return min(claimable)

    def _has_lapsed(self, stored: StoredRow, now: float) -> bool:
        lease = stored.number("lease") or 0.0
        return lease < now or has_ended(stored.process("worker"))

    def add_asked(
        self,
        trials: Sequence[NewTrial],
        position: SearchPosition,
        chunks: Iterable[Chunk],
        *,
        replace_state: bool,
        lease: float,
    ) -> TrialRecord:
        """Store the trials of one ask and the search state after it; claim the first trial.

        The other trials wait in the queue.

        Args:
            trials: The trials of the ask.
            position: Position of the search after the ask.
            chunks: Parts of the search state that have changed.
            replace_state: Whether to delete the stored state first.
            lease: Seconds until other processes may claim the first trial.
        """
        with self.database.write_transaction() as db:
            numbers = [self._insert(db, trial, enqueued=False) for trial in trials]
            self._claim(db, numbers[0], lease)
            if replace_state:
                db.execute("DELETE FROM search_state")
            db.executemany(
                "INSERT OR REPLACE INTO search_state VALUES (?, ?, ?)", chunks
            )
            db.execute(
                "UPDATE search SET asks = ?, observed = ?, capacity = ?, points = ?",
                position,
            )
            return self.trial(numbers[0])

    def _insert(
        self, db: sqlite3.Connection, trial: NewTrial, *, enqueued: bool
    ) -> int:
        number = self.trial_count()
        u = trial.u.astype("<f8").tobytes()
        db.execute(
            "INSERT INTO trial (number, state, config, u, enqueued, info) "
            "VALUES (?, 'waiting', ?, ?, ?, ?)",
            (number, trial.config, u, int(enqueued), json.dumps(trial.info)),
        )
        return number

    def _claim(self, db: sqlite3.Connection, number: int, lease: float) -> None:
        now = time.time()
        db.execute(
            "UPDATE trial SET state = 'running', worker = ?, lease = ?, asked_time = ? "
            "WHERE number = ?",
            (this_process(), now + lease, now, number),
        )

    def start(self, number: int, attempt: str) -> int:
        """Record the start of an evaluation; return how many workers died evaluating the trial.

        A cluster restarts a task whose worker has died within the same attempt; a second start of
        one attempt therefore counts as a death.
        """
        with self.database.write_transaction() as db:
            db.execute(
                "UPDATE trial SET start_time = ?, deaths = deaths + (attempt = ?), attempt = ? "
                "WHERE number = ? AND state = 'running'",
                (time.time(), attempt, attempt, number),
            )
            return self._deaths(number)

    def add_death(self, number: int) -> int:
        """Record that a worker died evaluating a trial; return the number of such workers."""
        with self.database.write_transaction() as db:
            db.execute(
                "UPDATE trial SET deaths = deaths + 1, attempt = '' WHERE number = ?",
                (number,),
            )
            return self._deaths(number)

    def _deaths(self, number: int) -> int:
        return self._stored(self._row(number)).integer("deaths", least=0)

    def renew_leases(self, numbers: Iterable[int], lease: float) -> None:
        """Renew the leases of trials that this process runs."""
        end = time.time() + lease
        with self.database.write_transaction() as db:
            db.executemany(
                "UPDATE trial SET lease = ? WHERE number = ? AND worker = ? AND state = 'running'",
                [(end, number, this_process()) for number in numbers],
            )

    def release(self, number: int) -> None:
        """Return a trial that this process runs to the queue, ahead of later trials."""
        with self.database.write_transaction() as db:
            db.execute(
                "UPDATE trial SET state = 'waiting', attempt = '' "
                "WHERE number = ? AND worker = ? AND state = 'running'",
                (number, this_process()),
            )

    def report(self, number: int, step: int, value: float, lease: float) -> None:
        """Store an intermediate value and renew the lease."""
        with self.database.write_transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO report VALUES (?, ?, ?)", (number, step, value)
            )
            db.execute(
                "UPDATE trial SET lease = max(lease, ?) WHERE number = ?",
                (time.time() + lease, number),
            )

    def finish(
        self,
        number: int,
        *,
        value: float | None,
        cost: float | None,
        noise: float | None = None,
        error: str = "",
        traceback: str = "",
        pruned_step: int | None = None,
    ) -> bool:
        """Store the outcome of a trial; return False, without storing it, if it has finished.

        A trial without a value has failed; a trial with a pruned step was pruned. The default cost
        is the seconds since the trial was asked.
        """
        values = {
            "number": number,
            "state": _final_state(value, pruned_step),
            "value": value,
            "cost": cost,
            "noise": noise,
            "error": error,
            "traceback": traceback,
            "now": time.time(),
            "info": None,
        }
        with self.database.write_transaction() as db:
            if pruned_step is not None:
                info = self.trial(number).info | {"pruned_step": pruned_step}
                values["info"] = json.dumps(info)
            is_stored = db.execute(_FINISH, values).rowcount == 1
            if not is_stored:  # raise a StudyError if the trial is missing or damaged
                self.trial(number)
                self.finished_count()
        return is_stored


def read_values(database: Database, table: str = "setting") -> dict[str, Any]:
    """Return the settings of a study by name, or its notes with table="note"."""
    rows = database.rows(f"SELECT name, value FROM {table}")
    stored = (
        StoredRow(database.path, f"{table} {shorten(row['name'])}", row) for row in rows
    )
    return {row.text("name"): row.json("value") for row in stored}


def write_values(
    database: Database, values: dict[str, Any], table: str = "setting"
) -> None:
    """Store settings or notes as JSON, and replace entries with the same name."""
    rows = [
        (name, json.dumps(value, allow_nan=False)) for name, value in values.items()
    ]
    with database.write_transaction() as db:
        db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", rows)


def _final_state(value: float | None, pruned_step: int | None) -> str:
    if value is None:
        return "failed"
    return "complete" if pruned_step is None else "pruned"


# Processes


def this_process() -> str:
    """Return a unique name of this process: host:pid:token."""
    return f"{socket.gethostname()}:{os.getpid()}:{_TOKEN}"


def has_ended(process: str) -> bool:
    """Return whether a process of this host has ended; False for other hosts."""
    host, pid, token = process.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    if int(pid) == os.getpid():
        return token != _TOKEN
    if os.name != "posix":  # elsewhere, signal 0 is not a harmless test
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is running as another user
        return False
    return False
