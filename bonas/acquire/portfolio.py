"""Acquisitions that look at several answers before they give one: top-two expected improvement, GP-Hedge."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.acquire.acquisition import Acquisition, ClosedForm, Outlook, adapted, as_acquisition, pick
from bonas.acquire.analytic import lcb, log_ei, log_pi
from bonas.acquire.maximise import Pick
from bonas.linalg import safe_sqrt
from bonas.spaces import Space


@cache
def top_two(base: Acquisition | ClosedForm = log_ei, *, beta: float = 0.5) -> Acquisition:
    """base's point with probability beta, else the point with the largest expected improvement over that one.

    Qin, Klabjan & Russo 2017 (T-F3), for minimisation: E max(f(first) − f(x), 0) = s h((mean_first − mean_x)/s), s² the
    variance of f(x) − f(first).
    """
    if not 0.0 <= beta <= 1.0:
        raise ValueError(f"beta is a probability; got {beta}")
    leader = as_acquisition(base)

    def choose(key, outlook: Outlook, memory):
        first_key, coin_key, second_key = jax.random.split(key, 3)
        first, memory = pick(leader, first_key, outlook, memory)
        challenger = outlook.climb(second_key, improvement_over(outlook, first.x))
        keep = jax.random.bernoulli(coin_key, beta)
        return jax.tree.map(lambda a, b: jnp.where(keep, a, b), first, challenger), memory

    return Acquisition(pick=choose, init=leader.init, adapt=lambda space: top_two(adapted(leader, space), beta=beta))


def improvement_over(outlook: Outlook, first: Array):
    """The score x (m, d) -> (m,): log E max(f(first) − f(x), 0)."""
    level, spread = outlook.predict(first[None])

    def score(x):
        mean, std = outlook.predict(x)
        shared = outlook.model.covariance(outlook.imagined, x, first[None])[:, :, 0]
        return log_ei(mean - level, safe_sqrt(std**2 + spread**2 - 2.0 * shared), 0.0)

    return score


class HedgeMemory(NamedTuple):
    """How each member has done."""

    gains: Array  # (k,) sums of −posterior mean at what it nominated
    nominees: Array  # (k, d) of the last ask
    asked: Array  # () bool: there was one
    members: Any


@cache
def hedge(*members: Acquisition | ClosedForm, eta: float = 1.0) -> Acquisition:
    """GP-Hedge: every member nominates a point, and one is drawn with probability ∝ exp(eta · gain) (H-F1).

    Hoffman, Brochu & de Freitas 2011, Algorithm 1: a member gains −(posterior mean) at its nominee, asked or not, once the
    next ask has seen one more evaluation. Without arguments the members are log_ei, log_pi and lcb. An ask takes one
    maximisation a member.
    """
    crew = tuple(as_acquisition(member) for member in (members or (log_ei, log_pi, lcb)))

    def init(capacity: int, d: int) -> HedgeMemory:
        k = len(crew)
        return HedgeMemory(
            jnp.zeros(k), jnp.zeros((k, d)), jnp.asarray(False), tuple(member.init(capacity, d) for member in crew)
        )

    def choose(key, outlook: Outlook, memory: HedgeMemory):
        draw_key, *keys = jax.random.split(key, len(crew) + 1)
        reward = -outlook.model.predict(outlook.known, memory.nominees).mean.mean(axis=0)
        gains = memory.gains + jnp.where(memory.asked, reward, 0.0)
        picks, memories = zip(
            *(pick(m, k, outlook, kept) for m, k, kept in zip(crew, keys, memory.members, strict=True)), strict=True
        )
        every: Pick = jax.tree.map(lambda *leaves: jnp.stack(leaves), *picks)
        chosen = jax.random.categorical(draw_key, eta * gains)
        return jax.tree.map(lambda leaf: leaf[chosen], every), HedgeMemory(gains, every.x, jnp.asarray(True), memories)

    def adapt(space: Space) -> Acquisition:
        return hedge(*(adapted(member, space) for member in crew), eta=eta)

    return Acquisition(pick=choose, init=init, adapt=adapt)
