"""Add-GP-UCB: search in many dimensions as many searches in few (Kandasamy, Schneider & Póczos 2015; G-D8, G-F4)."""

from collections.abc import Iterable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.typing import ArrayLike

from bonas.acquire.acquisition import Acquisition, Outlook
from bonas.acquire.batch import Imagine, believer
from bonas.acquire.maximise import Pick
from bonas.gp import Kernel, predict_parts, priors
from bonas.gp.additive import ORDER, even_sizes, owners
from bonas.gp.hyper import Noise
from bonas.search.bayes import bayes
from bonas.search.outputs import Output
from bonas.search.types import Search
from bonas.spaces import Float, Space
from bonas.surrogates.additive import additive, check_plain

_STARTS = 4  # rows of each group that climb
_STEPS = 10  # of Adam, a hundredth of the range each: candidates lie closer than that to an optimum of two columns
_RATE = 0.01
_WEIGHT = 0.2  # of the paper's schedule


def add_gp_ucb(
    space: Space,
    *,
    groups: str | Iterable[Iterable[int]] = "learned",
    size: int = 2,
    base: Kernel | None = None,
    noise: Noise = priors.log_normal_noise,
    kappa: float | None = None,
    every: int = 5,
    initial: int | ArrayLike = 5,
    batch: int = 1,
    pending: Imagine = believer,
    output: str | Output | tuple[str | Output, ...] | None = None,
) -> Search:
    """Bayesian optimisation of a sum of functions of few columns each, one group of columns after the other.

    The bound Σ_j (mean_j − kappa std_j) is a sum over groups, each of which is minimised on its own. As Σ_j std_j is more than
    the std of the sum, it explores more than the bound of the sum would.

    groups: disjoint groups of all columns, such as [(0, 3), (1, 2)]; or "learned", of `size` columns each, by evidence at
        every `every`-th ask (`surrogates.additive`).
    base: the kernel of a group (default Matérn 5/2).
    kappa: by default √(0.2 size log 2t) at evaluation t, as in the paper's experiments.
    The others are those of `bayes`. Parameters that come and go, Choices of more than two options and listed spaces are
    refused.
    """
    check_plain(space)
    if kappa is not None and not kappa >= 0.0:
        raise ValueError(f"kappa is at least 0; got {kappa}")
    known = groups if isinstance(groups, str) else tuple(tuple(group) for group in groups)
    model = additive(known, size=min(size, space.dim), base=base, noise=noise, every=every)
    sizes = (
        even_sizes(space.dim, min(size, space.dim))
        if isinstance(known, str)
        else tuple(sorted((len(group) for group in known), reverse=True))
    )
    return bayes(
        space,
        surrogate=model,
        acquisition=_group_by_group(space, sizes, kappa),
        initial=initial,
        batch=batch,
        pending=pending,
        output=output,
    )


@cache
def _group_by_group(space: Space, sizes: tuple[int, ...], kappa: float | None) -> Acquisition:
    climbs = np.array([isinstance(p, Float) and p.low < p.high for p in space.parameters.values()])

    def pick(key: Array, outlook: Outlook, memory) -> tuple[Pick, tuple]:
        posterior = jax.tree.map(lambda leaf: leaf[0], outlook.imagined.posterior)
        owner = owners(posterior.params[ORDER], sizes)
        step = jnp.maximum(outlook.data.size, 1).astype(posterior.alpha.dtype)
        weight = jnp.sqrt(_WEIGHT * sizes[0] * jnp.log(2.0 * step)) if kappa is None else kappa

        def score(x: Array) -> Array:
            """Of each group (g, m), at points (m, d) of which it sees its own columns."""
            mean, std = predict_parts(posterior, x)
            return weight * std - mean

        points = outlook.candidates(key)
        scores = score(points)
        best, found = _climb(score, *_together(points, scores, owner, _STARTS), climbs, owner)
        best, found = _together(best, found, owner, len(best))
        every = jnp.concatenate([best, points])
        return outlook.choose(every, jnp.concatenate([found.sum(axis=0), scores.sum(axis=0)])), memory

    return Acquisition(pick=pick)


def _together(points: Array, scores: Array, owner: Array, k: int) -> tuple[Array, Array]:
    """k points (k, d), of which the i-th has the i-th best columns of each group, and the groups' scores (g, k) there."""
    top, rows = jax.lax.top_k(jnp.where(jnp.isnan(scores), -jnp.inf, scores), k)
    return jnp.take_along_axis(points, rows[owner].T, axis=0), top


def _climb(score, points: Array, begun: Array, climbs: np.ndarray, owner: Array) -> tuple[Array, Array]:
    """The best columns of each group that projected Adam comes across, from each of the points (k, d), and their scores (g, k).

    The sum of all scores has the gradient of each in its own columns, so that all groups climb at once.
    """
    adam = optax.adam(_RATE)
    slope = jax.value_and_grad(lambda z: (lambda each: (-each.sum(), each))(score(z)), has_aux=True)

    def step(carry, _):
        z, state, best, top = carry
        (_, scores), gradient = slope(z)
        better = scores > top
        best, top = jnp.where(better[owner].T, z, best), jnp.where(better, scores, top)
        move, state = adam.update(jnp.where(climbs[None, :], jnp.nan_to_num(gradient), 0.0), state)
        return (jnp.clip(z + jnp.where(climbs[None, :], move, 0.0), 0.0, 1.0), state, best, top), None

    (_, _, best, top), _ = jax.lax.scan(step, (points, adam.init(points), points, begun), None, length=_STEPS + 1)
    return best, top
