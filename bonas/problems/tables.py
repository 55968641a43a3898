"""Learning curves that somebody has recorded, replayed as an objective: training costs nothing, and every search meets the
same networks.

A curve is what is minimised at each of c checkpoints. Where a network was trained several times, an evaluation meets one of
its runs, drawn by the key: a search that gives a network the same key at all its checkpoints goes along one run.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.data import empty
from bonas.gp import Known, gpar
from bonas.spaces import Int, Listed, Space

# Depths and widths of the synthetic search, and its steps: Hutchinson's checkpoints (H-S10, H-E4).
_DEPTHS = range(1, 6)
_WIDTHS = (*range(1, 10), *range(10, 100, 5), *range(100, 1000, 50))
_STEPS = (1000, 4000, 50000)


class Table(NamedTuple):
    """Networks and what became of them as they were trained; made by `table` or `repeated`, which check it."""

    space: Listed  # of which only these networks exist
    x: Array  # (n, d) rows of the unit cube, each once
    steps: Array  # (c,) int: training steps at each checkpoint, increasing
    values: Array  # (n, s, c) what is minimised, of s runs; NaN from the checkpoint at which training diverged


def table(space: Listed, steps: Sequence[int] | Array, values: ArrayLike) -> Table:
    """The table of the networks that `space` lists, in its order; values are (n, s, c), or (n, c) for one run of each."""
    at, values, n = np.asarray(steps), np.asarray(values, float), len(space.rows)
    _check_steps(at)
    values = values[:, None, :] if values.ndim == 2 else values
    if values.ndim != 3 or (len(values), values.shape[2]) != (n, len(at)) or not values.shape[1]:
        raise ValueError(
            f"expected values of shape ({n}, runs, {len(at)}), one network a row of the space and one number a checkpoint; "
            f"got {values.shape}"
        )
    _check_curves(values)
    return Table(space, space.points(), jnp.asarray(at), jnp.asarray(values))


def repeated(space: Space, rows: ArrayLike, steps: Sequence[int] | Array, curves: ArrayLike) -> Table:
    """The table of curves (m, c) of networks at rows (m, d) of the space, of which some may have been trained repeatedly.

    Rows that are equal are runs of one network. There are as many runs as the network trained most often has: the others'
    are gone through again, in turn, so that none is lost and each is drawn about as often.
    """
    rows, curves = np.asarray(rows, float), np.asarray(curves, float)
    if curves.ndim != 2 or len(curves) != len(rows):
        raise ValueError(f"expected a curve for each of {len(rows)} rows, (m, c); got {curves.shape}")
    first, which, times = np.unique(rows.round(6), axis=0, return_index=True, return_inverse=True, return_counts=True)[1:]
    runs = [np.flatnonzero(which.ravel() == i) for i in np.argsort(first)]  # networks in the order in which they appear
    chosen = np.stack([np.resize(of, times.max()) for of in runs])
    return table(Listed(space, rows[np.sort(first)]), steps, curves[chosen])


def objective(table: Table) -> Callable[[Array, Array, ArrayLike], Array]:
    """objective(key, x (d,), step ()) -> the value () at a checkpoint, counted from 0, of the run that the key draws.

    NaN where training had diverged; no checkpoint, none counted from the end either, is NaN too.
    """
    runs = table.values.shape[1]

    def look_up(key: Array, x: Array, step: ArrayLike) -> Array:
        run = jax.random.randint(key, (), 0, runs)
        found = table.values[table.space.row(x), run]
        step = jnp.asarray(step)
        return found.at[jnp.where(step < 0, len(found), step)].get(mode="fill", fill_value=jnp.nan)

    return look_up


def checkpoints(table: Table, steps: Sequence[int], *, average: int = 1) -> Table:
    """The table with these of its checkpoints alone, each the mean of the last `average` values up to it.

    Hutchinson keeps 1000, 4000 and the last step, averaged over 20 by the thesis and 50 by its code (H-S6, H-X11). A mean over
    a checkpoint at which training had diverged is NaN.
    """
    there, wanted = np.asarray(table.steps), np.asarray(steps)
    _check_steps(wanted)
    missing = wanted[~np.isin(wanted, there)]
    if len(missing):
        raise ValueError(f"no checkpoint at step {missing[0]}; there are {', '.join(map(str, there))}")
    ends = np.searchsorted(there, wanted)
    if not 1 <= average <= ends[0] + 1:
        raise ValueError(f"average is from 1 to the {ends[0] + 1} checkpoints up to step {wanted[0]}; got {average}")
    windows = ends[:, None] - np.arange(average)[None, :]
    return Table(table.space, table.x, jnp.asarray(wanted), table.values[:, :, windows].mean(axis=3))


def gpar_prior(key: Array, *, runs: int = 1, slope: float = 0.1, noise: float = 0.01) -> Table:
    """A draw from the prior of the model that a GPAR search assumes: 225 pairs of depth and width, 3 checkpoints (H-S10).

    The length scales are 2 layers and half a power of ten of the width, and the variance is 1. Every output depends linearly
    on all before it, with slopes of standard deviation `slope`: by default so little that a checkpoint says next to nothing of
    the next one; 1 makes curves that go on as they began. `noise` is a variance, drawn anew in every run. The prior is
    symmetric, so that it makes no difference whether such values are minimised or maximised.
    """
    model, p = gpar(markov=None), len(_STEPS)
    pairs = np.array([(depth, width) for depth in _DEPTHS for width in _WIDTHS], float)
    places = jnp.asarray(np.repeat(np.stack([pairs[:, 0], np.log10(pairs[:, 1])], axis=1), runs, axis=0))
    kernel = {"variance": jnp.ones(p), "lengthscale": jnp.array([2.0, 0.5]), "slope": jnp.full((p, p), slope)}
    prior = model.condition({"kernel": kernel, "noise": jnp.full(p, noise)}, empty(1, 2, p))
    draw = jax.jit(lambda key, seen: model.sample(key, prior, places, 1, seen)[0])
    y = jnp.zeros((len(places), p))
    for i in range(p):  # each layer sees the noisy values that the table holds
        layer_key, noise_key = jax.random.split(jax.random.fold_in(key, i))
        seen = Known(y, jnp.broadcast_to(jnp.arange(p)[None, :] < i, y.shape))
        latent = draw(layer_key, seen)[:, i]
        y = y.at[:, i].set(latent + jnp.sqrt(noise) * jax.random.normal(noise_key, latent.shape))
    space = Space(depth=Int(_DEPTHS[0], _DEPTHS[-1]), width=Int(_WIDTHS[0], _WIDTHS[-1], log=True))
    unit = [parameter.unit(jnp.asarray(column)) for parameter, column in zip(space.parameters.values(), pairs.T, strict=True)]
    return table(Listed(space, np.stack(unit, axis=1)), _STEPS, y.reshape(len(pairs), runs, p))


def _check_steps(steps: np.ndarray) -> None:
    if steps.ndim != 1 or not len(steps) or steps.dtype.kind not in "iu" or steps[0] < 0 or (np.diff(steps) <= 0).any():
        raise ValueError(f"steps are whole numbers from 0 on, each above the one before; got {steps.tolist()}")


def _check_curves(values: np.ndarray) -> None:
    """A ValueError that names the row and the run of a curve that goes on after it diverged, or is infinite."""
    gone = np.isnan(values)
    for wrong, what in (
        (np.isinf(values).any(axis=2), "an infinite value; a network that diverged is NaN from there on"),
        ((gone[:, :, :-1] & ~gone[:, :, 1:]).any(axis=2), "a number after a NaN; a network that diverged stays so"),
    ):
        if wrong.any():
            row, run = np.argwhere(wrong)[0]
            raise ValueError(f"row {row}, run {run} has {what}: {values[row, run]}")
