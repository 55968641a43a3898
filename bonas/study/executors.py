"""Executors with the interface of `concurrent.futures`, for evaluations in local processes."""

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any

from bonas.study.database import StudyError


class InProcessExecutor(Executor):
    """An executor that evaluates in the calling thread, during `submit`."""

    def submit(
        self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future


class ProcessPool(Executor):
    """A pool of local processes that can be killed individually.

    Processes are spawned, because JAX does not support forks.
    """

    def __init__(self, workers: int):
        self._workers = [_Worker() for _ in range(workers)]

    def submit(
        self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        worker = next((worker for worker in self._workers if worker.idle), None)
        if worker is None:
            raise RuntimeError("every worker process is busy; wait for one of them")
        return worker.submit(function, *args, **kwargs)

    def has_started(self, future: Future[Any]) -> bool:
        """Return whether the process of a task has started."""
        return all(
            worker.has_started for worker in self._workers if worker.future is future
        )

    def kill(self, future: Future[Any]) -> None:
        """Kill the process that runs this task."""
        for worker in self._workers:
            if worker.future is future:
                worker.kill()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for worker in self._workers:
            worker.kill()


class _Worker:
    """A worker process, started for the first task and restarted after it has died."""

    def __init__(self) -> None:
        self.future: Future[Any] | None = None
        self._pool: ProcessPoolExecutor | None = None
        self._pid: Future[int] | None = None

    @property
    def idle(self) -> bool:
        return self.future is None or self.future.done()

    @property
    def has_started(self) -> bool:
        return (
            self._pid is None or not self._pid.done() or self._pid.exception() is None
        )

    def submit(
        self, function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Future[Any]:
        try:
            return self._submit(function, *args, **kwargs)
        except BrokenExecutor:  # the process died during or after its last task
            self._pool = None
            return self._submit(function, *args, **kwargs)

    def _submit(
        self, function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Future[Any]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1, mp_context=get_context("spawn"), initializer=_end_with_parent
            )
            with _block_interrupts():
                self._pid = self._pool.submit(os.getpid)
        self.future = self._pool.submit(
            _call_pickled, pickle.dumps((function, args, kwargs))
        )
        return self.future

    def kill(self) -> None:
        pool = self._pool
        pid = self._pid
        self._pool = None
        self.future = None
        if pool is None or pid is None:
            return
        with suppress(ProcessLookupError, BrokenExecutor):
            os.kill(pid.result(), getattr(signal, "SIGKILL", signal.SIGTERM))
        pool.shutdown(wait=False, cancel_futures=True)


class ObjectiveNotFound(StudyError):
    """An error of a worker process that cannot import the objective or its dependencies."""


def _call_pickled(call: bytes) -> Any:
    """Unpickle and run a call; an unpickling error outside this function breaks the pool."""
    try:
        function, args, kwargs = pickle.loads(call)
    except Exception as problem:
        raise ObjectiveNotFound(
            f"a worker process cannot import the objective or its dependencies ({problem}); its "
            "trials are back in the queue. Define the objective at the top level of a module, not "
            'under `if __name__ == "__main__":`'
        ) from None
    return function(*args, **kwargs)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Delay Ctrl-C; processes that are started in this context never receive it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _end_with_parent() -> None:
    """Make a worker end when its parent ends, and ignore Ctrl-C, which the parent handles."""

    def wait_and_exit(parent: BaseProcess) -> None:
        parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=wait_and_exit, args=(parent,), daemon=True).start()


def choose_executor(
    executor: Executor | None, workers: int | None, objective: Callable[..., Any]
) -> tuple[Executor, int]:
    """Return the executor to use, and the number of trials to submit to it at once.

    Args:
        executor: The executor of the user, or None for local evaluation.
        workers: Number of trials at once. Without an executor, a `ProcessPool` of this size is
            started; None evaluates in this process.
        objective: The objective, which must be picklable for a `ProcessPool`.
    """
    is_integer = isinstance(workers, int) and not isinstance(workers, bool)
    if workers is not None and not (is_integer and workers >= 1):
        raise ValueError(f"workers must be an integer of at least 1; got {workers!r}")
    if executor is None:
        if workers is None:
            return InProcessExecutor(), 1
        _check_picklable(objective)
        return ProcessPool(workers), workers
    slots = (
        workers or getattr(executor, "_max_workers", None) or _dask_threads(executor)
    )
    if not slots:
        raise ValueError(
            "the number of tasks that this executor runs at once is unknown; pass workers= too"
        )
    return executor, slots


def _dask_threads(executor: Executor) -> int:
    """Return the number of threads of a Dask executor; 0 for others and without workers."""
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)
    return sum(threads().values()) if callable(threads) else 0


def _check_picklable(objective: Callable[..., Any]) -> None:
    is_in_main = getattr(objective, "__module__", None) == "__main__"
    if is_in_main and not getattr(sys.modules["__main__"], "__file__", None):
        raise StudyError(
            "the objective cannot be sent to another process, because it was defined in an "
            "interpreter or a notebook; define it with `def` in a file and import it"
        )
    try:
        pickle.dumps(objective)
    except Exception as problem:
        raise StudyError(
            f"the objective cannot be sent to another process ({problem}); define it with `def` "
            "at the top level of a module"
        ) from None


def check_not_importing() -> None:
    """Raise a StudyError in a worker process that is still importing its parent's script."""
    if getattr(current_process(), "_inheriting", False):
        raise StudyError(
            "a worker process imports the script that started it; put the code that opens and "
            'optimizes a study under `if __name__ == "__main__":`'
        )


def is_worker_death(problem: BaseException) -> bool:
    """Return whether an error means that a worker died, and not that the objective failed."""
    dask_errors = ("KilledWorker", "CommClosedError")
    return isinstance(problem, BrokenExecutor) or type(problem).__name__ in dask_errors
