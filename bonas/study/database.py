"""Open the SQLite file of a study, with schema migrations, transactions and error messages.

The file uses a write-ahead log with full synchronization: a value is on disk before `Study.tell`
returns, so neither a killed process nor a power failure loses it. An evaluation may take hours; the
synchronization takes milliseconds.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bonas.study.migrations import MIGRATIONS

# The application id in the SQLite header, which distinguishes studies from other programs' files.
APPLICATION_ID = int.from_bytes(b"bona", "big")

# Seconds to wait for another writer, about a hundred times the duration of a transaction.
_BUSY_TIMEOUT = 60.0


class StudyError(ValueError):
    """Error in a study file or in its use."""


class Database:
    """A thread-safe SQLite connection with nested transactions."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool):
        """Open a study file, and migrate it if an older version of bonas wrote it.

        A read-only file of an older version is migrated in memory and not changed.

        Args:
            path: The file of the study.
            create: Whether to create the file if it does not exist; otherwise raise a StudyError.
        """
        self.path = Path(path)
        self._lock = threading.RLock()
        self._is_open = True
        _check_path(self.path, create)
        self.readonly = self.path.exists() and not (
            os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        )
        with _translate_errors(self.path):
            self._db = self._connect()
            try:
                # another process may be creating the file
                with self.read_transaction():
                    self._check_is_study(create)
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _connect(self) -> sqlite3.Connection:
        # A URI, so that a file name such as ":memory:" has no special meaning.
        uri = self.path.absolute().as_uri()
        has_log = self.path.with_name(self.path.name + "-wal").exists()
        readonly_mode = "ro" if has_log else "ro&immutable=1"
        mode = readonly_mode if self.readonly else "rwc"
        return _open_connection(f"{uri}?mode={mode}")

    def _check_is_study(self, create: bool) -> None:
        """Raise a StudyError unless the file is a study or empty, before anything is written."""
        application = self._pragma("application_id")
        version = self._pragma("user_version")
        kinds = {row[0] for row in self._db.execute("SELECT type FROM sqlite_master")}
        if application != APPLICATION_ID and (kinds or application or version):
            raise StudyError(
                f"{self.path} is an SQLite file of another program, not a bonas study; "
                "choose another path"
            )
        if application != APPLICATION_ID and (self.readonly or not create):
            raise StudyError(
                f"{self.path} is empty; pass a space to create a study there"
            )
        if not kinds <= {"table", "index"}:
            raise StudyError(
                f"{self.path} has views or triggers, so it is not a study; choose another path"
            )
        if version > len(MIGRATIONS):
            raise StudyError(
                f"{self.path} was written by a newer bonas (schema {version}; this version "
                f"reads up to {len(MIGRATIONS)}); update bonas"
            )
        if (found := self._pragma("quick_check")) != "ok":
            raise StudyError(
                f"{self.path} is damaged ({' '.join(found.split())}); restore a backup, or "
                "save what is left with `sqlite3 FILE .recover`"
            )

    def _pragma(self, name: str) -> Any:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def _prepare(self) -> None:
        """Configure the connection and apply missing migrations."""
        is_current = self._pragma("user_version") == len(MIGRATIONS)
        if self.readonly:
            if not is_current:
                self._copy_to_memory()
                self._migrate()
        else:
            self._start_log()
            self._db.execute("PRAGMA synchronous = FULL")
            if not is_current:
                self._migrate()
        # Only now: a migration that replaces a table must not delete rows that refer to it.
        self._db.execute("PRAGMA foreign_keys = ON")

    def _copy_to_memory(self) -> None:
        memory = _open_connection("file::memory:")
        self._db.backup(memory)
        self._db.close()
        self._db = memory

    def _migrate(self) -> None:
        self._db.execute("PRAGMA foreign_keys = OFF")
        with self._transaction() as db:
            # Read the version again: another process may have migrated the file first.
            for script in MIGRATIONS[self._pragma("user_version") :]:
                for statement in script.split(";"):
                    db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _start_log(self) -> None:
        """Switch to the write-ahead log; SQLite does not wait if another process does the same."""
        deadline = time.monotonic() + _BUSY_TIMEOUT
        while self._pragma("journal_mode") != "wal":
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as problem:
                if (
                    "BUSY" not in problem.sqlite_errorname
                    or time.monotonic() > deadline
                ):
                    raise
                time.sleep(0.01)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Lock the connection for this thread, and check that it is open."""
        with self._lock, _translate_errors(self.path):
            if not self._is_open:
                raise StudyError(
                    f"the study {self.path} is closed; open it again to continue"
                )
            yield

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Read a consistent snapshot in this context, while other processes may write."""
        with self._exclusive():
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("COMMIT")

    @contextmanager
    def write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, which is rolled back if the context raises an exception.

        A nested transaction is part of the outer one.
        """
        if self.readonly:
            raise StudyError(
                f"{self.path} is read-only (the file or its folder); copy it to a folder "
                "where you may write, and continue there"
            )
        with self._transaction() as db:
            yield db

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._exclusive():
            if self._db.in_transaction:
                yield self._db
                return
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                # a full disk may have rolled it back already
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Return all rows of a query with the given parameter values."""
        with self._exclusive():
            return self._db.execute(query, values).fetchall()

    def row(self, query: str, *values: Any) -> sqlite3.Row | None:
        """Return the first row of a query, or None."""
        with self._exclusive():
            first: sqlite3.Row | None = self._db.execute(query, values).fetchone()
            return first

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._is_open = False
            self._db.close()


