"""Bayesian optimisation inside one trust region that grows, shrinks and starts again: TuRBO-1, Eriksson et al. 2019.

A model of the whole cube is asked for little in many dimensions: its variance is highest far from all data, and there are
2^d corners to try. Here the next point lies in a box around the best one. What a failure costs is small, and the box tells
from successes and failures how far the model can be trusted.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas import gp as gaussian
from bonas.acquire.acquisition import Acquisition, ClosedForm, adapted, pick
from bonas.acquire.batch import believer, thompson
from bonas.acquire.maximise import Maximiser, choose, shifted, sobol
from bonas.search.bayes import impute, look, report
from bonas.search.box import check_box
from bonas.search.outputs import Output, fit_on, outputs_of
from bonas.search.record import Record, asked, blank, in_turn, told
from bonas.search.types import AskInfo, Search, Trial, ask_info
from bonas.spaces import Int, Space
from bonas.surrogates import GPState, Surrogate
from bonas.surrogates import gp as gp_surrogate

# The constants of the paper, Section 2 and supplement D: lengths of the box as shares of the cube's sides.
FIRST, LONGEST, SHORTEST = 0.8, 1.6, 0.5**7
SUCCESSES = 3  # in a row, after which the box is doubled
_LEAST_FAILURES = 4  # in a row, after which it is halved: one for each dimension, and no fewer than these
_GAIN = 1e-3  # a success is better than the best by this share of its size
_MOVED = 20.0  # how many coordinates of the best point a candidate changes, on average
_MOST = 1000  # candidates; the paper's code has up to 5000, whose joint draw costs a hundred times as much


class TrustState(NamedTuple):
    """What the next ask needs."""

    record: Record  # everything asked and told, in this run and in those before
    design: Array  # (k, d) the initial points of this run
    model: Any  # the surrogate's, one for each output scale
    memory: Any  # the acquisition's
    length: Array  # () of the box, before length scales stretch it
    successes: Array  # () int: in a row
    failures: Array  # () int: in a row
    since: Array  # () int: the first row of this run; the model knows nothing of earlier ones
    judged: Array  # (n,) bool: rows that have counted as a success or a failure, or were initial ones
    restarts: Array  # () int


@cache
def turbo(
    space: Space,
    *,
    surrogate: Surrogate | None = None,
    acquisition: Acquisition | ClosedForm | None = None,
    initial: int | None = None,
    batch: int = 1,
    candidates: int | None = None,
    output: str | Output | tuple[str | Output, ...] = "plain",
) -> Search:
    """One trust region in a space of numbers: TuRBO-1, Eriksson et al. 2019.

    surrogate: a model of the standardised values of this run (default: a GP with a Matérn 5/2 kernel). The box is stretched
        along a column in proportion to its length scale, at constant volume, where the model is a GP that has them.
    acquisition: by default `acquire.thompson()`, one joint draw over the candidates, as in the paper; a closed form such as
        `bonas.log_ei` is scored at the candidates.
    initial: points of a shifted Sobol sequence that every run begins with (default: two a column).
    batch: points an ask; what is pending is believed to be what the model expects.
    candidates: how many points of the box are compared (default: 100 a column, at most 1000). Each is the best point with
        some coordinates moved, every one with probability min(1, 20/d), so that most stay what they are in many columns.
    output: the scale on which values are modelled, as in `bonas.bayes`.

    The length begins at 0.8, is doubled up to 1.6 by 3 successes in a row and halved by max(4, d)/batch failures in a row;
    an ask's evaluations are one success or one failure. Below 2⁻⁷ the run is over, and the next begins anew elsewhere with
    an empty model. The centre is the point of the run with the least posterior mean. Where a column is a whole number, the
    box reaches to its neighbours at least.
    """
    check_box(space, "a trust region is a box")
    d = space.dim
    k = 2 * d if initial is None else initial
    m = min(100 * d, _MOST) if candidates is None else candidates
    if min(k, batch, m) < 1:
        raise ValueError(f"initial, batch and candidates must be at least 1; got {k}, {batch} and {m}")
    model = surrogate or gp_surrogate(gaussian.matern52())
    model = model.adapt(space) if model.adapt else model
    acquire = adapted(thompson() if acquisition is None else acquisition, space)
    outputs = outputs_of(output, model)
    grid, steps = sobol(m, d), _steps(space)
    patience = math.ceil(max(_LEAST_FAILURES, d) / batch)

    def untrained(capacity: int) -> Any:
        first = model.init(capacity, d, 1)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(outputs), *jnp.shape(leaf))), first)

    def plan_of(key: Array) -> Array:
        return space.spread(shifted(key, sobol(k, d)))

    def init(key: Array, capacity: int) -> TrustState:
        zero = jnp.zeros((), int)
        return TrustState(
            record=blank(capacity, d),
            design=plan_of(key),
            model=untrained(capacity),
            memory=acquire.init(capacity, d),
            length=jnp.asarray(FIRST),
            successes=zero,
            failures=zero,
            since=zero,
            judged=jnp.zeros(capacity, bool),
            restarts=zero,
        )

    def restart(key: Array, state: TrustState) -> TrustState:
        """The first state again, but for the record and the rows that the new run does not look at."""
        fresh = init(key, len(state.judged))
        now = state.record.data.size.astype(state.since.dtype)
        return fresh._replace(
            record=state.record, judged=state.judged, since=now, restarts=state.restarts + 1, memory=state.memory
        )

    def region(centre: Array, sides: Array) -> Maximiser:
        """Candidates in the box around the centre (d,) with these sides (d,)."""
        half = jnp.maximum(0.5 * sides, steps)

        def maximise(key, score, around, tried, counts):
            points = within_box(key, space, centre, half, grid)
            return choose(points, jnp.nan_to_num(score(points), nan=-jnp.inf, neginf=-jnp.inf), tried, counts)

        return Maximiser(maximise, lambda key, around: within_box(key, space, centre, half, grid))

    def suggest(key: Array, state: TrustState) -> tuple[Array, TrustState, AskInfo]:
        fit_key, imagine_key, pick_key = jax.random.split(key, 3)
        here = _of_run(state)
        data, fitted, fit_info, scale, fits = fit_on(outputs, model, fit_key, impute(here), state.model)
        means = jnp.where(here.data.mask[:, 0], model.predict(fitted, data.x).mean.mean(axis=0), jnp.inf)
        box = region(data.x[jnp.argmin(means)], state.length * stretch(fitted, d))
        outlook = look(model, fitted, data, here, box, believer, imagine_key)
        chosen, memory = pick(acquire, pick_key, outlook, state.memory)
        info = report(state.record, chosen, fit_info, space)._replace(output=scale)
        return chosen.x, state._replace(model=fits, memory=memory), info

    def plan(key: Array, state: TrustState) -> tuple[Array, TrustState, AskInfo]:
        """The next point of the design; a random one where that is used up and nothing of the run has succeeded yet."""
        row = state.record.data.size - state.since
        x = jnp.where(row < k, state.design[jnp.minimum(row, k - 1)], space.sample(key, 1)[0])
        return x, state, ask_info(x, random=True, fallback=jnp.where(row < k, 0, 1))

    def ask_one(key: Array, state: TrustState) -> tuple[Array, TrustState, AskInfo]:
        key, restart_key = jax.random.split(key)
        state = judge(state, k, patience)
        state = jax.lax.cond(state.length < SHORTEST, restart, lambda key, state: state, restart_key, state)
        here = _of_run(state).data
        ready = (here.size - state.since >= k) & here.mask.any()
        x, state, info = jax.lax.cond(ready, suggest, plan, key, state)
        return x, state._replace(record=asked(state.record, x)), info

    def tell(state: TrustState, trial: Trial) -> TrustState:
        space.check(trial.x, "a trial's x", exists=True)
        return state._replace(record=told(state.record, trial))

    return Search(space, init, in_turn(ask_one, batch), tell)


def judge(state: TrustState, initial: int, patience: int) -> TrustState:
    """The state after what was told since the last ask: one success if any of it is better than all before, else one failure.

    Initial points of the run count for nothing; a failed evaluation is no success.
    """
    data, rows = state.record.data, jnp.arange(len(state.judged))
    done = (data.mask[:, 0] | state.record.failed) & (rows >= state.since)
    new = done & ~state.judged & (rows >= state.since + initial)
    values = jnp.where(data.mask[:, 0], data.y[:, 0], jnp.inf)
    best = jnp.min(jnp.where(done & ~new, values, jnp.inf))
    found = jnp.min(jnp.where(new, values, jnp.inf))
    better = jnp.where(jnp.isfinite(best), best - found > _GAIN * jnp.abs(best), jnp.isfinite(found))
    successes = jnp.where(new.any(), jnp.where(better, state.successes + 1, 0), state.successes)
    failures = jnp.where(new.any(), jnp.where(better, 0, state.failures + 1), state.failures)
    grow, shrink = successes == SUCCESSES, failures == patience
    factor = jnp.where(grow, 2.0, jnp.where(shrink, 0.5, 1.0))
    return state._replace(
        length=jnp.minimum(factor * state.length, LONGEST),
        successes=jnp.where(grow, 0, successes),
        failures=jnp.where(shrink, 0, failures),
        judged=state.judged | done,
    )


def within_box(key: Array, space: Space, centre: Array, half: Array, grid: np.ndarray) -> Array:
    """Copies (m, d) of the centre with some coordinates, at least one, moved to where points (m, d) of a grid lie in the box.

    The box is centre ± half, cut off by the unit cube. A coordinate moves with probability min(1, 20/d).
    """
    m, d = grid.shape
    sobol_key, which_key, one_key = jax.random.split(key, 3)
    low, high = jnp.clip(centre - half, 0.0, 1.0), jnp.clip(centre + half, 0.0, 1.0)
    anywhere = low[None, :] + (high - low)[None, :] * shifted(sobol_key, grid)
    moved = jax.random.uniform(which_key, (m, d)) < min(1.0, _MOVED / d)
    one = jax.random.randint(one_key, (m, 1), 0, d) == jnp.arange(d)[None, :]
    moved = moved | (one & ~moved.any(axis=1, keepdims=True))
    return space.snap(jnp.where(moved, anywhere, centre[None, :]))


def stretch(fitted: Any, d: int) -> Array:
    """How much longer than others each side of the box is (d,), their product 1: length scale over geometric mean.

    Ones where the model is none of the library's GPs, or its kernel has no length scale a column.
    """
    scales = fitted.posterior.params.get("lengthscale") if isinstance(fitted, GPState) else None
    if scales is None or scales.shape[1:] != (d,):
        return jnp.ones(d)
    logs = jnp.log(scales).mean(axis=0)
    return jnp.exp(logs - logs.mean())


def _of_run(state: TrustState) -> Record:
    """The record with all rows before this run masked."""
    record = state.record
    here = jnp.arange(len(state.judged)) >= state.since
    data = record.data._replace(mask=record.data.mask & here[:, None])
    return record._replace(data=data, pending=record.pending & here, failed=record.failed & here)


def _steps(space: Space) -> np.ndarray:
    """The largest step (d,) from a whole number to the next, as a share of its column; 0 for real numbers."""
    with jax.ensure_compile_time_eval():
        return np.array(
            [
                float(p.unit(p.low + 1.0)) if isinstance(p, Int) and p.low < p.high else 0.0  # where log, the first is longest
                for p in space.parameters.values()
            ]
        )
