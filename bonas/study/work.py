"""One evaluation, wherever it runs: whatever the objective does, an Outcome comes of it."""

import inspect
import math
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from bonas.study.file import StudyError
from bonas.study.trial import Asked, Stop

DEATHS = 2  # workers that a trial may take with it: back to the queue once, then it has failed


class Outcome(NamedTuple):
    """What became of an evaluation."""

    value: float | None  # None where it failed
    cost: float  # seconds, or what the objective said
    error: str = ""
    traceback: str = ""
    stopped: int | None = None  # the step at which it was given up
    reports: tuple[tuple[int, float], ...] = ()  # that are not in the file yet


class Overtime(BaseException):
    """An evaluation took too long. No Exception, which an objective might catch."""


def work(objective: Callable[..., Any], asked: Asked, attempt: str, seconds: float | None) -> Outcome:
    """The outcome of one trial. An objective with a parameter `trial` is given it, to report and to ask whether to stop."""
    if asked.begin(attempt) >= DEATHS:
        return Outcome(None, 0.0, f"{DEATHS} workers died while they evaluated it")
    began, extra = time.perf_counter(), {"trial": asked} if wants_trial(objective) else {}
    outcome = Outcome(None, 0.0)
    try:
        with limited(seconds):
            outcome = read(objective(dict(asked.config), **extra))
    except StudyError:  # the file's, while it reported
        raise
    except Stop:
        outcome = _stopped(asked)
    except Overtime:
        outcome = Outcome(None, 0.0, f"it took longer than {seconds:g} s", traceback.format_exc())
    except Exception as problem:
        said = str(problem)
        outcome = Outcome(None, 0.0, type(problem).__name__ + (f": {said}" if said else ""), traceback.format_exc())
    spent = time.perf_counter() - began
    cost = spent if math.isnan(outcome.cost) or outcome.value is None else outcome.cost
    return outcome._replace(cost=cost, reports=() if asked.reachable else tuple(asked.reports))


def _stopped(asked: Asked) -> Outcome:
    finite = [report for report in asked.reports if math.isfinite(report[1])]
    if not finite:
        return Outcome(None, 0.0, "it was stopped before it had reported a finite value")
    step, value = finite[-1]
    return Outcome(value, math.nan, stopped=step)


def wants_trial(objective: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `trial`."""
    try:
        return "trial" in inspect.signature(objective).parameters
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False


def read(returned: Any) -> Outcome:
    """What an objective returned: a number, or a number and a cost; anything else has failed, and says why."""
    value, cost = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, math.nan)
    for what, number in (("", value), (" as the cost", cost)):
        if wrong := _wrong(number):
            return Outcome(None, 0.0, f"the objective returned {wrong}{what}, not a number")
    if not math.isfinite(float(value)):
        return Outcome(None, 0.0, f"the value was {float(value)}")
    if float(cost) < 0.0 or math.isinf(float(cost)):
        return Outcome(None, 0.0, f"the cost was {float(cost)}")
    return Outcome(float(value), float(cost))


def _wrong(value: Any) -> str:
    """What a value is, where it is no number."""
    if value is None:
        return "None"
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    kind = getattr(getattr(value, "dtype", None), "kind", None)  # of NumPy's and JAX's numbers
    if kind in ("i", "u", "f") or (kind is None and isinstance(value, (int, float)) and not isinstance(value, bool)):
        return ""
    if str(getattr(value, "dtype", "")) == "bfloat16":
        return ""
    return f"{_short(value)}, of type {type(value).__name__}"


def _short(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 60 else said[:57] + "..."


def can_interrupt() -> bool:
    """Whether this thread can be interrupted by a timer."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Overtime after so many seconds, where this thread can be interrupted; elsewhere whoever waits for it has to see to it."""
    if seconds is None or not can_interrupt():
        yield
        return

    def ring(*_) -> None:
        raise Overtime

    before = signal.signal(signal.SIGALRM, ring)
    # again every second: an exception within a callback of the garbage collector, where JAX has one, is ignored
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
