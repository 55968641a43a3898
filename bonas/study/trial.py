"""Trials of a study: configuration, intermediate values, pruning, evaluation and result.

A trial can be evaluated in any process. Errors and invalid results of the objective are part of the
`Outcome`.
"""

import inspect
import math
import signal
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, SupportsFloat

import numpy as np

from bonas.study.database import Database, StudyError
from bonas.study.storage import Storage, read_values

# Trials with intermediate values that the median rule needs.
_MIN_TRIALS_TO_PRUNE = 5
_MAX_REPR = 60  # characters of an invalid value in a message
# Number of worker deaths after which a trial has failed; before, it returns to the queue.
MAX_DEATHS = 2
DEATHS_ERROR = f"{MAX_DEATHS} workers died while evaluating it"


class Pruned(Exception):
    """Exception that an objective raises to prune its trial.

    The value of the trial is then its last finite reported value.
    """


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
    noise: float | None = None  # variance of the noise of the value, if it is known


class Trial:
    """A trial to evaluate, which can be pickled and sent to another process.

    If that process cannot access the study's file, as on another machine, reported values arrive
    with the result, and `should_prune` is true only if the last reported value is not finite.

    Attributes:
        number: The number of the trial.
        config: The configuration to evaluate.
        u: The point (d,) of the unit cube that encodes the configuration.
        reports: Reported (step, value) pairs, in the order of the calls.
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
        """Record the start of the evaluation; return the number of workers that died during it.

        Args:
            attempt: Token of the task, used to detect that a cluster restarted it.
        """
        return self._storage.start(self.number, attempt) if self._storage else 0

    def report(self, step: int, value: SupportsFloat) -> None:
        """Store an intermediate value, such as the validation loss after an epoch.

        Reporting also renews the lease of the trial.

        Args:
            step: An integer, such as the epoch. A second value for a step replaces the first.
            value: The intermediate value; NaN means that training diverged.
        """
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise ValueError(f"step must be an integer; got {step!r}")
        self.reports.append((int(step), float(value)))
        if self._storage:
            self._storage.report(self.number, int(step), float(value), self._lease)

    def should_prune(self) -> bool:
        """Return whether the trial should be pruned by the median rule.

        A trial should be pruned if its best reported value is worse than the median of the last
        values that at least five other trials had reported by the same step (Golovin et al. 2017,
        Section 3.2.2), or if its last reported value is not finite.
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
    """Return the number of a trial; a number is returned unchanged."""
    if isinstance(trial, Trial):
        return trial.number
    if isinstance(trial, bool) or not isinstance(trial, (int, np.integer)):
        raise StudyError(
            f"expected a trial from ask() or a trial number; got {trial!r}"
        )
    return int(trial)


# Results


def parse_result(result: Any) -> Outcome:
    """Convert the return value of an objective to an outcome.

    The result is a number, a tuple of a number and a cost, or one of a number, a cost and the
    variance of the number's noise; cost and variance may be None. Any other result is a failure
    with an error message.
    """
    value, cost, noise = result, None, None
    if isinstance(result, tuple):
        # Imported here because workers of objectives that return numbers start faster without.
        from bonas.search import split_outcome

        try:
            value, cost, noise = split_outcome(result)
        except ValueError as error:
            return _invalid(str(error))
    cost = math.nan if cost is None else cost
    named = {"value": value, "cost": cost}
    named |= {} if noise is None else {"noise variance": noise}
    for name, number in named.items():
        if problem := _describe_if_not_number(number):
            return _invalid(f"expected a number as the {name}; got {problem}")
    if not math.isfinite(float(value)):
        return Outcome(None, 0.0, f"the value is not finite: {float(value)}")
    if float(cost) < 0.0 or math.isinf(float(cost)):
        return _invalid(f"the cost must be finite and not negative; got {float(cost)}")
    if noise is not None and not 0.0 <= float(noise) < math.inf:
        return _invalid(
            f"the noise variance must be finite and not negative; got {float(noise)}"
        )
    return Outcome(
        float(value), float(cost), noise=None if noise is None else float(noise)
    )


def _invalid(error: str) -> Outcome:
    return Outcome(None, 0.0, error, invalid=True)


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


# Evaluation


class EvaluationTimeout(BaseException):
    """Raised when an evaluation exceeds its time limit.

    It is not an `Exception`, which an objective might catch.
    """


def evaluate(
    objective: Callable[..., Any], trial: Trial, attempt: str, seconds: float | None
) -> Outcome:
    """Evaluate the objective for a trial, and return its value or its error.

    Args:
        objective: Called with the configuration, and with `trial=` if it has that parameter.
        trial: The trial.
        attempt: Token of the task, used to detect that a cluster restarted it.
        seconds: Time limit; None for no limit.
    """
    if trial.start(attempt) >= MAX_DEATHS:
        return Outcome(None, 0.0, DEATHS_ERROR)
    start = time.perf_counter()
    keywords = {"trial": trial} if takes_trial(objective) else {}
    outcome = Outcome(None, 0.0)
    try:
        with time_limit(seconds):
            outcome = parse_result(objective(dict(trial.config), **keywords))
    except StudyError:  # from the study's file, while reporting
        raise
    except Pruned:
        outcome = _pruned_outcome(trial)
    except EvaluationTimeout:
        outcome = Outcome(
            None, 0.0, timeout_error(seconds or 0.0), traceback.format_exc()
        )
    except BaseException as problem:
        if _is_interrupt(problem):
            raise
        message = str(problem)
        error = type(problem).__name__ + (f": {message}" if message else "")
        outcome = Outcome(None, 0.0, error, traceback.format_exc())
    elapsed = time.perf_counter() - start
    cost = (
        elapsed if math.isnan(outcome.cost) or outcome.value is None else outcome.cost
    )
    return outcome._replace(
        cost=cost, reports=() if trial.reachable else tuple(trial.reports)
    )


def _is_interrupt(problem: BaseException) -> bool:
    """Return whether an exception, or one in its exception group, ends the process."""
    if isinstance(problem, BaseExceptionGroup):
        return any(map(_is_interrupt, problem.exceptions))
    return isinstance(problem, (KeyboardInterrupt, SystemExit))


def _pruned_outcome(trial: Trial) -> Outcome:
    finite = [report for report in trial.reports if math.isfinite(report[1])]
    if not finite:
        return Outcome(None, 0.0, "pruned before it had reported a finite value")
    step, value = finite[-1]
    return Outcome(value, math.nan, pruned_step=step)


def timeout_error(seconds: float) -> str:
    """Return the error of a trial that exceeded the time limit."""
    return f"took longer than {seconds:g} s"


def takes_trial(objective: Callable[..., Any]) -> bool:
    """Return whether a function has a parameter named `trial`."""
    try:
        return "trial" in inspect.signature(objective).parameters
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False


def can_interrupt() -> bool:
    """Return whether a timer can interrupt this thread."""
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
    )


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Limit the time of a block: raise EvaluationTimeout after the given number of seconds.

    If a timer cannot interrupt this thread, the process that waits for the evaluation has to
    enforce the limit.
    """
    if seconds is None or not can_interrupt():
        yield
        return

    def interrupt(*_: object) -> None:
        raise EvaluationTimeout

    previous = signal.signal(signal.SIGALRM, interrupt)
    # Repeat every second: Python ignores an exception that is raised within a callback of the
    # garbage collector, and JAX has one.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
