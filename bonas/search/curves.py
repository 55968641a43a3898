"""Search on learning curves: train many networks a little, predict the rest, finish those that are worth it."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from bonas.acquire.maximise import shifted, sobol
from bonas.gp.gpar import Known, gpar
from bonas.search.looks import LOGS, PLAIN, final_score, look_score, rate_score
from bonas.search.networks import (
    Networks,
    asked,
    begun,
    best_complete,
    checked_steps,
    complete,
    none_begun,
    told,
    unfinished,
)
from bonas.search.record import SAME, apart
from bonas.search.types import AskInfo, Search, Trial, ask_info
from bonas.spaces import Space
from bonas.surrogates.autoregressive import autoregressive
from bonas.surrogates.curve_model import CurveModel

_FEW = 512  # points of a finite space up to which all are candidates
_FIRST, _NEVER = 1e30, -1e30  # scores of networks of the initial design, and of those that cannot be chosen
VARIANTS = ("rate", "look", "published")


class CurveState(NamedTuple):
    """What the next ask needs."""

    networks: Networks
    design: Array  # (k, d) networks that are trained to the end first
    model: Any  # the curve model's


class _Pool(NamedTuple):
    """Networks that an ask can choose from."""

    x: Array  # (m, d)
    known: Known  # (m, c) their curves so far
    at: Array  # (m,) int: checkpoints behind them
    open: Array  # (m,) bool: whether they can be chosen
    pending: Array  # (m,) bool: whether they are being trained
    rank: Array  # (m,) int: position in the initial design; its length for others


def curves(
    space: Space,
    steps: ArrayLike | Sequence[int],
    *,
    model: CurveModel | None = None,
    acquisition: str = "ei",
    variant: str = "look",
    initial: int | None = None,
    thinning: int | None = None,
    batch: int = 1,
    draws: int | None = None,
    disjoint: bool = True,
    candidates: int = 256,
) -> Search:
    """Bayesian optimisation on learning curves: each ask names `batch` networks to be advanced by one checkpoint (H-A2).

    Networks trained to the end leave the candidates; the best is among them alone. One that diverges is never advanced
    again, and what was seen of it is kept.

    steps: training steps up to each checkpoint (c,), increasing.
    model: of the curves: `surrogates.autoregressive()` (a GPAR, the default; Hutchinson's in the published variant),
        `freeze_thaw()` or `power_law()` from there.
    acquisition: "ei", "pi" or "ucb", of the final value against the best of a network trained to the end.
    variant: what is maximised over networks. "published" is Hutchinson's Algorithm 2: the acquisition itself, whatever an
        advance costs, so that many networks are begun and few completed. "rate": its share a training step to the end, so
        that a network that goes well is finished first. "look": the most of it that a training step buys when training can
        be stopped after a look at a later checkpoint (`bonas.search.looks.look_score`). These choices, and those of model,
        initial and thinning, are compared by experiments/curve_defaults.py on made-up tables of power laws.
    initial: networks of a shifted Sobol sequence that are trained first (default: 8, or 5 if all are trained to the end).
    thinning: of those, the best one in so many goes on at each checkpoint (default: 2, until one is complete); 1 trains
        all of them to the end, as the published variant does by default.
    draws: of the curves an ask, from which mean and deviation are taken (default: 256, published 50). Few of them are the
        published under-sampling (H-A2b), 10 or 3.
    disjoint: whether each of a batch has draws of its own in the published variant, as in Algorithm 2; its authors' code
        takes the best of one set when there are 50 (H-S7).
    candidates: networks not begun that an ask considers, drawn afresh, where the space has more than 512 points; all of
        them otherwise.
    """
    steps = checked_steps(steps)
    if variant not in VARIANTS:
        raise ValueError(f"variant is one of {', '.join(VARIANTS)}; got {variant!r}")
    known = PLAIN if variant == "published" else LOGS
    if acquisition not in known:
        raise ValueError(f"acquisition of the variant {variant!r} is one of {', '.join(known)}; got {acquisition!r}")
    draws = (50 if variant == "published" else 256) if draws is None else draws
    thinning = (1 if variant == "published" else 2) if thinning is None else thinning
    initial = int(min(5 if thinning == 1 else 8, space.size)) if initial is None else initial
    if min(initial, thinning, batch, draws - 1, candidates) < 1:
        raise ValueError(
            "initial, thinning, batch and candidates are at least 1, draws at least 2; "
            f"got {initial}, {thinning}, {batch}, {candidates}, {draws}"
        )
    if max(batch, initial) > space.size:
        raise ValueError(f"this space has {space.size} networks; got a batch of {batch} and {initial} initial ones")
    if space.size > _FEW and batch > candidates:
        raise ValueError(f"a batch of {batch} does not fit into {candidates} candidates")
    made = model or (autoregressive(gpar()) if variant == "published" else autoregressive())
    return _curves(space, steps, made, acquisition, variant, initial, thinning, batch, draws, disjoint, candidates)


@cache
def _curves(space, steps, model, acquisition, variant, initial, thinning, batch, draws, disjoint, candidates) -> Search:
    c, at_steps = len(steps), jnp.asarray(steps)
    sets = batch if variant == "published" and disjoint else 1
    few = space.size <= _FEW
    planned_of = _thinned(initial, thinning, c) if thinning > 1 else _whole(initial)

    def init(key: Array, capacity: int) -> CurveState:
        times = at_steps / at_steps[-1]
        columns = jax.eval_shape(lambda: numbers(space, jnp.zeros((1, space.dim)))).shape[1]
        design = space.spread(shifted(key, sobol(initial, space.dim)))
        return CurveState(none_begun(capacity, space.dim, c), design, model.init(capacity, columns, times))

    def by_chance(key: Array, pool: _Pool) -> Array:
        """Scores (sets, m): networks that are begun first, the furthest of them, then any."""
        return pool.at[None, :] + jax.random.uniform(key, (sets, len(pool.x)))

    def modelled(key: Array, state: CurveState, pool: _Pool) -> tuple[Array, Any, AskInfo]:
        """Scores (sets, m) by the model; those of chance where it gives no numbers."""
        fit_key, draw_key, chance_key = jax.random.split(key, 3)
        data = state.networks.data
        fitted, info = model.fit(fit_key, data._replace(x=numbers(space, data.x)), state.model)
        drawn = model.sample(draw_key, fitted, numbers(space, pool.x), pool.known, sets * draws)
        best = best_complete(state.networks)
        each = drawn.reshape(sets, draws, *drawn.shape[1:])
        if variant == "published":
            scores = jax.vmap(lambda some: final_score(PLAIN[acquisition], some, best))(each)
        else:
            score = look_score if variant == "look" else rate_score
            scores = score(LOGS[acquisition], drawn, best, pool.at, at_steps)[None, :]
        flat = jnp.ptp(jnp.where(pool.open, scores[0], scores[0].max())) == 0.0
        lost = (pool.open[None, :] & ~(scores < jnp.inf)).any()  # a gain may be nothing: its logarithm is −∞, and no loss
        report = ask_info(
            pool.x,
            flat=flat,
            jitter=info.jitter,
            converged=info.converged,
            random=lost,
            fallback=jnp.where(lost, 3, jnp.where(info.finite, 0, 2)),
        )
        return jnp.where(lost, by_chance(chance_key, pool), scores), fitted, report

    def chance(key: Array, state: CurveState, pool: _Pool) -> tuple[Array, Any, AskInfo]:
        """Scores where there is nothing to model yet."""
        return (
            by_chance(key, pool),
            state.model,
            ask_info(pool.x, random=True, fallback=jnp.where(planned_of(pool).any(), 0, 1)),
        )

    def ask(key: Array, state: CurveState) -> tuple[Array, CurveState, AskInfo]:
        pool_key, score_key = jax.random.split(key)
        pool = _pool(space, few, candidates, pool_key, state)
        planned = planned_of(pool)
        ready = complete(state.networks).any() & ((planned > 0.0).sum() < batch)
        scores, fitted, info = jax.lax.cond(ready, modelled, chance, score_key, state, pool)
        scores = jnp.maximum(jnp.nan_to_num(scores, nan=_NEVER, neginf=_NEVER), 0.9 * _NEVER)
        scores = jnp.where(planned[None, :] > 0.0, _FIRST * planned[None, :], scores)
        scores = jnp.where(pool.open[None, :], scores, _NEVER)

        def pick(taken, i):
            score = jnp.where(taken, -jnp.inf, scores[jnp.minimum(i, sets - 1)])
            row = jnp.argmax(score)
            return taken | (apart(pool.x, pool.x[row]) < SAME), (row, score[row])

        _, (rows, chosen) = jax.lax.scan(pick, jnp.zeros(len(pool.x), bool), jnp.arange(batch))
        networks, _ = jax.lax.scan(lambda some, x: (asked(some, x), None), state.networks, pool.x[rows])
        info = info._replace(
            acquisition=jnp.where(~info.random & (chosen[0] < _FIRST), chosen[0], jnp.nan), exhausted=pool.open.sum() < batch
        )
        return pool.x[rows], CurveState(networks, state.design, fitted), info

    def tell(state: CurveState, trial: Trial) -> CurveState:
        space.check(trial.x, "a trial's x", exists=True)
        return state._replace(networks=told(state.networks, trial))

    return Search(space, init, ask, tell, steps)


def numbers(space: Space, x: Array) -> Array:
    """Rows (m, d) as models see them: a Choice of k options as k columns, so that any two options are 1 apart."""
    columns = []
    for i, (parameter, options) in enumerate(zip(space.parameters.values(), space.categories, strict=True)):
        if options:
            columns.append(jnp.sqrt(0.5) * jax.nn.one_hot(parameter.value(x[:, i]).astype(int), options, dtype=x.dtype))
        else:
            columns.append(x[:, i : i + 1])
    return jnp.concatenate(columns, axis=1)


def _pool(space: Space, few: bool, candidates: int, key: Array, state: CurveState) -> _Pool:
    """All points of a small space; otherwise the networks begun, the design and new draws."""
    networks, design = state.networks, state.design
    data, n = networks.data, len(networks.pending)
    x = space.points() if few else jnp.concatenate([data.x, design, space.sample(key, candidates)])
    same = (_gaps(x, data.x) < SAME) & begun(networks)[None, :]  # (m, n)
    row, old, own = jnp.argmax(same, axis=1), same.any(axis=1), jnp.ones(len(x), bool)
    if not few:  # a network begun is in the pool by its own row alone
        own, first = jnp.arange(len(x)) < n, jnp.minimum(jnp.arange(len(x)), n - 1)
        row, old = jnp.where(own, first, row), jnp.where(own, begun(networks)[first], old)
    mask = data.mask[row] & old[:, None]
    going = old & own & (unfinished(networks) & ~networks.pending)[row]
    fresh = ~old & (data.size < n) & (True if few else ~own)
    near = _gaps(x, design) < SAME  # (m, k)
    rank = jnp.where(near.any(axis=1), jnp.argmax(near, axis=1), len(design))
    pending = old & networks.pending[row]
    return _Pool(x, Known(jnp.where(mask, data.y[row], 0.0), mask), mask.sum(axis=1), going | fresh, pending, rank)


def _whole(initial: int) -> Callable[[_Pool], Array]:
    """planned(pool) -> (m,): from 1 to 2, the higher the sooner, for networks that the initial design trains next; else 0."""

    def planned(pool: _Pool) -> Array:
        return jnp.where(pool.open & (pool.rank < initial), 2.0 - pool.rank / initial, 0.0)

    return planned


def _thinned(initial: int, thinning: int, c: int) -> Callable[[_Pool], Array]:
    """The same where the first checkpoint is seen of all, and each later one of the best at the one before, one in so many."""
    quota, step_of = jnp.asarray([-(-initial // thinning**step) for step in range(c)]), jnp.arange(c)[None, :]

    def planned(pool: _Pool) -> Array:
        design = pool.rank[:, None] == jnp.arange(initial)[None, :]  # (m, initial)
        asked = jnp.where(design, (pool.at + pool.pending)[:, None], 0).max(axis=0)  # (initial,) checkpoints
        lacking = quota - (asked[:, None] > step_of).sum(axis=0)  # (c,)
        ours = pool.open & (pool.rank < initial)
        there = (ours[:, None] & (pool.at[:, None] == step_of)).any(axis=0)  # a design of which all diverged is over
        step = jnp.argmax((lacking > 0) & there)
        worth = jnp.where(step > 0, jnp.take(pool.known.y, jnp.maximum(step - 1, 0), axis=1), pool.rank)
        able = ours & (pool.at == step)
        place = jnp.argsort(jnp.argsort(jnp.where(able, worth, jnp.inf)))
        return jnp.where(able & (place < lacking[step]), 2.0 - place / initial, 0.0)

    return planned


def _gaps(a: Array, b: Array) -> Array:
    """The largest difference in a column (m, n) between rows a (m, d) and b (n, d)."""
    return jnp.abs(a[:, None, :] - b[None, :, :]).max(axis=2)
