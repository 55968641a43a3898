"""Acquisitions that modify a score by a penalty, the cost, or the probability of success."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, ArrayLike, PRNGKeyArray

from bonas.acquire.acquisition import Acquisition, ClosedForm, Context, as_acquisition
from bonas.acquire.closed_form import ei, log_pi, pi
from bonas.acquire.log_improvement import log_ei
from bonas.acquire.maximize import Score
from bonas.data import standardize
from bonas.gp import matern52
from bonas.spaces import Space
from bonas.surrogates import Surrogate
from bonas.surrogates import gp as gp_surrogate
from bonas.traced_settings import Setting, as_setting, setting_value


@dataclass(frozen=True)
class PenalizedAcquisition(Acquisition):
    """An acquisition minus a penalty."""

    base: Acquisition
    penalty: Callable[[Array], Array]
    weight: Setting

    def init(self, capacity: int, d: int) -> Any:
        return self.base.init(capacity, d)

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        base, memory = self.base.score(key, context, memory)
        weight = setting_value(self.weight)
        return lambda x: base(x) - weight * jax.vmap(self.penalty)(x), memory

    def adapt(self, space: Space) -> "PenalizedAcquisition":
        return replace(self, base=self.base.adapt(space))


def penalize(
    base: Acquisition | ClosedForm,
    penalty: Callable[[Array], Array],
    *,
    weight: ArrayLike = 1.0,
) -> Acquisition:
    """Create an acquisition that subtracts ``weight * penalty(u)`` from the score of another.

    Use it, for example, to prefer small networks. With log-EI and the logarithm of a network's
    size, a weight of 1 maximizes the expected improvement per parameter.

    Args:
        base: An acquisition with a score.
        penalty: A function from one point u (d,) of the unit cube to a number.
        weight: Factor of the penalty.
    """
    return PenalizedAcquisition(
        as_acquisition(base), penalty, as_setting("weight", weight)
    )


@dataclass(frozen=True)
class _WithModel(Acquisition):
    """An acquisition that modifies a score with its own model and keeps the model's state."""

    base: Acquisition
    model: Surrogate

    def init(self, capacity: int, d: int) -> Any:
        return self.base.init(capacity, d), self.model.init(capacity, d, 1)

    def adapt(self, space: Space) -> "_WithModel":
        return replace(self, base=self.base.adapt(space), model=self.model.adapt(space))


@dataclass(frozen=True)
class PerSecond(_WithModel):
    """Expected improvement per unit of cost."""

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        base_key, fit_key = jax.random.split(key)
        base, base_memory = self.base.score(base_key, context, memory[0])
        known = context.data.mask & (context.cost > 0.0)[:, None]
        logs = jnp.log(jnp.where(known[:, 0], context.cost, 1.0))[:, None]
        costs = context.data._replace(y=logs, mask=known, noise=None)
        scaled, _, scale = standardize(costs)
        fitted, _ = self.model.fit(fit_key, scaled, memory[1])

        def per_cost(x: Array) -> Array:
            # the mean of the logarithms would add the same number to every score
            return base(x) - scale * self.model.predict(fitted, x).mean.mean(axis=0)

        return per_cost, (base_memory, fitted)


def per_second(
    base: Acquisition | ClosedForm = log_ei, *, model: Surrogate | None = None
) -> Acquisition:
    """Create expected improvement per second (Snoek, Larochelle & Adams 2012, Section 3.2).

    The score is base − E log cost(u), up to a constant. The cost of an evaluation, in any unit, is
    `Observation.cost`.

    Args:
        base: An acquisition on a logarithmic scale, such as `log_ei`.
        model: The surrogate of the logarithm of the cost (default: `surrogates.gp()`).
    """
    return PerSecond(_log_scaled(base, "per_second"), model or gp_surrogate())


@dataclass(frozen=True)
class Feasible(_WithModel):
    """An acquisition plus the log-probability that the evaluation succeeds."""

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        base_key, fit_key = jax.random.split(key)
        base, base_memory = self.base.score(base_key, context, memory[0])
        failed = context.failed[:, None]
        done = (context.data.mask[:, 0] & ~context.pending | context.failed)[:, None]
        y = jnp.where(failed, -1.0, 1.0)
        labels = context.data._replace(y=y, mask=done, noise=None)
        fitted, _ = self.model.fit(fit_key, labels, memory[1])

        def total(x: Array) -> Array:
            mean, std = self.model.predict(fitted, x)
            return base(x) + jnp.where(failed.any(), log_pi(-mean, std, 0.0), 0.0)

        return total, (base_memory, fitted)


def feasible(
    base: Acquisition | ClosedForm = log_ei, *, model: Surrogate | None = None
) -> Acquisition:
    """Create an acquisition that adds the log-probability of success to the score of another.

    The probability is learned from failed and successful evaluations: a separate model is fitted to
    successes as 1 and failures as −1, and the probability is that of a positive latent value
    (least-squares classification, Rasmussen & Williams 2006, Section 6.5). Nothing is added before
    the first failure.

    Args:
        base: An acquisition on a logarithmic scale, such as `log_ei`.
        model: The surrogate of the labels. The default is a Matérn 5/2 GP whose priors expect whole
            regions to fail; with short length scales it would not learn from neighboring points.
    """
    labels = model or gp_surrogate(matern52(_region_prior), noise=_LABEL_NOISE)
    return Feasible(_log_scaled(base, "feasible"), labels)


# Variance of the labels around the latent function, at the border of a region of failures.
_LABEL_NOISE = dist.LogNormal(math.log(0.05), 0.5)


def _region_prior(d: int) -> dict[str, dist.Distribution]:
    """Return a prior with length scales near half the diagonal of the unit cube."""
    return {
        "variance": dist.LogNormal(0.0, 0.5),
        "lengthscale": dist.LogNormal(math.log(0.5) + 0.5 * math.log(d), 0.25).expand(
            [d]
        ),
    }


def _log_scaled(base: Acquisition | ClosedForm, name: str) -> Acquisition:
    if base is ei or base is pi:
        raise ValueError(
            f"{name} adds a logarithm to the score; expected log_ei or log_pi; got {base.__name__}"
        )
    return as_acquisition(base)
