"""What was tried and what came of it, from any kind of run: a History, what `minimise` returns, or a Study."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.search.minimise import Result
from bonas.search.types import History
from bonas.spaces import Space


def best_so_far(run: Any) -> np.ndarray:
    """The best value after each evaluation (seeds, steps), infinite before the first; arrays are returned as they are.

    Of a Study that maximises it is the greatest.
    """
    if isinstance(run, History):
        return np.atleast_2d(np.asarray(run.best, float))
    if _is_loop(run):
        sign, values = _sign(run), _sign(run) * _values(run)
        return sign * np.minimum.accumulate(np.where(np.isfinite(values), values, np.inf))[None, :]
    if isinstance(run, Sequence) and run and all(_is_loop(each) for each in run):
        lengths = sorted({len(_values(each)) for each in run})
        if len(lengths) > 1:
            raise ValueError(f"runs of one method have as many evaluations; these have {lengths[0]} to {lengths[-1]}")
        return np.concatenate([best_so_far(each) for each in run])
    return np.asarray(run, float)


def rows_and_values(run: Any, space: Space) -> tuple[Array, np.ndarray]:
    """The points of one run as rows of the unit cube (steps, d), and their values (steps,), NaN where they failed.

    Those of a Study that maximises have their sign changed: less is better.
    """
    if isinstance(run, History):
        return jnp.asarray(run.x), np.asarray(run.y, float)
    if not _is_loop(run):
        raise ValueError(f"expected a History, a Study, or what minimise returns; got a {type(run).__name__}")
    if isinstance(run, Result):
        rows = [space.encode(each.config) for each in run.evaluations]
    else:
        rows = [jnp.asarray(trial.u) for trial in _ended(run)]
    return jnp.stack(rows), _sign(run) * _values(run)


def _is_loop(run: Any) -> bool:
    """Whether a run went through Python: a Result, or a Study, which is in a room above this one."""
    return isinstance(run, Result) or (hasattr(run, "trials") and hasattr(run, "direction"))


def _ended(study: Any) -> list[Any]:
    """The trials of a Study that were told or have failed, in the order in which they ended."""
    return sorted((trial for trial in study.trials if trial.ended is not None), key=lambda trial: trial.ended)


def _values(run: Any) -> np.ndarray:
    if isinstance(run, Result):
        return np.array([each.value for each in run.evaluations], float)
    return np.array([np.nan if trial.value is None else trial.value for trial in _ended(run)], float)


def _sign(run: Any) -> float:
    """What a value is multiplied by to be minimised."""
    return -1.0 if getattr(run, "direction", "minimise") == "maximise" else 1.0
