"""Trials of a study: configuration, intermediate values, pruning and result."""

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, SupportsFloat

import numpy as np

from bonas.study.database import Database, StudyError
from bonas.study.storage import Storage, read_values

# Trials with intermediate values that the median rule needs.
_MIN_TRIALS_TO_PRUNE = 5
_MAX_REPR = 60  # characters of an invalid value in a message


class Pruned(Exception):
    """Exception to prune a trial; its value is the last finite reported value."""


class Outcome(NamedTuple):
    """The result of an evaluation."""

    value: float | None  # None if it failed
    cost: float  # seconds, or the cost that the objective returned; NaN if unknown
    error: str = ""
    traceback: str = ""
    pruned_step: int | None = None  # step of the value, if the trial was pruned
    # reported values that are not in the file yet
    reports: tuple[tuple[int, float], ...] = ()
    # whether it failed because a result has the wrong type or range
    invalid: bool = False


class Trial:
    """A trial to evaluate, which can be sent to another process.

    If that process cannot access the study's file, as on another machine, reported values arrive
    with the result, and the trial is never pruned.

    Attributes:
        number: The number of the trial.
        config: The configuration to evaluate.
        u: Its point of the unit cube, (d,).
        reports: (step, value) pairs in the order of the reports.
    """

    def __init__(
        self,
        number: int,
        config: dict[str, Any],
        u: Sequence[float],
        *,
        storage: Storage,
        study_id: str,
        lease: float,
        minimize: bool,
    ):
        self.number = number
        self.config = config
        self.u = np.asarray(u)
        self.reports: list[tuple[int, float]] = []
        self._storage: Storage | None = storage
        self._path = storage.database.path.absolute()
        self._study_id = study_id
        self._lease = lease
        self._minimize = minimize

    def __repr__(self) -> str:
        return f"Trial(number={self.number}, config={self.config})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_storage": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        storage = _open_storage(state["_path"], state["_study_id"])
        self.__dict__.update(state, _storage=storage)

    @property
    def reachable(self) -> bool:
        """Whether this process can access the study's file."""
        return self._storage is not None

    def start(self, attempt: str) -> int:
        """Record the start of the evaluation; return how many workers died evaluating the trial."""
        return self._storage.start(self.number, attempt) if self._storage else 0

    def report(self, step: int, value: SupportsFloat) -> None:
        """Store an intermediate value, such as the validation loss after an epoch.

        A second value for the same step replaces the first. NaN means that training diverged.
        Reporting also renews the lease of the trial.
        """
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise ValueError(f"step must be an integer; got {step!r}")
        self.reports.append((int(step), float(value)))
        if self._storage:
            self._storage.report(self.number, int(step), float(value), self._lease)

    def should_prune(self) -> bool:
        """Return whether the trial should be pruned by the median rule.

        It should if its best reported value is worse than the median of the last values that at
        least five other trials had reported by the same step (Golovin et al. 2017, Section 3.2.2),
        or if its last reported value is not finite.
        """
        if not self.reports:
            return False
        step, last = self.reports[-1]
        if not math.isfinite(last):
            return True
        others = self._storage.values_reported_by(step) if self._storage else []
        if len(others) < _MIN_TRIALS_TO_PRUNE:
            return False
        sign = 1.0 if self._minimize else -1.0
        best = min(sign * value for _, value in self.reports if math.isfinite(value))
        return best > statistics.median(sign * value for value in others)


# A worker process receives trials one by one: it opens their file for the first one only.
@lru_cache(maxsize=8)
def _open_storage(path: Path, study_id: str) -> Storage | None:
    """Open a study's file once per process; None if this process cannot access it."""
    try:
        database = Database(path, create=False)
        is_same = read_values(database)["id"] == study_id
    except StudyError:
        return None
    return Storage(database) if is_same and not database.readonly else None


def trial_number(trial: Trial | int) -> int:
    """Return the number of a trial, which may be given by its number."""
    if isinstance(trial, Trial):
        return trial.number
    if isinstance(trial, bool) or not isinstance(trial, (int, np.integer)):
        raise StudyError(
            f"expected a trial from ask() or a trial number; got {trial!r}"
        )
    return int(trial)


def parse_result(result: Any) -> Outcome:
    """Convert the return value of an objective to an outcome.

    The result is a number, or a tuple of a number and a cost. Any other result is a failure with an
    error message.
    """
    is_pair = isinstance(result, tuple) and len(result) == 2
    value, cost = result if is_pair else (result, math.nan)
    for name, number in (("value", value), ("cost", cost)):
        if problem := _describe_if_not_number(number):
            error = f"expected a number as the {name}; got {problem}"
            return Outcome(None, 0.0, error, invalid=True)
    if not math.isfinite(float(value)):
        return Outcome(None, 0.0, f"the value is not finite: {float(value)}")
    if float(cost) < 0.0 or math.isinf(float(cost)):
        error = f"the cost must be finite and not negative; got {float(cost)}"
        return Outcome(None, 0.0, error, invalid=True)
    return Outcome(float(value), float(cost))


def _describe_if_not_number(value: Any) -> str:
    """Describe a value that is not a number; return "" for a number."""
    if value is None:
        return "None"
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    dtype = getattr(value, "dtype", None)  # NumPy's and JAX's scalars have one
    if dtype is None:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    else:
        is_number = (
            getattr(dtype, "kind", None) in ("i", "u", "f") or str(dtype) == "bfloat16"
        )
    if is_number:
        return ""
    text = repr(value)
    if len(text) > _MAX_REPR:
        text = text[: _MAX_REPR - 3] + "..."
    return f"{text} of type {type(value).__name__}"
