"""Several points at once: what to imagine at points whose values are not known yet, and acquisitions made for batches."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from bonas.acquire.acquisition import Acquisition, ClosedForm, Outlook
from bonas.acquire.analytic import ei, log_ei
from bonas.data import Dataset
from bonas.linalg import factorise, safe_sqrt, solve_lower
from bonas.surrogates import Surrogate

# (key, model, its state, data) -> values (n,), of which those at pending rows are used
Imagine = Callable[[Array, Surrogate, Any, Dataset], Array]


def believer(key: Array, model: Surrogate, known: Any, data: Dataset) -> Array:
    """The posterior mean: Kriging believer, Ginsbourger et al. 2008 (H-F2)."""
    return model.predict(known, data.x).mean.mean(axis=0)


def _lie(key: Array, model: Surrogate, known: Any, data: Dataset, *, lie: str) -> Array:
    observed = data.mask[:, 0]
    y = data.y[:, 0]
    said = {
        "best": jnp.min(jnp.where(observed, y, jnp.inf)),
        "mean": jnp.sum(jnp.where(observed, y, 0.0)) / jnp.maximum(observed.sum(), 1),
        "worst": jnp.max(jnp.where(observed, y, -jnp.inf)),
    }[lie]
    return jnp.full_like(y, said)


@cache
def constant_liar(lie: str = "best") -> Imagine:
    """The best, mean or worst value observed: constant liar, Ginsbourger et al. 2008 (H-F2). "worst" spreads most."""
    if lie not in ("best", "mean", "worst"):
        raise ValueError(f"a lie is best, mean or worst; got {lie!r}")
    return partial(_lie, lie=lie)


def dreamer(key: Array, model: Surrogate, known: Any, data: Dataset) -> Array:
    """One joint draw from the posterior: a believer that knows it may be wrong."""
    return model.sample(key, known, data.x, 1)[0]


def q_ei(mean: Array, cov: Array, best: Array, normals: Array) -> Array:
    """Monte-Carlo expected improvement () of evaluating q points at once: E max(best − min f, 0), f ~ N(mean (q,), cov (q, q)).

    Ginsbourger et al. 2008 (H-F2). normals (k, q) are standard normal draws: the same ones for every set of points make
    the estimates comparable, and differentiable.
    """
    lower, _ = factorise(cov, jnp.ones(len(mean), bool))
    values = mean[None, :] + normals @ lower.T
    return jnp.maximum(best - values.min(axis=1), 0.0).mean()


@cache
def batch_ei(draws: int = 64) -> Acquisition:
    """log of the gain in q-EI by one more point beside those pending, over `draws` common draws of their values.

    q-EI of the pending points and x is q-EI of the pending alone plus E EI(x | f(pending), min(best, f(pending))): the
    inner expectation is in closed form, the outer one is over normal draws that all candidates share. Points of a batch
    are found one after the other. Without pending points this is log_ei.
    """

    def score(key, outlook: Outlook, memory):
        model, known, at, waiting = outlook.model, outlook.known, outlook.data.x, outlook.pending
        normals = jax.random.normal(key, (draws, len(at)), at.dtype)
        level, _ = model.predict(known, at)
        factors, _ = jax.vmap(lambda cov: factorise(jnp.where(_pairs(waiting), cov, jnp.eye(len(at))), waiting))(
            model.covariance(known, at, at)
        )
        values = level[:, None, :] + jnp.einsum("sij,kj->ski", factors, normals)
        lowest = jnp.min(jnp.where(waiting[None, None, :], values, jnp.inf), axis=2)
        best = jnp.minimum(outlook.best[:, None], lowest)  # (s, k)

        def total(x):
            mean, std = model.predict(known, x)
            cross = jnp.where(waiting[None, :, None], model.covariance(known, at, x), 0.0)
            white = jax.vmap(solve_lower)(factors, cross)  # (s, n, m)
            means = mean[:, None, :] + jnp.einsum("kn,snm->skm", normals, white)
            left = safe_sqrt(std**2 - jnp.sum(white**2, axis=1))
            return log_ei(means.reshape(-1, len(x)), jnp.repeat(left, draws, axis=0), best.reshape(-1))

        return total, memory

    return Acquisition(score)


def _pairs(mask: Array) -> Array:
    return mask[:, None] & mask[None, :]


@cache
def thompson() -> Acquisition:
    """The minimum of one joint draw over candidates: Thompson sampling; points of a batch are independent draws."""

    def choose(key, outlook: Outlook, memory):
        candidate_key, draw_key = jax.random.split(key)
        points = outlook.candidates(candidate_key)
        return outlook.choose(points, -outlook.model.sample(draw_key, outlook.imagined, points, 1)[0]), memory

    return Acquisition(pick=choose)


@cache
def under_sampled(base: ClosedForm = ei, *, draws: int = 10, repaired: bool = False) -> Acquisition:
    """base with mean and std estimated from a few joint draws, whose noise makes the points of a batch differ.

    Hutchinson 2019, Algorithm 2, with 50, 10 or 3 draws (H-A2b); as in his code the variance is divided by the number of
    draws, and pending points are skipped but teach nothing. Three draws then see a third of the variance too little and
    explore less. Repaired: divided by one less, and draws from the model that imagines the pending points.
    """
    if draws < 2:
        raise ValueError(f"a standard deviation needs at least 2 draws; got {draws}")

    def choose(key, outlook: Outlook, memory):
        candidate_key, draw_key = jax.random.split(key)
        points = outlook.candidates(candidate_key)
        state = outlook.imagined if repaired else outlook.known
        values = outlook.model.sample(draw_key, state, points, draws)
        mean, std = values.mean(axis=0), values.std(axis=0, ddof=1 if repaired else 0)
        return outlook.choose(points, base(mean[None], std[None], outlook.best.mean())), memory

    return Acquisition(pick=choose)
