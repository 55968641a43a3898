"""A surrogate of the final value of learning curves, based on GPAR."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.curves.gpar_covariance import last_covariance
from bonas.curves.gpar_draws import check_draws
from bonas.curves.gpar_layers import GPARPosterior
from bonas.curves.gpar_model import GPAR, gpar
from bonas.data import Dataset, empty
from bonas.gp import Noise, Prediction
from bonas.half_capacity import call_on_half
from bonas.infer import Info, Target, all_finite, choose, maximize, slice_sample
from bonas.spaces import Space
from bonas.static_settings import check_counts
from bonas.surrogates import FitInfo, Surrogate

_METHODS = ("map", "slice")
# Sweeps of slice sampling that are discarded per fit.
_BURN = 2


class GPARState(NamedTuple):
    """State of `gpar_surrogate`: hyperparameter samples, and the conditioned model for each."""

    z: Any  # (s, ...) unconstrained hyperparameters
    scale: Array  # widths of slice sampling
    posterior: GPARPosterior  # (s, ...)


@dataclass(frozen=True)
class GPARSurrogate(Surrogate):
    """Surrogate of the last output of a GPAR; see `curves.gpar_surrogate`."""

    model: GPAR
    noise: Noise | None
    infer: str
    samples: int
    steps: int
    draws: int

    has_evidence = True

    @property
    def n_samples(self) -> int:
        """The number of hyperparameter samples."""
        return self.samples if self.infer == "slice" else 1

    def hyperposterior(self, data: Dataset) -> Target:
        """Return the posterior of the hyperparameters of all layers."""
        return self.model.hyperposterior(data, noise=self.noise)

    def init(
        self,
        capacity: int,
        d: int,
        p: int = 1,
    ) -> GPARState:
        """Return a state without data, with parameters at the middle of the prior."""
        data = empty(capacity, d, p)
        start = self.hyperposterior(data).start
        shape = (self.n_samples,)
        z = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, shape + leaf.shape), start)
        width = sum(leaf[0].size for leaf in jax.tree.leaves(z))
        return GPARState(z, jnp.ones(width), self._condition(z, data))

    def fit(
        self,
        key: PRNGKeyArray,
        data: Dataset,
        state: GPARState,
    ) -> tuple[GPARState, FitInfo]:
        """Infer the hyperparameters, starting from the last ones, and condition on the data."""
        last = jax.tree.map(lambda leaf: leaf[-1], state.z)
        z, info, scale = call_on_half(
            self._infer,
            data,
            key,
            last,
            state.scale,
        )
        finite = all_finite(z)
        z = choose(finite, z, state.z)
        fitted, report = self.refresh(data, GPARState(z, scale, state.posterior))
        is_map = self.infer == "map"
        converged = finite & jnp.where(is_map, info.accept.all(), ~info.diverging.any())
        report = report._replace(
            converged=converged & report.finite, finite=finite & report.finite
        )
        return fitted, report

    def update(self, data: Dataset, state: GPARState) -> GPARState:
        """Condition on other data under the same hyperparameters."""
        return state._replace(posterior=self._condition(state.z, data))

    def refresh(self, data: Dataset, state: GPARState) -> tuple[GPARState, FitInfo]:
        """Condition on other data, and report the density under the same hyperparameters."""
        state = self.update(data, state)
        log_density = self._log_density(state.z, data, state.posterior)
        finite = jnp.isfinite(log_density)
        info = FitInfo(
            log_density=log_density,
            converged=finite,
            finite=finite,
            jitter=state.posterior.layers.jitter.max(),
        )
        return state, info

    def predict(self, state: GPARState, x: Float[Array, "m d"]) -> Prediction:
        """Predict the last output: mean and standard deviation (s, m)."""
        # A single output has no previous outputs to draw.
        draws = self.draws if state.posterior.noise.shape[1] > 1 else 2

        def predict(posterior: GPARPosterior) -> Prediction:
            return self.model.predict(posterior, x, draws=draws)

        each = jax.vmap(predict)(state.posterior)
        return Prediction(each.mean[:, :, -1], each.std[:, :, -1])

    def covariance(
        self,
        state: GPARState,
        x: Float[Array, "m d"],
        at: Float[Array, "k d"],
    ) -> Float[Array, "s m k"]:
        """Return the covariance of the last output between the points x and `at`."""

        def covariance(posterior: GPARPosterior) -> Float[Array, "m k"]:
            return last_covariance(
                self.model,
                posterior,
                x,
                at,
                draws=self.draws,
            )

        return jax.vmap(covariance)(state.posterior)

    def sample(
        self,
        key: PRNGKeyArray,
        state: GPARState,
        x: Float[Array, "m d"],
        k: int,
    ) -> Float[Array, "k m"]:
        """Draw the last output k times, from the hyperparameter samples in turn."""
        each = -(-k // self.n_samples)

        def sample(key: PRNGKeyArray, posterior: GPARPosterior) -> Float[Array, "n m"]:
            return self.model.sample(key, posterior, x, each)[:, :, -1]

        keys = jax.random.split(key, self.n_samples)
        drawn = jax.vmap(sample)(keys, state.posterior)
        return jnp.swapaxes(drawn, 0, 1).reshape(each * self.n_samples, len(x))[:k]

    def adapt(self, space: Space) -> "GPARSurrogate":
        """Return this model, or raise a ValueError if a parameter has more than two options."""
        for name, options in zip(space.names, space.categories, strict=True):
            if options > 2:
                raise ValueError(
                    f"parameter {name!r} is a Choice of {options} options without an order, but "
                    "this model treats every column as a number; use surrogates.gp()"
                )
        return self

    def _infer(
        self,
        data: Dataset,
        key: PRNGKeyArray,
        last: Any,
        scale: Float[Array, " z"],
    ) -> tuple[Any, Info, Array]:
        target = self.hyperposterior(data)
        if self.infer == "map":
            z, info = maximize(key, target.maximizing, last, steps=self.steps)
            return z, info, scale
        z, info = slice_sample(
            key,
            target.sampling,
            last,
            samples=self.samples,
            burn=_BURN,
            width=scale,
        )
        return z, info, info.scale

    def _condition(self, z: Any, data: Dataset) -> GPARPosterior:
        def condition(one: Any) -> GPARPosterior:
            return self.model.condition(self.hyperposterior(data).constrain(one), data)

        return jax.vmap(condition)(z)

    def _log_density(
        self,
        z: Any,
        data: Dataset,
        posterior: GPARPosterior,
    ) -> Float[Array, ""]:
        """Return the mean over samples of the log density of data and hyperparameters."""
        target = self.hyperposterior(data)
        each = jax.vmap(target.maximizing if self.infer == "map" else target.sampling)(
            z
        )
        # Convert the density from the units of the model to the units of the data.
        return each.mean() - (data.mask.sum(axis=0) * jnp.log(posterior.scale[0])).sum()


def gpar_surrogate(
    model: GPAR | None = None,
    *,
    noise: Noise | None = None,
    infer: Literal["map", "slice"] = "map",
    samples: int = 16,
    steps: int = 10,
    draws: int = 64,
) -> GPARSurrogate:
    """Model the final value of learning curves by the last output of a GPAR.

    The surrogate also learns from unfinished curves, but no output may be observed without the
    previous ones unless the model imputes. With a single output and the default model it is a
    Gaussian process with a squared-exponential kernel. Columns are treated as numbers: a Choice of
    more than two options is an error, and an inactive column is 0.

    Args:
        model: A GPAR made by `curves.gpar`, whose layers are fitted jointly. Default:
            `curves.gpar()`, Hutchinson's choice.
        noise: The prior of the noise variances. Default: that of `GPAR.prior`.
        infer: "map" (the most probable hyperparameters) or "slice" (slice sampling).
        samples: The number of hyperparameter samples with "slice".
        steps: The number of density evaluations per fit with "map", starting from the last optimum.
        draws: The number of drawn curves over which predictions and covariances are averaged; even.
    """
    if infer not in _METHODS:
        raise ValueError(f"infer must be one of {', '.join(_METHODS)}; got {infer!r}")
    check_counts(samples=samples, steps=steps)
    check_draws(draws)
    return GPARSurrogate(
        model or gpar(),
        noise,
        infer,
        samples,
        steps,
        draws,
    )
