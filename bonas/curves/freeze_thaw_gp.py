"""Freeze-thaw: learning curves that decay toward asymptotes with a Gaussian-process prior.

Swersky, Snoek & Adams 2014, "Freeze-Thaw Bayesian Optimization".
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from bonas import gp
from bonas.curves.curve_model import CurveModel, PartialCurves, fit_parameters
from bonas.data import Dataset, clean, empty, standardize
from bonas.gp import Kernel, Posterior, exact, hyperposterior, joint_predictions
from bonas.infer import Target, target
from bonas.linalg import factorize, mask_covariance
from bonas.surrogates import FitInfo

# Smallest noise, relative to the variance of all values. With less noise, the covariance of a curve
# with many checkpoints is singular in floating-point arithmetic.
_LEAST_NOISE = 1e-8


class FreezeThawState(NamedTuple):
    """State of a freeze-thaw model: parameters, and the posterior of the asymptotes."""

    z: Any  # unconstrained parameters
    params: Any  # constrained parameters
    asymptotes: Posterior
    level: Array  # () subtracted from every value
    scale: Array  # () divisor of every value
    times: Array  # (c,) share of the whole training at each checkpoint


class CurveSummary(NamedTuple):
    """A curve y = 1 f + N(mean, cov), summarized as one observation of its asymptote f."""

    value: Array  # () observed value of f
    noise: Array  # () variance of that observation
    rest: Array  # () log p(y | f) − log N(value; f, noise), which does not depend on f


@dataclass(frozen=True)
class FreezeThaw(CurveModel):
    """Freeze-thaw model of learning curves; see `curves.freeze_thaw`."""

    kernel: Kernel
    steps: int

    def init(
        self,
        capacity: int,
        d: int,
        times: Float[Array, " c"],
    ) -> FreezeThawState:
        """Return a state without data, with parameters at the middle of the prior."""
        data = empty(capacity, d, len(times))
        z = self.hyperposterior(data, times).start
        # start the kernel where `gp.hyperposterior` does, which avoids saddle points
        z["kernel"] = hyperposterior(self.kernel, data).start["kernel"]
        level = jnp.zeros((), data.y.dtype)
        scale = jnp.ones((), data.y.dtype)
        return self._condition(
            z,
            data,
            level,
            scale,
            times,
        )

    def fit(
        self,
        key: PRNGKeyArray,
        data: Dataset,
        state: FreezeThawState,
    ) -> tuple[FreezeThawState, FitInfo]:
        """Find the most probable parameters, starting from the last ones."""
        data, level, scale = standardize(clean(data))
        z, info = fit_parameters(
            key,
            self.hyperposterior,
            data,
            state.z,
            self.steps,
            state.times,
        )
        fitted = self._condition(
            z,
            data,
            level,
            scale,
            state.times,
        )
        return fitted, info._replace(jitter=fitted.asymptotes.jitter)

    def sample(
        self,
        key: PRNGKeyArray,
        state: FreezeThawState,
        x: Float[Array, "m d"],
        observed: PartialCurves,
        k: int,
    ) -> Float[Array, "k m c"]:
        """Draw k continuations of the curves at x, jointly and without noise."""
        asymptote_key, decay_key = jax.random.split(key)
        asymptotes = joint_predictions.sample(asymptote_key, state.asymptotes, x, k)
        normal = jax.random.normal(decay_key, (len(x), len(state.times), k), x.dtype)
        y = jnp.where(observed.mask, (observed.y - state.level) / state.scale, 0.0)
        continue_each = jax.vmap(partial(_continue_curve, state.params, state.times))
        curves = continue_each(asymptotes.T, y, observed.mask, normal)
        return state.level + state.scale * jnp.moveaxis(curves, 2, 0)

    def hyperposterior(self, data: Dataset, times: Float[Array, " c"]) -> Target:
        """Return the posterior of all parameters given standardized curves."""
        c = data.y.shape[1]
        prior = {
            "kernel": self.kernel.prior(data.x.shape[1]),
            "height": dist.LogNormal(-1.0, 1.0),
            "alpha": dist.LogNormal(0.0, 1.0),
            "beta": dist.LogNormal(-1.0, 1.0),
            "mean": dist.Normal(0.0, 1.0).expand([c]),
            "noise": dist.LogNormal(-6.0, 2.0),
        }
        return target(prior, lambda params: self.log_evidence(params, data, times))

    def log_evidence(
        self,
        params: Any,
        data: Dataset,
        times: Float[Array, " c"],
    ) -> Float[Array, ""]:
        """Return log p(y | x, params): the evidence of the summaries, plus their remainders."""
        summaries, rows = _summarize(params, data, times)
        kernel_params = params["kernel"]
        evidence = exact.log_evidence(
            self.kernel, kernel_params, rows, noise=summaries.noise
        )
        return evidence + summaries.rest.sum()

    def _condition(
        self,
        z: Any,
        data: Dataset,
        level: Array,
        scale: Array,
        times: Array,
    ) -> FreezeThawState:
        params = self.hyperposterior(data, times).constrain(z)
        summaries, rows = _summarize(params, data, times)
        asymptotes = exact.condition(
            self.kernel, params["kernel"], rows, noise=summaries.noise
        )
        return FreezeThawState(
            z,
            params,
            asymptotes,
            level,
            scale,
            times,
        )


def freeze_thaw(kernel: Kernel | None = None, *, steps: int = 10) -> FreezeThaw:
    """Model learning curves as decays toward asymptotes that follow a Gaussian process.

    The model is y(x, t) = f(x) + m(t) + decay(t) + noise (Swersky, Snoek & Adams 2014). The
    asymptotes f are a Gaussian process, the decay of each network has the covariance
    `decay_covariance`, and m(t), one number per checkpoint, is common to all networks; it is an
    addition to the paper. Given f the curves are independent, so each reduces exactly to one
    observation of its asymptote, and the model costs as much as a Gaussian process with one point
    per network.

    Args:
        kernel: The kernel of the asymptotes. Default: Matérn 5/2.
        steps: The number of density evaluations per fit, starting from the last optimum.
    """
    return FreezeThaw(kernel or gp.matern52(), steps)


def decay_covariance(
    t: Float[Array, " c"],
    other: Float[Array, " k"],
    alpha: Array,
    beta: Array,
) -> Float[Array, "c k"]:
    """Return β^α / (t + t' + β)^α, the covariance of exponential decays mixed over their rates.

    Swersky, Snoek & Adams 2014, eq. 6.
    """
    return (beta / (t[:, None] + other[None, :] + beta)) ** alpha


def summarize_curve(
    cov: Float[Array, "c c"],
    residual: Float[Array, " c"],
    mask: Bool[Array, " c"],
) -> CurveSummary:
    """Summarize the observed part of a curve as one observation of its asymptote.

    With W = cov⁻¹ over the observed checkpoints, noise = 1 / 1ᵀW1 and value = noise 1ᵀWy: Swersky,
    Snoek & Adams 2014, eqs. 15–18, where these are Λ⁻¹ and Λ⁻¹γ. A curve without observations gives
    the value 0 with variance 1, to be masked.

    Args:
        cov: Covariance of the curve, noise included.
        residual: The curve minus its mean.
        mask: Observed checkpoints.
    """
    lower = jnp.linalg.cholesky(mask_covariance(cov, mask, jnp.zeros((), cov.dtype)))
    columns = jnp.stack(
        [mask.astype(cov.dtype), jnp.where(mask, residual, 0.0)], axis=1
    )
    one, white = jax.scipy.linalg.solve_triangular(lower, columns, lower=True).T
    observed = mask.any()
    precision = jnp.where(observed, one @ one, 1.0)
    value = (one @ white) / precision
    log_2pi = jnp.log(2.0 * jnp.pi).astype(cov.dtype)
    log_determinant = jnp.log(jnp.diagonal(lower)).sum()
    log_curve = -0.5 * (white @ white + mask.sum() * log_2pi) - log_determinant
    log_value = 0.5 * (jnp.log(precision) - log_2pi - precision * value**2)
    return CurveSummary(
        value, 1.0 / precision, jnp.where(observed, log_curve - log_value, 0.0)
    )


def _summarize(
    params: Any,
    data: Dataset,
    times: Float[Array, " c"],
) -> tuple[CurveSummary, Dataset]:
    """Return the summary of each curve, leaves (n,), and the summaries as data."""
    decay, noise = _curve_covariance(params, times)
    cov = decay + noise * jnp.eye(len(times), dtype=decay.dtype)
    residuals = data.y - params["mean"][None, :]
    found = jax.vmap(summarize_curve, (None, 0, 0))(cov, residuals, data.mask)
    observed = data.mask.any(axis=1, keepdims=True)
    return found, Dataset(data.x, found.value[:, None], observed, data.size)


def _curve_covariance(
    params: Any, times: Float[Array, " c"]
) -> tuple[Float[Array, "c c"], Float[Array, ""]]:
    """Return the covariance of the decay of one network, and the variance of the noise."""
    decay = decay_covariance(times, times, params["alpha"], params["beta"])
    return params["height"] * decay, params["noise"] + _LEAST_NOISE


def _continue_curve(
    params: Any,
    times: Float[Array, " c"],
    asymptotes: Float[Array, " k"],
    y: Float[Array, " c"],
    mask: Bool[Array, " c"],
    normal: Float[Array, "c k"],
) -> Float[Array, "c k"]:
    """Draw curves of one network given its asymptotes and the observed part of its curve."""
    decay, noise = _curve_covariance(params, times)
    mean = asymptotes[None, :] + params["mean"][:, None]
    pair = mask[:, None] & mask[None, :]
    diagonal = jnp.diag(jnp.where(mask, noise, 1.0))
    lower = jnp.linalg.cholesky(jnp.where(pair, decay, 0.0) + diagonal)
    solve = partial(jax.scipy.linalg.solve_triangular, lower, lower=True)
    white = solve(jnp.where(mask[:, None], decay, 0.0))
    residual = solve(jnp.where(mask[:, None], y[:, None] - mean, 0.0))
    conditional = (
        decay - white.T @ white + _LEAST_NOISE * jnp.eye(len(times), dtype=decay.dtype)
    )
    root, _ = factorize(conditional, jnp.ones(len(times), bool))
    return mean + white.T @ residual + root @ normal
