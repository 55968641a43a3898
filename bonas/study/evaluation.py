"""Evaluate one trial in any process; every behavior of the objective gives an Outcome."""

import inspect
import math
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bonas.study.database import StudyError
from bonas.study.trial import Outcome, Pruned, Trial, parse_result

# Number of worker deaths after which a trial has failed; before, it returns to the queue.
MAX_DEATHS = 2
DEATHS_ERROR = f"{MAX_DEATHS} workers died while evaluating it"


class EvaluationTimeout(BaseException):
    """A timeout of an evaluation; not an Exception, which an objective might catch."""


def evaluate(
    objective: Callable[..., Any], trial: Trial, attempt: str, seconds: float | None
) -> Outcome:
    """Evaluate the objective for a trial.

    Args:
        objective: Called with the configuration, and with `trial=` if it has that parameter.
        trial: The trial.
        attempt: Token of the task, used to detect that a cluster restarted it.
        seconds: Time limit.
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
    """Raise EvaluationTimeout after some seconds if a timer can interrupt this thread.

    Otherwise the process that waits for the evaluation has to enforce the limit.
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
