"""What every search is: three functions, what they take, and what they tell."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from bonas.spaces import Space


class Trial(NamedTuple):
    """One evaluation."""

    x: Array  # (d,) a point that exists: within the unit cube, 0 in inactive columns
    y: Array  # () the value; ignored where not ok
    step: Array  # () checkpoint reached; 0 where there are no checkpoints
    cost: Array  # () seconds or steps spent
    ok: Array  # () bool: false is a failed evaluation


# What an ask did instead of what it was set to do, and why; `AskInfo.fallback` is a position in this list. The second is of
# any search whose initial design has all failed, the third of those that fit a model, the last of `bonas.curves` alone,
# where a NaN among the draws of a curve model would let no score be trusted.
FALLBACKS = (
    "none",
    "no evaluation has succeeded yet: a random point",
    "the fit was not finite: the last good hyperparameters were kept",
    "the model's scores were not finite: a random network",
)


class AskInfo(NamedTuple):
    """What an ask did: nothing falls back silently."""

    acquisition: Array  # () score of the point; NaN where none was computed
    flat: Array  # () bool: the acquisition did not tell the candidates apart
    jitter: Array  # () added to a covariance; 0 where none was needed
    converged: Array  # () bool: the fit reached an optimum, or its chain did not diverge
    duplicates: Array  # () int: better-scored candidates passed over because they were tried before
    exhausted: Array  # () bool: every point of a finite space has been tried, or every network that there was room for
    random: Array  # () bool: the point is of the initial design, or random
    fallback: Array  # () int: which of FALLBACKS
    output: Array  # () int: which of the output scales the values were modelled on


def ask_info(like: Array, **known: ArrayLike) -> AskInfo:
    """A report in the precision of `like`: what is not given says that nothing was computed and nothing went wrong."""
    real, whole = like.dtype, jnp.arange(1).dtype
    kinds: dict[str, Any] = {"acquisition": real, "flat": bool, "jitter": real, "converged": bool, "duplicates": whole}
    kinds |= {"exhausted": bool, "random": bool, "fallback": whole, "output": whole}
    plain: dict[str, Any] = dict.fromkeys(kinds, 0) | {"acquisition": jnp.nan, "converged": True}
    return AskInfo(**{name: jnp.asarray(value, kinds[name]) for name, value in (plain | known).items()})


def of_batch(infos: AskInfo) -> AskInfo:
    """The report of a batch from those of its points (q,): what happened to any of them; converged where all did."""
    return jax.tree.map(lambda field: field.max(axis=0), infos)._replace(converged=infos.converged.all(axis=0))


@jax.tree_util.register_static
@dataclass(frozen=True)
class Search:
    """A search. Static: it may be passed to any jitted function.

    init: (key, capacity) -> state.
    ask: (key, state) -> (x (q, d), state, AskInfo); what was asked is pending in the state.
    tell: (state, Trial) -> state; one trial at a time, in any order.
    steps: training steps up to each checkpoint, of a search that advances networks from one to the next.
    """

    space: Space
    init: Callable[[Array, int], Any]
    ask: Callable[[Array, Any], tuple[Array, Any, AskInfo]]
    tell: Callable[[Any, Trial], Any]
    steps: tuple[int, ...] | None = None


class History(NamedTuple):
    """A whole run."""

    x: Array  # (steps, d)
    y: Array  # (steps,)
    best: Array  # (steps,) running minimum of the evaluations that did not fail
    info: AskInfo  # (steps,)
    state: Any  # the search's, at the end
