"""Bayesian optimization: fit a surrogate to the observations and maximize an acquisition."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PRNGKeyArray

from bonas.acquire import (
    Acquisition,
    ClosedForm,
    Context,
    Maximizer,
    PendingStrategy,
    Selection,
    as_acquisition,
    assume_values,
    believer,
    choose,
    enumeration,
    feasible,
    gradient_ascent,
    log_ei,
    random_shift,
    sobol,
)
from bonas.data import Dataset
from bonas.search.argument_types import Failures, Output, OutputScale
from bonas.search.checks import (
    check_prediction,
    check_settings,
    check_space,
    check_surrogate,
    initial_rows,
)
from bonas.search.observations import (
    Observations,
    add_observation,
    add_pending,
    empty_observations,
    sequential_ask,
)
from bonas.search.output_scales import (
    ScaledFit,
    fit_scales,
    log,
    resolve_scales,
)
from bonas.search.search import AskInfo, AskResult, Observation, Search, ask_info
from bonas.spaces import Space
from bonas.surrogates import Surrogate, replicate
from bonas.surrogates import gp as gp_surrogate

# Finite spaces with at most this many points are enumerated.
_ENUMERABLE = 2048
# Number of best points around which the maximizer places candidates.
_INCUMBENTS = 4


class BayesState(NamedTuple):
    """The state of a Bayesian optimization."""

    observations: Observations
    design: Array  # (k, d) initial points
    model: Any  # (scales, ...) states of the surrogate, one for each output scale
    memory: Any  # state of the acquisition


@dataclass(frozen=True)
class Bayes(Search):
    """Bayesian optimization; see `bayes`."""

    space: Space
    surrogate: Surrogate
    acquisition: Acquisition
    maximizer: Maximizer
    initial: int | tuple[tuple[float, ...], ...]
    batch: int
    pending: PendingStrategy
    scales: tuple[OutputScale, ...]
    failures: str
    repeats: bool = False

    def init(self, key: PRNGKeyArray, capacity: int) -> BayesState:
        d = self.space.dim
        if isinstance(self.initial, int):
            design = self.space.spread(random_shift(key, sobol(self.initial, d)))
        else:
            design = self.space.snap(jnp.asarray(self.initial))
        return BayesState(
            observations=empty_observations(capacity, d),
            design=design,
            model=replicate(self.surrogate.init(capacity, d, 1), len(self.scales)),
            memory=self.acquisition.init(capacity, d),
        )

    def ask(self, key: PRNGKeyArray, state: BayesState) -> AskResult:
        return sequential_ask(self._ask_one, key, state, batch=self.batch)

    def tell(self, state: BayesState, observation: Observation) -> BayesState:
        self.space.check(observation.x, "an observation's x", exists=True)
        ok = observation.ok & (observation.y > 0.0 if log in self.scales else True)
        observations = add_observation(state.observations, observation._replace(ok=ok))
        return state._replace(observations=observations)

    def _ask_one(self, key: PRNGKeyArray, state: BayesState) -> AskResult:
        data = state.observations.data
        ready = (data.size >= len(state.design)) & data.mask.any()
        x, state, info = jax.lax.cond(
            ready, self._model_point, self._design_point, key, state
        )
        return x, state._replace(observations=add_pending(state.observations, x)), info

    def _design_point(self, key: PRNGKeyArray, state: BayesState) -> AskResult:
        random = self.space.sample(key, 1)[0]
        x, info = design_point(state.design, state.observations.data.size, random)
        return x, state, info

    def _model_point(self, key: PRNGKeyArray, state: BayesState) -> AskResult:
        fit_key, pending_key, pick_key = jax.random.split(key, 3)
        observations = state.observations
        data = (
            impute_failures(observations)
            if self.failures == "worst"
            else observations.data
        )
        fit = fit_scales(
            self.scales, self.surrogate, fit_key, data=data, states=state.model
        )
        context = make_context(
            self.surrogate,
            fit,
            observations,
            maximizer=self.maximizer,
            pending=self.pending,
            key=pending_key,
            repeats=self.repeats,
        )
        chosen, memory = self.acquisition.select(pick_key, context, state.memory)
        random = self.space.sample(key, 1)[0]
        used = observations.pending.sum() if self.repeats else observations.data.size
        exhausted = used >= self.space.size
        x, info = conclude_ask(chosen, fit, context, random, exhausted=exhausted)
        return x, state._replace(model=fit.states, memory=memory), info


def bayes(
    space: Space,
    *,
    surrogate: Surrogate | None = None,
    acquisition: Acquisition | ClosedForm = log_ei,
    maximizer: Maximizer | None = None,
    initial: int | ArrayLike = 5,
    batch: int = 1,
    pending: PendingStrategy = believer,
    output: Output | None = None,
    failures: Failures = "worst",
    repeats: bool = False,
    known_noise: bool = False,
) -> Bayes:
    """Search a space by Bayesian optimization.

    After the initial points, every ask fits the surrogate to all observations and returns the point
    with the highest acquisition.

    Args:
        space: The space to search.
        surrogate: A model of the standardized values. Default: `surrogates.gp()`, a Gaussian
            process with maximum a posteriori hyperparameters.
        acquisition: An Acquisition, or a function of mean (s, m), std (s, m) and best (s, 1) that
            is averaged over hyperparameter samples. `best` is the smallest posterior mean at the
            points so far, which noise does not lower.
        maximizer: The optimizer of the acquisition. Default: `acquire.enumeration` in a finite
            space of up to 2048 points, else `acquire.gradient_ascent`.
        initial: The number of initial points, from a shifted Sobol sequence, or the points
            themselves (k, d), with 0 in inactive columns.
        batch: The number of points per ask.
        pending: The strategy that assumes values at pending points: `acquire.believer`,
            `acquire.constant_liar()` or `acquire.posterior_sample`.
        output: The scale on which values are modeled: "plain", "log" (for positive values), "tails"
            (large values compressed), a function as in `bonas.search.output_scales`, or a tuple
            of these, of which every ask uses the most probable. Default: plain and tails for a
            surrogate with evidence, such as a Gaussian process, else plain.
        failures: "worst" imputes the worst observed value at failed points; "model" learns where
            evaluations fail.
        repeats: Whether evaluated points, including failed ones, may be proposed again, as for
            noisy objectives on finite spaces. Pending points are never repeated. On continuous
            parameters, the search proposes nearby points rather than the same.
        known_noise: Whether the variance of the noise is known for each observation, as in
            `Observation(x, y, noise=variance)`. It is added to the noise of the model, which
            describes the rest, such as `surrogates.gp(noise=0.0)` if there is none. An observation
            without a variance is an error; pass 0.0 if it has no noise.

    Returns:
        A search for `bonas.run`, `bonas.run_many`, `bonas.minimize` or `bonas.Study`.
    """
    check_space(space)
    design = initial if isinstance(initial, int) else initial_rows(space, initial)
    model = gp_surrogate() if surrogate is None else surrogate
    check_surrogate(model, known_noise)
    model = model.adapt(space)
    scored = (
        feasible(acquisition) if failures == "model" else as_acquisition(acquisition)
    )
    if maximizer is None:
        maximizer = (
            enumeration(space) if space.size <= _ENUMERABLE else gradient_ascent(space)
        )
    check_settings(design, batch, scored, maximizer, pending, failures)
    kind = Bayes
    if known_noise:
        from bonas.search.known_noise import KnownNoiseBayes as kind
    return kind(
        space=space,
        surrogate=model,
        acquisition=scored.adapt(space),
        maximizer=maximizer,
        initial=design,
        batch=batch,
        pending=pending,
        scales=resolve_scales(output, model),
        failures=failures,
        repeats=repeats,
    )


def design_point(design: Array, row: Array, random: Array) -> tuple[Array, AskInfo]:
    """Return a row of the design, or a random point if all points of the design have failed."""
    k = len(design)
    x = jnp.where(row < k, design[jnp.minimum(row, k - 1)], random)
    return x, ask_info(x, random=True, fallback=jnp.where(row < k, 0, 1))


def make_context(
    model: Surrogate,
    fit: ScaledFit,
    observations: Observations,
    *,
    maximizer: Maximizer,
    pending: PendingStrategy,
    key: PRNGKeyArray,
    repeats: bool = False,
) -> Context:
    """Return the context that an acquisition receives: the fit, the incumbent and the maximizer."""
    data = fit.data
    check_prediction(jax.eval_shape(model.predict, fit.state, data.x), len(data.x))

    def assume_pending() -> Any:
        values = pending(key, model, fit.state, data)
        return model.update(
            assume_values(data, observations.pending, values), fit.state
        )

    fantasy = jax.lax.cond(
        observations.pending.any(), assume_pending, lambda: fit.state
    )
    valid = data.mask[:, 0] | observations.pending
    means = model.predict(fantasy, data.x).mean
    finite = (jnp.isfinite(means) | ~valid[None, :]).all()
    means = jnp.where(valid[None, :], means, jnp.inf)
    goodness, rows = jax.lax.top_k(-means.mean(axis=0), min(_INCUMBENTS, len(valid)))
    around = data.x[jnp.where(jnp.isfinite(goodness), rows, rows[0])]
    used = observations.pending if repeats else jnp.arange(len(valid)) < data.size
    return Context(
        model=model,
        model_state=fit.state,
        fantasy_state=fantasy,
        finite=finite,
        best=means.min(axis=1),
        data=data,
        pending=observations.pending,
        failed=observations.failed,
        cost=observations.cost,
        maximize=lambda key, score: maximizer.maximize(
            key, score, around, data.x, used
        ),
        candidates=lambda key: maximizer.candidates(key, around),
        choose=lambda points, scores: choose(points, scores, data.x, used),
    )


def conclude_ask(
    chosen: Selection,
    fit: ScaledFit,
    context: Context,
    random: Array,
    *,
    exhausted: ArrayLike,
) -> tuple[Array, AskInfo]:
    """Return the selected point and its report; the point is random if the model is not finite."""
    finite = context.finite & ~jnp.isnan(chosen.score)
    x = jnp.where(finite, chosen.x, random)
    return x, ask_info(
        x,
        acquisition=jnp.where(finite, chosen.score, -jnp.inf),
        flat=chosen.flat & finite,
        jitter=fit.info.jitter,
        converged=fit.info.converged,
        duplicates=chosen.duplicates,
        exhausted=exhausted,
        random=~finite,
        fallback=jnp.where(finite, jnp.where(fit.info.finite, 0, 2), 4),
        output=fit.scale,
    )


def impute_failures(observations: Observations) -> Dataset:
    """Return the data with the worst observed value at failed points, which the search avoids."""
    data = observations.data
    failed = observations.failed[:, None]
    worst = jnp.max(jnp.where(data.mask, data.y, -jnp.inf))
    return data._replace(y=jnp.where(failed, worst, data.y), mask=data.mask | failed)
