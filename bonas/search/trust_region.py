"""Bayesian optimization inside one trust region: TuRBO-1, Eriksson et al. 2019.

In many dimensions the variance of a global model is highest in its corners, which are too many to
evaluate. The next point is therefore chosen in a box around the best point. The box grows after
successes and shrinks after failures; once it is small, the search restarts.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, PRNGKeyArray

from bonas import gp as gaussian
from bonas.acquire import (
    Acquisition,
    ClosedForm,
    adapt_acquisition,
    believer,
    random_shift,
    sobol,
    thompson,
)
from bonas.search.argument_types import Output, OutputScale
from bonas.search.bayesian import (
    conclude_ask,
    design_point,
    impute_failures,
    make_context,
)
from bonas.search.checks import check_box, check_surrogate
from bonas.search.observations import (
    Observations,
    add_observation,
    add_pending,
    empty_observations,
    sequential_ask,
)
from bonas.search.output_scales import fit_scales, resolve_scales
from bonas.search.search import AskResult, Observation, Search
from bonas.search.trust_region_box import Box, integer_steps, side_ratios
from bonas.spaces import Space
from bonas.static_settings import check_counts
from bonas.surrogates import Surrogate, replicate
from bonas.surrogates import gp as gp_surrogate
from bonas.traced_settings import Setting, as_setting, setting_value

# Lengths of the box, and successes in a row that double it (Eriksson et al. 2019, Section 2).
FIRST_LENGTH = 0.8
MAX_LENGTH = 1.6
MIN_LENGTH = 0.5**7
SUCCESSES = 3
_MIN_FAILURES = 4  # the box is halved after max(d, 4) consecutive failures
_MIN_GAIN = 1e-3  # a success improves the best value by at least this fraction of it
# The paper's code has up to 5000, whose joint draw takes a hundred times as long.
_MAX_CANDIDATES = 1000


class TrustState(NamedTuple):
    """The state of a trust-region search."""

    observations: Observations  # includes earlier runs
    design: Array  # (k, d) initial points of this run
    model: Any  # (scales, ...) states of the surrogate, one for each output scale
    memory: Any  # state of the acquisition
    length: Array  # () side of the box, before length scales stretch it
    successes: Array  # () int: in a row
    failures: Array  # () int: in a row
    run_start: Array  # () int: first row of this run
    counted: Array  # (n,) bool: rows counted as success or failure, and initial ones
    restarts: Array  # () int


@dataclass(frozen=True)
class TrustRegion(Search):
    """Bayesian optimization inside a trust region; see `turbo`."""

    space: Space
    surrogate: Surrogate
    acquisition: Acquisition
    initial: int
    batch: int
    candidates: int
    scales: tuple[OutputScale, ...]
    length: Setting = FIRST_LENGTH
    min_length: Setting = MIN_LENGTH
    max_length: Setting = MAX_LENGTH

    def init(self, key: PRNGKeyArray, capacity: int) -> TrustState:
        d = self.space.dim
        zero = jnp.zeros((), int)
        return TrustState(
            observations=empty_observations(capacity, d),
            design=self.space.spread(random_shift(key, sobol(self.initial, d))),
            model=replicate(self.surrogate.init(capacity, d, 1), len(self.scales)),
            memory=self.acquisition.init(capacity, d),
            length=jnp.asarray(setting_value(self.length)),
            successes=zero,
            failures=zero,
            run_start=zero,
            counted=jnp.zeros(capacity, bool),
            restarts=zero,
        )

    def ask(self, key: PRNGKeyArray, state: TrustState) -> AskResult:
        return sequential_ask(self._ask_one, key, state, batch=self.batch)

    def tell(self, state: TrustState, observation: Observation) -> TrustState:
        self.space.check(observation.x, "an observation's x", exists=True)
        return state._replace(
            observations=add_observation(state.observations, observation)
        )

    def _ask_one(self, key: PRNGKeyArray, state: TrustState) -> AskResult:
        key, restart_key = jax.random.split(key)
        patience = math.ceil(max(_MIN_FAILURES, self.space.dim) / self.batch)
        most = setting_value(self.max_length)
        state = update_length(state, self.initial, patience, most)
        state = jax.lax.cond(
            state.length < setting_value(self.min_length),
            self._restart,
            lambda key, state: state,
            restart_key,
            state,
        )
        data = _current_run(state).data
        ready = (data.size - state.run_start >= self.initial) & data.mask.any()
        x, state, info = jax.lax.cond(
            ready, self._model_point, self._design_point, key, state
        )
        return x, state._replace(observations=add_pending(state.observations, x)), info

    def _restart(self, key: PRNGKeyArray, state: TrustState) -> TrustState:
        """Return an initial state that keeps the observations, which the new run ignores."""
        fresh = self.init(key, len(state.counted))
        return fresh._replace(
            observations=state.observations,
            counted=state.counted,
            run_start=state.observations.data.size.astype(state.run_start.dtype),
            restarts=state.restarts + 1,
            memory=state.memory,
        )

    def _design_point(self, key: PRNGKeyArray, state: TrustState) -> AskResult:
        row = state.observations.data.size - state.run_start
        x, info = design_point(state.design, row, self.space.sample(key, 1)[0])
        return x, state, info

    def _model_point(self, key: PRNGKeyArray, state: TrustState) -> AskResult:
        fit_key, pending_key, pick_key = jax.random.split(key, 3)
        model = self.surrogate
        current = _current_run(state)
        fit = fit_scales(
            self.scales,
            model,
            fit_key,
            data=impute_failures(current),
            states=state.model,
        )
        means = model.predict(fit.state, fit.data.x).mean.mean(axis=0)
        observed_means = jnp.where(current.data.mask[:, 0], means, jnp.inf)
        center = fit.data.x[jnp.argmin(observed_means)]
        sides = state.length * side_ratios(fit.state, self.space.dim)
        half = jnp.maximum(0.5 * sides, integer_steps(self.space))
        grid = sobol(self.candidates, self.space.dim)
        context = make_context(
            model,
            fit,
            current,
            maximizer=Box(self.space, center, half, grid),
            pending=believer,
            key=pending_key,
        )
        chosen, memory = self.acquisition.select(pick_key, context, state.memory)
        random = self.space.sample(key, 1)[0]
        exhausted = state.observations.data.size >= self.space.size
        x, info = conclude_ask(chosen, fit, context, random, exhausted=exhausted)
        return x, state._replace(model=fit.states, memory=memory), info


def turbo(
    space: Space,
    *,
    surrogate: Surrogate | None = None,
    acquisition: Acquisition | ClosedForm | None = None,
    initial: int | None = None,
    batch: int = 1,
    candidates: int | None = None,
    output: Output = "plain",
    length: ArrayLike = FIRST_LENGTH,
    min_length: ArrayLike = MIN_LENGTH,
    max_length: ArrayLike = MAX_LENGTH,
) -> TrustRegion:
    """Search a space of numbers by Bayesian optimization in one trust region (TuRBO-1).

    Eriksson et al. 2019. The trust region is a box around the point of the run with the lowest
    posterior mean. Three successes in a row double its length, and max(4, d) / batch failures in a
    row halve it. The evaluations of one ask count as one success or one failure. Once the length is
    below `min_length`, the search restarts with a new design and an empty model. The box always
    contains the neighboring values of an integer.

    Args:
        space: The space to search, without options and conditions.
        surrogate: A model of the standardized values of the run. Default: a GP with a Matérn 5/2
            kernel. If a GP has one length scale per column, they stretch the box at constant
            volume.
        acquisition: The acquisition. Default: `acquire.thompson()`, one joint draw over the
            candidates, as in the paper. A closed form such as `bonas.log_ei` is evaluated at the
            candidates.
        initial: The number of points at the start of each run, from a shifted Sobol sequence.
            Default: 2 d.
        batch: The number of points per ask; pending points take the posterior mean.
        candidates: The number of points of the box that are compared. Default: 100 d, at most 1000.
            Each coordinate of a candidate differs from the center with probability min(1, 20/d).
        output: The scale on which values are modeled; see `bonas.bayes`.
        length: The initial length of the box. The range of a column has length 1.
        min_length: The length below which the search restarts.
        max_length: The largest length.
    """
    check_box(space, "a trust region is a box")
    if initial is None:
        initial = 2 * space.dim
    if candidates is None:
        candidates = min(100 * space.dim, _MAX_CANDIDATES)
    check_counts(initial=initial, batch=batch, candidates=candidates)
    lengths = _check_lengths(length, min_length, max_length)
    model = gp_surrogate(gaussian.matern52()) if surrogate is None else surrogate
    check_surrogate(model)
    model = model.adapt(space)
    return TrustRegion(
        space=space,
        surrogate=model,
        acquisition=adapt_acquisition(
            thompson() if acquisition is None else acquisition, space
        ),
        initial=initial,
        batch=batch,
        candidates=candidates,
        scales=resolve_scales(output, model),
        **lengths,
    )


def _check_lengths(
    length: ArrayLike, min_length: ArrayLike, max_length: ArrayLike
) -> dict[str, Setting]:
    """Return the lengths of the box as settings; raise a ValueError if they are not in order."""
    given = {"min_length": min_length, "length": length, "max_length": max_length}
    lengths = {name: as_setting(name, value) for name, value in given.items()}
    known = [value for value in lengths.values() if isinstance(value, float)]
    if not (sorted(known) == known and all(value > 0.0 for value in known)):
        raise ValueError(
            "expected 0 < min_length <= length <= max_length; "
            f"got {min_length}, {length} and {max_length}"
        )
    return lengths


def update_length(
    state: TrustState, initial: int, patience: int, max_length: ArrayLike = MAX_LENGTH
) -> TrustState:
    """Adjust the length of the box to the observations since the last ask.

    The new observations are one success if any value is better than all earlier ones of the run,
    else one failure. Initial points are not counted.
    """
    observations = state.observations
    data = observations.data
    rows = jnp.arange(len(state.counted))
    done = (data.mask[:, 0] | observations.failed) & (rows >= state.run_start)
    new = done & ~state.counted & (rows >= state.run_start + initial)
    values = jnp.where(data.mask[:, 0], data.y[:, 0], jnp.inf)
    best = jnp.min(jnp.where(done & ~new, values, jnp.inf))
    found = jnp.min(jnp.where(new, values, jnp.inf))
    gained = best - found > _MIN_GAIN * jnp.abs(best)
    better = jnp.where(jnp.isfinite(best), gained, jnp.isfinite(found))
    successes = jnp.where(
        new.any(), jnp.where(better, state.successes + 1, 0), state.successes
    )
    failures = jnp.where(
        new.any(), jnp.where(better, 0, state.failures + 1), state.failures
    )
    double = successes == SUCCESSES
    halve = failures == patience
    factor = jnp.where(double, 2.0, jnp.where(halve, 0.5, 1.0))
    return state._replace(
        length=jnp.minimum(factor * state.length, max_length),
        successes=jnp.where(double, 0, successes),
        failures=jnp.where(halve, 0, failures),
        counted=state.counted | done,
    )


def _current_run(state: TrustState) -> Observations:
    """Return the observations with all rows before this run masked."""
    observations = state.observations
    current = jnp.arange(len(state.counted)) >= state.run_start
    data = observations.data
    return observations._replace(
        data=data._replace(mask=data.mask & current[:, None]),
        pending=observations.pending & current,
        failed=observations.failed & current,
    )
