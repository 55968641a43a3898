"""Where evaluations run: here, in processes of this machine, or wherever an executor of concurrent.futures puts them."""

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import current_process, get_context, parent_process
from typing import Any

from bonas.study.file import StudyError


class Here(Executor):
    """Evaluates in this thread, while submit is called."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        future: Future = Future()
        future.set_result(function(*args, **kwargs))
        return future


class Processes(Executor):
    """Processes of this machine, started anew (JAX does not survive a fork), of which each can be killed on its own."""

    def __init__(self, workers: int):
        self._places = [_Place() for _ in range(workers)]

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        place = next((place for place in self._places if place.free), None)
        if place is None:
            raise RuntimeError("every process is at work; wait for one of them")
        return place.submit(function, *args, **kwargs)

    def began(self, future: Future) -> bool:
        """Whether the process that was given this ever came to work."""
        return all(place.began for place in self._places if place.future is future)

    def kill(self, future: Future) -> None:
        """End the process that works on this."""
        for place in self._places:
            if place.future is future:
                place.kill()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for place in self._places:
            place.kill()


class _Place:
    """One process at a time, begun when there is something to do and again when it has died."""

    def __init__(self) -> None:
        self.future: Future | None = None
        self._pool: ProcessPoolExecutor | None = None
        self._number: Future | None = None

    @property
    def free(self) -> bool:
        return self.future is None or self.future.done()

    @property
    def began(self) -> bool:
        return self._number is None or not self._number.done() or self._number.exception() is None

    def submit(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
        try:
            return self._submit(function, *args, **kwargs)
        except BrokenExecutor:  # it died after its last task, or of it
            self._pool = None
            return self._submit(function, *args, **kwargs)

    def _submit(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_follow_the_parent)
            with _deaf():
                self._number = self._pool.submit(os.getpid)
        self.future = self._pool.submit(_unpacked, pickle.dumps((function, args, kwargs)))
        return self.future

    def kill(self) -> None:
        pool, number = self._pool, self._number
        self._pool = self.future = None
        if pool is None or number is None:
            return
        with suppress(ProcessLookupError, BrokenExecutor):
            os.kill(number.result(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        pool.shutdown(wait=False, cancel_futures=True)


class NotThere(StudyError):
    """A worker process does not know what it was sent."""


def _unpacked(packed: bytes) -> Any:
    """What a call that was packed returns. Unpacked here and not by the pool, which would die of what it cannot find."""
    try:
        function, args, kwargs = pickle.loads(packed)
    except Exception as problem:
        raise NotThere(
            f"a worker process cannot find the objective, or what it needs ({problem}), and its trials are back in the queue: "
            'define it at the top level of a module, and not under `if __name__ == "__main__":`'
        ) from None
    return function(*args, **kwargs)


@contextmanager
def _deaf() -> Iterator[None]:
    """Ctrl-C waits meanwhile; a process that is begun now never hears it, not even before it has begun."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow_the_parent() -> None:
    """A worker ends when its parent does, however that ends, and leaves Ctrl-C to it."""

    def follow(parent) -> None:
        parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=follow, args=(parent_process(),), daemon=True).start()


def chosen(executor: Executor | None, workers: int | None, objective: Callable[..., Any]) -> tuple[Executor, int]:
    """The executor, and how many trials it is given at once."""
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ValueError(f"workers is a whole number of at least 1; got {workers!r}")
    if executor is None and workers is None:
        return Here(), 1
    if executor is None and workers is not None:
        _check_sendable(objective)
        return Processes(workers), workers
    room = workers or getattr(executor, "_max_workers", None) or _threads_of_cluster(executor)
    if executor is None or not room:
        raise ValueError("this executor does not say how many tasks it runs at once: give workers= too")
    return executor, room


def _threads_of_cluster(executor: Executor | None) -> int:
    """How many tasks Dask's executor runs at once, by its client; 0 where it has no workers, or is another executor."""
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)
    return sum(threads().values()) if callable(threads) else 0


def _check_sendable(objective: Callable[..., Any]) -> None:
    main = sys.modules["__main__"]
    if getattr(objective, "__module__", None) == "__main__" and not getattr(main, "__file__", None):
        raise StudyError(
            "the objective cannot be sent to another process: what is typed into an interpreter or a notebook is not known "
            "there. Define it by `def` in a file, and import it"
        )
    try:
        pickle.dumps(objective)
    except Exception as problem:
        raise StudyError(
            f"the objective cannot be sent to another process ({problem}): define it by `def` at the top level of a module"
        ) from None


def check_guarded() -> None:
    """A StudyError where this process is a worker that is only just importing the script of its parent."""
    if getattr(current_process(), "_inheriting", False):
        raise StudyError(
            "a worker runs the script that started it from the top: what opens a study and optimises it belongs under "
            '`if __name__ == "__main__":`'
        )


def is_death(problem: BaseException) -> bool:
    """Whether an error says that a worker died, and not the objective's code."""
    return isinstance(problem, BrokenExecutor) or type(problem).__name__ in ("KilledWorker", "CommClosedError")
