"""The file of a study: an SQLite database that is opened carefully, brought up to date, and spoken of plainly when it fails.

Write-ahead log and full synchronisation: a value that was told is on the disk before `tell` returns, and neither a killed
process nor a power failure takes it back. An evaluation may have cost hours; the synchronisation costs milliseconds.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

APPLICATION = int.from_bytes(b"bona", "big")  # in the header of every study, by which other programs' files are told apart
_WAIT = 60.0  # seconds until another process that is writing is given up on: a hundred times what a transaction takes

# One script a version, applied in order; the file's user_version says how many it has had. Never change one that was released.
MIGRATIONS = (
    """
    CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE note (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE trial (
        number INTEGER PRIMARY KEY,
        state TEXT NOT NULL CHECK (state IN ('queued', 'asked', 'running', 'told', 'failed')),
        config TEXT NOT NULL,               -- JSON, as bonas.study.written has it
        u BLOB NOT NULL,                    -- the row of the unit cube, little-endian float64
        enqueued INTEGER NOT NULL,          -- 1 where a person chose the point and not the search
        value REAL, cost REAL, error TEXT NOT NULL DEFAULT '', traceback TEXT NOT NULL DEFAULT '',
        asked REAL, ended REAL,             -- unix time
        told INTEGER UNIQUE,                -- the order in which trials ended, which is the order the search is told in
        worker TEXT NOT NULL DEFAULT '', lease REAL NOT NULL DEFAULT 0,
        attempt TEXT NOT NULL DEFAULT '', deaths INTEGER NOT NULL DEFAULT 0,    -- of workers that evaluated it
        info TEXT NOT NULL DEFAULT '{}');
    CREATE INDEX open_trials ON trial (state, number) WHERE state IN ('queued', 'asked', 'running');
    CREATE INDEX values_told ON trial (value) WHERE state = 'told';
    CREATE TABLE report (
        trial INTEGER NOT NULL REFERENCES trial (number) ON DELETE CASCADE,
        step INTEGER NOT NULL, value REAL,
        PRIMARY KEY (trial, step)) WITHOUT ROWID;
    CREATE TABLE search (asks INTEGER NOT NULL, told INTEGER NOT NULL, capacity INTEGER NOT NULL);  -- one row
    CREATE TABLE memory (part INTEGER, piece INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (part, piece)) WITHOUT ROWID
    """,
    """
    ALTER TABLE trial ADD COLUMN begun REAL;                        -- unix time at which its evaluation began
    ALTER TABLE search ADD COLUMN used INTEGER NOT NULL DEFAULT 0;  -- points in its memory
    UPDATE search SET used = (SELECT count(*) FROM trial WHERE NOT enqueued OR told <= search.told);
    INSERT INTO setting SELECT 'id', '"' || hex(randomblob(8)) || '"' WHERE EXISTS (SELECT * FROM setting)
    """,
)


class StudyError(ValueError):
    """What is wrong with a study, and what can be done about it."""


class File:
    """A connection that threads may share, and its transactions."""

    def __init__(self, path: str | os.PathLike, *, create: bool):
        self.path = Path(path)
        self._lock, self._open = threading.RLock(), True
        _check_place(self.path, create)
        self.readonly = self.path.exists() and not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))
        with plainly(self.path):
            self._db = self._connect()
            try:
                with self.reading():  # another process may be making it
                    self._recognise(create)
                self._upgrade()
            except BaseException:
                self._db.close()
                raise

    def _connect(self) -> sqlite3.Connection:
        # as an address, so that no name of a file has a meaning of its own, such as ":memory:"
        address = self.path.absolute().as_uri()
        log = self.path.with_name(self.path.name + "-wal").exists()
        mode = "rwc" if not self.readonly else "ro" if log else "ro&immutable=1"
        db = sqlite3.connect(f"{address}?mode={mode}", uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        return db

    def _recognise(self, create: bool) -> None:
        """Nothing is written before the file is known to be a study, or empty."""
        application, version = self._pragma("application_id"), self._pragma("user_version")
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION and (tables or application or version):
            raise StudyError(f"{self.path} is an SQLite file of another program, not a study of bonas; choose another name")
        if application != APPLICATION and (self.readonly or not create):
            raise StudyError(f"{self.path} is empty; give a space to begin a study there")
        if version > len(MIGRATIONS):
            raise StudyError(
                f"{self.path} was written by a newer bonas (schema {version}, this one knows {len(MIGRATIONS)}); update bonas"
            )
        if (found := self._pragma("quick_check")) != "ok":
            raise StudyError(f"{self.path} is damaged ({found}); restore a copy, or save what is left by `sqlite3 … .recover`")

    def _pragma(self, name: str):
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def _upgrade(self) -> None:
        self._db.execute("PRAGMA foreign_keys = ON")
        if self.readonly:
            return
        self._begin_log()
        self._db.execute("PRAGMA synchronous = FULL")
        if self._pragma("user_version") == len(MIGRATIONS):
            return
        with self.writing() as db:  # another process may have been faster: the version is read again
            for script in MIGRATIONS[self._pragma("user_version") :]:
                for statement in script.split(";"):
                    db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _begin_log(self) -> None:
        """The write-ahead log; unlike all else, this does not wait by itself while another process does the same."""
        end = time.monotonic() + _WAIT
        while self._pragma("journal_mode") != "wal":
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as problem:
                if "BUSY" not in problem.sqlite_errorname or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """No other thread uses the connection meanwhile, and it is still there."""
        with self._lock, plainly(self.path):
            if not self._open:
                raise StudyError(f"the study {self.path} is closed; open it again to go on")
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One view of the file, whatever others write meanwhile."""
        with self._held():
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing. Inside another one it is part of that."""
        if self.readonly:
            raise StudyError(
                f"{self.path} can only be read: it, or its folder, may not be written to; copy it elsewhere to go on"
            )
        with self._held():
            if self._db.in_transaction:
                yield self._db
                return
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk may have rolled it back already
                    self._db.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values) -> list[sqlite3.Row]:
        """What a query finds."""
        with self._held():
            return self._db.execute(query, values).fetchall()

    def row(self, query: str, *values) -> sqlite3.Row | None:
        """The first that a query finds."""
        with self._held():
            return self._db.execute(query, values).fetchone()

    def close(self) -> None:
        """Ends the connection."""
        with self._lock:
            self._open = False
            self._db.close()


def _check_place(path: Path, create: bool) -> None:
    if path.is_dir():
        raise StudyError(f"{path} is a folder; a study is a file in one, such as {path / 'runs.db'}")
    if path.exists():
        return
    if not create:
        raise StudyError(f"there is no study at {path}; Study(path, space) or `bonas search` begins one")
    if not path.parent.is_dir():
        raise StudyError(f"there is no folder {path.parent} to begin a study in; make it first")
    if not os.access(path.parent, os.W_OK):
        raise StudyError(f"the folder {path.parent} may not be written to; begin the study elsewhere")


_MEANINGS = {  # the start of SQLite's name of an error -> what it means to a person
    "SQLITE_FULL": "the disk is full; what was told before is safe: free some space and go on",
    "SQLITE_IOERR": "the disk failed or is full; what was told before is safe: see to the disk and go on",
    "SQLITE_READONLY": "it can only be read; copy it to where it may be written to, and go on there",
    "SQLITE_CANTOPEN": "it cannot be opened; are its folder and the files beside it (-wal, -shm) readable and writable?",
    "SQLITE_BUSY": "another process has been writing to it for a minute; end that one, or try again",
    "SQLITE_NOTADB": "it is no study of bonas, nor any SQLite file; choose another name",
    "SQLITE_CORRUPT": "it is damaged; restore a copy, or save what is left by `sqlite3 … .recover`",
}


@contextmanager
def plainly(path: Path) -> Iterator[None]:
    """SQLite's errors as StudyErrors that name the file and the remedy."""
    try:
        yield
    except sqlite3.Error as problem:
        name = getattr(problem, "sqlite_errorname", "")
        meaning = next((text for start, text in _MEANINGS.items() if name.startswith(start)), "")
        if not meaning and not isinstance(problem, sqlite3.OperationalError):
            raise
        raise StudyError(f"{path}: {meaning or problem}" + (f" ({problem})" if meaning else "")) from problem
