"""What an acquisition is: from what a search knows to the point it asks for next. And those that change another's scores."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from bonas.acquire.analytic import ei, kappa_schedule, lcb, log_ei, log_pi, pi
from bonas.acquire.maximise import Pick
from bonas.data import Dataset, standardise
from bonas.gp import Prediction, matern52
from bonas.spaces import Space
from bonas.surrogates import Surrogate
from bonas.surrogates import gp as gp_surrogate

Score = Callable[[Array], Array]  # points (m, d) to scores (m,), to be maximised
ClosedForm = Callable[..., Array]  # mean (s, m), std (s, m), best (s, 1) to scores (m,), or (s, m), which are averaged


@dataclass(frozen=True)
class Outlook:
    """What a search knows when it is asked: made and used within one trace, and not a pytree."""

    model: Surrogate
    known: Any  # the model's state given the evaluations
    imagined: Any  # and given values imagined at pending points, which every acquisition but `batch_ei` looks at
    best: Array  # (s,) the least posterior mean among points asked, by hyperparameter sample: the incumbent under noise
    data: Dataset  # all points asked; values standardised
    pending: Array  # (n,) bool
    failed: Array  # (n,) bool
    cost: Array  # (n,) of the evaluations, in any unit
    climb: Callable[[Array, Score], Pick]  # (key, score) -> the point with the highest score
    candidates: Callable[[Array], Array]  # key -> (m, d) points over the whole space and around the best
    choose: Callable[[Array, Array], Pick]  # (points (m, d), scores (m,)) -> the best of those not tried before

    def predict(self, x: Array) -> Prediction:
        """Mean and std (s, m) at x (m, d), pending points imagined."""
        return self.model.predict(self.imagined, x)


def no_memory(capacity: int, d: int) -> tuple:
    """What an acquisition carries that carries nothing."""
    return ()


@jax.tree_util.register_static
@dataclass(frozen=True)
class Acquisition:
    """A way to choose the next point. Static: it may be passed to any jitted function.

    score: (key, Outlook, memory) -> (Score, memory): what is drawn at random is drawn once an ask.
    pick: (key, Outlook, memory) -> (Pick, memory), where there is more to choosing than climbing a score.
    init: (capacity, d) -> memory, what it carries from ask to ask.
    adapt: space -> Acquisition, where it has models of its own that must know which columns are options; see `adapted`.
    """

    score: Callable[[Array, Outlook, Any], tuple[Score, Any]] | None = None
    pick: Callable[[Array, Outlook, Any], tuple[Pick, Any]] | None = None
    init: Callable[[int, int], Any] = no_memory
    adapt: Callable[[Space], "Acquisition"] | None = None


@cache
def closed(function: ClosedForm, **settings) -> Acquisition:
    """The acquisition of a closed form, such as closed(log_ei, xi=0.01). A search does this to a bare function itself.

    It is given mean and std (s, m) of s samples of the hyperparameters at m points, and the incumbent best (s, 1). Scores
    of every sample are averaged; those that are averaged already, (m,), are taken as they are.
    """

    def score(key, outlook: Outlook, memory):
        def scores(x: Array) -> Array:
            mean, std = outlook.predict(x)
            found = jnp.asarray(function(mean, std, outlook.best[:, None], **settings))
            if found.shape == mean.shape:
                return found.mean(axis=0)
            if found.shape == mean.shape[1:]:
                return found
            raise ValueError(
                f"an acquisition has a score for each point: of mean and std {mean.shape}, samples of the hyperparameters and "
                f"points, it makes {mean.shape[1:]}, or {mean.shape} to be averaged; got {found.shape}"
            )

        return scores, memory

    return Acquisition(score)


def as_acquisition(given: Acquisition | ClosedForm) -> Acquisition:
    """An acquisition as it is, a function of mean, std and best made into one."""
    if isinstance(given, Acquisition):
        return given
    if not callable(given):
        raise ValueError(f"expected an acquisition, or a function of mean, std and best such as bonas.log_ei; got {given!r}")
    return closed(given)


def adapted(given: Acquisition | ClosedForm, space: Space) -> Acquisition:
    """The acquisition for a space: its own models, and those of what it wraps, are told of options and conditions."""
    acquisition = as_acquisition(given)
    return acquisition.adapt(space) if acquisition.adapt else acquisition


def pick(acquisition: Acquisition, key: Array, outlook: Outlook, memory: Any) -> tuple[Pick, Any]:
    """The point an acquisition asks for, and what it will remember."""
    if acquisition.pick is not None:
        return acquisition.pick(key, outlook, memory)
    score_key, climb_key = jax.random.split(key)
    score, memory = _score_of(acquisition)(score_key, outlook, memory)
    return outlook.climb(climb_key, score), memory


def _score_of(acquisition: Acquisition):
    if acquisition.score is None:
        raise ValueError("this acquisition picks points without scoring them, so nothing can be added to its score")
    return acquisition.score


@cache
def scheduled_lcb(delta: float = 0.1) -> Acquisition:
    """Lower confidence bound with kappa growing by `kappa_schedule`: Brochu, Cora & de Freitas 2010 (H-F1)."""

    def score(key, outlook: Outlook, memory):
        kappa = kappa_schedule(jnp.maximum(outlook.data.size, 1), outlook.data.x.shape[1], delta)
        return lambda x: lcb(*outlook.predict(x), outlook.best, kappa=kappa), memory

    return Acquisition(score)


@cache
def penalised(base: Acquisition | ClosedForm, penalty: Callable[[Array], Array], *, weight: float = 1.0) -> Acquisition:
    """base − weight · penalty(u) with a penalty () of a point u (d,): against needlessly large networks (W-F3).

    With log-EI and the logarithm of a network's size, a weight of 1 asks for improvement per parameter.
    """
    inner = as_acquisition(base)

    def score(key, outlook: Outlook, memory):
        plain, memory = _score_of(inner)(key, outlook, memory)
        return lambda x: plain(x) - weight * jax.vmap(penalty)(x), memory

    return Acquisition(score, init=inner.init, adapt=lambda space: penalised(adapted(inner, space), penalty, weight=weight))


@cache
def per_second(base: Acquisition | ClosedForm = log_ei, *, model: Surrogate | None = None) -> Acquisition:
    """Expected improvement per second: base − E log cost(u), the cost learned by a model of its logarithm (T-F1).

    Snoek, Larochelle & Adams 2012, Section 3.2. The cost is Trial.cost; base is a logarithm, such as log_ei.
    """
    inner, costs = _log_scaled(base, "per_second"), model or gp_surrogate()

    def init(capacity: int, d: int):
        return inner.init(capacity, d), costs.init(capacity, d, 1)

    def score(key, outlook: Outlook, memory):
        base_key, fit_key = jax.random.split(key)
        plain, base_memory = _score_of(inner)(base_key, outlook, memory[0])
        known = outlook.data.mask & (outlook.cost > 0.0)[:, None]
        logs = jnp.log(jnp.where(known[:, 0], outlook.cost, 1.0))[:, None]
        scaled, _, scale = standardise(outlook.data._replace(y=logs, mask=known))
        fitted, _ = costs.fit(fit_key, scaled, memory[1])
        # the mean of the logarithms adds the same to every score
        return lambda x: plain(x) - scale * costs.predict(fitted, x).mean.mean(axis=0), (base_memory, fitted)

    def adapt(space: Space) -> Acquisition:
        return per_second(adapted(inner, space), model=costs.adapt(space) if costs.adapt else costs)

    return Acquisition(score, init=init, adapt=adapt)


@cache
def feasible(base: Acquisition | ClosedForm = log_ei, *, model: Surrogate | None = None) -> Acquisition:
    """base + log P(an evaluation succeeds), learned from those that did and failed; base is a logarithm, such as log_ei.

    Successes are 1 and failures −1 to a model of its own, and P is the probability that its latent value is positive:
    least-squares classification, Rasmussen & Williams 2006, Section 6.5. By default a Matérn 5/2 GP whose priors expect
    regions and not points: labels jump, and a model free to do so would learn nothing from neighbours. Nothing is added
    before the first failure.
    """
    inner, labels = _log_scaled(base, "feasible"), model or gp_surrogate(matern52(_firm), noise=_FUZZY)

    def init(capacity: int, d: int):
        return inner.init(capacity, d), labels.init(capacity, d, 1)

    def score(key, outlook: Outlook, memory):
        base_key, fit_key = jax.random.split(key)
        plain, base_memory = _score_of(inner)(base_key, outlook, memory[0])
        failed, done = outlook.failed[:, None], (outlook.data.mask[:, 0] & ~outlook.pending | outlook.failed)[:, None]
        fitted, _ = labels.fit(fit_key, outlook.data._replace(y=jnp.where(failed, -1.0, 1.0), mask=done), memory[1])

        def total(x):
            mean, std = labels.predict(fitted, x)
            return plain(x) + jnp.where(failed.any(), log_pi(-mean, std, 0.0), 0.0)

        return total, (base_memory, fitted)

    def adapt(space: Space) -> Acquisition:
        return feasible(adapted(inner, space), model=labels.adapt(space) if labels.adapt else labels)

    return Acquisition(score, init=init, adapt=adapt)


_FUZZY = dist.LogNormal(math.log(0.05), 0.5)  # variance of labels about the latent function, along the border of a region


def _firm(d: int) -> dict:
    """Length scales that stay near half the diagonal of the cube."""
    return {
        "variance": dist.LogNormal(0.0, 0.5),
        "lengthscale": dist.LogNormal(math.log(0.5) + 0.5 * math.log(d), 0.25).expand([d]),
    }


def _log_scaled(base, name: str) -> Acquisition:
    if base in (ei, pi):
        raise ValueError(f"{name} adds a logarithm to the score: give it log_ei or log_pi, not {base.__name__}")
    return as_acquisition(base)
