"""The search of a study, in memory: brought up to date with the file, asked for the next point, and written back."""

import math
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bonas.search.types import FALLBACKS, AskInfo, Search, Trial
from bonas.study import states
from bonas.study.programs import Programs, State, programs, trial
from bonas.study.store import Head, Point, Record, Store, Told
from bonas.study.written import write_config

FIRST = 64  # points of room in the first memory; whenever it is full it is doubled


class _Overtaken(Exception):
    """Somebody else has asked meanwhile."""


class Searching:
    """A search whose memory is the file's: whoever asks next, in whatever process, goes on from there."""

    def __init__(
        self,
        search: Search,
        store: Store,
        *,
        seed: int,
        sign: float,
        first: int,
        name: str | None,
        said: Callable[[int], dict[str, str]] | None,
    ):
        """sign: what a value is multiplied by to be minimised; said: what there is to say after so many trials have ended.

        name: by which the search's programs are kept for other processes (`bonas.study.programs`).
        """
        self.search, self._store, self._sign, self._first, self._said = search, store, sign, first, said
        self._name = name
        self._init_key, self._run_key = states.keys(seed)
        self._lock = threading.Lock()  # threads that share a study think one after the other
        self._head: Head | None = None  # of the state in memory
        self._state: State | None = None
        self._kept: dict[int, np.ndarray] = {}  # what the file has of it

    def ask(self, lease: float, most: float = math.inf) -> Record | None:
        """The next point of the search, now ours; None where the study has `most` trials already.

        Thinking does not keep others from telling. Where somebody else has asked meanwhile, the thoughts were idle: the
        second time nobody can.
        """
        with self._lock:
            try:
                return self._ask(lease, most)
            except _Overtaken:
                with self._store.file.writing():
                    return self._ask(lease, most)

    def _ask(self, lease: float, most: float) -> Record | None:
        if self._store.size() >= most:
            return None
        head, state = self._up_to_date()
        key = states.ask_key(self._run_key, jnp.asarray(head.asks))
        made = self._programs(head.capacity)
        x, state, info = made.ask(key, state)
        points = self._points(np.asarray(x), jax.device_get(info), head.told)
        later = head._replace(asks=head.asks + 1, used=head.used + len(points))
        parts = states.parts(made.lasting, state)
        with self._store.file.writing():
            now = self._store.head()
            if now.asks != head.asks:
                raise _Overtaken
            if self._store.size() >= most:  # others may have enqueued
                return None
            anew = now.capacity != head.capacity
            pieces = states.changed(parts, {} if anew else self._kept)
            record = self._store.asked(points, later, pieces, anew=anew, lease=lease)
        self._head, self._state, self._kept = later, state, parts
        return record

    def _up_to_date(self) -> tuple[Head, State]:
        """How far the search is, and its state, after all that has been told."""
        with self._store.file.reading():
            head = self._store.head()
            if self._head != head:
                self._load(head)
            news, state = self._store.told_after(head.told), self._state
        used = head.used + sum(each.enqueued for each in news)
        capacity = head.capacity or self._first
        while capacity < used + self._programs(capacity).batch:
            capacity *= 2
        if state is None:
            state = self._programs(capacity).init(self._init_key)
        elif capacity != head.capacity:
            state = states.grown(self.search, self._programs(capacity).init(self._init_key), state, capacity)
        for each in news:
            state = self._programs(capacity).tell(state, self._trial(each))
        return Head(head.asks, head.told + len(news), capacity, used), state

    def _load(self, head: Head) -> None:
        kept = self._store.memory()
        self._state = states.restored(self._programs(head.capacity), self._init_key, kept) if head.asks else None
        self._kept = {part: np.frombuffer(content, np.uint8) for part, content in kept.items()}
        self._head = head

    def _programs(self, capacity: int) -> Programs:
        return programs(self.search, capacity, self._name)

    def _trial(self, each: Told) -> Trial:
        x, ok = jnp.asarray(each.u), each.value is not None
        value = self._sign * each.value if each.value is not None else math.nan
        return trial(x, value, each.cost, ok=ok)

    def _points(self, x: np.ndarray, info: AskInfo, told: int) -> list[Point]:
        about = in_words(info) | (self._said(told) if self._said else {})
        return [Point(row, write_config(self.search.space.decode(row)), about) for row in x]


def in_words(info: AskInfo) -> dict[str, Any]:
    """What an ask did, as JSON; a score that was not computed is None."""
    said: dict[str, Any] = {name: np.asarray(value).item() for name, value in info._asdict().items()}
    said["fallback"] = FALLBACKS[said["fallback"]] if said["fallback"] else ""
    said["acquisition"] = said["acquisition"] if math.isfinite(said["acquisition"]) else None
    return said
