"""Trials as a pandas DataFrame or a CSV file, one row per trial."""

import csv
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bonas.study.trial_record import TrialRecord

if TYPE_CHECKING:
    import pandas

_TIMES = ("asked_time", "start_time", "end_time")
_FIRST_COLUMNS = ("number", "state", "value")
_LAST_COLUMNS = ("cost", "error", *_TIMES, "worker")
_RESERVED = (*_FIRST_COLUMNS, *_LAST_COLUMNS)


def column_names(parameters: Sequence[str]) -> list[str]:
    """Return the columns of the table; a parameter with a reserved name becomes config.NAME."""
    return [*_FIRST_COLUMNS, *map(_parameter_column, parameters), *_LAST_COLUMNS]


def _parameter_column(name: str) -> str:
    return f"config.{name}" if name in _RESERVED else name


def _row(trial: TrialRecord) -> dict[str, Any]:
    fields = {name: getattr(trial, name) for name in _RESERVED}
    return fields | {
        _parameter_column(name): value for name, value in trial.config.items()
    }


def to_dataframe(
    trials: Sequence[TrialRecord], parameters: Sequence[str]
) -> "pandas.DataFrame":
    """Convert trials to a DataFrame; inactive parameters are missing, times are in UTC."""
    import pandas

    rows = [_row(trial) for trial in trials]
    frame = pandas.DataFrame(rows, columns=column_names(parameters)).set_index("number")
    times = {
        name: pandas.to_datetime(frame[name].astype(float), unit="s", utc=True)
        for name in _TIMES
    }
    return frame.assign(**times)


def write_csv(
    trials: Sequence[TrialRecord],
    parameters: Sequence[str],
    path: str | os.PathLike[str],
) -> None:
    """Write trials as CSV, with empty cells for missing values and times in ISO 8601."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, column_names(parameters), restval="")
        writer.writeheader()
        writer.writerows(_row(trial) | _iso_times(trial) for trial in trials)


def _iso_times(trial: TrialRecord) -> dict[str, str]:
    times = {name: getattr(trial, name) for name in _TIMES}
    return {
        name: datetime.fromtimestamp(time, UTC).isoformat()
        for name, time in times.items()
        if time is not None
    }
