"""Ctrl-C during a command, also inside a callback of JAX."""

import os
import signal
import threading
from types import FrameType


def handle_interrupts() -> None:
    """Install a handler for Ctrl-C, in the main thread and unless the caller has installed one."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not inside JAX's garbage-collection callback.

    An exception in that callback is ignored, so the signal is sent again a moment later.
    """
    while frame is not None:
        if frame.f_code.co_name == "_xla_gc_callback":
            threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt
