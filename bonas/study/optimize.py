"""Evaluate the trials of a study, and ask for a new one whenever a worker is free."""

import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from bonas.search import ModelWarning, Update
from bonas.study.database import StudyError
from bonas.study.executors import (
    InProcessExecutor,
    ObjectiveNotFound,
    ProcessPool,
    choose_executor,
    is_worker_death,
)
from bonas.study.records import Callback, Event
from bonas.study.trial import (
    DEATHS_ERROR,
    MAX_DEATHS,
    Outcome,
    Trial,
    can_interrupt,
    evaluate,
    timeout_error,
)

if TYPE_CHECKING:
    from bonas.study.study import Study

# Number of consecutive failures that end the search, because the objective must be wrong.
MAX_FAILURES = 10
# Shown while an ask waits for the compiler.
COMPILING = "compiling the model"
_POLL_SECONDS = 0.2  # between two checks of the time limit
_START_SECONDS = 60.0  # for a worker to start: it imports what the objective needs
_GRACE_SECONDS = 1.0  # for a worker to end an evaluation itself, with a traceback


class _RunningTrial(NamedTuple):
    trial: Trial
    submitted: float  # Unix time


class Optimizer:
    """State of one call of `Study.optimize`."""

    def __init__(
        self,
        study: "Study",
        objective: Callable[..., Any],
        *,
        trials: int | None,
        seconds: float | None,
        trial_seconds: float | None,
        executor: Executor,
        slots: int,
        callbacks: Sequence[Callback],
        on_wait: Callable[[], None],
    ):
        self._study = study
        self._storage = study._storage
        self._objective = objective
        self._callbacks = callbacks
        self._on_wait = on_wait  # called before an ask waits for the compiler
        self._max_trials = math.inf if trials is None else float(trials)
        self._deadline = math.inf if seconds is None else time.monotonic() + seconds
        self._time_limit = trial_seconds
        self._executor = executor
        self._slots = slots  # trials to run at once
        self._running: dict[Future[Any], _RunningTrial] = {}
        self._hanging: set[Future[Any]] = (
            set()
        )  # evaluations that timed out and cannot be ended
        self._failures: list[str] = []  # errors since the last trial with a value

    def run(self) -> None:
        """Evaluate trials up to the limits; at the end, return running trials to the queue."""
        try:
            with self._renewed_leases():
                while self._submit_trials():
                    self._collect()
        finally:
            for future, running in self._running.items():
                future.cancel()
                with suppress(StudyError):
                    self._storage.release(running.trial.number)

    def _submit_trials(self) -> bool:
        """Submit trials while workers are free; return whether any trial is running."""
        self._hanging = {future for future in self._hanging if not future.done()}
        while self._has_free_slot() and time.monotonic() < self._deadline:
            trial = self._study._ask(self._max_trials)
            if trial is None:
                break
            self._study._get_stepper().prepare(self._max_trials, self._on_wait)
            self._submit(trial)
        all_hang = not self._running and len(self._hanging) == self._slots
        if all_hang and self._storage.finished_count() < self._max_trials:
            raise StudyError(
                f"every worker hangs in an evaluation that took longer than {self._time_limit:g} s;"
                " end the workers and call optimize again"
            )
        return bool(self._running)

    def _has_free_slot(self) -> bool:
        return len(self._running) + len(self._hanging) < self._slots

    def _submit(self, trial: Trial) -> None:
        # Registered before it is submitted, so that an interrupt in between releases the trial.
        placeholder: Future[Any] = Future()
        self._running[placeholder] = _RunningTrial(trial, time.time())
        self._notify("running", trial.number)
        attempt = secrets.token_hex(4)
        try:
            future = self._executor.submit(
                evaluate, self._objective, trial, attempt, self._time_limit
            )
        except Exception as problem:
            if isinstance(self._executor, InProcessExecutor):
                raise
            raise _executor_error(problem) from problem
        self._running[future] = self._running.pop(placeholder)

    def _collect(self) -> None:
        """Wait for outcomes and store them; simultaneous ones in the order of trial numbers."""
        timeout = _POLL_SECONDS if self._time_limit else None
        done, _ = wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)
        by_number = sorted(done, key=lambda future: self._running[future].trial.number)
        problems = [
            problem for future in by_number if (problem := self._handle(future))
        ]
        if self._time_limit:
            self._fail_overdue(self._time_limit)
        if problems:
            cause = None if isinstance(problems[0], ObjectiveNotFound) else problems[0]
            raise _executor_error(problems[0]) from cause
        if len(self._failures) >= MAX_FAILURES:
            raise StudyError(
                f"{_summarize(self._failures)}. Run `bonas report {self._study.path}` to see the "
                "failed trials"
            )

    def _handle(self, future: Future[Any]) -> BaseException | None:
        """Store the outcome of a task; return an error after which the executor cannot continue."""
        if future.cancelled():
            problem: BaseException | None = CancelledError(
                "the executor canceled a trial"
            )
        else:
            problem = future.exception()
        number = self._running[future].trial.number
        if problem is None:
            self._finish(number, future.result())
            del self._running[future]  # only once its outcome is stored
            return None
        if not is_worker_death(problem):
            return problem
        pool = self._executor if isinstance(self._executor, ProcessPool) else None
        if pool is not None and not pool.has_started(future):
            raise StudyError(
                "a worker process could not be started, and its trials are back in the queue; "
                "its output above says why. A script must have its code under "
                '`if __name__ == "__main__":`'
            )
        self._handle_death(number, problem)
        del self._running[future]
        # A cluster and ProcessPool continue without a worker that died; other pools are broken.
        can_continue = pool is not None or not isinstance(problem, BrokenExecutor)
        return None if can_continue else problem

    def _finish(self, number: int, outcome: Outcome) -> None:
        outcome = self._study._check_noise(outcome)
        for step, value in outcome.reports:
            self._storage.report(number, step, value, self._study.lease)
        try:
            is_first = self._storage.finish(
                number,
                value=outcome.value,
                cost=outcome.cost,
                noise=outcome.noise,
                error=outcome.error,
                traceback=outcome.traceback,
                pruned_step=outcome.pruned_step,
            )
        except StudyError as problem:
            result = outcome.error or outcome.value
            raise StudyError(
                f"{problem}. The result of trial {number} is lost: {result}"
            ) from problem
        if not is_first:  # another process had claimed the trial and was faster
            return
        if outcome.value is None:
            self._failures.append(outcome.error)
            self._notify("failed", number)
        else:
            self._failures = []
            self._notify(
                "complete" if outcome.pruned_step is None else "pruned", number
            )

    def _handle_death(self, number: int, problem: BaseException) -> None:
        """Return a trial whose worker died to the queue; fail it if this happens again."""
        if self._storage.add_death(number) >= MAX_DEATHS:
            self._finish(number, Outcome(None, 0.0, DEATHS_ERROR, f"{problem}"))
        else:
            self._storage.release(number)
            self._notify("waiting", number)

    def _fail_overdue(self, limit: float) -> None:
        """Fail trials that exceeded the time limit, and end their workers if possible."""
        now = time.time()
        for future, (trial, submitted) in list(self._running.items()):
            if now < submitted + limit + _GRACE_SECONDS:
                continue
            start = self._start_time(trial.number, submitted)
            if now < start + limit + _GRACE_SECONDS or future.done():
                continue
            if isinstance(self._executor, ProcessPool):
                self._executor.kill(future)
            elif not future.cancel():
                self._hanging.add(future)
            self._finish(trial.number, Outcome(None, now - start, timeout_error(limit)))
            del self._running[future]

    def _start_time(self, number: int, submitted: float) -> float:
        """Return the start time of an evaluation, or the latest possible one."""
        started = self._storage.trial(number).start_time
        if started is not None and started >= submitted:
            return started
        return submitted + _START_SECONDS

    def _notify(self, state: str, number: int) -> None:
        if not self._callbacks:
            return
        numbers = (running.trial.number for running in self._running.values())
        running = tuple(
            each for each in numbers if each != number or state == "running"
        )
        event = Event(
            state=state,
            trial=self._storage.trial(number),
            done=self._storage.finished_count(),
            best=self._study.best,
            running=running,
        )
        for callback in self._callbacks:
            callback(event)

    @contextmanager
    def _renewed_leases(self) -> Iterator[None]:
        """Renew the leases of running trials in a thread, four times as often as needed."""
        finished = threading.Event()

        def renew() -> None:
            while not finished.wait(self._study.lease / 4):
                numbers = [
                    running.trial.number for running in list(self._running.values())
                ]
                # retry later: the disk may be full only temporarily
                with suppress(StudyError):
                    self._storage.renew_leases(numbers, self._study.lease)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            finished.set()
            thread.join()


