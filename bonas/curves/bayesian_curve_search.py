"""Bayesian optimization on learning curves, which stops the training of bad networks early."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.acquire import random_shift, sobol
from bonas.curves.candidate_networks import (
    Candidates,
    find_candidates,
    is_small,
    model_inputs,
    planned_priority,
)
from bonas.curves.curve_model import CurveModel
from bonas.curves.curve_scores import (
    ACQUISITIONS,
    LOG_ACQUISITIONS,
    checkpoint_score,
    final_score,
    rate_score,
)
from bonas.curves.gpar_curve_model import autoregressive
from bonas.curves.gpar_model import GPAR, gpar
from bonas.curves.training_record import (
    TrainingRecord,
    add_checkpoint,
    best_final_value,
    check_steps,
    empty_record,
    is_complete,
    mark_pending,
)
from bonas.search import (
    SAME_POINT,
    AskInfo,
    Observation,
    Search,
    ask_info,
    check_space,
    max_difference,
)
from bonas.spaces import Space

VARIANTS = ("rate", "checkpoint", "published")
# Scores of candidates that must be chosen first, because the initial design plans them, and of
# candidates that must not be chosen.
_FIRST = 1e30
_NEVER = -1e30
# Defaults of the published variant, and of the others.
_DRAWS = {"published": 50, "rate": 256, "checkpoint": 256}
_THINNING = {"published": 1, "rate": 2, "checkpoint": 2}


class CurveState(NamedTuple):
    """State of a search on learning curves."""

    record: TrainingRecord
    design: Array  # (k, d) networks of the initial design
    model: Any  # state of the curve model


class _Scores(NamedTuple):
    """Scores of the candidates of one ask."""

    values: Array  # (sets, m)
    model: Any  # state of the curve model
    info: AskInfo


@dataclass(frozen=True, kw_only=True)
class CurveSearch(Search):
    """Bayesian optimization on learning curves; see `bonas.curve_search`."""

    space: Space
    steps: tuple[int, ...]
    model: CurveModel
    acquisition: str
    variant: str
    initial: int
    thinning: int
    batch: int
    draws: int
    disjoint: bool
    candidates: int

    @property
    def sets(self) -> int:
        """The number of separate sets of draws: one per network of a batch, or one."""
        return self.batch if self.variant == "published" and self.disjoint else 1

    def init(self, key: PRNGKeyArray, capacity: int) -> CurveState:
        """Return a state without networks, with a shifted Sobol sequence as the design."""
        d = self.space.dim
        steps = jnp.asarray(self.steps)
        inputs = jax.eval_shape(lambda: model_inputs(self.space, jnp.zeros((1, d))))
        design = self.space.spread(random_shift(key, sobol(self.initial, d)))
        model = self.model.init(capacity, inputs.shape[1], steps / steps[-1])
        return CurveState(empty_record(capacity, d, len(self.steps)), design, model)

    def ask(
        self, key: PRNGKeyArray, state: CurveState
    ) -> tuple[Float[Array, "q d"], CurveState, AskInfo]:
        """Return networks (q, d) to train to their next checkpoint, the new state and a report."""
        pool_key, score_key = jax.random.split(key)
        pool = find_candidates(
            pool_key,
            self.space,
            state.record,
            state.design,
            number=self.candidates,
        )
        planned = self._planned(pool)
        ready = is_complete(state.record).any() & ((planned > 0.0).sum() < self.batch)
        scores, model, info = jax.lax.cond(
            ready,
            self._model_scores,
            self._chance_scores,
            score_key,
            state,
            pool,
        )
        scores = jnp.nan_to_num(scores, nan=_NEVER, neginf=_NEVER)
        scores = jnp.maximum(scores, 0.9 * _NEVER)
        scores = jnp.where(planned[None, :] > 0.0, _FIRST * planned[None, :], scores)
        scores = jnp.where(pool.available[None, :], scores, _NEVER)
        rows, chosen = self._choose(pool, scores)
        x = pool.x[rows]
        record, _ = jax.lax.scan(
            lambda last, x: (mark_pending(last, x), None), state.record, x
        )
        info = info._replace(
            acquisition=jnp.where(
                ~info.random & (chosen[0] < _FIRST), chosen[0], -jnp.inf
            ),
            exhausted=pool.available.sum() < self.batch,
        )
        return x, CurveState(record, state.design, model), info

    def tell(self, state: CurveState, observation: Observation) -> CurveState:
        """Add the value of the next checkpoint of a network."""
        self.space.check(observation.x, "an observation's x", exists=True)
        return state._replace(record=add_checkpoint(state.record, observation))

    def _planned(self, pool: Candidates) -> Float[Array, " m"]:
        return planned_priority(pool, self.initial, self.thinning, len(self.steps))

    def _random_scores(
        self, key: PRNGKeyArray, pool: Candidates
    ) -> Float[Array, "sets m"]:
        """Return scores that prefer the furthest trained networks, at random among equals."""
        return pool.reached[None, :] + jax.random.uniform(key, (self.sets, len(pool.x)))

    def _chance_scores(
        self,
        key: PRNGKeyArray,
        state: CurveState,
        pool: Candidates,
    ) -> _Scores:
        """Score at random until a network is complete and there is a final value to model."""
        fallback = jnp.where(self._planned(pool).any(), 0, 1)
        info = ask_info(pool.x, random=True, fallback=fallback)
        return _Scores(self._random_scores(key, pool), state.model, info)

    def _model_scores(
        self,
        key: PRNGKeyArray,
        state: CurveState,
        pool: Candidates,
    ) -> _Scores:
        """Score by the model, at random if its scores are not finite."""
        fit_key, draw_key, chance_key = jax.random.split(key, 3)
        data = state.record.data
        inputs = data._replace(x=model_inputs(self.space, data.x))
        model, info = self.model.fit(fit_key, inputs, state.model)
        x = model_inputs(self.space, pool.x)
        drawn = self.model.sample(
            draw_key,
            model,
            x,
            pool.observed,
            self.sets * self.draws,
        )
        scores = self._acquire(drawn, best_final_value(state.record), pool)
        flat = jnp.ptp(jnp.where(pool.available, scores[0], scores[0].max())) == 0.0
        # A score of −∞ is valid: it is the logarithm of a gain of 0.
        lost = (pool.available[None, :] & ~(scores < jnp.inf)).any()
        report = ask_info(
            pool.x,
            flat=flat,
            jitter=info.jitter,
            converged=info.converged,
            random=lost,
            fallback=jnp.where(lost, 3, jnp.where(info.finite, 0, 2)),
        )
        scores = jnp.where(lost, self._random_scores(chance_key, pool), scores)
        return _Scores(scores, model, report)

    def _acquire(
        self,
        drawn: Array,
        best: Array,
        pool: Candidates,
    ) -> Float[Array, "sets m"]:
        """Return the scores of the variant from drawn curves (sets · draws, m, c)."""
        if self.variant == "published":
            acquisition = ACQUISITIONS[self.acquisition]
            each = drawn.reshape(self.sets, self.draws, *drawn.shape[1:])
            return jax.vmap(lambda draws: final_score(acquisition, draws, best))(each)
        score = checkpoint_score if self.variant == "checkpoint" else rate_score
        log_acquisition = LOG_ACQUISITIONS[self.acquisition]
        return score(
            log_acquisition,
            drawn,
            best,
            pool.reached,
            jnp.asarray(self.steps),
        )[None, :]

    def _choose(self, pool: Candidates, scores: Array) -> tuple[Array, Array]:
        """Return the rows and scores (q,) of the best distinct networks."""

        def choose(taken: Array, i: Array) -> tuple[Array, tuple[Array, Array]]:
            score = jnp.where(taken, -jnp.inf, scores[jnp.minimum(i, self.sets - 1)])
            row = jnp.argmax(score)
            same = max_difference(pool.x, pool.x[row]) < SAME_POINT
            return taken | same, (row, score[row])

        taken = jnp.zeros(len(pool.x), bool)
        _, (rows, chosen) = jax.lax.scan(choose, taken, jnp.arange(self.batch))
        return rows, chosen


def curve_search(
    space: Space,
    steps: ArrayLike | Sequence[int],
    *,
    model: CurveModel | None = None,
    acquisition: str = "ei",
    variant: str = "checkpoint",
    initial: int | None = None,
    thinning: int | None = None,
    batch: int = 1,
    draws: int | None = None,
    disjoint: bool = True,
    candidates: int = 256,
) -> CurveSearch:
    """Search networks by Bayesian optimization on their learning curves.

    Each ask returns `batch` networks to train up to their next checkpoint. Networks trained to the
    end are no longer candidates; the best network is one of them. A network that diverges is not
    trained further, but its earlier values are kept. The defaults were chosen by
    experiments/beyond/curve_defaults.py on synthetic power-law curves.

    Args:
        space: The space of networks to search.
        steps: The number of training steps up to each checkpoint, increasing.
        model: A model of the curves: `curves.autoregressive()` (default; with Hutchinson's GPAR in
            the published variant), `curves.freeze_thaw()` or `curves.power_law()`.
        acquisition: "ei", "pi" or, in the published variant only, "ucb": the acquisition of the
            final value of a network, compared with the best final value so far.
        variant: The score that is maximized over networks. "published": the acquisition itself,
            regardless of the training cost (Hutchinson, Algorithm 2); it starts many networks and
            completes few. "rate": the acquisition per training step to the end, so that promising
            networks are completed first. "checkpoint": the highest acquisition per training step if
            training can stop at a later checkpoint (`curve_scores.checkpoint_score`).
        initial: The number of networks in the initial design, a shifted Sobol sequence. Default: 8,
            or 5 with thinning=1.
        thinning: At each checkpoint of the initial design, the best one in `thinning` networks
            continues, until one is complete. Default: 2; 1 for "published", which trains all to the
            end.
        batch: The number of networks per ask.
        draws: The number of curves drawn per ask. Default: 256; 50 for "published". 10 or 3 is
            Hutchinson's under-sampling.
        disjoint: In the published variant, give each network of a batch its own draws, as Algorithm
            2 does; the authors' code uses one set of 50.
        candidates: The number of random new networks to compare per ask. In a space of up to 512
            points, all points are compared.
    """
    check_space(space)
    steps = check_steps(steps)
    _check_variant(variant, acquisition)
    draws = _DRAWS[variant] if draws is None else draws
    thinning = _THINNING[variant] if thinning is None else thinning
    if initial is None:
        initial = int(min(5 if thinning == 1 else 8, space.size))
    if min(initial, thinning, batch, draws - 1, candidates) < 1:
        raise ValueError(
            "initial, thinning, batch and candidates must be at least 1, and draws at least 2; "
            f"got initial={initial}, thinning={thinning}, batch={batch}, candidates={candidates}, "
            f"draws={draws}"
        )
    if max(batch, initial) > space.size:
        raise ValueError(
            f"the space has {space.size} networks, too few for batch={batch} and initial={initial}"
        )
    if not is_small(space) and batch > candidates:
        raise ValueError(
            f"batch must be at most the number of candidates, {candidates}; got {batch}"
        )
    if model is None:
        model = autoregressive(gpar()) if variant == "published" else autoregressive()
    _check_model(model)
    return CurveSearch(
        space=space,
        steps=steps,
        model=model,
        acquisition=acquisition,
        variant=variant,
        initial=initial,
        thinning=thinning,
        batch=batch,
        draws=draws,
        disjoint=disjoint,
        candidates=candidates,
    )


def _check_model(model: Any) -> None:
    """Raise a ValueError unless the argument is a curve model."""
    if isinstance(model, GPAR):
        raise ValueError(
            "expected a curve model; got a GPAR: use curves.autoregressive(gpar)"
        )
    if not isinstance(model, CurveModel):
        raise ValueError(
            "expected a curve model, such as curves.autoregressive() or curves.power_law(); "
            f"got {model!r}"
        )


def _check_variant(variant: str, acquisition: str) -> None:
    """Raise a ValueError for an unknown variant, or an acquisition that it does not support."""
    if variant not in VARIANTS:
        raise ValueError(
            f"variant must be one of {', '.join(VARIANTS)}; got {variant!r}"
        )
    names = ACQUISITIONS if variant == "published" else LOG_ACQUISITIONS
    if acquisition not in names:
        raise ValueError(
            f"acquisition of the variant {variant!r} must be one of {', '.join(names)}; "
            f"got {acquisition!r}"
        )
