"""Bayesian optimisation: fit a surrogate to what is known, ask where its acquisition is highest."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas.acquire.analytic import log_ei
from bonas.acquire.maximise import Maximiser, enumerated, refined, shifted, sobol
from bonas.data import Dataset, append, empty, standardise
from bonas.search.types import AskInfo, Search, Trial, ask_info
from bonas.spaces import Space
from bonas.surrogates import Surrogate
from bonas.surrogates import gp as gp_surrogate

_FEW = 2048  # points of a finite space up to which all are scored
_AROUND = 4  # how many of the best points the maximiser looks around


class BayesState(NamedTuple):
    """What the next ask needs."""

    data: Dataset  # rows asked and told; masked while pending and where failed
    pending: Array  # (n,) bool
    failed: Array  # (n,) bool
    design: Array  # (k, d) the initial points
    model: Any  # the surrogate's state


def bayes(
    space: Space,
    *,
    surrogate: Surrogate | None = None,
    acquisition: Callable[[Array, Array, Array], Array] = log_ei,
    maximiser: Maximiser | None = None,
    initial: int | Array = 5,
    batch: int = 1,
) -> Search:
    """Bayesian optimisation of a space.

    surrogate: a model of the standardised values (default: a Matérn 5/2 GP by maximum a posteriori, with an arc embedding
        where parameters come and go).
    acquisition: scores (m,) from mean (s, m), std (s, m) and best (s,), averaged over hyperparameter samples.
    initial: how many points of a shifted Sobol sequence come first, or the points themselves (k, d).
    batch: points an ask. Those after the first, and every ask while others are pending, believe the surrogate's mean at
        pending points (Kriging believer; Ginsbourger et al. 2008).
    """
    model = surrogate or gp_surrogate(default_kernel(space))
    search_box = maximiser or (enumerated(space) if space.size <= _FEW else refined(space))
    given = None if isinstance(initial, int) else jnp.asarray(initial)
    if isinstance(initial, int) and initial < 1:
        raise ValueError(f"initial must be at least 1; got {initial}")
    k = len(given) if given is not None else int(initial)

    def init(key: Array, capacity: int) -> BayesState:
        design = space.snap(given) if given is not None else space.spread(shifted(key, sobol(k, space.dim)))
        nothing = jnp.zeros(capacity, bool)
        return BayesState(empty(capacity, space.dim), nothing, nothing, design, model.init(capacity, space.dim, 1))

    def suggest(key: Array, state: BayesState) -> tuple[Array, BayesState, AskInfo]:
        fit_key, pick_key = jax.random.split(key)
        scaled, _, _ = standardise(impute(state))
        fitted, fit_info = model.fit(fit_key, scaled, state.model)
        believed = believe(model, fitted, scaled, state)
        values = jnp.where(scaled.mask[:, 0], scaled.y[:, 0], jnp.inf)
        means = model.predict(believed, state.data.x).mean
        best = jnp.min(jnp.where(scaled.mask[:, 0][None, :], means, jnp.inf), axis=1)
        around = state.data.x[jnp.argsort(values)[:_AROUND]]
        counts = jnp.arange(len(values)) < state.data.size

        def score(x):
            mean, std = model.predict(believed, x)
            return acquisition(mean, std, best)

        chosen = search_box.maximise(pick_key, score, around, state.data.x, counts)
        info = ask_info(
            state.data.x,
            acquisition=chosen.score,
            flat=chosen.flat,
            jitter=fit_info.jitter,
            converged=fit_info.converged,
            duplicates=chosen.duplicates,
            exhausted=jnp.sum(counts) >= space.size,
        )
        return chosen.x, state._replace(model=fitted), info

    def design(key: Array, state: BayesState) -> tuple[Array, BayesState, AskInfo]:
        planned = state.data.size < k
        info = ask_info(state.data.x, random=True, fallback=jnp.where(planned, 0, 1))
        return first_or_random(key, state), state, info

    def first_or_random(key: Array, state: BayesState) -> Array:
        """The next point of the design; a random one where that is used up and nothing has succeeded yet."""
        planned = state.design[jnp.minimum(state.data.size, k - 1)]
        return jnp.where(state.data.size < k, planned, space.sample(key, 1)[0])

    def ask_one(key: Array, state: BayesState) -> tuple[Array, BayesState, AskInfo]:
        ready = (state.data.size >= k) & state.data.mask.any()
        x, state, info = jax.lax.cond(ready, suggest, design, key, state)
        row = state.data.size
        return x, state._replace(data=append(state.data, x, 0.0, False), pending=state.pending.at[row].set(True)), info

    def ask(key: Array, state: BayesState) -> tuple[Array, BayesState, AskInfo]:
        points = []
        for i in range(batch):
            x, state, info = ask_one(jax.random.fold_in(key, i), state)
            points.append(x)
        return jnp.stack(points), state, info

    return Search(space, init, ask, tell)


def tell(state: BayesState, trial: Trial) -> BayesState:
    """The state with a trial's value at the pending row it belongs to, or at a new row if none was asked there."""
    gap = jnp.where(state.pending, jnp.max(jnp.abs(state.data.x - trial.x[None, :]), axis=1), jnp.inf)
    nearest = jnp.argmin(gap)
    asked = gap[nearest] < 1e-6
    row = jnp.where(asked, nearest, state.data.size)
    fine = trial.ok & jnp.isfinite(trial.y)
    data = Dataset(
        x=state.data.x.at[row].set(trial.x),
        y=state.data.y.at[row, 0].set(jnp.where(fine, trial.y, 0.0)),
        mask=state.data.mask.at[row, 0].set(fine),
        size=state.data.size + ~asked,
    )
    return state._replace(data=data, pending=state.pending.at[row].set(False), failed=state.failed.at[row].set(~fine))


def impute(state: BayesState) -> Dataset:
    """The data with the worst value seen at failed points, so that the search does not go back there."""
    data = state.data
    worst = jnp.max(jnp.where(data.mask, data.y, -jnp.inf))
    failed = state.failed[:, None]
    return data._replace(y=jnp.where(failed, worst, data.y), mask=data.mask | failed)


def believe(model: Surrogate, fitted, data: Dataset, state: BayesState):
    """The surrogate as if its own mean had been observed at every pending point."""
    mean = model.predict(fitted, data.x).mean.mean(axis=0)
    imagined = data._replace(
        y=jnp.where(state.pending[:, None], mean[:, None], data.y), mask=data.mask | state.pending[:, None]
    )
    return jax.lax.cond(state.pending.any(), lambda: model.update(imagined, fitted), lambda: fitted)


def default_kernel(space: Space):
    """Matérn 5/2, on arcs where parameters come and go; options have no order."""
    from bonas import gp

    if any(parameter.when is not None for parameter in space.parameters.values()):
        return gp.arc(space.active, categories=space.categories)
    return gp.without_order(gp.matern52(), space.categories)
