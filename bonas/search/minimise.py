"""Minimise any Python function: a search in a host loop, with a progress bar."""

import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bonas.search.bayes import bayes
from bonas.search.door import check_search
from bonas.search.types import AskInfo, Search, Trial
from bonas.spaces import Space


class Evaluation(NamedTuple):
    """One call of the objective."""

    config: dict[str, Any]
    value: float  # NaN where it failed
    seconds: float
    error: str  # why it failed; empty where it did not
    info: AskInfo  # how the point was found


class Result(NamedTuple):
    """What a search of a Python function found."""

    config: dict[str, Any] | None  # the best; None where every evaluation failed
    value: float  # its value; infinite where every evaluation failed
    evaluations: list[Evaluation]  # in the order they were made
    state: Any  # the search's, to ask or tell more

    def __str__(self) -> str:
        failed = sum(bool(evaluation.error) for evaluation in self.evaluations)
        count = f"{len(self.evaluations)} evaluations" + (f", {failed} of them failed" if failed else "")
        return f"{self.value:g} at {self.config} after {count}"


def minimise(
    objective: Callable[[dict[str, Any]], float],
    space: Space,
    *,
    trials: int = 50,
    seed: int = 0,
    search: Search | None = None,
    catch: tuple[type[Exception], ...] = (),
    progress: bool = True,
) -> Result:
    """The configuration with the least objective(config) found in `trials` evaluations.

    search: how, by default `bonas.bayes(space)`; its asks are for one point at a time.
    catch: exceptions that make an evaluation a failed one, as NaN and infinite values do; all others are raised.
    Ctrl-C ends the search and returns what it has found. The seconds an evaluation takes are its Trial.cost.
    """
    if not isinstance(space, Space):
        raise ValueError(f"expected the space to search, and a search as search=; got a {type(space).__name__}")
    if trials < 1:
        raise ValueError(f"trials must be at least 1; got {trials}")
    chosen = bayes(space) if search is None else search
    check_search(chosen)
    if chosen.space != space:
        raise ValueError("the search was made for another space")
    init_key, run_key = jax.random.split(jax.random.key(seed))
    ask, tell, evaluations = jax.jit(chosen.ask), jax.jit(chosen.tell), []
    with _bar(trials, progress) as show:
        try:
            state = jax.jit(chosen.init, static_argnums=1)(init_key, trials)
            for i in range(trials):
                x, state, info = ask(jax.random.split(jax.random.fold_in(run_key, i))[0], state)
                if len(x) != 1:
                    raise ValueError(f"minimise evaluates one point at a time; this search asks for {len(x)}")
                evaluation = _evaluate(objective, space.decode(x[0]), info, catch)
                evaluations.append(evaluation)
                state = tell(state, _trial(x[0], evaluation))
                show(best_of(evaluations))
        except KeyboardInterrupt:
            if not evaluations:
                raise
    best = best_of(evaluations)
    return Result(best.config if best else None, best.value if best else float("inf"), evaluations, state)


def best_of(evaluations: list[Evaluation]) -> Evaluation | None:
    """The first of the best that did not fail."""
    return min((each for each in evaluations if not each.error), key=lambda each: each.value, default=None)


def _evaluate(objective, config, info, catch) -> Evaluation:
    began, value, error = time.perf_counter(), float("nan"), ""
    try:
        value = _number(objective(dict(config)))
    except catch as problem:
        error = f"{type(problem).__name__}: {problem}"
    if not error and not abs(value) < float("inf"):
        value, error = float("nan"), f"the value was {value}"
    return Evaluation(config, value, time.perf_counter() - began, error, info)


def _number(value: Any) -> float:
    try:
        return float(value)
    except TypeError as problem:
        raise TypeError(f"the objective must return a number; it returned {value!r}") from problem


def _trial(x, evaluation: Evaluation) -> Trial:
    return Trial(
        x=x,
        y=jnp.asarray(evaluation.value, x.dtype),
        step=jnp.asarray(0),
        cost=jnp.asarray(evaluation.seconds, x.dtype),
        ok=jnp.asarray(not evaluation.error),
    )


@contextmanager
def _bar(trials: int, progress: bool):
    """show(best): one more evaluation is done, and this is the best so far."""
    if not progress:
        yield lambda best: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[news]}"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn()) as bar:
        task = bar.add_task("", total=trials, news="compiling")
        yield lambda best: bar.update(task, advance=1, news=f"best {best.value:.6g}" if best else "all failed")
