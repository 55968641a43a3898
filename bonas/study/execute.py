"""Evaluating the trials of a study."""

import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from bonas.study.store import Record

if TYPE_CHECKING:
    from bonas.study.study import Study


class Event(NamedTuple):
    """Something that happened to a trial."""

    kind: str  # asked, told, failed or stopped
    trial: Record
    done: int  # trials of the study that have ended
    best: Record | None


def optimise(
    study: "Study",
    objective: Callable[..., Any],
    *,
    trials: int | None,
    seconds: float | None,
    progress: bool,
    watch: Callable[[Event], None] | None,
) -> None:
    began = time.monotonic()
    while seconds is None or time.monotonic() - began < seconds:
        counts = study._store.counts()
        if trials is not None and counts["told"] + counts["failed"] >= trials:
            return
        asked = study.ask()
        start = time.perf_counter()
        try:
            value = float(objective(dict(asked.config)))
            study.tell(asked, value, cost=time.perf_counter() - start)
        except Exception as problem:
            study.fail(asked, f"{type(problem).__name__}: {problem}", traceback.format_exc())
