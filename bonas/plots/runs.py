"""Read points and values from any kind of run: a History, a result of `minimize`, or a Study."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bonas.search import History, Result
from bonas.spaces import Space


def best_so_far(run: Any) -> np.ndarray:
    """Return the best value after each evaluation (seeds, steps).

    The best value is the minimum, or the maximum if values were maximized, and infinite before the
    first success.

    Args:
        run: A History, a result of `minimize`, a Study, a list of results or studies, or an array
            of best values, which is returned unchanged.
    """
    if isinstance(run, History):
        return np.atleast_2d(np.asarray(run.best, float))
    if _is_host_run(run):
        sign = _sign(run)
        values = sign * _values(run)
        return (
            sign
            * np.minimum.accumulate(np.where(np.isfinite(values), values, np.inf))[
                None, :
            ]
        )
    if isinstance(run, Sequence) and run and all(_is_host_run(each) for each in run):
        lengths = sorted({len(_values(each)) for each in run})
        if len(lengths) > 1:
            raise ValueError(
                "runs of one method must have the same number of evaluations; "
                f"got {lengths[0]} to {lengths[-1]}"
            )
        return np.concatenate([best_so_far(each) for each in run])
    return np.asarray(run, float)


def true_values(run: Any, truth: Callable[[Any], Any]) -> np.ndarray:
    """Return the noise-free values (seeds, steps) of the recommended points of a History.

    They are NaN before the first success.

    Args:
        run: A History made with `record=bonas.search.model_record(search)`.
        truth: The objective without noise, a traceable function of a point (d,).
    """
    if not isinstance(run, History):
        raise ValueError(
            "expected a History, which has recommended points; "
            f"got an object of type {type(run).__name__}"
        )
    rows = np.asarray(run.recommended)
    known = np.isfinite(rows).all(axis=-1)
    values = np.full(known.shape, np.nan)
    if known.any():
        # A point is usually recommended many times in a row.
        points, positions = np.unique(rows[known], axis=0, return_inverse=True)
        found = np.asarray(jax.lax.map(truth, jnp.asarray(points)), float)
        if found.shape != points.shape[:1]:
            raise ValueError(
                "truth must map a point (d,) to a number; "
                f"got values of shape {found.shape[1:]}"
            )
        values[known] = found[positions.reshape(-1)]
    return np.atleast_2d(values)


def points_and_values(
    run: Any, space: Space
) -> tuple[Float[Array, "*runs steps d"], np.ndarray]:
    """Return the points of a run in the unit cube, and their values to minimize.

    Values of failed evaluations are NaN, and values that were maximized are negated.

    Args:
        run: A History, a result of `minimize`, or a Study.
        space: The space of the run.
    """
    if isinstance(run, History):
        return jnp.asarray(run.x), np.asarray(run.losses, float)
    if not _is_host_run(run):
        raise ValueError(
            "expected a History, a Study, or the result of minimize; "
            f"got an object of type {type(run).__name__}"
        )
    if isinstance(run, Result):
        rows = [space.encode(each.config) for each in run.evaluations]
    else:
        rows = [jnp.asarray(trial.u) for trial in _finished_trials(run)]
    return jnp.stack(rows), _sign(run) * _values(run)


def is_maximized(runs: Any) -> bool:
    """Return whether runs, in any form that `best_so_far` accepts, maximize their objective."""
    if isinstance(runs, History):
        return runs.sign is not None and bool((np.asarray(runs.sign) < 0.0).any())
    if isinstance(runs, Sequence) and runs and _is_host_run(runs[0]):
        return is_maximized(runs[0])
    return _is_host_run(runs) and _sign(runs) < 0.0


def _is_host_run(run: Any) -> bool:
    """Return whether a run is a Result or a Study.

    A Study is recognized by its attributes: this package must not import `bonas.study`.
    """
    return isinstance(run, Result) or (
        hasattr(run, "trials") and hasattr(run, "direction")
    )


def _finished_trials(study: Any) -> list[Any]:
    """Return the complete and failed trials of a Study, ordered by end time."""
    finished = [trial for trial in study.trials if trial.end_time is not None]
    return sorted(finished, key=lambda trial: trial.end_time)


def _values(run: Any) -> np.ndarray:
    """Return the values (steps,) of a Result or a Study, with NaN for failed evaluations."""
    if isinstance(run, Result):
        return np.array([each.value for each in run.evaluations], float)
    values = [trial.value for trial in _finished_trials(run)]
    return np.array([np.nan if value is None else value for value in values], float)


def _sign(run: Any) -> float:
    """Return −1 for a Study that maximizes, else 1."""
    return -1.0 if getattr(run, "direction", "minimize") == "maximize" else 1.0
