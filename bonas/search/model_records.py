"""Record the state of the model after each ask."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from bonas.search.bayesian import Bayes, BayesState, impute_failures
from bonas.search.objectives import direction_sign
from bonas.search.run_posterior import RunPosterior, scale_all
from bonas.search.search import AskInfo
from bonas.surrogates import FitInfo, hyperparameters


@dataclass(frozen=True)
class ModelRecord:
    """A record of the model of a search; see `model_record`."""

    search: Bayes
    direction: str

    def __call__(self, state: BayesState, info: AskInfo) -> dict[str, Any]:
        search = self.search
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
        sign = jnp.asarray(direction_sign(self.direction), mean.dtype)
        posterior = RunPosterior(
            search, data, info.output, mean, std, fitted, sign, fit
        )
        evaluated = observations.data.mask[:, 0]
        means = model.predict(fitted, chosen.x).mean.mean(axis=0)
        best = jnp.argmin(jnp.where(evaluated, means, jnp.inf))
        averages = jax.tree.map(
            lambda leaf: leaf.mean(axis=0), hyperparameters(model, fitted)
        )
        any_evaluated = evaluated.any()
        return {
            "hyperparameters": averages,
            "log_density": fit.log_density,
            "incumbent": jnp.where(
                any_evaluated, posterior.values(means[best]), jnp.nan
            ),
            "incumbent_x": jnp.where(any_evaluated, chosen.x[best], jnp.nan),
        }


def model_record(search: Bayes, *, direction: str = "minimize") -> ModelRecord:
    """Return a recorder of the model of a Bayesian search, for `run(record=...)`.

    Every step records a dict with these entries, about the model given all values so far and with
    the hyperparameters of the step's fit. Before the first success, values are NaN.

    - `hyperparameters`: those of a Gaussian process, averaged over their samples, in nested dicts,
      such as `["kernel"]["lengthscale"]`; empty for other surrogates.
    - `log_density`: the log density of the hyperparameters and the standardized values; NaN for a
      surrogate without one.
    - `incumbent`: the lowest posterior mean at an evaluated point, in the units of the objective,
      and `incumbent_x` (d,), this point. They are less noisy than the best value.

    Args:
        search: The search that is run.
        direction: The direction of the run.
    """
    if not isinstance(search, Bayes):
        raise ValueError(
            "expected a Bayesian search, such as bonas.bayes(space); got "
            f"{type(search).__name__}, which has no model to record"
        )
    direction_sign(direction)
    return ModelRecord(search, direction)
