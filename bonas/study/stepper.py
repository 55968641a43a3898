"""Run the search of a study from its file: update its state, ask for a point, store the state."""

import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PRNGKeyArray

from bonas.search import (
    FALLBACKS,
    AskInfo,
    Observation,
    Search,
    ask_info,
    check_search,
    initial_points,
    make_observation,
    warn_about_model,
)
from bonas.spaces import Space
from bonas.study.compiled_search import (
    CompiledSearch,
    SearchPrograms,
    State,
    state_structure,
)
from bonas.study.database import StudyError
from bonas.study.default_search import default_search, describe_fit
from bonas.study.records import (
    FinishedTrial,
    NewTrial,
    SearchPosition,
    TrialRecord,
)
from bonas.study.serialize import (
    OTHER_SEARCH,
    changed_chunks,
    config_to_json,
    is_restorable,
    leaf_bytes,
    restore_state,
)
from bonas.study.storage import Storage
from bonas.study.study_settings import DIRECTIONS

FIRST_CAPACITY = 64  # points; doubled whenever the state is full


class _AnotherProcessAsked(Exception):
    """Signal that another process asked while this one computed."""


class _Step(NamedTuple):
    """An ask that is not stored yet."""

    position: SearchPosition  # before the ask
    x: np.ndarray  # (q, d)
    info: AskInfo
    state: State | None  # after the ask; None until a model needs it
    leaves: dict[int, np.ndarray]  # bytes of the state to store


class SearchStepper:
    """A search whose state is stored in the file, so that any process can continue it."""

    def __init__(
        self,
        search: Search,
        storage: Storage,
        *,
        seed: int,
        sign: float,
        first_capacity: int,
        name: str | None,
        describe_fit: Callable[[int], dict[str, str]] | None,
    ):
        """Prepare a search to continue from the file.

        Args:
            search: The search.
            storage: The study's storage.
            seed: Seed of the search.
            sign: 1 to minimize values, −1 to maximize them.
            first_capacity: Points that the first state can hold.
            name: Name under which compiled programs are stored, see `compile_search`.
            describe_fit: Function from the number of finished trials to entries of a trial's info.
        """
        check_search(search)
        self.search = search
        self._storage = storage
        self._sign = sign
        self._first_capacity = first_capacity
        self._describe_fit = describe_fit
        self._init_key, self._run_key = run_keys(seed)
        self._programs = SearchPrograms(search, self._init_key, name)
        self._design: np.ndarray | None = None  # initial points, once they are needed
        # threads that share a study ask in sequence
        self._lock = threading.Lock()
        self._position: SearchPosition | None = None  # position of the state in memory
        self._state: State | None = None
        self._stored: dict[int, np.ndarray] = {}  # bytes of the leaves in the file
        self._infos: list[AskInfo] = []  # reports of asks not yet checked for warnings

    def ask(self, lease: float, limit: float = math.inf) -> TrialRecord | None:
        """Claim the next point of the search, or return None if the study has `limit` trials.

        Other processes can write while this one computes. If another process asked first, discard
        the suggestion and recompute it under the write lock.
        """
        with self._lock:
            try:
                return self._ask(lease, limit)
            except _AnotherProcessAsked:
                with self._storage.database.write_transaction():
                    return self._ask(lease, limit)

    def prepare(self, limit: float, on_wait: Callable[[], None]) -> None:
        """Start to compile what later asks need, in a thread.

        Args:
            limit: The number of trials after which there are no more asks.
            on_wait: Called before an ask waits for the compiler.
        """
        self._programs.on_wait = on_wait
        with self._storage.database.read_transaction():
            position = self._storage.search_position()
        capacity = position.capacity or self._first_capacity
        if limit > len(self._initial_points()):
            self._programs.prepare(capacity)
        if position.points > capacity // 2 and limit > capacity:
            self._programs.prepare(2 * capacity)

    def _ask(self, lease: float, limit: float) -> TrialRecord | None:
        if self._storage.trial_count() >= limit:
            return None
        position, x, info, state, leaves = self._initial_step() or self._model_step()
        trials = self._new_trials(x, info, position.observed)
        new_position = position._replace(
            asks=position.asks + 1, points=position.points + len(trials)
        )
        with self._storage.database.write_transaction():
            stored_position = self._storage.search_position()
            if stored_position.asks != position.asks:
                raise _AnotherProcessAsked
            if self._storage.trial_count() >= limit:  # others may have enqueued trials
                return None
            has_grown = stored_position.capacity != position.capacity
            chunks = changed_chunks(leaves, {} if has_grown else self._stored)
            record = self._storage.add_asked(
                trials, new_position, chunks, replace_state=has_grown, lease=lease
            )
        self._position = new_position
        self._state = state
        self._stored = leaves
        self._infos.append(info)
        return record

    def _initial_step(self) -> "_Step | None":
        """Return a step to initial points that needs no state, or None.

        A later step computes the state from these asks and the values since then. Trials that the
        user enqueued count as initial points; with their values, the state is needed.
        """
        with self._storage.database.read_transaction():
            position = self._storage.search_position()
            if position.capacity:
                return None
            self._check(position)
            finished = self._storage.finished_after(0)
        points = self._initial_points()[position.points :]
        batch = getattr(self.search, "batch", 1)
        if len(points) < batch or any(trial.enqueued for trial in finished):
            return None
        info = jax.device_get(ask_info(jnp.asarray(points), random=True))
        return _Step(position, points[:batch], info, None, {})

    def _model_step(self) -> "_Step":
        """Return a step by an ask of the search."""
        position, state = self._updated_state()
        compiled = self._programs(position.capacity)
        x, state, info = compiled.ask(self._ask_key(position.asks), state)
        leaves = leaf_bytes(compiled.persistent, state)
        return _Step(position, np.asarray(x), jax.device_get(info), state, leaves)

    def _initial_points(self) -> np.ndarray:
        """Return the points (k, d) of the first asks, which depend on no value."""
        if self._design is None:
            self._design = np.asarray(initial_points(self.search, self._init_key))
        return self._design

    def _ask_key(self, asks: int) -> PRNGKeyArray:
        key: PRNGKeyArray = ask_key(self._run_key, jnp.asarray(asks))
        return key

    def warn_about_model(self) -> None:
        """Issue a `ModelWarning` if the model often failed since the last call."""
        infos, self._infos = self._infos, []
        if infos:
            warn_about_model(jax.tree.map(lambda *leaves: np.array(leaves), *infos))

    def _updated_state(self) -> tuple[SearchPosition, State]:
        """Return the position and state of the search after all finished trials."""
        with self._storage.database.read_transaction():
            position = self._storage.search_position()
            if self._position != position:
                self._load(position)
            finished = self._storage.finished_after(position.observed)
            state = self._state
        points = position.points + sum(trial.enqueued for trial in finished)
        capacity = position.capacity or self._first_capacity
        while capacity < points + self._programs(capacity).batch_size:
            capacity *= 2
        compiled = self._programs(capacity)
        if state is None:
            state = self._initial_state(compiled, position.asks, finished)
        elif capacity != position.capacity:
            state = self._grown(state, position.capacity, capacity)
        for trial in finished:
            state = compiled.tell(state, self._observation(trial))
        observed = position.observed + len(finished)
        return SearchPosition(position.asks, observed, capacity, points), state

    def _initial_state(
        self, compiled: CompiledSearch, asks: int, finished: Sequence[FinishedTrial]
    ) -> State:
        """Return the state after asks for initial points."""
        design = self._initial_points()
        if asks and not all(
            trial.enqueued or (trial.u == design).all(axis=1).any()
            for trial in finished
        ):
            raise StudyError(OTHER_SEARCH)
        state = compiled.init(self._init_key)
        for i in range(asks):
            _, state, _ = compiled.ask(self._ask_key(i), state)
        return state

    def _grown(self, state: State, old_capacity: int, capacity: int) -> State:
        """Return a state with a larger capacity and the same content."""
        fresh = self._programs(capacity).init(self._init_key)
        old = jax.tree.unflatten(state_structure(self.search, old_capacity), state)
        new = jax.tree.unflatten(state_structure(self.search, capacity), fresh)
        return tuple(jax.tree.leaves(self.search.grow(old, new)))

    def _load(self, position: SearchPosition) -> None:
        self._check(position)
        stored = self._storage.search_state()
        if position.capacity:
            compiled = self._programs(position.capacity)
            self._state = restore_state(compiled, self._init_key, stored)
        else:
            self._state = None
        self._stored = {
            leaf: np.frombuffer(data, np.uint8) for leaf, data in stored.items()
        }
        self._position = position

    def _check(self, position: SearchPosition) -> None:
        """Raise a StudyError for a position that no search has, such as a huge capacity."""
        largest = max(self._first_capacity, 2 * position.points)
        if (
            not position.asks <= position.points <= self._storage.trial_count()
            or position.observed > self._storage.finished_count()
            or position.capacity > largest
            or (position.capacity and not position.asks)
            or (not position.capacity and position.points > len(self._initial_points()))
        ):
            raise StudyError(
                f"{self._storage.database.path}: the table 'search' holds {position}, which "
                "does not fit the trials; the file is damaged: restore a backup"
            )

    def _observation(self, trial: FinishedTrial) -> Observation:
        ok = trial.value is not None
        value = self._sign * trial.value if trial.value is not None else math.nan
        # Failed trials need no variance. Before they could be stored, all were 0.
        noise = (trial.noise or 0.0) if self.search.uses_known_noise else None
        x = jnp.asarray(trial.u)
        return make_observation(x, value, trial.cost, ok=ok, noise=noise)

    def _new_trials(
        self, x: np.ndarray, info: AskInfo, observed: int
    ) -> list[NewTrial]:
        words = describe_ask(info)
        if self._describe_fit:
            words |= self._describe_fit(observed)
        space = self.search.space
        return [NewTrial(row, config_to_json(space.decode(row)), words) for row in x]


