"""Keep the compiled programs of the latest runs, and free earlier ones.

A cache of `jax.jit` keeps the program of every search and objective, about 50 MB each, as long as
the process lives. Then memory would grow whenever a notebook cell that defines an objective or a
kernel is run again.
"""

import re
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax.extend.core import get_opaque_trace_state

# Programs to keep in total, and programs to keep whose settings differ only in the identity of
# functions. Such functions usually come from a notebook cell that was run again.
_MAX_PROGRAMS = 32
_MAX_SAME_NAME = 3
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

Program = Callable[..., Any]


class ProgramCache:
    """Cache of jitted functions with static settings that drops the least recently used ones."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        programs: int = _MAX_PROGRAMS,
        same_name: int = _MAX_SAME_NAME,
    ):
        """Create a cache without programs.

        Args:
            function: A traceable function, whose first arguments are the static settings.
            programs: The largest number of programs.
            same_name: The largest number of programs whose settings have equal representations.
        """
        self._function = function
        self._programs = programs
        self._same_name = same_name
        # the program and the name of each settings, the least recently used first
        self._kept: dict[tuple[Any, ...], tuple[Program, str]] = {}
        self._lock = threading.Lock()

    def __call__(self, *settings: Any) -> Program:
        """Return the jitted function for the given settings, which takes the other arguments.

        It is not cached if the settings are not hashable or JAX is tracing.
        """
        program = jax.jit(partial(self._function, *settings))
        try:
            hash(settings)
        except TypeError:
            return program
        if _is_tracing():  # the settings may hold tracers
            return program
        with self._lock:
            found = self._kept.pop(settings, None)
            kept = found or (program, _ADDRESS.sub("", repr(settings)))
            if found is None:
                self._make_room(kept[1])
            self._kept[settings] = kept
        return kept[0]

    def _make_room(self, name: str) -> None:
        """Drop the least recently used programs so that one of this name fits."""
        same = [
            settings for settings, (_, other) in self._kept.items() if other == name
        ]
        for settings in same[: max(0, len(same) + 1 - self._same_name)]:
            del self._kept[settings]
        for settings in list(self._kept)[
            : max(0, len(self._kept) + 1 - self._programs)
        ]:
            del self._kept[settings]


def _is_tracing() -> bool:
    """Return whether JAX is tracing a function that makes this call."""
    state = get_opaque_trace_state()
    with jax.core.eval_context():
        return bool(state != get_opaque_trace_state())