def _executor_error(problem: BaseException) -> StudyError:
    if isinstance(problem, ObjectiveNotFound):  # the message is complete
        return StudyError(str(problem))
    return StudyError(
        f"the executor failed, and its trials are back in the queue ({problem!r})"
    )


def _summarize(failures: list[str]) -> str:
    counts = Counter(failures).most_common(3)
    reasons = "; ".join(f"{count} × {error}" for error, count in counts)
    return f"{len(failures)} trials in a row have failed: {reasons}"


def optimize(
    study: "Study",
    objective: Callable[..., Any],
    *,
    executor: Executor | None,
    workers: int | None,
    trial_seconds: float | None,
    **settings: Any,
) -> None:
    """Evaluate the objective at the trials of a study; see `Study.optimize`."""
    chosen, slots = choose_executor(executor, workers, objective)
    is_in_process = isinstance(chosen, InProcessExecutor)
    if is_in_process and trial_seconds is not None and not can_interrupt():
        raise ValueError(
            "trial_seconds cannot interrupt an evaluation outside the main thread; pass workers=1 "
            "to evaluate in another process"
        )
    optimizer = Optimizer(
        study,
        objective,
        trial_seconds=trial_seconds,
        executor=chosen,
        slots=slots,
        **settings,
    )
    try:
        optimizer.run()
    except BaseException:
        # A warning that is an error must not hide what ended the search.
        with suppress(ModelWarning):
            _warn_about_model(study)
        raise
    finally:
        if isinstance(chosen, ProcessPool):
            chosen.shutdown()
    _warn_about_model(study)


def _warn_about_model(study: "Study") -> None:
    if study._stepper is not None:
        study._stepper.warn_about_model()


def show_progress(update: Update) -> Callback:
    """Return a callback that updates a progress bar."""

    def show(event: Event) -> None:
        best = f"best {event.best.value:.6g}" if event.best else "no value yet"
        update(event.done, f"{best}, {len(event.running)} running")

    return show