def _open_connection(uri: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        uri,
        uri=True,
        timeout=_BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )
    db.row_factory = sqlite3.Row
    return db


def _check_path(path: Path, create: bool) -> None:
    if path.is_dir():
        raise StudyError(
            f"{path} is a folder; a study is a file, such as {path / 'runs.db'}"
        )
    if path.exists():
        return
    if not create:
        raise StudyError(
            f"no study at {path}; Study(path, space) or `bonas search` creates one"
        )
    if not path.parent.is_dir():
        raise StudyError(f"the folder {path.parent} does not exist; create it first")
    if not os.access(path.parent, os.W_OK):
        raise StudyError(
            f"the folder {path.parent} is read-only; create the study elsewhere"
        )


# Prefixes of SQLite's error names, and their explanations.
_EXPLANATIONS = {
    "SQLITE_FULL": "the disk is full; recorded values are safe: free some space and continue",
    "SQLITE_IOERR": "the disk failed or is full; recorded values are safe: check it and continue",
    "SQLITE_READONLY": "the file is read-only; copy it to a folder where you may write",
    "SQLITE_CANTOPEN": (
        "the file cannot be opened; check that its folder and the files beside it (-wal, -shm) "
        "can be read and written"
    ),
    "SQLITE_BUSY": "another process has been writing for a minute; end it, or try again",
    "SQLITE_NOTADB": "neither a bonas study nor an SQLite file; choose another path",
    "SQLITE_CORRUPT": (
        "the file is damaged; restore a backup, or save what is left with `sqlite3 FILE .recover`"
    ),
}

# Other errors that the content of a file can cause.
_CAUSED_BY_FILE = (sqlite3.OperationalError, sqlite3.IntegrityError, sqlite3.DataError)


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Convert SQLite's errors to StudyErrors that name the file and the solution."""
    try:
        yield
    except sqlite3.Error as problem:
        name = getattr(problem, "sqlite_errorname", "")
        line = " ".join(str(problem).split())
        for prefix, explanation in _EXPLANATIONS.items():
            if name.startswith(prefix):
                raise StudyError(f"{path}: {explanation} ({line})") from problem
        if isinstance(problem, _CAUSED_BY_FILE):
            raise StudyError(f"{path}: {line}") from problem
        raise
