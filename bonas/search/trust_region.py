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
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from bonas import gp as gaussian
from bonas.acquire import (
    Acquisition,
    ClosedForm,
    Maximizer,
    Score,
    Selection,
    adapt_acquisition,
    believer,
    choose,
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
from bonas.spaces import Space
from bonas.static_settings import check_counts
from bonas.surrogates import GPState, Surrogate, replicate
from bonas.surrogates import gp as gp_surrogate

# Lengths of the box, and successes in a row that double it (Eriksson et al. 2019, Section 2).
FIRST_LENGTH = 0.8
MAX_LENGTH = 1.6
MIN_LENGTH = 0.5**7
SUCCESSES = 3
_MIN_FAILURES = 4  # the box is halved after max(d, 4) consecutive failures
_MIN_GAIN = 1e-3  # a success improves the best value by at least this fraction of it
# The average number of coordinates of the best point that a candidate changes.
_CHANGED = 20.0
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

    def init(self, key: PRNGKeyArray, capacity: int) -> TrustState:
        d = self.space.dim
        zero = jnp.zeros((), int)
        return TrustState(
            observations=empty_observations(capacity, d),
            design=self.space.spread(random_shift(key, sobol(self.initial, d))),
            model=replicate(self.surrogate.init(capacity, d, 1), len(self.scales)),
            memory=self.acquisition.init(capacity, d),
            length=jnp.asarray(FIRST_LENGTH),
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
        state = update_length(state, self.initial, patience)
        state = jax.lax.cond(
            state.length < MIN_LENGTH,
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
        half = jnp.maximum(0.5 * sides, _integer_steps(self.space))
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
) -> TrustRegion:
    """Search a space of numbers inside one trust region: TuRBO-1, Eriksson et al. 2019.

    The length of the box starts at 0.8. Three successes in a row double it, up to 1.6;
    max(4, d) / batch failures in a row halve it. The evaluations of one ask count as one success or
    one failure. Below 2⁻⁷ the search restarts with a new design and an empty model. The center is
    the point of the run with the smallest posterior mean. The box reaches at least to the
    neighboring values of an integer.

    Args:
        space: The space to search, without options and conditions.
        surrogate: A model of the standardized values of the run. Default: a GP with a Matérn 5/2
            kernel. If a GP has one length scale per column, they stretch the box at constant
            volume.
        acquisition: Default: `acquire.thompson()`, one joint draw over the candidates, as in the
            paper. A closed form such as `bonas.log_ei` is evaluated at the candidates.
        initial: Points of a shifted Sobol sequence at the start of each run. Default: 2 d.
        batch: Points per ask; pending points take the posterior mean.
        candidates: Points of the box that are compared. Default: 100 d, at most 1000. Each is the
            center with each coordinate changed with probability min(1, 20/d).
        output: The scale on which values are modeled; see `bonas.bayes`.
    """
    check_box(space, "a trust region is a box")
    if initial is None:
        initial = 2 * space.dim
    if candidates is None:
        candidates = min(100 * space.dim, _MAX_CANDIDATES)
    check_counts(initial=initial, batch=batch, candidates=candidates)
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
    )


def update_length(state: TrustState, initial: int, patience: int) -> TrustState:
    """Adjust the length of the box to the observations since the last ask.

    They are one success if any value is better than all earlier ones of the run, else one failure.
    Initial points are not counted.
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
        length=jnp.minimum(factor * state.length, MAX_LENGTH),
        successes=jnp.where(double, 0, successes),
        failures=jnp.where(halve, 0, failures),
        counted=state.counted | done,
    )


@dataclass(frozen=True, eq=False)
class Box(Maximizer):
    """Maximize over candidates in a box; used within one trace, because the box is traced."""

    space: Space
    center: Array  # (d,)
    half: Array  # (d,) half the sides
    grid: np.ndarray  # (m, d) Sobol points

    def maximize(
        self, key: PRNGKeyArray, score: Score, around: Array, tried: Array, valid: Array
    ) -> Selection:
        points = self.candidates(key, around)
        scores = jnp.nan_to_num(score(points), nan=jnp.nan, neginf=-jnp.inf)
        return choose(points, scores, tried, valid)

    def candidates(self, key: PRNGKeyArray, around: Array) -> Array:
        return sample_box(key, self.space, self.center, self.half, grid=self.grid)


def sample_box(
    key: PRNGKeyArray,
    space: Space,
    center: Float[Array, " d"],
    half: Float[Array, " d"],
    *,
    grid: np.ndarray,
) -> Float[Array, "m d"]:
    """Return copies of the center with some coordinates moved within center ± half.

    Each coordinate moves with probability min(1, 20/d), and at least one does, to its value in the
    shifted grid (m, d) scaled to the box. The box is clipped to the unit cube.
    """
    m, d = grid.shape
    sobol_key, which_key, one_key = jax.random.split(key, 3)
    low = jnp.clip(center - half, 0.0, 1.0)
    high = jnp.clip(center + half, 0.0, 1.0)
    anywhere = low[None, :] + (high - low)[None, :] * random_shift(sobol_key, grid)
    moved = jax.random.uniform(which_key, (m, d)) < min(1.0, _CHANGED / d)
    one = jax.random.randint(one_key, (m, 1), 0, d) == jnp.arange(d)[None, :]
    moved = moved | (one & ~moved.any(axis=1, keepdims=True))
    return space.snap(jnp.where(moved, anywhere, center[None, :]))


def side_ratios(fitted: Any, d: int) -> Float[Array, " d"]:
    """Return the relative side lengths of the trust region: length scales / their geometric mean.

    They are 1 unless the surrogate is a GP with one length scale per column.
    """
    params = fitted.posterior.params if isinstance(fitted, GPState) else {}
    scales = params.get("lengthscale")
    if scales is None or scales.shape[1:] != (d,):
        return jnp.ones(d)
    logs = jnp.log(scales).mean(axis=0)
    return jnp.exp(logs - logs.mean())


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


def _integer_steps(space: Space) -> np.ndarray:
    """Return the largest step (d,) between integers as a fraction of the range; 0 for reals."""
    steps = np.zeros(space.dim)
    with jax.ensure_compile_time_eval():
        for i, parameter in enumerate(space.parameters.values()):
            if 1 < parameter.size < math.inf:
                # On a logarithmic scale the first step is the largest.
                steps[i] = float(parameter.unit(parameter.low + 1.0))
    return steps
