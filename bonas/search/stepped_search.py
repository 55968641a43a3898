"""Ask and tell a search in a host loop, while its model is compiled in the background."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.search.batches import check_points, points_per_ask
from bonas.search.bayesian import Bayes, BayesState
from bonas.search.observations import add_pending, sequential_ask
from bonas.search.search import AskInfo, AskResult, Observation, Search, ask_info


class SteppedSearch:
    """A search and its state, for a host loop that asks and tells in turn.

    The initial points of `bonas.bayes` depend on no value. A small program computes them, and a
    thread compiles the model while they are evaluated. They are added to the state when the model
    is needed, so points are the same as without the thread.
    """

    def __init__(
        self,
        search: Search,
        init_key: PRNGKeyArray,
        run_key: PRNGKeyArray,
        evaluations: int,
    ):
        """Prepare a search.

        Args:
            search: The search.
            init_key: The key of the initial state.
            run_key: The key of all asks.
            evaluations: The number of evaluations, a multiple of the points per ask.
        """
        self._search = search
        self._init_key = init_key
        self._run_key = run_key
        self._evaluations = evaluations
        self._init = jax.jit(search.init, static_argnums=1)
        self._ask = jax.jit(search.ask)
        self._tell = jax.jit(search.tell)
        self._asks = 0
        self._state: Any = None  # until it is needed
        self._told: list[Observation] = []  # observations that the state lacks
        self._compilation: Future[None] | None = None
        self._design = np.asarray(initial_points(search, init_key))
        if not len(self._design):
            self._state = self._init(init_key, evaluations)
        self.batch = points_per_ask(search, self._state, evaluations)

    def ask(
        self, on_wait: Callable[[], None] = lambda: None
    ) -> tuple[Float[Array, "q d"], AskInfo]:
        """Return the next points and a report.

        Args:
            on_wait: Called before waiting for the compiler.
        """
        end = (self._asks + 1) * self.batch
        points: Any
        if self._state is None and end <= len(self._design):
            points = self._design[end - self.batch : end]
            info = ask_info(points, random=True)
        else:
            if self._compilation is None:
                must_wait = self._asks == 0
            else:
                must_wait = not self._compilation.done()
            if must_wait:
                on_wait()
            self._finish_compilation()
            points, self._state, info = self._ask(self._key(self._asks), self.state)
            check_points(points, self.batch)
        self._asks += 1
        return points, info

    def prepare(self) -> None:
        """Start to compile the model in a thread if later asks need it.

        If that was done before and failed, raise the error.
        """
        is_needed = self._state is None and self._evaluations > len(self._design)
        if self._compilation is None and is_needed:
            self._compilation = in_background(self._compile)
        elif self._compilation is not None and self._compilation.done():
            self._finish_compilation()

    def tell(self, observation: Observation) -> None:
        """Add an observation."""
        if self._state is None:
            self._told.append(observation)
        else:
            self._state = self._tell(self._state, observation)

    @property
    def state(self) -> Any:
        """The state after all asks and observations."""
        if self._state is None:
            state = self._init(self._init_key, self._evaluations)
            ask = jax.jit(self._ask_initial)
            for i in range(self._asks):
                _, state, _ = ask(self._key(i), state)
            for observation in self._told:
                state = self._tell(state, observation)
            self._state = state
        return self._state

    def _key(self, ask: int) -> PRNGKeyArray:
        return jax.random.split(jax.random.fold_in(self._run_key, ask))[0]

    def _compile(self) -> None:
        """Compile the functions of the search by calling each once."""
        state = self._init(self._init_key, self._evaluations)
        points, state, _ = self._ask(self._key(0), state)
        zero = jnp.zeros((), points.dtype)
        observation = Observation(
            points[0], zero, jnp.asarray(0), zero, jnp.asarray(True)
        )
        jax.block_until_ready(self._tell(state, observation))

    def _finish_compilation(self) -> None:
        if self._compilation is not None:
            self._compilation.result()

    def _ask_initial(self, key: PRNGKeyArray, state: BayesState) -> AskResult:
        """Ask for initial points; a program without the model, which compiles at once."""
        search: Any = self._search

        def ask_one(key: PRNGKeyArray, state: BayesState) -> AskResult:
            x, state, info = search._design_point(key, state)
            pending = add_pending(state.observations, x)
            return x, state._replace(observations=pending), info

        return sequential_ask(ask_one, key, state, batch=self.batch)


def initial_points(search: Search, init_key: PRNGKeyArray) -> Float[Array, "k d"]:
    """Return the first points of a search that depend on no value; none if all may."""
    if type(search) is not Bayes:
        return jnp.zeros((0, search.space.dim))
    # XLA drops the rest of the state, so that this compiles within a fraction of a second.
    points: Array = jax.jit(lambda key: search.init(key, 1).design)(init_key)
    return points


def in_background(function: Callable[[], None]) -> Future[None]:
    """Call a function in a thread, in the precision of this one."""
    x64 = jnp.result_type(float) == jnp.float64

    def call() -> None:
        with jax.enable_x64(x64):
            function()

    executor = ThreadPoolExecutor(1, thread_name_prefix="bonas-compile")
    future = executor.submit(call)
    executor.shutdown(wait=False)
    return future
