"""Study: a search that loses nothing. Trials live in a file, and any number of processes may work on them."""

import json
import math
import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bonas.search.bayes import bayes
from bonas.search.types import Search
from bonas.spaces import Space
from bonas.study.execute import Event, optimise
from bonas.study.file import File, StudyError
from bonas.study.searching import FIRST, Searching
from bonas.study.store import Point, Record, Store, set_all, settings
from bonas.study.trial import Asked, number_of
from bonas.study.written import Configs, is_whole, read_space, write_config, write_space

DIRECTIONS = {"minimise": 1.0, "maximise": -1.0}  # what a value is multiplied by to be minimised


class Study:
    """A search whose trials are kept in a file: it may be killed at any moment, and goes on where it was.

    The same seed asks for the same points as `bonas.minimise` and `bonas.run` do, however often it is interrupted.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        space: Space | None = None,
        *,
        seed: int | None = None,
        search: Search | None = None,
        direction: str | None = None,
        lease: float = 600.0,
        extra: Mapping[str, Any] | None = None,
        _capacity: int = FIRST,
    ):
        """Begin a study, or open the one that is there; without a space, only the latter.

        seed: of the search (default 0). direction: "minimise" (the default) or "maximise". Those of a study that exists stay:
            others are refused.
        search: how points are chosen, by default `bonas.bayes(space)`. A study made with another needs it again to ask.
        lease: seconds after which a trial that was asked, and not heard of since, is asked again. `optimise` and
            `trial.report` renew it; trials of a process of this host that has died are asked again at once.
        extra: JSON that is kept with the settings of a new study.
        """
        if not lease > 0.0:
            raise ValueError(f"a lease is a number of seconds above 0; got {lease}")
        self.path, self.lease = Path(path), lease
        self._file = File(path, create=space is not None)
        asked_for = {"seed": seed, "direction": direction}
        if space is not None and not self._file.readonly:
            self._begin(space, search, asked_for, extra, _capacity)
        self._settings = settings(self._file)
        self._check(space, asked_for)
        self._search = search
        self._whole = space is not None or is_whole(self._settings["space"])
        self.space = space or read_space(self._settings["space"])
        self._store = Store(self._file, Configs(self.space))
        self._searching: Searching | None = None

    def _begin(self, space: Space, search: Search | None, asked_for: dict, extra: Mapping | None, capacity: int) -> None:
        """The settings of a new study, in one transaction."""
        direction = asked_for["direction"] or "minimise"
        if direction not in DIRECTIONS:
            raise ValueError(f'direction is "minimise" or "maximise"; got {direction!r}')
        seed = 0 if asked_for["seed"] is None else asked_for["seed"]
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise ValueError(f"a seed is a whole number; got {seed!r}")
        written = write_space(space)
        with self._file.writing() as db:
            if settings(self._file):
                return
            new = {"space": written, "seed": int(seed), "direction": direction, "created": time.time(), "capacity": capacity}
            new |= {"search": "given" if search else "bonas.bayes(space)", "versions": versions(), "extra": dict(extra or {})}
            set_all(self._file, new)
            db.execute("INSERT INTO search VALUES (0, 0, 0)")

    def _check(self, space: Space | None, asked_for: dict[str, Any]) -> None:
        """A StudyError where the study is another one than the caller means."""
        for name, value in asked_for.items():
            if value is not None and value != self._settings[name]:
                raise StudyError(f"{self.path} has {name} {self._settings[name]!r}, not {value!r}: use that, or another file")
        if space is not None and json.loads(json.dumps(write_space(space))) != self._settings["space"]:
            raise StudyError(
                f"{self.path} is a study of another space, {read_space(self._settings['space'])}: use that, or another file"
            )

    # Ask and tell

    def enqueue(self, config: Mapping[str, Any]) -> int:
        """The number of a new trial of this configuration, which is asked before any point of the search."""
        self._check_whole()
        u = np.asarray(self.space.encode(config), float)
        return self._store.enqueue(Point(u, write_config(self.space.decode(u)), {"enqueued": True}))

    def ask(self) -> Asked:
        """The next trial: the first that waits in the queue or was left by a dead process, else the search's next point."""
        asked = self._ask()
        assert asked is not None  # there is no limit
        return asked

    def _ask(self, most: float = math.inf) -> Asked | None:
        record = self._store.take(self.lease) or self._thinking().ask(self.lease, most)
        if record is None:
            return None
        u, least = np.asarray(record.u), self.direction == "minimise"
        return Asked(record.number, record.config, u, self.path, least, self.lease, self._store)

    def _thinking(self) -> Searching:
        self._check_whole()
        if self._searching is None:
            if self._search is None and self._settings["search"] == "given":
                raise StudyError(f"{self.path} was made with a search of its own: give it again as search= to ask for more")
            search = self._search or bayes(self.space)
            if search.space != self.space:
                raise StudyError("the search was made for another space than the study")
            sign = DIRECTIONS[self.direction]
            self._searching = Searching(search, self._store, seed=self.seed, sign=sign, first=self._settings["capacity"])
        return self._searching

    def _check_whole(self) -> None:
        if not self._whole:
            raise StudyError(
                f"{self.path} has a condition or an option that cannot be kept in a file, so it can only be read: give the "
                "space again, as in Study(path, space), to go on"
            )

    def tell(
        self, trial: Asked | int, value: float, *, cost: float | None = None, info: Mapping[str, Any] | None = None
    ) -> None:
        """Keep the value of a trial, and what it cost (default: the seconds since it was asked).

        The first value told counts: a trial that has ended is refused. A value that is no finite number is a failure.
        """
        number = number_of(trial)
        number_told = float(value)
        if not math.isfinite(number_told):
            self.fail(number, f"the value was {number_told}")
            return
        if not self._store.end(number, value=number_told, cost=self._cost(number, cost), info=dict(info or {})):
            raise StudyError(f"trial {number} has ended already; the first value told is kept")

    def fail(self, trial: Asked | int, error: str, traceback: str = "") -> None:
        """Keep that a trial failed, and why. The search takes its point for a bad one."""
        number = number_of(trial)
        if not self._store.end(number, error=error or "failed", traceback=traceback, cost=self._cost(number, None)):
            raise StudyError(f"trial {number} has ended already; what was told first is kept")

    def _cost(self, number: int, cost: float | None) -> float | None:
        asked = self._store.record(number).asked
        return cost if cost is not None or asked is None else time.time() - asked

    def optimise(
        self,
        objective: Callable[..., Any],
        trials: int | None = None,
        *,
        seconds: float | None = None,
        progress: bool = True,
        watch: Callable[[Event], None] | None = None,
    ) -> None:
        """Evaluate objective(config) until the study has `trials` that ended, those of earlier calls included."""
        optimise(self, objective, trials=trials, seconds=seconds, progress=progress, watch=watch)

    # What is there

    @property
    def trials(self) -> list[Record]:
        """All trials, by number."""
        return self._store.records()

    @property
    def best(self) -> Record | None:
        """The trial with the best value; None where none was told yet."""
        return self._store.best(self.direction == "minimise")

    @property
    def seed(self) -> int:
        return self._settings["seed"]

    @property
    def direction(self) -> str:
        """ "minimise" or "maximise"."""
        return self._settings["direction"]

    @property
    def about(self) -> dict[str, Any]:
        """Settings, versions and time of creation, and the `extra` that was given then."""
        return dict(self._settings)

    @property
    def notes(self) -> dict[str, Any]:
        """What was noted, by name."""
        return settings(self._file, "note")

    def note(self, name: str, value: Any) -> None:
        """Keep any JSON with the study, under a name."""
        set_all(self._file, {name: value}, "note")

    def close(self) -> None:
        """Close the file. What was told is safe without it."""
        self._file.close()

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *problem) -> None:
        self.close()

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {state}" for state, n in self._store.counts().items() if n)
        return f"Study({str(self.path)!r}: {counts or 'no trials'})"


def versions() -> dict[str, str]:
    """Of what decides which points a search asks for."""
    found = {name: version(name) for name in ("bonas", "jax", "jaxlib", "numpy", "numpyro")}
    return {"python": platform.python_version(), **found, "precision": str(jax.dtypes.canonicalize_dtype(float))}
