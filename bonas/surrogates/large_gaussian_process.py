"""A Gaussian process for thousands of observations, by inducing points."""

from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset, empty
from bonas.gp import (
    Prediction,
    as_large,
    blend,
    condition_large_all,
    covariance_large,
    predict_large,
    resolve_noise,
    sample_large,
)
from bonas.infer import all_finite, choose, is_distribution
from bonas.static_settings import check_counts
from bonas.surrogates.gaussian_process import GaussianProcess, GPState, gp
from bonas.surrogates.row_subsets import choose_rows, select_rows
from bonas.surrogates.surrogate import FitInfo


@dataclass(frozen=True)
class LargeGP(GaussianProcess):
    """Gaussian process surrogate for thousands of observations; see `large_gp`."""

    rows: int = 512
    fitted: int = 512

    def fit(
        self, key: PRNGKeyArray, data: Dataset, state: GPState
    ) -> tuple[GPState, FitInfo]:
        if self._is_exact(data):
            return super().fit(key, data, state)
        last = jax.tree.map(lambda leaf: leaf[-1], state.z)
        few = select_rows(data, self.fitted)
        z, info = self._infer(few, key, last, state.scale)
        found = all_finite(z) & jnp.isfinite(info.log_density).all()
        z = choose(found, z, state.z)
        converged = info.accept.all() if self.infer == "map" else ~info.diverging.any()
        scale = info.scale if self.infer == "slice" else state.scale
        state, whole = self.refresh(data, GPState(z, scale, state.posterior))
        finite = found & whole.finite
        return state, whole._replace(converged=finite & converged, finite=finite)

    def refresh(self, data: Dataset, state: GPState) -> tuple[GPState, FitInfo]:
        """Condition on new data with the same hyperparameters.

        `FitInfo.log_density` is the log evidence of all rows plus the log prior.
        """
        if self._is_exact(data):
            return super().refresh(data, state)
        posterior = self._condition(state.z, data)
        target = self._target(empty(1, data.x.shape[1]))
        log_prior = target.maximizing if self.infer == "map" else target.sampling
        density = (jax.vmap(log_prior)(state.z) + posterior.log_evidence).mean()
        finite = jnp.isfinite(density)
        info = FitInfo(density, finite, finite, posterior.jitter.max())
        return state._replace(posterior=posterior), info

    def predict(self, state: GPState, x: Float[Array, "m d"]) -> Prediction:
        posterior: Any = state.posterior
        return jax.vmap(predict_large, (0, None))(posterior, x)

    def covariance(
        self, state: GPState, x: Float[Array, "m d"], at: Float[Array, "k d"]
    ) -> Float[Array, "s m k"]:
        posterior: Any = state.posterior
        return jax.vmap(covariance_large, (0, None, None))(posterior, x, at)

    def sample(
        self, key: PRNGKeyArray, state: GPState, x: Float[Array, "m d"], k: int
    ) -> Float[Array, "k m"]:
        s = len(state.posterior.alpha)
        each = -(-k // s)
        keys = jax.random.split(key, s)
        draws = jax.vmap(lambda key, one: sample_large(key, one, x, each))(
            keys, state.posterior
        )
        return jnp.swapaxes(draws, 0, 1).reshape(each * s, len(x))[:k]

    def _is_exact(self, data: Dataset) -> bool:
        return len(data.x) <= self.rows

    def _condition(self, z: Any, data: Dataset) -> Any:
        if self._is_exact(data):
            return jax.vmap(as_large)(super()._condition(z, data))
        noise = resolve_noise(self.noise)
        return condition_large_all(
            self.kernel or blend(),
            jax.vmap(self._target(data).constrain)(z),
            data,
            # A pending point is among the latest, so that its assumed value is fully used.
            choose_rows(data, self.rows),
            noise=0.0 if is_distribution(noise) else noise,
            mean=self.mean,
        )


def large_gp(
    model: GaussianProcess | None = None, *, rows: int = 512, fitted: int = 512
) -> LargeGP:
    """Model the objective by a Gaussian process that scales to thousands of observations.

    Up to a capacity of `rows`, inference is exact and equals that of `model`. Above it, `rows`
    observed points serve as inducing points (FITC, see `gp.large`), and the hyperparameters are
    inferred from `fitted` observations. The cost of an ask grows linearly with the number of
    observations; the memory of a state does not depend on it, apart from the data.

    Half of the inducing points are those with the lowest values, and half are the latest of the
    others. The observations for the hyperparameters are chosen in the same way.

    Args:
        model: The settings of the Gaussian process. Default: `gp()`.
        rows: The largest capacity with exact inference, and the number of inducing points.
        fitted: The number of observations from which hyperparameters are inferred.
    """
    check_counts(rows=rows, fitted=fitted)
    if rows < 8 or not 4 <= fitted <= rows:
        raise ValueError(
            "expected at least 8 rows, and at least 4 and at most `rows` fitted ones; got "
            f"rows={rows} and fitted={fitted}"
        )
    model = gp() if model is None else model
    if type(model) is not GaussianProcess:
        raise TypeError(
            "model must be a Gaussian process, as made by surrogates.gp(); got "
            f"{type(model).__name__}"
        )
    settings = {field.name: getattr(model, field.name) for field in fields(model)}
    return LargeGP(**settings, rows=rows, fitted=fitted)
