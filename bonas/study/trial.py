"""A trial in the hands of whoever evaluates it: what to evaluate, intermediate values, and whether it is worth going on."""

import math
import statistics
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bonas.study.file import File, StudyError
from bonas.study.store import Store, settings

_ENOUGH = 5  # trials told with intermediate values, below which their median says too little to stop one


class Stop(Exception):
    """Raised by an objective that gives a trial up: the last value it reported is told, and its info says so."""


class Asked:
    """A trial to evaluate. It may be sent to another process.

    number, config and u (d,), its row of the unit cube, say what to evaluate. Where the process it was sent to cannot reach
    the file, as on another machine, what it reports arrives with its result, and it is never stopped.
    """

    def __init__(
        self, number: int, config: dict[str, Any], u: Sequence[float], *, store: Store, study: str, lease: float, least: bool
    ):
        self.number, self.config, self.u = number, config, np.asarray(u)
        self.reports: list[tuple[int, float]] = []  # in the order they were made
        self._store: Store | None = store
        self._path, self._study, self._lease, self._least = store.file.path.absolute(), study, lease, least

    def __repr__(self) -> str:
        return f"Asked(number={self.number}, config={self.config})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_store": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _store=_reach(state["_path"], state["_study"]))

    @property
    def reachable(self) -> bool:
        """Whether the study's file is within reach of this process."""
        return self._store is not None

    def begin(self, attempt: str) -> int:
        """The evaluation begins; how many workers have died of it."""
        return self._store.begin(self.number, attempt) if self._store else 0

    def report(self, step: int, value: float) -> None:
        """Keep an intermediate value, such as the validation loss after an epoch. It also renews the lease.

        A second value of one step replaces the first. NaN is kept too: a run that has diverged.
        """
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise ValueError(f"a step is a whole number; got {step!r}")
        self.reports.append((int(step), float(value)))
        if self._store:
            self._store.report(self.number, int(step), float(value), self._lease)

    def should_stop(self) -> bool:
        """Whether it does worse than half of the others: the median rule (Golovin et al. 2017, Section 3.2.2).

        True where the best value reported so far is worse than the median of what told trials had reported last by the same
        step, five trials at least; and where the last value reported is not a finite number.
        """
        if not self.reports:
            return False
        step, last = self.reports[-1]
        if not math.isfinite(last):
            return True
        others = self._store.reported_by(step) if self._store else []
        if len(others) < _ENOUGH:
            return False
        sign = 1.0 if self._least else -1.0
        best = min(sign * value for _, value in self.reports if math.isfinite(value))
        return best > statistics.median(sign * value for value in others)


@cache
def _reach(path: Path, study: str) -> Store | None:
    """The study's file as this process sees it, opened once; None where that is another, or none."""
    try:
        file = File(path, create=False)
        return Store(file) if settings(file)["id"] == study and not file.readonly else None
    except StudyError:
        return None


def number_of(trial: Asked | int) -> int:
    """The number of a trial, or of one that is named by it."""
    if isinstance(trial, Asked):
        return trial.number
    if isinstance(trial, bool) or not isinstance(trial, (int, np.integer)):
        raise StudyError(f"a trial is what ask() gave, or its number; got {trial!r}")
    return int(trial)
