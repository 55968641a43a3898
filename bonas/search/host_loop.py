"""Minimize any Python function in a host loop, while the model is compiled in the background."""

import math
import operator
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.search.argument_types import Direction
from bonas.search.batches import check_points, points_per_ask
from bonas.search.bayesian import Bayes, BayesState, bayes
from bonas.search.checks import check_search
from bonas.search.model_warnings import warn_about_model
from bonas.search.objectives import direction_sign, split_outcome
from bonas.search.observations import add_pending, sequential_ask
from bonas.search.progress import progress_bar
from bonas.search.result import Evaluation, Result, best_of, make_result
from bonas.search.search import AskInfo, AskResult, Observation, Search, ask_info
from bonas.spaces import Space
from bonas.static_settings import check_counts


def minimize(
    objective: Callable[[dict[str, Any]], Any],
    space: Space,
    *,
    trials: int = 50,
    seed: int = 0,
    search: Search | None = None,
    catch: tuple[type[Exception], ...] = (),
    direction: Direction = "minimize",
    progress: bool = True,
) -> Result:
    """Minimize a Python function of a configuration over a space.

    Ctrl-C stops the search and returns the result so far.

    Args:
        objective: A Python function of a configuration that returns a number, (value, cost) or
            (value, cost, variance of the noise of the value). The default cost is the time in
            seconds; the noise is for a search with `known_noise=True`.
        space: The space to search.
        trials: The number of evaluations.
        seed: The random seed of the search, an integer from 0 to 2^63 - 1.
        search: The search. Default: `bonas.bayes(space)`. The points of a batch are evaluated one
            after the other; `trials` must be a multiple of the points per ask.
        catch: Exceptions that count as a failed evaluation, as values that are not finite do;
            others are raised.
        direction: "minimize", or "maximize" to find the largest value.
        progress: Whether to show a progress bar.

    Returns:
        The best configuration and value, all evaluations, and the final state of the search.
    """
    if not isinstance(space, Space):
        raise ValueError(
            f"expected a Space; pass a search as search=; got a {type(space).__name__}"
        )
    check_counts(trials=trials)
    chosen = bayes(space) if search is None else search
    check_search(chosen)
    if chosen.space != space:
        raise ValueError(
            f"expected a search of the space {space}; got one of {chosen.space}"
        )
    sign = direction_sign(direction)
    init_key, run_key = jax.random.split(jax.random.key(check_seed(seed)))
    evaluations: list[Evaluation] = []
    with progress_bar(trials, shown=progress) as update:

        def show(more: str = "") -> None:
            best = best_of(evaluations, sign)
            none = "all failed" if evaluations else "no value yet"
            text = f"best {best.value:.6g}" if best else none
            update(len(evaluations), text + more)

        try:
            stepped = SteppedSearch(chosen, init_key, run_key, trials)
            for _ in range(trials // stepped.batch):
                points, info = stepped.ask(lambda: show(", compiling the model"))
                for x in points:
                    config = space.decode(x)
                    stepped.prepare()
                    evaluation = _evaluate(objective, config, info, catch)
                    evaluations.append(evaluation)
                    stepped.tell(_observation(chosen, x, evaluation, sign))
                    show()
        except KeyboardInterrupt:
            if not evaluations:
                raise
    infos = [evaluation.info for evaluation in evaluations]
    warn_about_model(jax.tree.map(lambda *leaves: np.array(leaves), *infos))
    return make_result(evaluations, stepped.state, direction)


def check_seed(seed: Any) -> int:
    """Return a seed as an int; raise a ValueError unless it is an integer from 0 to 2^63 - 1."""
    try:
        number = -1 if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 2**63:
        raise ValueError(f"seed must be an integer from 0 to 2^63 - 1; got {seed!r}")
    return number


def _evaluate(
    objective: Callable[[dict[str, Any]], Any],
    config: dict[str, Any],
    info: AskInfo,
    catch: tuple[type[Exception], ...],
) -> Evaluation:
    start = time.perf_counter()
    value = float("nan")
    cost = noise = None
    error = ""
    try:
        value, *rest = split_outcome(objective(dict(config)))
        value = _to_float(value)
        cost, noise = (None if each is None else _to_float(each) for each in rest)
        if cost is not None and not 0.0 <= cost < math.inf:
            raise ValueError(
                f"the cost of an evaluation must be finite and not negative; got {cost}"
            )
    except BaseException as problem:
        if not _is_caught(problem, catch):
            raise
        error = f"{type(problem).__name__}: {problem}"
    dtype = jnp.result_type(float)
    if not error and not abs(value) <= float(jnp.finfo(dtype).max):
        is_too_large = math.isfinite(value)
        error = f"the value was {value}" + f", too large for {dtype}" * is_too_large
        value = float("nan")
    seconds = time.perf_counter() - start
    return Evaluation(config, value, seconds, error, info, cost, noise)


def _is_caught(problem: BaseException, catch: tuple[type[Exception], ...]) -> bool:
    """Return whether an exception, or every exception of a group, counts as a failure."""
    if isinstance(problem, catch):
        return True
    if isinstance(problem, BaseExceptionGroup):
        return all(_is_caught(one, catch) for one in problem.exceptions)
    return False


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except TypeError as problem:
        raise TypeError(
            f"the objective must return a number; got {value!r}"
        ) from problem


def _observation(
    search: Search, x: Array, evaluation: Evaluation, sign: float
) -> Observation:
    cost = evaluation.seconds if evaluation.cost is None else evaluation.cost
    noise = evaluation.noise
    if noise is None and evaluation.error and search.uses_known_noise:
        noise = 0.0  # a failed evaluation needs none
    return make_observation(
        x, sign * evaluation.value, cost, ok=not evaluation.error, noise=noise
    )


def make_observation(
    x: Array, value: float, cost: float, *, ok: bool, noise: float | None = None
) -> Observation:
    """Make an observation of one evaluation, whose arrays have the dtype of the point x (d,).

    A value too large for that dtype, such as 1e300 in float32, becomes NaN, which a search treats
    as a failure. The other arguments are those of `Observation`.
    """
    largest = float(jnp.finfo(x.dtype).max)
    return Observation(
        x,
        jnp.asarray(value if abs(value) <= largest else math.nan, x.dtype),
        step=jnp.asarray(0),
        cost=jnp.asarray(min(cost, largest), x.dtype),
        ok=jnp.asarray(ok),
        noise=None if noise is None else jnp.asarray(noise, x.dtype),
    )


# A search that asks and tells in turn


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
            on_wait: A function to call before waiting for the compiler.
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
        """Tell the search the result of one evaluation."""
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
    """Return the initial points of a `bayes` search, which do not depend on values.

    For other searches, return an empty array (0, d).
    """
    if type(search) is not Bayes:
        return jnp.zeros((0, search.space.dim))
    # XLA drops the rest of the state, so that this compiles within a fraction of a second.
    points: Array = jax.jit(lambda key: search.init(key, 1).design)(init_key)
    return points


def in_background(function: Callable[[], None]) -> Future[None]:
    """Call a function in a background thread, with the JAX precision of the calling thread."""
    x64 = jnp.result_type(float) == jnp.float64

    def call() -> None:
        with jax.enable_x64(x64):
            function()

    executor = ThreadPoolExecutor(1, thread_name_prefix="bonas-compile")
    future = executor.submit(call)
    executor.shutdown(wait=False)
    return future
