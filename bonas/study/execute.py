"""Evaluating the trials of a study, one after the other or many at once: a new point is asked whenever a worker is free."""

import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

from bonas.study.file import StudyError
from bonas.study.store import Record
from bonas.study.trial import Asked
from bonas.study.work import DEATHS, Outcome, can_interrupt, work
from bonas.study.workers import Here, NotThere, Processes, chosen, is_death

if TYPE_CHECKING:
    from bonas.study.study import Study

FAILURES = 10  # in a row, after which a search is stopped: it is the objective then, and not its points
_TICK = 0.2  # seconds between two looks at the clock
_START = 60.0  # seconds that a worker may take to begin: it imports what the objective needs
_GRACE = 1.0  # seconds that a worker has to end an evaluation itself, which then leaves a traceback


class Event(NamedTuple):
    """Something that happened to a trial."""

    kind: str  # asked, told, stopped (and told), failed or returned (to the queue)
    trial: Record
    done: int  # trials of the study that have ended
    best: Record | None
    running: tuple[int, ...]  # numbers of the trials that this process has others evaluate


Watch = Callable[[Event], None]


class _Running(NamedTuple):
    asked: Asked
    submitted: float  # unix time


class Evaluating:
    """One call of optimise."""

    def __init__(
        self,
        study: "Study",
        objective: Callable[..., Any],
        *,
        trials: int | None,
        seconds: float | None,
        trial_seconds: float | None,
        executor: Executor,
        room: int,
        watch: Watch | None,
    ):
        self._study, self._store, self._objective, self._watch = study, study._store, objective, watch
        self._trials, self._limit = float("inf") if trials is None else trials, trial_seconds
        self._until = float("inf") if seconds is None else time.monotonic() + seconds
        self._executor, self._room = executor, room
        self._running: dict[Future, _Running] = {}
        self._lost: set[Future] = set()  # evaluations that took too long and cannot be ended
        self._failures: list[str] = []  # since the last success

    def run(self) -> None:
        """Evaluate until there is nothing left to do. Whatever ends it, trials without an outcome are back in the queue."""
        try:
            with self._heartbeat():
                while self._fill():
                    self._collect()
        finally:
            for future, each in self._running.items():
                future.cancel()
                with suppress(StudyError):
                    self._store.back(each.asked.number)

    def _fill(self) -> bool:
        """Ask for as many trials as there are free workers; whether any is running."""
        self._lost = {future for future in self._lost if not future.done()}
        while len(self._running) + len(self._lost) < self._room and time.monotonic() < self._until:
            asked = self._study._ask(self._trials)
            if asked is None:
                break
            self._submit(asked)
        if not self._running and len(self._lost) == self._room and self._store.ended() < self._trials:
            raise StudyError(f"every worker hangs in an evaluation longer than {self._limit:g} s; end them and go on")
        return bool(self._running)

    def _submit(self, asked: Asked) -> None:
        place: Future = Future()  # so that the trial goes back to the queue where it is interrupted on the way
        self._running[place] = _Running(asked, time.time())
        self._tell_watcher("asked", asked.number)
        try:
            future = self._executor.submit(work, self._objective, asked, secrets.token_hex(4), self._limit)
        except Exception as problem:
            if isinstance(self._executor, Here):
                raise
            raise _failed(problem) from problem
        self._running[future] = self._running.pop(place)

    def _collect(self) -> None:
        """Wait for outcomes, and keep them; trials that end together are told in the order of their numbers."""
        done, _ = wait(self._running, timeout=_TICK if self._limit else None, return_when=FIRST_COMPLETED)
        problems = []
        for future in sorted(done, key=lambda future: self._running[future].asked.number):
            problem = CancelledError("the executor gave a trial up") if future.cancelled() else future.exception()
            number = self._running[future].asked.number
            if problem is None:
                self._end(number, future.result())
            elif isinstance(self._executor, Processes) and is_death(problem) and not self._executor.began(future):
                raise StudyError(
                    "a process for the evaluations could not be started, and its trials are back in the queue: what it has "
                    'printed says why. A script must have what it does under `if __name__ == "__main__":`'
                )
            elif is_death(problem):
                self._died(number, problem)
            if problem is not None and not self._survives(problem):
                problems.append(problem)
            if problem is None or is_death(problem):
                del self._running[future]  # not before its outcome is kept
        if self._limit:
            self._overtime(self._limit)
        if problems:
            raise _failed(problems[0]) from (None if isinstance(problems[0], NotThere) else problems[0])
        if len(self._failures) >= FAILURES:
            raise StudyError(f"{summary(self._failures)}. `bonas report {self._study.path}` shows where")

    def _survives(self, problem: BaseException) -> bool:
        """Whether the executor can go on: a cluster, or processes of our own, after the death of a worker."""
        return is_death(problem) and (isinstance(self._executor, Processes) or not isinstance(problem, BrokenExecutor))

    def _end(self, number: int, outcome: Outcome) -> None:
        for step, value in outcome.reports:
            self._store.report(number, step, value, self._study.lease)
        info = {} if outcome.stopped is None else {"stopped": outcome.stopped}
        kept = {"value": outcome.value, "cost": outcome.cost, "error": outcome.error, "traceback": outcome.traceback}
        try:
            first = self._store.end(number, info=info, **kept)
        except StudyError as problem:
            raise StudyError(
                f"{problem}. Trial {number} had ended with {outcome.error or outcome.value}, which is not kept"
            ) from problem
        if not first:  # another process had taken it over, and was faster
            return
        if outcome.value is not None:
            self._failures = []
            self._tell_watcher("told" if outcome.stopped is None else "stopped", number)
            return
        self._failures.append(outcome.error)
        self._tell_watcher("failed", number)

    def _died(self, number: int, problem: BaseException) -> None:
        """Back to the queue the first time, a failure the second."""
        if self._store.died(number) >= DEATHS:
            self._end(number, Outcome(None, 0.0, f"{DEATHS} workers died while they evaluated it", f"{problem}"))
        else:
            self._store.back(number)
            self._tell_watcher("returned", number)

    def _overtime(self, limit: float) -> None:
        """Fail what runs for too long, and end its worker where that is possible."""
        now = time.time()
        for future, (asked, submitted) in list(self._running.items()):
            if now < submitted + limit + _GRACE:
                continue
            begun = self._store.record(asked.number).begun
            start = begun if begun is not None and begun >= submitted else submitted + _START
            if now < start + limit + _GRACE or future.done():
                continue
            if isinstance(self._executor, Processes):
                self._executor.kill(future)
            elif not future.cancel():
                self._lost.add(future)
            self._end(asked.number, Outcome(None, now - start, f"it took longer than {limit:g} s"))
            del self._running[future]

    def _tell_watcher(self, kind: str, number: int) -> None:
        if self._watch:
            numbers = (each.asked.number for each in self._running.values())
            running = tuple(each for each in numbers if each != number or kind == "asked")
            event = Event(kind, self._store.record(number), self._store.ended(), self._study.best, running)
            self._watch(event)

    @contextmanager
    def _heartbeat(self) -> Iterator[None]:
        """Renew the leases of what is running, four times as often as needed."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(self._study.lease / 4):
                with suppress(StudyError):  # a disk that is full now need not be by the next time
                    self._store.renew([each.asked.number for each in list(self._running.values())], self._study.lease)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _failed(problem: BaseException) -> StudyError:
    if isinstance(problem, NotThere):  # a worker's, which says it all
        return StudyError(str(problem))
    return StudyError(f"the executor failed, and its trials are back in the queue ({problem!r})")


def summary(failures: list[str]) -> str:
    """Why the last evaluations failed, the most frequent reason first."""
    counted = "; ".join(f"{n} × {error}" for error, n in Counter(failures).most_common(3))
    return f"{len(failures)} trials in a row have failed: {counted}"


def check_limits(*, trials: Any, seconds: Any, trial_seconds: Any) -> None:
    """A ValueError where trials are no whole number of at least 1, or seconds no finite number above 0; None is no limit."""
    if trials is not None and (isinstance(trials, bool) or not isinstance(trials, Integral) or trials < 1):
        raise ValueError(f"trials is a whole number of at least 1; got {trials!r}")
    for name, value in (("seconds", seconds), ("trial_seconds", trial_seconds)):
        if value is not None and not (isinstance(value, Real) and 0.0 < float(value) < math.inf):
            raise ValueError(f"{name} is a number above 0; got {value!r}")


def optimise(
    study: "Study",
    objective: Callable[..., Any],
    *,
    executor: Executor | None,
    workers: int | None,
    trial_seconds: float | None,
    **limits: Any,
) -> None:
    """Evaluate the objective at the study's trials, where the executor has it."""
    chosen_executor, room = chosen(executor, workers, objective)
    if isinstance(chosen_executor, Here) and trial_seconds is not None and not can_interrupt():
        raise ValueError("an evaluation cannot be interrupted in this thread: trial_seconds needs a process, workers=1")
    try:
        Evaluating(study, objective, trial_seconds=trial_seconds, executor=chosen_executor, room=room, **limits).run()
    finally:
        if isinstance(chosen_executor, Processes):
            chosen_executor.shutdown()
