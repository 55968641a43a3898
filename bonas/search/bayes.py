"""Bayesian optimisation: fit a surrogate to what is known, ask where its acquisition is highest."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.acquire.acquisition import Acquisition, ClosedForm, Outlook, adapted, as_acquisition, feasible, pick
from bonas.acquire.analytic import log_ei
from bonas.acquire.batch import Imagine, believer
from bonas.acquire.maximise import Maximiser, choose, enumerated, refined, shifted, sobol
from bonas.data import Dataset
from bonas.search.door import check_prediction, check_surrogate
from bonas.search.outputs import Output, fit_on, log, outputs_of
from bonas.search.record import Record, asked, blank, in_turn, told
from bonas.search.types import AskInfo, Search, Trial, ask_info
from bonas.spaces import Space
from bonas.surrogates import FitInfo, Surrogate
from bonas.surrogates import gp as gp_surrogate

_FEW = 2048  # points of a finite space up to which all are scored
_AROUND = 4  # how many of the best points the maximiser looks around


class BayesState(NamedTuple):
    """What the next ask needs."""

    record: Record  # everything asked and told
    design: Array  # (k, d) the initial points
    model: Any  # the surrogate's, one for each output scale
    memory: Any  # the acquisition's


def bayes(
    space: Space,
    *,
    surrogate: Surrogate | None = None,
    acquisition: Acquisition | ClosedForm = log_ei,
    maximiser: Maximiser | None = None,
    initial: int | ArrayLike = 5,
    batch: int = 1,
    pending: Imagine = believer,
    output: str | Output | tuple[str | Output, ...] | None = None,
    failures: str = "worst",
) -> Search:
    """Bayesian optimisation of a space.

    surrogate: a model of the standardised values (default: `surrogates.gp()`, a GP by maximum a posteriori).
    acquisition: an Acquisition, or a function of mean (s, m), std (s, m) and best (s,), averaged over hyperparameter
        samples; best is the least posterior mean at points asked, which noise does not lower.
    maximiser: how its maximum is found (default: `enumerated` for up to 2048 points, else `refined`).
    initial: how many points of a shifted Sobol sequence come first, or the points themselves (k, d), with 0 in inactive
        columns; integers are rounded.
    batch: points an ask.
    pending: what is imagined at points asked and not told yet: `believer`, `constant_liar()` or `dreamer`.
    output: the scale on which values are modelled: "plain", "log" (of positive values), "tails" (large values drawn in), a
        function as in `bonas.search.outputs`, or several, of which each ask takes the most probable. By default plain and
        tails for a GP, and plain for a model without evidence.
    failures: "worst" imputes the worst value seen at failed points; "model" learns where evaluations fail instead.
    """
    design = initial if isinstance(initial, int) else _rows(space, initial)
    return _bayes(space, surrogate, acquisition, maximiser, design, batch, pending, output, failures)


@cache
def _bayes(space, surrogate, acquisition, maximiser, initial, batch, pending, output, failures) -> Search:
    model = gp_surrogate() if surrogate is None else surrogate
    check_surrogate(model)
    model = model.adapt(space) if model.adapt else model
    acquire = adapted(_acquisition(acquisition, failures), space)
    box = maximiser or (enumerated(space) if space.size <= _FEW else refined(space))
    outputs = outputs_of(output, model)
    k = initial if isinstance(initial, int) else len(initial)
    if min(k, batch) < 1:
        raise ValueError(f"initial and batch must be at least 1; got {k} and {batch}")

    def init(key: Array, capacity: int) -> BayesState:
        design = (
            space.spread(shifted(key, sobol(k, space.dim))) if isinstance(initial, int) else space.snap(jnp.asarray(initial))
        )
        return BayesState(
            record=blank(capacity, space.dim),
            design=design,
            model=jax.tree.map(
                lambda leaf: jnp.broadcast_to(leaf, (len(outputs), *jnp.shape(leaf))), model.init(capacity, space.dim, 1)
            ),
            memory=acquire.init(capacity, space.dim),
        )

    def suggest(key: Array, state: BayesState) -> tuple[Array, BayesState, AskInfo]:
        fit_key, imagine_key, pick_key = jax.random.split(key, 3)
        known = impute(state.record) if failures == "worst" else state.record.data
        data, fitted, fit_info, scale, fits = fit_on(outputs, model, fit_key, known, state.model)
        outlook = look(model, fitted, data, state.record, box, pending, imagine_key)
        chosen, memory = pick(acquire, pick_key, outlook, state.memory)
        info = report(state.record, chosen, fit_info, space)._replace(output=scale)
        return chosen.x, state._replace(model=fits, memory=memory), info

    def plan(key: Array, state: BayesState) -> tuple[Array, BayesState, AskInfo]:
        """The next point of the design; a random one where that is used up and nothing has succeeded yet."""
        row = state.record.data.size
        x = jnp.where(row < k, state.design[jnp.minimum(row, k - 1)], space.sample(key, 1)[0])
        return x, state, ask_info(x, random=True, fallback=jnp.where(row < k, 0, 1))

    def ask_one(key: Array, state: BayesState) -> tuple[Array, BayesState, AskInfo]:
        ready = (state.record.data.size >= k) & state.record.data.mask.any()
        x, state, info = jax.lax.cond(ready, suggest, plan, key, state)
        return x, state._replace(record=asked(state.record, x)), info

    def tell(state: BayesState, trial: Trial) -> BayesState:
        space.check(trial.x, "a trial's x", exists=True)
        fine = trial.y > 0.0 if log in outputs else True
        return state._replace(record=told(state.record, trial._replace(ok=trial.ok & fine)))

    return Search(space, init, in_turn(ask_one, batch), tell)


def look(model: Surrogate, fitted: Any, data: Dataset, record: Record, box: Maximiser, pending: Imagine, key: Array) -> Outlook:
    """Everything that an acquisition may want to know."""
    check_prediction(jax.eval_shape(model.predict, fitted, data.x), len(data.x))
    imagined = jax.lax.cond(
        record.pending.any(),
        lambda: model.update(imagine(data, record.pending, pending(key, model, fitted, data)), fitted),
        lambda: fitted,
    )
    there = data.mask[:, 0] | record.pending
    means = jnp.where(there[None, :], model.predict(imagined, data.x).mean, jnp.inf)
    goodness, rows = jax.lax.top_k(-means.mean(axis=0), min(_AROUND, len(there)))
    around = data.x[jnp.where(jnp.isfinite(goodness), rows, rows[0])]
    counts = jnp.arange(len(there)) < data.size
    return Outlook(
        model=model,
        known=fitted,
        imagined=imagined,
        best=means.min(axis=1),
        data=data,
        pending=record.pending,
        failed=record.failed,
        cost=record.cost,
        climb=lambda key, score: box.maximise(key, score, around, data.x, counts),
        candidates=lambda key: box.candidates(key, around),
        choose=lambda points, scores: choose(points, scores, data.x, counts),
    )


def report(record: Record, chosen, fit_info: FitInfo, space: Space) -> AskInfo:
    """What the ask did."""
    return ask_info(
        chosen.x,
        acquisition=chosen.score,
        flat=chosen.flat,
        jitter=fit_info.jitter,
        converged=fit_info.converged,
        duplicates=chosen.duplicates,
        exhausted=record.data.size >= space.size,
        fallback=jnp.where(fit_info.finite, 0, 2),
    )


def impute(record: Record) -> Dataset:
    """The data with the worst value seen at failed points, so that the search does not go back there."""
    data, failed = record.data, record.failed[:, None]
    worst = jnp.max(jnp.where(data.mask, data.y, -jnp.inf))
    return data._replace(y=jnp.where(failed, worst, data.y), mask=data.mask | failed)


def imagine(data: Dataset, pending: Array, values: Array) -> Dataset:
    """The data as if these values (n,) had been observed at pending points."""
    there = pending[:, None]
    return data._replace(y=jnp.where(there, values[:, None], data.y), mask=data.mask | there)


def _acquisition(acquisition: Acquisition | ClosedForm, failures: str) -> Acquisition:
    if failures not in ("worst", "model"):
        raise ValueError(f'failures is "worst" or "model"; got {failures!r}')
    return feasible(acquisition) if failures == "model" else as_acquisition(acquisition)


def _rows(space: Space, initial: ArrayLike) -> tuple[tuple[float, ...], ...]:
    """Initial points as tuples, which hash: equal points are one search."""
    points = np.asarray(initial)
    if points.ndim != 2 or points.shape[1] != space.dim:
        raise ValueError(f"initial points have shape (k, {space.dim}); got {points.shape}")
    space.check(points, "initial point", exists=True)
    return tuple(map(tuple, points.tolist()))
