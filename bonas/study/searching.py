"""The search of a study, in memory: brought up to date with the file, asked for the next point, and written back."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bonas.search.types import FALLBACKS, AskInfo, Search
from bonas.study import states
from bonas.study.store import Head, Point, Record, Store, Told
from bonas.study.written import write_config

FIRST = 64  # points of room in the first memory; whenever it is full it is doubled


class _Overtaken(Exception):
    """Somebody else has asked meanwhile."""


class Searching:
    """A search whose memory is the file's: whoever asks next, in whatever process, goes on from there."""

    def __init__(self, search: Search, store: Store, *, seed: int, sign: float, first: int = FIRST):
        self.search, self._store, self._sign, self._first = search, store, sign, first
        self._init_key, self._run_key = states.keys(seed)
        self._head: Head | None = None  # of the state in memory
        self._state: Any = None
        self._kept: dict[int, np.ndarray] = {}  # what the file has of it

    def ask(self, lease: float, most: float = math.inf) -> Record | None:
        """The next point of the search, now ours; None where the study has `most` trials already.

        Thinking does not keep others from telling. Where somebody else has asked meanwhile, the thoughts were idle: the
        second time nobody can.
        """
        try:
            return self._ask(lease, most)
        except _Overtaken:
            with self._store.file.writing():
                return self._ask(lease, most)

    def _ask(self, lease: float, most: float) -> Record | None:
        head, told, state, anew = self._up_to_date()
        key = states.ask_key(self._run_key, jnp.asarray(head.asks))
        x, state, info = states.programs(self.search).ask(key, state)
        points = self._points(np.asarray(x), jax.device_get(info))
        later = Head(head.asks + 1, told, head.capacity)
        parts = states.parts(self.search, head.capacity, state)
        pieces = states.changed(parts, {} if anew else self._kept)
        with self._store.file.writing():
            if self._store.head().asks != head.asks:
                raise _Overtaken
            if sum(self._store.counts().values()) >= most:
                return None
            record = self._store.asked(points, later, pieces, anew=anew, lease=lease)
        self._head, self._state, self._kept = later, state, parts
        return record

    def _up_to_date(self) -> tuple[Head, int, Any, bool]:
        """How far the file is, what was told by then, the state that knows of it, and whether that has a new shape."""
        head = self._store.head()
        if self._head is None or self._head.asks != head.asks:
            self._load(head)
        news = self._store.told_after(head.told)
        told, state = head.told + len(news), self._state
        capacity = head.capacity or self._first
        room = self._store.points(told) + states.batch(self.search, capacity)
        while capacity < room:
            capacity *= 2
        anew = capacity != head.capacity
        if state is None:
            state = states.programs(self.search).init(self._init_key, capacity)
        elif anew:
            state = states.grown(self.search, self._init_key, state, capacity)
        for each in news:
            state = self._told(state, each)
        return head._replace(capacity=capacity), told, state, anew

    def _load(self, head: Head) -> None:
        kept = self._store.memory()
        self._state = states.restored(self.search, self._init_key, head.capacity, kept) if head.asks else None
        self._kept = {part: np.frombuffer(content, np.uint8) for part, content in kept.items()}
        self._head = head

    def _told(self, state: Any, each: Told) -> Any:
        x, ok = jnp.asarray(each.u), each.value is not None
        value = self._sign * each.value if each.value is not None else math.nan
        return states.programs(self.search).tell(state, states.trial(x, value, each.cost, ok=ok))

    def _points(self, x: np.ndarray, info: AskInfo) -> list[Point]:
        about = in_words(info)
        return [Point(row, write_config(self.search.space.decode(row)), about) for row in x]


def in_words(info: AskInfo) -> dict[str, Any]:
    """What an ask did, as JSON; a score that was not computed is None."""
    said: dict[str, Any] = {name: np.asarray(value).item() for name, value in info._asdict().items()}
    said["fallback"] = FALLBACKS[said["fallback"]] if said["fallback"] else ""
    said["acquisition"] = said["acquisition"] if math.isfinite(said["acquisition"]) else None
    return said
