"""Collect the evaluations of a run whose state has none, such as a study or a random search."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from bonas.search.observations import (
    Observations,
    add_observation,
    empty_observations,
)
from bonas.search.search import Observation


def read_trials(trials: Sequence[Any], sign: float) -> Observations:
    """Return the evaluations of the finished trials of a study."""
    finished = [trial for trial in trials if trial.finished]
    if not finished:
        raise ValueError("expected a study with finished trials; got none")
    values = [math.nan if trial.value is None else trial.value for trial in finished]
    costs = [trial.cost or 0.0 for trial in finished]
    points = jnp.asarray([trial.u for trial in finished])
    losses = sign * jnp.asarray(values, points.dtype)
    found = collect(points, losses, jnp.asarray(costs, points.dtype))
    if all(trial.noise is None for trial in finished):
        return found
    noise = jnp.asarray([trial.noise or 0.0 for trial in finished], points.dtype)
    return found._replace(data=found.data._replace(noise=noise))


def collect(x: Array, losses: Array, cost: Array) -> Observations:
    """Return evaluations (n,) as observations; a loss that is not finite is a failure."""
    if losses.ndim != 1:
        raise ValueError("expected one run; got a batch of runs: use jax.vmap")

    def add(observations: Observations, row: Any) -> tuple[Observations, None]:
        x, y, cost = row
        return add_observation(observations, Observation(x, y, cost=cost)), None

    start = empty_observations(*x.shape)
    return jax.lax.scan(add, start, (x, losses, cost))[0]
