"""Record the state of the model after each ask."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from bonas.search.argument_types import Direction
from bonas.search.bayesian import Bayes, BayesState, impute_failures
from bonas.search.objectives import direction_sign
from bonas.search.posterior_queries import lowest_mean
from bonas.search.run_posterior import RunPosterior, scale_all
from bonas.search.run_posterior import posterior as fit_posterior
from bonas.search.search import AskInfo
from bonas.surrogates import FitInfo, hyperparameters


@dataclass(frozen=True)
class ModelRecord:
    """Recorder of the model of a search; see `model_record`."""

    search: Bayes
    direction: Direction | None

    def with_direction(self, direction: Direction) -> "ModelRecord":
        """Return the recorder for a run in the given direction."""
        if self.direction not in (None, direction):
            raise ValueError(
                f'expected model_record(search, direction="{direction}"), the direction of the '
                f"run, or no direction; got {self.direction!r}"
            )
        return replace(self, direction=direction)

    def __call__(self, state: Any, info: AskInfo) -> dict[str, Any]:
        if self.direction is None:
            raise ValueError(
                "the direction of the run is unknown: pass model_record(search) to run(record=) "
                'itself, or pass model_record(search, direction="minimize") or "maximize" if '
                "another function calls it"
            )
        model = self.search.surrogate
        if isinstance(state, BayesState):
            posterior = _current_posterior(self.search, state, info, self.direction)
        else:
            posterior = fit_posterior(self.search, state, direction=self.direction)
        averages = jax.tree.map(
            lambda leaf: leaf.mean(axis=0), hyperparameters(model, posterior.state)
        )
        x, mean = lowest_mean(posterior)
        exists = jnp.isfinite(mean)
        return {
            "hyperparameters": averages,
            "log_density": posterior.info.log_density,
            "incumbent": jnp.where(exists, posterior.values(mean), jnp.nan),
            "incumbent_x": x,
        }


def model_record(search: Bayes, *, direction: Direction | None = None) -> ModelRecord:
    """Make a recorder of the model of a Bayesian search, for `run(record=...)`.

    It records a dict after every step. The entries describe the model conditioned on all values so
    far, with the hyperparameters of the step's fit. Before the first success, values are NaN.

    - `hyperparameters`: nested dicts, such as `["kernel"]["lengthscale"]`, averaged over the
      samples of a Gaussian process; empty for other surrogates.
    - `log_density`: the log density of the hyperparameters and the standardized values; NaN for a
      surrogate without one.
    - `incumbent`: the lowest posterior mean at an evaluated point, in the units of the objective
      (the highest if values are maximized). It is `History.recommended_value`.
    - `incumbent_x` (d,): the point with this mean, which the search recommends. It is
      `History.recommended`. Unlike the best value, it is not favored by noise.

    Args:
        search: The search that is run. If the run uses another search, such as random search, pass
            a Bayesian search of the same space: its model is fitted to all values at every step.
        direction: Default: the direction of the run. Required only if another function calls the
            recorder.
    """
    if not isinstance(search, Bayes):
        raise ValueError(
            "expected a Bayesian search, such as bonas.bayes(space); got "
            f"{type(search).__name__}, which has no model to record"
        )
    if direction is not None:
        direction_sign(direction)
    return ModelRecord(search, direction)


def _current_posterior(
    search: Bayes, state: BayesState, info: AskInfo, direction: Direction
) -> RunPosterior:
    """Condition the model on all values so far, with the hyperparameters of the last ask."""
    model = search.surrogate
    observations = state.observations
    data = observations.data
    if search.failures == "worst":
        data = impute_failures(observations)
    scaled, mean, std, _ = scale_all(search, data)
    chosen, mean, std, last = jax.tree.map(
        lambda leaf: leaf[info.output], (scaled, mean, std, state.model)
    )
    if model.has_evidence:
        fitted, fit = model.refresh(chosen, last)
    else:
        nothing = jnp.asarray(jnp.nan, mean.dtype)
        fitted = model.update(chosen, last)
        fit = FitInfo(nothing, jnp.asarray(True), jnp.asarray(True), nothing)
    return RunPosterior(
        search,
        data,
        info.output,
        mean,
        std,
        fitted,
        jnp.asarray(direction_sign(direction), mean.dtype),
        fit,
        observations.data.mask[:, 0],
    )
