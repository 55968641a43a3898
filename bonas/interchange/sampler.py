"""A search of ours as an Optuna sampler, for people who stay with Optuna."""

import secrets
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.trial import FrozenTrial, TrialState

from bonas.interchange.distributions import distribution, parameter, to_ours, to_theirs
from bonas.search import FALLBACKS, Search, Trial, bayes
from bonas.search.record import SAME, asked
from bonas.spaces import Space

_ROOM = 64  # points there is room for at first; doubled when it is full
ATTRIBUTE = "bonas_fallback"  # of a trial: what was done instead, and why


class BonasSampler(BaseSampler):
    """Optuna trials at the points that a search of ours asks for.

    space: the space, conditions included; the objective suggests its parameters under their names. Without it, it is
        what all completed trials have in common, so the first trial is random.
    search: makes the search of a space, by default `bonas.bayes`; for settings, a function such as
        `lambda space: bonas.bayes(space, initial=10)`. It asks for one point at a time.
    independent: the sampler of what lies outside the space, by default a random one.

    A parameter that is not in the space, or inactive at the point asked for, is drawn independently of all others. That
    is never silent: there is a warning, and the trial's user attribute "bonas_fallback:<parameter>" says why.

    Trials that failed or were pruned are failed evaluations to the search, which does not go back there; those that are
    running, in any process, are pending. One objective is optimised, in either direction.
    """

    def __init__(
        self,
        space: Space | None = None,
        *,
        search: Callable[[Space], Search] = bayes,
        seed: int | None = None,
        independent: BaseSampler | None = None,
    ):
        self._given = None if space is None else {name: distribution(each) for name, each in space.parameters.items()}
        self._space, self._search = space, search
        self._common = IntersectionSearchSpace()
        self._seed = secrets.randbits(32) if seed is None else seed
        self._independent = independent or RandomSampler(seed=self._seed)
        self._run: _Run | None = None
        self._lock = threading.Lock()

    def reseed_rng(self) -> None:
        self._independent.reseed_rng()  # our own keys are made of the numbers of trials, so no two are the same

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        self._raise_error_if_multi_objective(study)
        return self._common.calculate(study) if self._given is None else dict(self._given)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        sign = -1.0 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1.0
        with self._lock:
            trials = study.get_trials(deepcopy=False)
            run = self._run
            if run is None or run.distributions != search_space or run.full(trials):
                run = self._run = self._begin(search_space, len(trials))
            run.catch_up(trials, trial.number, sign)
            config, fallback = run.ask(trial.number)
        if fallback:
            study._storage.set_trial_user_attr(trial._trial_id, ATTRIBUTE, FALLBACKS[fallback])
        return config

    def _begin(self, distributions: dict[str, BaseDistribution], trials: int) -> "_Run":
        space = self._space or Space(**{name: parameter(each) for name, each in distributions.items()})
        room = _ROOM
        while room < trials:
            room *= 2
        return _Run(self._search(space), distributions, jax.random.key(self._seed), room)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        common = self._given or self._common.calculate(study)
        if not common:
            why = "no trial has completed yet, so the space is not known"
        elif param_name not in common:
            where = "the space given to BonasSampler" if self._given else "what all completed trials have in common"
            why = f"it is not in {where}"
        else:
            why = "it is inactive at the point asked for, or its range is not that of the space"
        study._storage.set_trial_user_attr(trial._trial_id, f"{ATTRIBUTE}:{param_name}", f"drawn independently: {why}")
        if common:  # the first trial of a space that is not given cannot be otherwise
            warnings.warn(f"BonasSampler draws {param_name!r} independently of all others: {why}", stacklevel=2)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._independent.after_trial(study, trial, state, values)


class _Run:
    """A search under way, and which trials it knows of."""

    def __init__(self, search: Search, distributions: dict[str, BaseDistribution], key: jax.Array, room: int):
        init_key, self.key = jax.random.split(key)
        self.search, self.space, self.distributions, self.room = search, search.space, distributions, room
        self.state = search.init(init_key, room)
        self._ask, self._tell = jax.jit(search.ask), jax.jit(search.tell)
        self.pending: dict[int, tuple[int, np.ndarray]] = {}  # number of a trial to its row in the record, and its point
        self.told: set[int] = set()

    def full(self, trials: list[FrozenTrial]) -> bool:
        """Whether there is no room for all trials that it does not know of."""
        new = sum(trial.number not in self.told and trial.number not in self.pending for trial in trials)
        return int(self.state.record.data.size) + new > self.room

    def ask(self, number: int) -> tuple[dict[str, Any], int]:
        """The configuration for a trial, and which of FALLBACKS it is."""
        row = int(self.state.record.data.size)
        x, self.state, info = self._ask(jax.random.fold_in(self.key, number), self.state)
        if len(x) != 1:
            raise ValueError(f"BonasSampler asks for one point at a time; this search asks for {len(x)}")
        self.pending[number] = (row, np.asarray(x[0]))
        values = self.space.decode(x[0])
        return {name: to_theirs(self.distributions[name], value) for name, value in values.items()}, int(info.fallback)

    def catch_up(self, trials: list[FrozenTrial], current: int, sign: float) -> None:
        """Tells the search of trials that ended since, and of points that are being evaluated elsewhere."""
        for trial in trials:
            if trial.number in self.told or trial.number == current:
                continue
            if trial.state.is_finished():
                self.told.add(trial.number)
                self._finish(trial, sign)
            elif trial.number not in self.pending and (u := self._row(trial)) is not None:
                record = self.state.record
                self.pending[trial.number] = (int(record.data.size), u)
                self.state = self.state._replace(record=asked(record, u))

    def _finish(self, trial: FrozenTrial, sign: float) -> None:
        u = self._row(trial)
        row, expected = self.pending.pop(trial.number, (0, None))
        if expected is not None and (u is None or np.abs(u - expected).max() > SAME):
            record = self.state.record  # evaluated elsewhere, as an enqueued trial is: nothing will be told there
            self.state = self.state._replace(record=record._replace(pending=record.pending.at[row].set(False)))
        if u is None:
            return
        fine = trial.state == TrialState.COMPLETE and trial.value is not None
        value = sign * trial.value if fine else np.nan  # type: ignore[operator]
        seconds = trial.duration.total_seconds() if trial.duration else 0.0
        y, cost = (jnp.asarray(each, self.state.record.cost.dtype) for each in (value, seconds))
        self.state = self._tell(self.state, Trial(jnp.asarray(u), y, jnp.asarray(0), cost, jnp.asarray(fine)))

    def _row(self, trial: FrozenTrial) -> np.ndarray | None:
        """The point (d,) of a trial; None where it is none of the space, or not known yet."""
        columns = np.zeros(self.space.dim)
        there = np.zeros(self.space.dim, bool)
        for i, (name, each) in enumerate(self.space.parameters.items()):
            if name not in trial.params:
                continue
            try:
                columns[i], there[i] = each.encode(name, to_ours(self.distributions[name], trial.params[name])), True
            except ValueError:
                return None
        active = np.asarray(self.space.active(columns))
        return np.asarray(self.space.snap(columns)) if (there | ~active).all() else None
