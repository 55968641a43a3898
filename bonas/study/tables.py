"""Trials as a table."""

import csv
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bonas.study.store import Record

if TYPE_CHECKING:
    import pandas

_TIMES = ("asked", "begun", "ended")
_FIRST, _LAST = ("number", "state", "value"), ("cost", "error", *_TIMES, "worker")


def columns(names: Sequence[str]) -> list[str]:
    """The columns of a table of trials of a space with these parameters; one whose name is taken is called config.name."""
    return [*_FIRST, *(_column(name) for name in names), *_LAST]


def _column(name: str) -> str:
    return f"config.{name}" if name in (*_FIRST, *_LAST) else name


def _row(record: Record) -> dict[str, Any]:
    plain = {name: getattr(record, name) for name in (*_FIRST, *_LAST)}
    return plain | {_column(name): value for name, value in record.config.items()}


def frame(records: Sequence[Record], names: Sequence[str]) -> "pandas.DataFrame":
    """One row a trial; a parameter that is inactive there is missing, and times are in UTC."""
    try:
        import pandas
    except ImportError:
        raise ImportError("study.frame() needs pandas: pip install 'bonas[pandas]'; study.csv(path) does not") from None
    made = pandas.DataFrame([_row(record) for record in records], columns=columns(names)).set_index("number")
    times = {name: pandas.to_datetime(made[name].astype(float), unit="s", utc=True) for name in _TIMES}
    return made.assign(**times)


def write_csv(records: Sequence[Record], names: Sequence[str], path: str | os.PathLike) -> None:
    """The same as a file; what is missing is empty, and times are those of ISO 8601."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns(names), restval="")
        writer.writeheader()
        writer.writerows(_row(record) | _times(record) for record in records)


def _times(record: Record) -> dict[str, str]:
    known = {name: getattr(record, name) for name in _TIMES}
    return {name: datetime.fromtimestamp(time, UTC).isoformat() for name, time in known.items() if time is not None}
