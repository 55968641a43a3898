"""Studies: searches whose trials are stored in a file that several processes can share."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, cast

import numpy as np

from bonas.search import Direction, Search, check_search, check_space, progress_bar
from bonas.spaces import Space
from bonas.study.database import Database, StudyError
from bonas.study.executors import check_not_importing
from bonas.study.importance import importance_of_trials
from bonas.study.noise_checks import check_noise
from bonas.study.optimize import COMPILING, optimize, show_progress
from bonas.study.records import (
    Callback,
    NewTrial,
    TrialRecord,
    to_dataframe,
    write_csv,
)
from bonas.study.serialize import (
    check_conditions,
    config_to_json,
    exact_config,
    is_restorable,
    space_from_json,
    space_to_json,
)
from bonas.study.stepper import FIRST_CAPACITY, SearchStepper, make_stepper
from bonas.study.storage import Storage, read_values, write_values
from bonas.study.study_settings import (
    CUSTOM_SEARCH,
    check_can_ask,
    check_limits,
    open_settings,
)
from bonas.study.trial import Outcome, Trial, parse_result, trial_number

if TYPE_CHECKING:
    import pandas


class Study:
    """A search whose trials are stored in a file, so that it can be interrupted and resumed.

    With the same seed, a study asks for the same points as `bonas.minimize` and `bonas.run`, even
    if its process is killed. The file must be on a local disk, because SQLite's write-ahead log
    does not work over a network. Workers on other machines do not need access to it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        space: Space | None = None,
        *,
        seed: int | None = None,
        search: Search | None = None,
        direction: Direction | None = None,
        lease: float = 600.0,
        extra: Mapping[str, Any] | None = None,
        _capacity: int = FIRST_CAPACITY,
    ):
        """Create a study, or open an existing one.

        Conditions that are functions, and options that JSON cannot represent, are not stored
        completely. Without its space, such a study can be read, but not continued.

        Args:
            path: The file of the study.
            space: The space to search; None to open an existing study.
            seed: Seed of the search, an integer from 0 to 2^63 - 1; 0 by default. The seed and the
                direction of an existing study cannot be changed.
            search: The search; by default `bonas.bayes(space)`, with a GP fitted to a subset if
                there are more than 512 trials. To continue a study that was created with another
                search, pass the same search again.
            direction: "minimize" (the default) or "maximize".
            lease: Seconds after which a running trial whose lease was not renewed is proposed
                again. `optimize` and `trial.report` renew the lease. Trials of a process of this
                host that has died are proposed again at once.
            extra: JSON-serializable data to store in a new study; see `about`.
        """
        check_not_importing()
        if search is not None:
            check_search(search)
        if space is not None:
            check_space(space)
        if not lease > 0.0:
            raise ValueError(f"lease must be a positive number of seconds; got {lease}")
        self.path = Path(path)
        self.lease = lease
        self._search = search
        self._stepper: SearchStepper | None = None
        self._database = Database(path, create=space is not None)
        try:
            self._settings = open_settings(
                self._database,
                space,
                seed=seed,
                direction=direction,
                is_custom=search is not None,
                capacity=_capacity,
                extra=extra,
            )
            self._open(space)
        except BaseException:
            self._database.close()
            raise

    def _open(self, space: Space | None) -> None:
        stored_space = self._settings["space"]
        self._can_continue = space is not None or is_restorable(stored_space)
        self.space = space or space_from_json(stored_space)
        self._storage = Storage(self._database, self.space)
        if space is not None and not is_restorable(space_to_json(space)):
            check_conditions(space, self._storage.trials())

    def enqueue(self, config: Mapping[str, Any]) -> int:
        """Add a trial with a given configuration to the queue, and return its number.

        `ask` returns queued trials before new points of the search.
        """
        self._check_can_continue()
        u = np.asarray(self.space.encode(config), float)
        text = config_to_json(exact_config(self.space, u, config))
        return self._storage.enqueue(NewTrial(u, text, {"enqueued": True}))

    def ask(self) -> Trial:
        """Return the next trial to evaluate.

        It is the first trial in the queue, which includes trials of dead processes, or else the
        next point of the search.
        """
        trial = self._ask()
        assert trial is not None  # only a limit gives None
        return trial

    def _ask(self, limit: float = math.inf) -> Trial | None:
        """Return the next trial; None if `limit` trials are finished or running."""
        record = self._storage.claim(self.lease, limit)
        record = record or self._get_stepper().ask(self.lease, limit)
        if record is None:
            return None
        return Trial(
            record.number,
            record.config,
            record.u,
            storage=self._storage,
            study_id=self._settings["id"],
            lease=self.lease,
            minimize=self.direction == "minimize",
        )

    def _get_stepper(self) -> SearchStepper:
        self._check_can_continue()
        check_can_ask(self.path, self._settings, self.space, self._search)
        self._stepper = self._stepper or make_stepper(
            self._search, self.space, self._storage, self._settings
        )
        return self._stepper

    def _check_can_continue(self) -> None:
        if not self._can_continue:
            raise StudyError(
                f"{self.path} has conditions or options that cannot be stored in a file, so "
                "it can only be read; to continue, pass the space: Study(path, space)"
            )

    def tell(
        self,
        trial: Trial | int,
        value: SupportsFloat,
        *,
        cost: SupportsFloat | None = None,
        noise: SupportsFloat | None = None,
    ) -> None:
        """Store the value of a trial.

        A second result for the same trial raises a `StudyError`.

        Args:
            trial: The trial from `ask`, or its number.
            value: The value of the objective; the trial fails if it is NaN or infinite.
            cost: The cost of the trial; by default, the seconds since it was asked.
            noise: The variance of the noise of the value, for a search with `known_noise=True`.
        """
        result = value if cost is None and noise is None else (value, cost, noise)
        outcome = self._check_noise(parse_result(result))
        if outcome.invalid:
            raise ValueError(outcome.error)
        self._finish(
            trial,
            value=outcome.value,
            cost=None if math.isnan(outcome.cost) else outcome.cost,
            noise=outcome.noise,
            error=outcome.error,
        )

    def _check_noise(self, outcome: Outcome) -> Outcome:
        """Return an outcome, or a failure if the search refuses its noise, or needs one."""
        if outcome.noise is None and not getattr(self._search, "uses_known_noise", 0):
            return outcome
        is_custom = self._settings["search"] == CUSTOM_SEARCH
        return check_noise(self._search, self.space, outcome, is_custom=is_custom)

    def fail(self, trial: Trial | int, error: str, traceback: str = "") -> None:
        """Mark a trial as failed, with an error message; the search avoids its point."""
        error = error or "failed"
        self._finish(trial, value=None, cost=None, error=error, traceback=traceback)

    def _finish(self, trial: Trial | int, **outcome: Any) -> None:
        self._check_can_continue()
        number = trial_number(trial)
        if not self._storage.finish(number, **outcome):
            raise StudyError(
                f"trial {number} of {self.path} has already finished; its first result is kept"
            )

    def optimize(
        self,
        objective: Callable[..., Any],
        trials: int | None = None,
        *,
        seconds: float | None = None,
        executor: Executor | None = None,
        workers: int | None = None,
        trial_seconds: float | None = None,
        progress: bool = True,
        callback: Callback | None = None,
    ) -> None:
        """Evaluate `objective(config)` for queued trials and new points, up to the given limits.

        The objective returns a number, (number, cost), or (number, cost, variance of the noise of
        the number) for a search with `known_noise=True`. If it has a parameter `trial`, it
        receives the trial: `trial.report(step, value)` stores intermediate values, and
        `trial.should_prune()` returns whether to stop, by returning a value or by raising
        `bonas.study.Pruned`.

        A trial fails if its objective raises an exception or does not return a finite number. Ten
        consecutive failures end the search with a StudyError. Ctrl-C ends it with
        KeyboardInterrupt: running trials return to the queue, and another call resumes the search.

        Args:
            objective: The function to optimize.
            trials: Total number of trials of the study, including failed ones and trials of
                earlier calls, so that an interrupted script can be run again. By default, the
                search is limited only by `seconds`.
            seconds: Stop starting new trials after this time.
            executor: An executor with the interface of `concurrent.futures`, such as a pool of
                threads or processes, or Dask's `client.get_executor()`. By default, trials are
                evaluated in this process, one at a time.
            workers: Number of trials to submit to the executor at once; without an executor, the
                number of local processes to start.
            trial_seconds: Time limit of one evaluation, after which the trial has failed. A local
                process is then killed. A thread or a worker of a cluster cannot be ended, and is
                not used again before it returns.
            progress: Whether to show a progress bar.
            callback: Called with an `Event` whenever the state of a trial changes.
        """
        limits = {"trials": trials, "seconds": seconds, "trial_seconds": trial_seconds}
        check_limits(**limits)
        finished = self._storage.finished_count()
        with progress_bar(trials, finished, shown=progress) as update:
            callbacks = [show_progress(update)] if progress else []
            callbacks += [callback] if callback else []
            optimize(
                self,
                objective,
                executor=executor,
                workers=workers,
                callbacks=callbacks,
                on_wait=lambda: update(self._storage.finished_count(), COMPILING),
                **limits,
            )

    @property
    def trials(self) -> list[TrialRecord]:
        """All trials, in the order of their numbers."""
        return self._storage.trials()

    @property
    def best(self) -> TrialRecord | None:
        """The complete or pruned trial with the best value, or None."""
        return self._storage.best(self.direction == "minimize")

    def frame(self) -> "pandas.DataFrame":
        """Return the trials as a DataFrame, with a column for every parameter."""
        return to_dataframe(self.trials, self.space.names)

    def csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `frame` to a CSV file."""
        write_csv(self.trials, self.space.names, path)

    def importance(
        self, trials: Sequence[TrialRecord] | None = None
    ) -> dict[str, float]:
        """Return the importance of each parameter, as shares that sum to 1, in descending order.

        The shares are total effects on the mean of a GP that is fitted to the values; see
        `bonas.study.importance`. The result is empty for fewer than 4 values.

        Args:
            trials: The trials to use; by default, all trials. Trials without a value are ignored.
        """
        records = self.trials if trials is None else trials
        return importance_of_trials(self.space, records, self.seed)

    @property
    def seed(self) -> int:
        """The random seed of the search."""
        return int(self._settings["seed"])

    @property
    def direction(self) -> Direction:
        """The direction of the search: "minimize" or "maximize"."""
        return cast(Direction, self._settings["direction"])

    @property
    def about(self) -> dict[str, Any]:
        """Settings of the study, with the package versions, the creation time and `extra`."""
        return dict(self._settings)

    @property
    def notes(self) -> dict[str, Any]:
        """Stored notes by name; see `note`."""
        return read_values(self._database, "note")

    def note(self, name: str, value: Any) -> None:
        """Store a JSON-serializable value under a name, replacing an earlier value."""
        write_values(self._database, {name: value}, "note")

    def close(self) -> None:
        """Close the file; results are saved even if the file is not closed."""
        self._database.close()

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __repr__(self) -> str:
        counts = self._storage.counts().items()
        text = ", ".join(f"{count} {state}" for state, count in counts if count)
        return f"Study({str(self.path)!r}: {text or 'no trials'})"
