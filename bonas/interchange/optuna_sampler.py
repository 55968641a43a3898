"""An Optuna sampler that runs a bonas search."""

import secrets
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optuna
from jaxtyping import PRNGKeyArray
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.trial import FrozenTrial, TrialState

from bonas.interchange.optuna_distributions import (
    to_bonas_value,
    to_distribution,
    to_optuna_value,
    to_parameter,
)
from bonas.search import (
    FALLBACKS,
    SAME_POINT,
    Search,
    add_pending,
    bayes,
    make_observation,
)
from bonas.spaces import Space

_FIRST_CAPACITY = 64  # points; doubled until all trials fit
# user attribute of trials that describes a fallback
FALLBACK_ATTRIBUTE = "bonas_fallback"


class BonasSampler(BaseSampler):
    """Optuna sampler that proposes parameters by a bonas search.

    A parameter that is not in the space, or inactive at the proposed point, is sampled
    independently. The sampler then issues a warning and stores the reason in the trial's user
    attribute "bonas_fallback:<parameter>".

    The search treats failed and pruned trials as failed evaluations and avoids their points.
    Running trials, in any process, are pending. The sampler supports one objective, in either
    direction.
    """

    def __init__(
        self,
        space: Space | None = None,
        *,
        search: Callable[[Space], Search] = bayes,
        seed: int | None = None,
        independent: BaseSampler | None = None,
    ):
        """Create a sampler.

        Args:
            space: The space to search, with the parameter names that the objective suggests. By
                default, it consists of the parameters that all completed trials have in common,
                so that the first trial is random.
            search: A function from a space to a search; by default `bonas.bayes`. For other
                settings pass, for example, `lambda space: bonas.bayes(space, initial=10)`. The
                search must ask for one point at a time.
            seed: Seed of the search; random by default.
            independent: Sampler of parameters outside the space; by default a random one.
        """
        self._space = space
        self._search = search
        self._given: dict[str, BaseDistribution] | None = None
        if space is not None:
            self._given = {
                name: to_distribution(parameter)
                for name, parameter in space.parameters.items()
            }
        self._common = IntersectionSearchSpace()
        self._seed = secrets.randbits(32) if seed is None else seed
        self._independent = independent or RandomSampler(seed=self._seed)
        self._run: _SearchRun | None = None
        self._lock = threading.Lock()

    def reseed_rng(self) -> None:
        # The keys of the search are derived from trial numbers, so they always differ.
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        self._raise_error_if_multi_objective(study)
        return (
            self._common.calculate(study) if self._given is None else dict(self._given)
        )

    def sample_relative(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        sign = -1.0 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1.0
        with self._lock:
            trials = study.get_trials(deepcopy=False)
            run = self._run
            if run is None or run.distributions != search_space or run.is_full(trials):
                run = self._start_run(search_space, len(trials))
                self._run = run
            run.update(trials, trial.number, sign)
            config, fallback = run.ask(trial.number)
        if fallback:
            reason = FALLBACKS[fallback]
            study._storage.set_trial_user_attr(
                trial._trial_id, FALLBACK_ATTRIBUTE, reason
            )
        return config

    def _start_run(
        self, distributions: dict[str, BaseDistribution], trials: int
    ) -> "_SearchRun":
        space = self._space
        if space is None:
            parameters = {
                name: to_parameter(each) for name, each in distributions.items()
            }
            space = Space(**parameters)
        capacity = _FIRST_CAPACITY
        while capacity < trials:
            capacity *= 2
        return _SearchRun(
            self._search(space), distributions, jax.random.key(self._seed), capacity
        )

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        common = self._given or self._common.calculate(study)
        reason = self._independence_reason(param_name, common)
        attribute = f"{FALLBACK_ATTRIBUTE}:{param_name}"
        study._storage.set_trial_user_attr(
            trial._trial_id, attribute, f"sampled independently: {reason}"
        )
        # without a given space, the first trial is always sampled independently
        if common:
            warnings.warn(
                f"BonasSampler samples {param_name!r} independently: {reason}",
                stacklevel=2,
            )
        return self._independent.sample_independent(
            study, trial, param_name, param_distribution
        )

    def _independence_reason(
        self, name: str, common: dict[str, BaseDistribution]
    ) -> str:
        if not common:
            return "no trial has completed yet, so the space is not known"
        if name in common:
            return "it is inactive at this point, or its range is not that of the space"
        if self._given:
            return "it is not in the space given to BonasSampler"
        return "it is not among the parameters that all completed trials have in common"

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        self._independent.after_trial(study, trial, state, values)


class _SearchRun:
    """The state of a search, and the trials that it includes."""

    def __init__(
        self,
        search: Search,
        distributions: dict[str, BaseDistribution],
        key: PRNGKeyArray,
        capacity: int,
    ):
        init_key, self._key = jax.random.split(key)
        self.distributions = distributions
        self.state = search.init(init_key, capacity)
        self._space = search.space
        self._capacity = capacity
        self._ask = jax.jit(search.ask)
        self._tell = jax.jit(search.tell)
        self._observed: set[int] = set()  # numbers of trials
        # Number of a trial to its row in the observations and its point, (d,).
        self._pending: dict[int, tuple[int, np.ndarray]] = {}

    def is_full(self, trials: list[FrozenTrial]) -> bool:
        """Return whether the state cannot hold all trials."""
        included = self._observed | self._pending.keys()
        new = sum(trial.number not in included for trial in trials)
        return int(self.state.observations.data.size) + new > self._capacity

    def ask(self, number: int) -> tuple[dict[str, Any], int]:
        """Return the configuration of a new trial, and its fallback (a position in FALLBACKS)."""
        row = int(self.state.observations.data.size)
        x, self.state, info = self._ask(
            jax.random.fold_in(self._key, number), self.state
        )
        if len(x) != 1:
            raise ValueError(
                "BonasSampler needs a search that asks for one point at a time; this one asks for "
                f"{len(x)}"
            )
        self._pending[number] = (row, np.asarray(x[0]))
        config = {
            name: to_optuna_value(self.distributions[name], value)
            for name, value in self._space.decode(x[0]).items()
        }
        return config, int(info.fallback)

    def update(self, trials: list[FrozenTrial], current: int, sign: float) -> None:
        """Add finished trials to the search as observations, and running ones as pending points."""
        for trial in trials:
            if trial.number in self._observed or trial.number == current:
                continue
            if trial.state.is_finished():
                self._observed.add(trial.number)
                self._observe(trial, sign)
            elif (
                trial.number not in self._pending
                and (u := self._encode(trial)) is not None
            ):
                observations = self.state.observations
                self._pending[trial.number] = (int(observations.data.size), u)
                self.state = self.state._replace(
                    observations=add_pending(observations, u)
                )

    def _observe(self, trial: FrozenTrial, sign: float) -> None:
        u = self._encode(trial)
        row, expected = self._pending.pop(trial.number, (0, None))
        if expected is not None and (
            u is None or np.abs(u - expected).max() > SAME_POINT
        ):
            # The trial was evaluated at another point, such as an enqueued one.
            observations = self.state.observations
            pending = observations.pending.at[row].set(False)
            self.state = self.state._replace(
                observations=observations._replace(pending=pending)
            )
        if u is None:
            return
        value = trial.value if trial.state == TrialState.COMPLETE else None
        seconds = trial.duration.total_seconds() if trial.duration else 0.0
        y = np.nan if value is None else sign * value
        ok = value is not None
        observation = make_observation(jnp.asarray(u), y, seconds, ok=ok)
        self.state = self._tell(self.state, observation)

    def _encode(self, trial: FrozenTrial) -> np.ndarray | None:
        """Return the point of a trial, (d,); None if it is outside the space or incomplete."""
        columns = np.zeros(self._space.dim)
        is_given = np.zeros(self._space.dim, bool)
        for i, (name, parameter) in enumerate(self._space.parameters.items()):
            if name not in trial.params:
                continue
            value = to_bonas_value(self.distributions[name], trial.params[name])
            try:
                columns[i] = parameter.encode(name, value)
            except ValueError:
                return None
            is_given[i] = True
        is_active = np.asarray(self._space.active(columns))
        return (
            np.asarray(self._space.snap(columns))
            if (is_given | ~is_active).all()
            else None
        )
