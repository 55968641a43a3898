"""GPAR as a model of learning curves, with maximum a posteriori parameters."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Array, Float, PRNGKeyArray

from bonas.curves.curve_model import CurveModel, PartialCurves, fit_parameters
from bonas.curves.gpar_draws import draw_linear_curves, observed_inputs, scale_start
from bonas.curves.gpar_layers import GPARPosterior
from bonas.curves.gpar_model import GPAR, gpar
from bonas.data import Dataset, empty
from bonas.surrogates import FitInfo

# Expected share of the lead of a network over the mean that it keeps at the next checkpoint.
_PRIOR_SLOPE = 0.9


class AutoregressiveState(NamedTuple):
    """State of an autoregressive curve model: parameters, and the conditioned GPAR."""

    z: Any  # unconstrained parameters
    posterior: GPARPosterior


@dataclass(frozen=True)
class Autoregressive(CurveModel):
    """Curve model by a GPAR fitted jointly over all layers; see `curves.autoregressive`."""

    model: GPAR
    steps: int

    def init(
        self,
        capacity: int,
        d: int,
        times: Float[Array, " c"],
    ) -> AutoregressiveState:
        """Return a state without data, with parameters at the middle of the prior."""
        data = empty(capacity, d, len(times))
        target = self.model.hyperposterior(data)
        params = target.constrain(target.start)
        return AutoregressiveState(target.start, self.model.condition(params, data))

    def fit(
        self,
        key: PRNGKeyArray,
        data: Dataset,
        state: AutoregressiveState,
    ) -> tuple[AutoregressiveState, FitInfo]:
        """Fit the hyperparameters by MAP, starting from the previous ones."""
        z, info = fit_parameters(
            key,
            self.model.hyperposterior,
            data,
            state.z,
            self.steps,
        )
        params = self.model.hyperposterior(data).constrain(z)
        posterior = self.model.condition(params, data)
        info = info._replace(jitter=posterior.layers.jitter.max())
        return AutoregressiveState(z, posterior), info

    def sample(
        self,
        key: PRNGKeyArray,
        state: AutoregressiveState,
        x: Float[Array, "m d"],
        observed: PartialCurves,
        k: int,
    ) -> Float[Array, "k m c"]:
        """Draw k continuations of the curves at x, jointly and without noise."""
        posterior = state.posterior
        if self.model.nonlinear:
            return self.model.sample(
                key,
                posterior,
                x,
                k,
                observed,
            )
        start = scale_start(posterior, x, observed)
        start = start._replace(y=observed_inputs(self.model, posterior, start))
        latent = draw_linear_curves(
            key,
            self.model,
            posterior,
            start,
            k,
        ).latent
        return posterior.level[None, None, :] + posterior.scale[None, None, :] * latent


def autoregressive(model: GPAR | None = None, *, steps: int = 10) -> Autoregressive:
    """Model learning curves by an autoregressive Gaussian process (GPAR).

    The model uses the order of the checkpoints, not their times.

    Args:
        model: A GPAR made by `curves.gpar`. The default has a Matérn 5/2 kernel of the inputs, is
            linear in the previous output with a prior slope of 0.9 (`prior_slope`), and ties the
            length scales of its layers. Hutchinson's choice is `curves.gpar()`.
        steps: The number of density evaluations per fit, starting from the last optimum.
    """
    return Autoregressive(model or gpar(matern=True, prior_slope=_PRIOR_SLOPE), steps)
