"""A trial in the hands of whoever evaluates it: what to evaluate, intermediate values, and whether it is worth going on."""

import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bonas.study.file import StudyError
from bonas.study.store import Store

_ENOUGH = 5  # trials told with intermediate values, below which their median says too little to stop one


class Stop(Exception):
    """Raised by an objective that gives a trial up: the last value it reported is told, and the record says so."""


@dataclass(frozen=True)
class Asked:
    """A trial to evaluate."""

    number: int
    config: dict[str, Any]
    u: np.ndarray  # (d,) its row of the unit cube
    path: Path  # of the study
    least: bool  # whether small values are good ones
    lease: float  # seconds that every sign of life is good for
    _store: Store = field(repr=False, compare=False)

    def report(self, step: int, value: float) -> None:
        """Keep an intermediate value, such as the validation loss after an epoch. It also renews the lease.

        A second value of one step replaces the first. NaN is kept too: a run that has diverged.
        """
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise ValueError(f"a step is a whole number; got {step!r}")
        self._store.report(self.number, int(step), float(value), self.lease)

    def should_stop(self) -> bool:
        """Whether it is doing worse than half of the others: the median rule (Golovin et al. 2017, Section 3.2.2).

        True where the best value reported so far is worse than the median of what told trials had reported last by the same
        step, five trials at least; and where the last value reported is not a finite number.
        """
        reports = self._store.reports(self.number)
        if not reports:
            return False
        step, last = reports[-1]
        if not math.isfinite(last):
            return True
        others = self._store.reported_by(step)
        if len(others) < _ENOUGH:
            return False
        sign = 1.0 if self.least else -1.0
        best = min(sign * value for _, value in reports if math.isfinite(value))
        return best > statistics.median(sign * value for value in others)


def number_of(trial: Asked | int) -> int:
    """The number of a trial, or of one that is named by it."""
    if isinstance(trial, Asked):
        return trial.number
    if isinstance(trial, bool) or not isinstance(trial, (int, np.integer)):
        raise StudyError(f"a trial is what ask() gave, or its number; got {trial!r}")
    return int(trial)
