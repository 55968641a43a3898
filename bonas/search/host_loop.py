"""Minimize any Python function in a host loop, with a progress bar."""

import math
import operator
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from bonas.search.argument_types import Direction
from bonas.search.bayesian import bayes
from bonas.search.checks import check_search
from bonas.search.model_warnings import warn_about_model
from bonas.search.objectives import direction_sign, split_outcome
from bonas.search.progress import progress_bar
from bonas.search.result import Evaluation, Result, best_of, make_result
from bonas.search.search import AskInfo, Observation, Search
from bonas.search.stepped_search import SteppedSearch
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
    """Minimize objective(config) over a space.

    Ctrl-C stops the search and returns the result so far.

    Args:
        objective: A Python function of a configuration that returns a number, (value, cost) or
            (value, cost, variance of the noise of the value). The default cost is the time in
            seconds; the noise is for a search with `known_noise=True`.
        space: The space to search.
        trials: The number of evaluations.
        seed: The random seed of the search, an integer from 0 to 2^63 - 1.
        search: Default: `bonas.bayes(space)`. The points of a batch are evaluated one after the
            other; `trials` must be a multiple of the points per ask.
        catch: Exceptions that count as a failed evaluation, as values that are not finite do;
            others are raised.
        direction: "minimize", or "maximize" to find the largest value.
        progress: Whether to show a progress bar.
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
    """Return an observation whose arrays have the dtype of x (d,).

    A value too large for that dtype, such as 1e300 in float32, becomes NaN, which a search treats
    as a failure.
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
