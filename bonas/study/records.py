"""Records of trials, events and search positions, and conversion of trials to tables."""

import csv
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas

STATES = ("waiting", "running", "complete", "failed", "pruned")
FINISHED = ("complete", "failed", "pruned")
# Columns of a table of trials.
_TIMES = ("asked_time", "start_time", "end_time")
_FIRST_COLUMNS = ("number", "state", "value")
_LAST_COLUMNS = ("cost", "noise", "error", *_TIMES, "worker")
_RESERVED = (*_FIRST_COLUMNS, *_LAST_COLUMNS)


@dataclass(frozen=True)
class TrialRecord:
    """A trial of a study, as read from its file."""

    number: int
    state: str  # one of STATES
    config: dict[str, Any]
    u: tuple[float, ...]  # (d,) point of the unit cube
    value: float | None = None  # None unless complete or pruned
    cost: float | None = None  # seconds, unless the objective returned another cost
    noise: float | None = None  # variance of the noise of the value, if it is known
    error: str = ""  # why it failed
    traceback: str = ""
    reports: tuple[tuple[int, float], ...] = ()  # (step, value), by step
    asked_time: float | None = None  # Unix time
    start_time: float | None = None
    end_time: float | None = None
    worker: str = ""  # host:pid:token of the last process that claimed it
    info: dict[str, Any] = field(default_factory=dict)  # how its point was chosen

    @property
    def finished(self) -> bool:
        """Whether the trial is complete, failed or pruned."""
        return self.state in FINISHED


class NewTrial(NamedTuple):
    """A trial to be stored."""

    u: np.ndarray  # (d,) point of the unit cube
    config: str  # JSON
    info: dict[str, Any]


class FinishedTrial(NamedTuple):
    """A finished trial, as the search observes it."""

    u: np.ndarray  # (d,)
    value: float | None  # None if it failed
    cost: float
    noise: float | None  # variance of the noise of the value, if it is known
    enqueued: bool


class SearchPosition(NamedTuple):
    """Counters from which a stored search continues."""

    asks: int  # asks so far
    # finished trials that the stored state includes, in the order of their end
    observed: int
    capacity: int  # points that the stored state can hold; 0 before the first ask
    points: int  # points in its state: asked by the search, or enqueued and observed


class Event(NamedTuple):
    """A change of state of a trial, passed to callbacks."""

    state: str  # running, complete, pruned, failed, or waiting (returned to the queue)
    trial: TrialRecord
    done: int  # finished trials of the study
    best: TrialRecord | None
    running: tuple[int, ...]  # numbers of the trials that this process evaluates


# A function that `Study.optimize` calls with every event.
Callback = Callable[[Event], None]


# Tables, with one row per trial


def column_names(parameters: Sequence[str]) -> list[str]:
    """Return the column names of a table of trials.

    A parameter with the name of another column gets the column `config.NAME`.
    """
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
    """Convert trials to a DataFrame indexed by trial number.

    Inactive parameters are missing values, and times are in UTC.
    """
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
