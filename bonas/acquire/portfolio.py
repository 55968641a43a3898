"""Acquisitions that choose among several points: top-two expected improvement and GP-Hedge."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, PRNGKeyArray

from bonas.acquire.acquisition import Acquisition, ClosedForm, Context, as_acquisition
from bonas.acquire.closed_form import lcb, log_pi
from bonas.acquire.log_improvement import log_ei
from bonas.acquire.maximize import Score, Selection
from bonas.linalg import safe_sqrt
from bonas.spaces import Space
from bonas.traced_settings import Setting, as_setting, setting_value


@dataclass(frozen=True)
class TopTwo(Acquisition):
    """Top-two expected improvement."""

    base: Acquisition
    beta: Setting

    def init(self, capacity: int, d: int) -> Any:
        return self.base.init(capacity, d)

    def select(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Selection, Any]:
        first_key, coin_key, second_key = jax.random.split(key, 3)
        first, memory = self.base.select(first_key, context, memory)
        second = context.maximize(second_key, improvement_over(context, first.x))
        keep = jax.random.bernoulli(coin_key, setting_value(self.beta))
        return jax.tree.map(lambda a, b: jnp.where(keep, a, b), first, second), memory

    def adapt(self, space: Space) -> "TopTwo":
        return replace(self, base=self.base.adapt(space))


def top_two(
    base: Acquisition | ClosedForm = log_ei, *, beta: ArrayLike = 0.5
) -> Acquisition:
    """Create the top-two expected improvement (Qin, Klabjan & Russo 2017).

    With probability beta it selects the point that the base acquisition selects, otherwise the
    point with the highest expected improvement over that one. For minimization, this improvement is
    E max(f(first) − f(x), 0) = s h((mean_first − mean_x)/s), where s² is the variance of
    f(x) − f(first) and h(z) = φ(z) + zΦ(z).

    Args:
        base: The acquisition that selects the first point.
        beta: Probability of the first point, from 0 to 1.
    """
    chance = as_setting("beta", beta)
    if isinstance(chance, float) and not 0.0 <= chance <= 1.0:
        raise ValueError(f"beta must be a probability between 0 and 1; got {beta}")
    return TopTwo(as_acquisition(base), chance)


def improvement_over(context: Context, first: Float[Array, " d"]) -> Score:
    """Return the score log E max(f(first) − f(x), 0) of points x, given the point `first` (d,)."""
    first_mean, first_std = context.predict(first[None])

    def score(x: Array) -> Array:
        mean, std = context.predict(x)
        covariance = context.model.covariance(context.fantasy_state, x, first[None])[
            :, :, 0
        ]
        return log_ei(
            mean - first_mean, safe_sqrt(std**2 + first_std**2 - 2.0 * covariance), 0.0
        )

    return score


class HedgeMemory(NamedTuple):
    """The memory of GP-Hedge between asks."""

    gains: Float[Array, " k"]  # sums of −posterior mean at the nominees of each member
    nominees: Float[Array, "k d"]  # points nominated at the previous ask
    started: Bool[Array, ""]  # whether there was a previous ask
    members: Any  # the memories of the k members


@dataclass(frozen=True)
class Hedge(Acquisition):
    """The GP-Hedge portfolio of acquisitions."""

    members: tuple[Acquisition, ...]
    eta: Setting

    def init(self, capacity: int, d: int) -> HedgeMemory:
        k = len(self.members)
        memories = tuple(member.init(capacity, d) for member in self.members)
        return HedgeMemory(
            jnp.zeros(k), jnp.zeros((k, d)), jnp.asarray(False), memories
        )

    def select(
        self, key: PRNGKeyArray, context: Context, memory: HedgeMemory
    ) -> tuple[Selection, HedgeMemory]:
        draw_key, *keys = jax.random.split(key, len(self.members) + 1)
        prediction = context.model.predict(context.model_state, memory.nominees)
        reward = -prediction.mean.mean(axis=0)
        # gains are kept forever, and so would NaN be
        counted = memory.started & jnp.isfinite(reward)
        gains = memory.gains + jnp.where(counted, reward, 0.0)
        selections = []
        memories = []
        for member, member_key, kept in zip(
            self.members, keys, memory.members, strict=True
        ):
            selection, later = member.select(member_key, context, kept)
            selections.append(selection)
            memories.append(later)
        stacked: Selection = jax.tree.map(
            lambda *leaves: jnp.stack(leaves), *selections
        )
        chosen = jax.random.categorical(draw_key, setting_value(self.eta) * gains)
        later_memory = HedgeMemory(gains, stacked.x, jnp.asarray(True), tuple(memories))
        return jax.tree.map(lambda leaf: leaf[chosen], stacked), later_memory

    def adapt(self, space: Space) -> "Hedge":
        return replace(
            self, members=tuple(member.adapt(space) for member in self.members)
        )


def hedge(*members: Acquisition | ClosedForm, eta: ArrayLike = 1.0) -> Acquisition:
    """Create the portfolio GP-Hedge, which draws among the nominees of several acquisitions.

    Hoffman, Brochu & de Freitas 2011, Algorithm 1. Each member nominates a point, and one of them
    is drawn with probability proportional to exp(eta · gain). At the next ask, −(posterior mean)
    at its nominee, whether evaluated or not, is added to the gain of each member. An ask needs one
    maximization per member.

    Args:
        *members: Acquisitions or closed forms (default: log_ei, log_pi and lcb).
        eta: The preference for members with high gains; 0 draws uniformly.
    """
    chosen = members or (log_ei, log_pi, lcb)
    acquisitions = tuple(as_acquisition(member) for member in chosen)
    return Hedge(acquisitions, as_setting("eta", eta))
