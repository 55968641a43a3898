"""A search that loses nothing: its trials live in a file, and any number of processes may work on them."""

import json
import math
import os
import platform
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from bonas.search.door import check_search
from bonas.search.types import Search
from bonas.spaces import Space
from bonas.study import tables
from bonas.study.execute import Watch, check_limits, optimise
from bonas.study.file import File, StudyError
from bonas.study.importance import importance
from bonas.study.line import both, line
from bonas.study.parts import in_parts, networks
from bonas.study.searching import FIRST, Searching
from bonas.study.store import Point, Record, Store, set_all, settings
from bonas.study.subset import default_search, said
from bonas.study.trial import Asked, number_of
from bonas.study.work import read
from bonas.study.workers import check_guarded
from bonas.study.written import Configs, check_conditions, is_whole, read_space, write_config, write_space

if TYPE_CHECKING:
    import pandas

DIRECTIONS = {"minimise": 1.0, "maximise": -1.0}  # what a value is multiplied by to be minimised


class Study:
    """A search whose trials are kept in a file: it may be killed at any moment, and goes on where it was.

    The same seed asks for the same points as `bonas.minimise` and `bonas.run` do, however often it is interrupted. The file
    belongs on a disk of this machine: SQLite's log does not work over a network. Workers elsewhere need not see it.
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
        search: how points are chosen, by default `bonas.bayes(space)`, whose GP is fitted to a subset beyond 512 trials. A
            study made with another needs it again to ask for more.
        lease: seconds after which a trial that was asked, and not heard of since, is asked again. `optimise` and
            `trial.report` renew it; trials of a process of this host that has died are asked again at once.
        extra: JSON that is kept with the settings of a new study.

        A space with conditions that are functions, or with options that JSON cannot say, is not wholly in the file: without
        it such a study can only be read.
        """
        check_guarded()
        if search is not None:
            check_search(search)
        if not lease > 0.0:
            raise ValueError(f"a lease is a number of seconds above 0; got {lease}")
        self.path, self.lease, self._search = Path(path), lease, search
        self._searching: Searching | None = None
        self._file = File(path, create=space is not None)
        wanted = {"seed": seed, "direction": direction}
        try:
            if space is not None and not self._file.readonly:
                self._begin(space, wanted, "given" if search else "bonas.bayes(space)", dict(extra or {}), _capacity)
            self._settings = settings(self._file)
            if not self._settings:  # its first process was killed before it had a space
                raise StudyError(f"{self.path} is empty; give a space to begin a study there")
            self._check(space, wanted)
            self._whole = space is not None or is_whole(self._settings["space"])
            self.space = space or read_space(self._settings["space"])
            self._store = Store(self._file, Configs(self.space).read)
            check_conditions(
                self.space, self._store.records() if space is not None and not is_whole(write_space(space)) else []
            )
        except BaseException:
            self._file.close()
            raise

    def _begin(self, space: Space, wanted: dict[str, Any], search: str, extra: dict[str, Any], capacity: int) -> None:
        """The settings of a new study, in one transaction."""
        direction, seed = wanted["direction"] or "minimise", 0 if wanted["seed"] is None else wanted["seed"]
        if direction not in DIRECTIONS:
            raise ValueError(f'direction is "minimise" or "maximise"; got {direction!r}')
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise ValueError(f"a seed is a whole number; got {seed!r}")
        new = {"id": secrets.token_hex(8), "space": write_space(space), "seed": int(seed), "direction": direction}
        new |= {"search": search, "capacity": capacity, "created": time.time(), "versions": versions(), "extra": extra}
        with self._file.writing() as db:
            if not settings(self._file):
                set_all(self._file, new)
                db.execute("INSERT INTO search (asks, told, capacity, used) VALUES (0, 0, 0, 0)")

    def _check(self, space: Space | None, wanted: dict[str, Any]) -> None:
        """A StudyError where the study is another one than the caller means."""
        for name, value in wanted.items():
            if value is not None and value != self._settings[name]:
                raise StudyError(f"{self.path} has {name} {self._settings[name]!r}, not {value!r}: use that, or another file")
        if space is not None and json.loads(json.dumps(write_space(space))) != self._settings["space"]:
            raise StudyError(
                f"{self.path} is a study of another space, {read_space(self._settings['space'])}: use that, or another file"
            )

    # Ask and tell

    def enqueue(self, config: Mapping[str, Any]) -> int:
        """The number of a new trial of this configuration, which is asked before any new point of the search."""
        self._check_whole()
        u = np.asarray(self.space.encode(config), float)
        # a float as it was given, which need not be what its column of the unit cube decodes to
        kept = {name: float(config[name]) if isinstance(v, float) else v for name, v in self.space.decode(u).items()}
        return self._store.enqueue(Point(u, write_config(kept), {"enqueued": True}))

    def ask(self) -> Asked:
        """The next trial: the first that waits in the queue or was left by a dead process, else the search's next point."""
        asked = self._ask()
        assert asked is not None  # there is no limit
        return asked

    def _ask(self, most: float = math.inf) -> Asked | None:
        """The next trial; None where the study has `most` that have ended or are being evaluated."""
        record = self._store.take(self.lease, most) or self._thinking().ask(self.lease, most)
        if record is None:
            return None
        about: dict[str, Any] = {"study": self._settings["id"], "lease": self.lease, "least": self.direction == "minimise"}
        return Asked(record.number, record.config, record.u, store=self._store, **about)

    def _thinking(self) -> Searching:
        self._check_whole()
        if self._searching is None:
            given = self._search
            if given is None and self._settings["search"] == "given":
                raise StudyError(f"{self.path} was made with a search of its own: give it again as search= to ask for more")
            made, now = self._settings["versions"]["precision"], versions()["precision"]
            if made != now:
                raise StudyError(
                    f"{self.path} was made in {made}, and this process computes in {now}: see bonas.configure(x64=)"
                )
            if given is not None and given.space != self.space:
                raise StudyError("the search was made for another space than the study")
            about: dict[str, Any] = {"seed": self.seed, "sign": DIRECTIONS[self.direction], "first": self._settings["capacity"]}
            ours = given is None and is_whole(self._settings["space"])  # the space says all that its search depends on
            about |= {"said": None if given else said, "name": json.dumps(self._settings["space"]) if ours else None}
            self._searching = Searching(given or default_search(self.space), self._store, **about)
        return self._searching

    def _check_whole(self) -> None:
        if not self._whole:
            raise StudyError(
                f"{self.path} has a condition or an option that cannot be kept in a file, so it can only be read: give the "
                "space again, as in Study(path, space), to go on"
            )

    def tell(self, trial: Asked | int, value: float, *, cost: float | None = None) -> None:
        """Keep the value of a trial, and what it cost (default: the seconds since it was asked).

        The first value told counts: a trial that has ended is refused. A value that is not finite is a failure; a cost that is
        negative or infinite is refused.
        """
        outcome = read(value if cost is None else (value, cost))
        if outcome.value is None and not outcome.error.startswith("the value was"):
            raise ValueError(outcome.error.replace("the objective returned", "told was"))
        self._end(trial, None if math.isnan(outcome.cost) else outcome.cost, value=outcome.value, error=outcome.error)

    def fail(self, trial: Asked | int, error: str, traceback: str = "") -> None:
        """Keep that a trial failed, and why. The search takes its point for a bad one."""
        self._end(trial, None, error=error or "it failed", traceback=traceback)

    def _end(self, trial: Asked | int, cost: float | None, **fields: Any) -> None:
        self._check_whole()
        number = number_of(trial)
        asked = self._store.record(number).asked
        spent = time.time() - asked if asked is not None and cost is None else cost
        if not self._store.end(number, info={}, cost=spent, **fields):
            raise StudyError(f"trial {number} of {self.path} has ended already; what was told first is kept")

    def optimise(
        self,
        objective: Callable[..., Any],
        trials: int | None = None,
        *,
        seconds: float | None = None,
        executor: Executor | None = None,
        workers: int | None = None,
        trial_seconds: float | None = None,
        progress: bool = True,
        watch: Watch | None = None,
    ) -> None:
        """Evaluate objective(config) at one point after the other.

        The objective returns a number, or a number and a cost. Where it has a parameter `trial`, that is the trial:
        `trial.report(step, value)` keeps intermediate values, `trial.should_stop()` says whether to give up, by returning a
        value or by raising `bonas.study.Stop`. One that raises, or returns anything else than a finite number, is a failed
        trial; ten of them in a row end the search with a StudyError. Ctrl-C ends it too, and is raised again: what was being
        evaluated is back in the queue, and another call goes on.

        trials: how many the study shall have in the end, those of earlier calls and failed ones included, so that a script that
            was interrupted can be called again. Without it the search ends after `seconds`, or never.
        seconds: after which no evaluation is begun.
        executor: anything with the interface of concurrent.futures, such as a pool of threads or of processes, or Dask's
            client.get_executor(); a new point is asked whenever a worker is free. By default evaluations run here, one by one.
        workers: how many trials the executor is given at once; without an executor, so many processes of this machine.
        trial_seconds: after which an evaluation has failed. A process is then killed; a thread or a worker of a cluster cannot
            be ended, and is not used again before it returns.
        progress: a line with trials done, the best value, and the time left.
        watch: called with an `Event` whenever a trial is asked, told, failed, stopped or returned to the queue.
        """
        limits = {"trials": trials, "seconds": seconds, "trial_seconds": trial_seconds}
        check_limits(**limits)
        with line(trials, self._store.ended(), shown=progress) as show:
            optimise(self, objective, executor=executor, workers=workers, watch=both(show, watch), **limits)

    # What is there

    @property
    def trials(self) -> list[Record]:
        """All trials, by number."""
        return self._store.records()

    @property
    def best(self) -> Record | None:
        """The trial with the best value; None where none was told yet."""
        return self._store.best(self.direction == "minimise")

    def frame(self) -> "pandas.DataFrame":
        """The trials as a DataFrame, one row a trial, with a column for every parameter. Needs pandas."""
        return tables.frame(self.trials, self.space.names)

    def csv(self, path: str | os.PathLike) -> None:
        """Write the same table to a file."""
        tables.write_csv(self.trials, self.space.names, path)

    def importance(self) -> dict[str, float]:
        """How much each parameter decides: shares that sum up to 1, the greatest first; empty below 4 values.

        They are total effects on the mean of a GP that is fitted to all values: see `bonas.study.importance`. Of networks that
        are trained part by part the last values count.
        """
        told = [record for record in self.trials if record.value is not None]
        told = networks(told) if in_parts(self._settings) else told
        u, values = np.array([record.u for record in told]), np.array([record.value for record in told], float)
        return importance(self.space, u, values, jax.random.key(self.seed))

    @property
    def seed(self) -> int:
        """Of the search."""
        return self._settings["seed"]

    @property
    def direction(self) -> str:
        """Whether to "minimise" or to "maximise"."""
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

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {state}" for state, n in self._store.counts().items() if n)
        return f"Study({str(self.path)!r}: {counts or 'no trials'})"


def versions() -> dict[str, str]:
    """Of what decides which points a search asks for."""
    found = {name: version(name) for name in ("bonas", "jax", "jaxlib", "numpy", "numpyro")}
    return {"python": platform.python_version(), **found, "precision": str(jax.dtypes.canonicalize_dtype(float))}