def make_stepper(
    search: Search | None, space: Space, storage: Storage, settings: Mapping[str, Any]
) -> SearchStepper:
    """Return the stepper of a study, with the default search if `search` is None."""
    # A space that is stored completely determines the programs of the default search.
    is_named = search is None and is_restorable(settings["space"])
    return SearchStepper(
        search or default_search(space),
        storage,
        seed=int(settings["seed"]),
        sign=DIRECTIONS[settings["direction"]],
        first_capacity=settings["capacity"],
        name=json.dumps(settings["space"]) if is_named else None,
        describe_fit=describe_fit if search is None else None,
    )


def run_keys(seed: int) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """Return the random keys of the initial state and of the asks, derived as in `bonas.run`."""
    init_key, run_key = jax.random.split(jax.random.key(seed))
    return init_key, run_key


@jax.jit
def ask_key(run_key: PRNGKeyArray, asks: Array) -> PRNGKeyArray:
    """Return the key of the next ask, given the number of previous asks."""
    return jax.random.split(jax.random.fold_in(run_key, asks))[0]


def describe_ask(info: AskInfo) -> dict[str, Any]:
    """Convert the info of an ask to JSON, with None for a score that was not computed."""
    words: dict[str, Any] = {
        name: np.asarray(value).item() for name, value in info._asdict().items()
    }
    words["fallback"] = FALLBACKS[words["fallback"]] if words["fallback"] else ""
    if not math.isfinite(words["acquisition"]):
        words["acquisition"] = None
    return words
