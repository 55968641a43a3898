"""Records of stored trials, and of the position of a search."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

STATES = ("waiting", "running", "complete", "failed", "pruned")
FINISHED = ("complete", "failed", "pruned")


@dataclass(frozen=True)
class TrialRecord:
    """A stored trial of a study."""

    number: int
    state: str  # one of STATES
    config: dict[str, Any]
    u: tuple[float, ...]  # (d,) point of the unit cube
    value: float | None = None  # None unless complete or pruned
    cost: float | None = None  # seconds, unless the objective returned another cost
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
    enqueued: bool


class SearchPosition(NamedTuple):
    """The position of a search; one row of the file."""

    asks: int  # asks so far
    # finished trials that the stored state includes, in the order of their end
    observed: int
    capacity: int  # points that the stored state can hold; 0 before the first ask
    points: int  # points in its state: asked by the search, or enqueued and observed
